"""The rules of the offset calls."""

from types import MappingProxyType

from fencepost.model.classic.rules.rule import FENCED, ILLEGAL, REBALANCE, UNKNOWN, rule
from fencepost.model.errors import Error

COMMIT = (
    rule(
        "commit.nothing-to-ask",
        "OffsetCommit",
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        "no partition named exists",
        "COMMIT-14 COMMIT-13",
    ),
    rule(
        "commit.unknown-group",
        "OffsetCommit",
        ILLEGAL,
        "the group does not exist and the commit claims a generation",
        "COMMIT-11",
    ),
    rule(
        "commit.empty",
        "OffsetCommit",
        Error.NONE,
        "the commit claims no generation and the group has no members",
        "COMMIT-07 COMMIT-08",
        MappingProxyType({"partitions": "COMMIT-22"}),
    ),
    rule(
        "commit.simple-in-active",
        "OffsetCommit",
        UNKNOWN,
        "the commit claims neither generation nor member and the group has members",
        "COMMIT-09",
    ),
    rule(
        "commit.unknown-member",
        "OffsetCommit",
        UNKNOWN,
        "the member id or instance id is not in the group",
        "COMMIT-05 COMMIT-29",
    ),
    rule("commit.fenced", "OffsetCommit", FENCED, "the instance id belongs to another member id", "COMMIT-21"),
    rule(
        "commit.other-generation",
        "OffsetCommit",
        ILLEGAL,
        "the generation is not the group's",
        "COMMIT-04 COMMIT-10 GEN-15",
    ),
    rule(
        "commit.completing",
        "OffsetCommit",
        REBALANCE,
        "the group waits for its leader's assignments",
        "COMMIT-03",
    ),
    rule(
        "commit.version-0",
        "OffsetCommit",
        Error.UNSUPPORTED_VERSION,
        "the commit is of version 0, whose offsets lived elsewhere",
        "COMMIT-27",
    ),
    rule("commit.preparing", "OffsetCommit", Error.NONE, "a member commits during the join phase", "COMMIT-02"),
    rule("commit.stable", "OffsetCommit", Error.NONE, "a member commits in a stable group", "COMMIT-01"),
    rule(
        "transaction.nothing-to-ask",
        "TxnOffsetCommit",
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        "no partition named exists",
        "COMMIT-13",
    ),
    rule("transaction.invalid-group", "TxnOffsetCommit", Error.INVALID_GROUP_ID, "the group id is empty", "FETCH-10"),
    rule(
        "transaction.unknown-group",
        "TxnOffsetCommit",
        ILLEGAL,
        "the group does not exist and the commit claims a generation",
        "COMMIT-11",
    ),
    rule(
        "transaction.simple",
        "TxnOffsetCommit",
        Error.NONE,
        "the commit claims neither generation nor member",
        "FETCH-10",
    ),
    rule("transaction.member", "TxnOffsetCommit", Error.NONE, "a member commits in its generation", "FETCH-10"),
    rule("transaction.fenced", "TxnOffsetCommit", UNKNOWN, "the member or its generation is not current", "COMMIT-05"),
    rule(
        "transaction.old-epoch",
        "TxnOffsetCommit",
        Error.INVALID_PRODUCER_EPOCH,
        "the group knows a newer epoch of the producer",
        "COMMIT-31",
    ),
    rule(
        "transaction.init-producer",
        "InitProducerId",
        Error.NONE,
        "a producer begins an epoch, which ends its open transaction",
        "FETCH-12",
    ),
    rule("transaction.end", "EndTxn", Error.NONE, "a transaction ends", "FETCH-12"),
)
FETCH_RESPONSE_FIELDS = MappingProxyType(
    {
        "error": "FETCH-10",
        "offset": "FETCH-01",
        "metadata": "FETCH-01",
        "epoch": "COMMIT-18",
        "partitions": "FETCH-04",
        "groups": "FETCH-06",
    }
)
FETCH = (
    rule(
        "fetch.version-0",
        "OffsetFetch",
        Error.UNSUPPORTED_VERSION,
        "the fetch is of version 0, whose offsets lived elsewhere",
        "FETCH-14",
    ),
    rule(
        "fetch.unknown-group",
        "OffsetFetch",
        Error.NONE,
        "the group does not exist",
        "FETCH-03 FETCH-15",
        MappingProxyType({"epoch": "COMMIT-18", "groups": "FETCH-06"}),
    ),
    rule("fetch.offsets", "OffsetFetch", Error.NONE, "the group exists", "FETCH-01 FETCH-07", FETCH_RESPONSE_FIELDS),
)
