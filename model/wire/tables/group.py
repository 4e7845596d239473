"""Messages of group membership and administration, and the consumer protocol that members speak through them.

`fencepost.model.wire.schema` explains the notation.
"""

TABLE = """
api FindCoordinator 10, versions 0-6, flexible 3+
  request
    key               string    0-3
    key_type          int8      1+
    coordinator_keys  []string  4+
  response
    throttle_time_ms  int32    1+
    error_code        int16    0-3
    error_message     string?  1-3
    node_id           int32    0-3
    host              string   0-3
    port              int32    0-3
    coordinators      []       4+
      key             string
      node_id         int32
      host            string
      port            int32
      error_code      int16
      error_message   string?

api JoinGroup 11, versions 0-9, flexible 6+
  request
    group_id              string
    session_timeout_ms    int32
    rebalance_timeout_ms  int32    1+  = -1
    member_id             string
    group_instance_id     string?  5+  = null
    protocol_type         string
    protocols             []
      name                string
      metadata            bytes
    reason                string?  8+  = null
  response
    throttle_time_ms     int32      2+
    error_code           int16
    generation_id        int32          = -1
    protocol_type        string?    7+  = null
    protocol_name        string?7+
    leader               string
    skip_assignment      bool       9+
    member_id            string
    members              []
      member_id          string
      group_instance_id  string?    5+  = null
      metadata           bytes

api SyncGroup 14, versions 0-5, flexible 4+
  request
    group_id           string
    generation_id      int32
    member_id          string
    group_instance_id  string?  3+  = null
    protocol_type      string?  5+  = null
    protocol_name      string?  5+  = null
    assignments        []
      member_id        string
      assignment       bytes
  response
    throttle_time_ms  int32    1+
    error_code        int16
    protocol_type     string?  5+  = null
    protocol_name     string?  5+  = null
    assignment        bytes

api Heartbeat 12, versions 0-4, flexible 4+
  request
    group_id           string
    generation_id      int32
    member_id          string
    group_instance_id  string?  3+  = null
  response
    throttle_time_ms  int32  1+
    error_code        int16

api LeaveGroup 13, versions 0-5, flexible 4+
  request
    group_id             string
    member_id            string   0-2
    members              []       3+
      member_id          string
      group_instance_id  string?       = null
      reason             string?  5+   = null
  response
    throttle_time_ms     int32    1+
    error_code           int16
    members              []       3+
      member_id          string
      group_instance_id  string?
      error_code         int16

api DescribeGroups 15, versions 0-6, flexible 5+
  request
    groups                         []string
    include_authorized_operations  bool      3+
  response
    throttle_time_ms         int32    1+
    groups                   []
      error_code             int16
      error_message          string?  6+  = null
      group_id               string
      group_state            string
      protocol_type          string
      protocol_data          string
      members                []
        member_id            string
        group_instance_id    string?  4+  = null
        client_id            string
        client_host          string
        member_metadata      bytes
        member_assignment    bytes
      authorized_operations  int32    3+  = -2147483648

api ListGroups 16, versions 0-5, flexible 3+
  request
    states_filter  []string  4+
    types_filter   []string  5+
  response
    throttle_time_ms  int32   1+
    error_code        int16
    groups            []
      group_id        string
      protocol_type   string
      group_state     string  4+
      group_type      string  5+

api DeleteGroups 42, versions 0-2, flexible 2+
  request
    groups_names  []string
  response
    throttle_time_ms  int32
    results           []
      group_id        string
      error_code      int16

data ConsumerProtocolSubscription, versions 0-3
  topics            []string
  user_data         bytes?        = null
  owned_partitions  []        1+
    topic           string
    partitions      []int32
  generation_id     int32     2+  = -1
  rack_id           string?   3+  = null

data ConsumerProtocolAssignment, versions 0-3
  assigned_partitions  []
    topic              string
    partitions         []int32
  user_data            bytes?   = null

data StickyAssignorUserData, versions 0-1
  previous_assignment  []
    topic              string
    partitions         []int32
  generation           int32  1+  = -1

data CooperativeStickyAssignorUserData, versions 0
  generation  int32  = -1
"""
