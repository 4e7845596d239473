"""Kafka's error codes, as far as this broker gives them out itself."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """Error codes under Kafka's names."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_TOPIC_EXCEPTION = 17
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_RECORD = 87
    UNKNOWN_TOPIC_ID = 100
