"""Messages about the records of a partition, and what a coordinator stores as records of the offsets topic.

`fencepost.model.wire.schema` explains the notation. The version of a stored key or value stands before it, in two
bytes.
"""

TABLE = """
api Produce 0, versions 3-12, flexible 9+
  request
    transactional_id  string?   = null
    acks              int16
    timeout_ms        int32
    topic_data        []
      name            string
      partition_data  []
        index         int32
        records       records?
  response
    responses                        []
      name                           string
      partition_responses            []
        index                        int32
        error_code                   int16
        base_offset                  int64
        log_append_time_ms           int64         = -1
        log_start_offset             int64    5+   = -1
        record_errors                []       8+
          batch_index                int32
          batch_index_error_message  string?       = null
        error_message                string?  8+   = null
        current_leader               struct   10+  tag 0
          leader_id                  int32         = -1
          leader_epoch               int32         = -1
    throttle_time_ms                 int32
    node_endpoints                   []       10+  tag 0
      node_id                        int32
      host                           string
      port                           int32
      rack                           string?       = null

api Fetch 1, versions 4-17, flexible 12+
  request
    cluster_id                string?  12+  = null tag 0
    replica_id                int32   4-14  = -1
    replica_state             struct  15+   tag 1
      replica_id              int32         = -1
      replica_epoch           int64         = -1
    max_wait_ms               int32
    min_bytes                 int32
    max_bytes                 int32         = 2147483647
    isolation_level           int8
    session_id                int32    7+
    session_epoch             int32    7+   = -1
    topics                    []
      topic                   string  4-12
      topic_id                uuid    13+
      partitions              []
        partition             int32
        current_leader_epoch  int32    9+   = -1
        fetch_offset          int64
        last_fetched_epoch    int32    12+  = -1
        log_start_offset      int64    5+   = -1
        partition_max_bytes   int32
        replica_directory_id  uuid    17+   tag 0
    forgotten_topics_data     []      7+
      topic                   string  7-12
      topic_id                uuid    13+
      partitions              []int32
    rack_id                   string   11+
  response
    throttle_time_ms            int32
    error_code                  int16     7+
    session_id                  int32     7+
    responses                   []
      topic                     string    4-12
      topic_id                  uuid      13+
      partitions                []
        partition_index         int32
        error_code              int16
        high_watermark          int64
        last_stable_offset      int64          = -1
        log_start_offset        int64     5+   = -1
        diverging_epoch         struct    12+  tag 0
          epoch                 int32          = -1
          end_offset            int64          = -1
        current_leader          struct    12+  tag 1
          leader_id             int32          = -1
          leader_epoch          int32          = -1
        snapshot_id             struct    12+  tag 2
          end_offset            int64          = -1
          epoch                 int32          = -1
        aborted_transactions    []?
          producer_id           int64
          first_offset          int64
        preferred_read_replica  int32     11+  = -1
        records                 records?
    node_endpoints              []        16+  tag 0
      node_id                   int32
      host                      string
      port                      int32
      rack                      string?        = null

api ListOffsets 2, versions 1-11, flexible 6+
  request
    replica_id                int32
    isolation_level           int8    2+
    topics                    []
      name                    string
      partitions              []
        partition_index       int32
        current_leader_epoch  int32   4+   = -1
        timestamp             int64
    timeout_ms                int32   10+
  response
    throttle_time_ms     int32   2+
    topics               []
      name               string
      partitions         []
        partition_index  int32
        error_code       int16
        timestamp        int64       = -1
        offset           int64       = -1
        leader_epoch     int32   4+  = -1

data OffsetCommitKey, versions 0-1
  group      string
  topic      string
  partition  int32

data GroupMetadataKey, versions 2
  group      string

data OffsetCommitValue, versions 0-4, flexible 4+
  offset            int64
  leader_epoch      int32   3+  = -1
  metadata          string
  commit_timestamp  int64
  expire_timestamp  int64   1   = -1

data GroupMetadataValue, versions 0-4, flexible 4+
  protocol_type            string
  generation               int32
  protocol                 string?
  leader                   string?
  current_state_timestamp  int64    2+  = -1
  members                  []
    member_id              string
    group_instance_id      string?  3+  = null
    client_id              string
    client_host            string
    rebalance_timeout      int32    1+  = -1
    session_timeout        int32
    subscription           bytes
    assignment             bytes
"""
