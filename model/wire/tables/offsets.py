"""Messages about committed offsets, and of transactions.

`fencepost.model.wire.schema` explains the notation.
"""

TABLE = """
api OffsetCommit 8, versions 0-10, flexible 8+
  request
    group_id                       string
    generation_id_or_member_epoch  int32    1+   = -1
    member_id                      string   1+
    group_instance_id              string?  7+   = null
    retention_time_ms              int64    2-4  = -1
    topics                         []
      name                         string   0-9
      topic_id                     uuid     10+
      partitions                   []
        partition_index            int32
        committed_offset           int64
        committed_leader_epoch     int32    6+   = -1
        commit_timestamp           int64    1    = -1
        committed_metadata         string?
  response
    throttle_time_ms     int32   3+
    topics               []
      name               string  0-9
      topic_id           uuid    10+
      partitions         []
        partition_index  int32
        error_code       int16

api OffsetFetch 9, versions 0-10, flexible 6+
  request
    group_id               string   0-7
    topics                 []?2+    0-7
      name                 string
      partition_indexes    []int32
    groups                 []       8+
      group_id             string
      member_id            string?  9+   = null
      member_epoch         int32    9+   = -1
      topics               []?
        name               string   8-9
        topic_id           uuid     10+
        partition_indexes  []int32
    require_stable         bool     7+
  response
    throttle_time_ms              int32    3+
    topics                        []       0-7
      name                        string
      partitions                  []
        partition_index           int32
        committed_offset          int64
        committed_leader_epoch    int32    5+   = -1
        metadata                  string?
        error_code                int16
    error_code                    int16    2-7
    groups                        []       8+
      group_id                    string
      topics                      []
        name                      string   8-9
        topic_id                  uuid     10+
        partitions                []
          partition_index         int32
          committed_offset        int64
          committed_leader_epoch  int32         = -1
          metadata                string?
          error_code              int16
      error_code                  int16

api OffsetDelete 47, versions 0
  request
    group_id             string
    topics               []
      name               string
      partitions         []
        partition_index  int32
  response
    error_code           int16
    throttle_time_ms     int32
    topics               []
      name               string
      partitions         []
        partition_index  int32
        error_code       int16

api TxnOffsetCommit 28, versions 0-5, flexible 3+
  request
    transactional_id            string
    group_id                    string
    producer_id                 int64
    producer_epoch              int16
    generation_id               int32    3+  = -1
    member_id                   string   3+
    group_instance_id           string?  3+  = null
    topics                      []
      name                      string
      partitions                []
        partition_index         int32
        committed_offset        int64
        committed_leader_epoch  int32    2+  = -1
        committed_metadata      string?
  response
    throttle_time_ms     int32
    topics               []
      name               string
      partitions         []
        partition_index  int32
        error_code       int16

api InitProducerId 22, versions 0-5, flexible 2+
  request
    transactional_id        string?
    transaction_timeout_ms  int32
    producer_id             int64    3+  = -1
    producer_epoch          int16    3+  = -1
  response
    throttle_time_ms  int32
    error_code        int16
    producer_id       int64  = -1
    producer_epoch    int16

api AddPartitionsToTxn 24, versions 0-3, flexible 3+
  request
    v3_and_below_transactional_id  string
    v3_and_below_producer_id       int64
    v3_and_below_producer_epoch    int16
    v3_and_below_topics            []
      name                         string
      partitions                   []int32
  response
    throttle_time_ms               int32
    results_by_topic_v3_and_below  []
      name                         string
      results_by_partition         []
        partition_index            int32
        partition_error_code       int16

api AddOffsetsToTxn 25, versions 0-4, flexible 3+
  request
    transactional_id  string
    producer_id       int64
    producer_epoch    int16
    group_id          string
  response
    throttle_time_ms  int32
    error_code        int16

api EndTxn 26, versions 0-5, flexible 3+
  request
    transactional_id  string
    producer_id       int64
    producer_epoch    int16
    committed         bool
  response
    throttle_time_ms  int32
    error_code        int16
    producer_id       int64  5+  = -1
    producer_epoch    int16  5+  = -1
"""
