"""Message headers, and messages about the cluster: versions, topics, configuration, SASL (KIP-152, KIP-368).

`fencepost.model.wire.schema` explains the notation.
"""

TABLE = """
api ApiVersions 18, versions 0-4, flexible 3+
  request
    client_software_name     string  3+
    client_software_version  string  3+
  response
    error_code                int16
    api_keys                  []
      api_key                 int16
      min_version             int16
      max_version             int16
    throttle_time_ms          int32   1+
    supported_features        []      3+  tag 0
      name                    string
      min_version             int16
      max_version             int16
    finalized_features_epoch  int64   3+  = -1 tag 1
    finalized_features        []      3+  tag 2
      name                    string
      max_version_level       int16
      min_version_level       int16
    zk_migration_ready        bool    3+  tag 3

api Metadata 3, versions 0-13, flexible 9+
  request
    topics                                 []?1+
      topic_id                             uuid        10+
      name                                 string?10+
    allow_auto_topic_creation              bool        4+    = true
    include_cluster_authorized_operations  bool        8-10
    include_topic_authorized_operations    bool        8+
  response
    throttle_time_ms               int32       3+
    brokers                        []
      node_id                      int32
      host                         string
      port                         int32
      rack                         string?     1+    = null
    cluster_id                     string?     2+    = null
    controller_id                  int32       1+    = -1
    topics                         []
      error_code                   int16
      name                         string?12+
      topic_id                     uuid        10+
      is_internal                  bool        1+
      partitions                   []
        error_code                 int16
        partition_index            int32
        leader_id                  int32
        leader_epoch               int32       7+    = -1
        replica_nodes              []int32
        isr_nodes                  []int32
        offline_replicas           []int32     5+
      topic_authorized_operations  int32       8+    = -2147483648
    cluster_authorized_operations  int32       8-10  = -2147483648
    error_code                     int16       13+

api CreateTopics 19, versions 0-7, flexible 5+
  request
    topics                []
      name                string
      num_partitions      int32
      replication_factor  int16
      assignments         []
        partition_index   int32
        broker_ids        []int32
      configs             []
        name              string
        value             string?
    timeout_ms            int32        = 60000
    validate_only         bool     1+
  response
    throttle_time_ms           int32    2+
    topics                     []
      name                     string
      topic_id                 uuid     7+
      error_code               int16
      error_message            string?  1+
      topic_config_error_code  int16    5+  tag 0
      num_partitions           int32    5+  = -1
      replication_factor       int16    5+  = -1
      configs                  []?      5+
        name                   string
        value                  string?
        read_only              bool
        config_source          int8         = -1
        is_sensitive           bool

api CreatePartitions 37, versions 0-3, flexible 2+
  request
    topics           []
      name           string
      count          int32
      assignments    []?
        broker_ids   []int32
    timeout_ms       int32   = 60000
    validate_only    bool
  response
    throttle_time_ms  int32
    results           []
      name            string
      error_code      int16
      error_message   string?

api DeleteTopics 20, versions 1-5, flexible 4+
  request
    topic_names         []string
    timeout_ms          int32     = 60000
  response
    throttle_time_ms    int32
    responses           []
      name              string
      error_code        int16
      error_message     string?  5+

api DescribeConfigs 32, versions 0-4, flexible 4+
  request
    resources              []
      resource_type        int8
      resource_name        string
      configuration_keys   []string?
    include_synonyms       bool       1+
    include_documentation  bool       3+
  response
    throttle_time_ms   int32
    results            []
      error_code       int16
      error_message    string?
      resource_type    int8
      resource_name    string
      configs          []
        name           string
        value          string?
        read_only      bool
        config_source  int8     1+  = -1
        is_default     bool     0
        is_sensitive   bool
        synonyms       []       1+
          name         string
          value        string?
          source       int8
        config_type    int8     3+
        documentation  string?  3+

data RequestHeader, versions 1-2, flexible 2+
  request_api_key      int16
  request_api_version  int16
  correlation_id       int32
  client_id            string?   rigid

data ResponseHeader, versions 0-1, flexible 1+
  correlation_id  int32

api SaslHandshake 17, versions 0-1
  request
    mechanism  string
  response
    error_code  int16
    mechanisms  []string

api SaslAuthenticate 36, versions 0-2, flexible 2+
  request
    auth_bytes  bytes
  response
    error_code           int16
    error_message        string?
    auth_bytes           bytes
    session_lifetime_ms  int64    1+
"""
