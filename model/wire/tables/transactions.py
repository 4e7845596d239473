"""Messages of transactions; `TxnOffsetCommit` is among the offsets.

`fencepost.model.wire.schema` explains the notation.
"""

TABLE = """
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
