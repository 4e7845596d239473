"""Kafka's error codes, as far as group coordination uses them, and the base of the kit's own errors.

Source of the codes: the protocol guide of Apache Kafka.
"""

from enum import IntEnum


class FencepostError(Exception):
    """Base of all errors that a user of the kit can cause and correct; the message is one line: what, where, how."""


class Error(IntEnum):
    """The error code of a response."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    REQUEST_TIMED_OUT = 7
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNSTABLE_OFFSET_COMMIT = 88
    UNKNOWN_TOPIC_ID = 100
    # Beyond group coordination: the bundled broker's own. Mutants replace a code by the next one in this order.
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    INVALID_TOPIC_EXCEPTION = 17
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    POLICY_VIOLATION = 44
    INVALID_PRODUCER_EPOCH = 47
    INVALID_PRODUCER_ID_MAPPING = 49
    CONCURRENT_TRANSACTIONS = 51
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_RECORD = 87


COORDINATOR_NOT_READY = frozenset(
    {Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR}
)
"""Errors that a coordinator may give instead of any response around a failover (LAT-15); clients retry."""
TRANSIENT_ERRORS = COORDINATOR_NOT_READY | {Error.CONCURRENT_TRANSACTIONS}
"""Errors of a coordinator that is not ready yet: it loads or moves, or a transaction is still ending."""

OTHER_NAMES = {48: "INVALID_TXN_STATE", 90: "PRODUCER_FENCED", 105: "TRANSACTIONAL_ID_NOT_FOUND"}
"""Names of codes that no coordinator should give to a request about a classic group, as some do."""


def error_name(code: int) -> str:
    """The name of an error code, or its number if none is known here."""
    try:
        return Error(code).name
    except ValueError:
        return OTHER_NAMES.get(code, str(code))
