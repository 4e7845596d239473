"""The rules of SyncGroup, Heartbeat and LeaveGroup."""

from types import MappingProxyType

from fencepost.model.classic.rules.fields import SYNC_RESPONSE_FIELDS
from fencepost.model.classic.rules.rule import FENCED, ILLEGAL, REBALANCE, UNKNOWN, rule
from fencepost.model.errors import Error

SYNC = (
    rule(
        "sync.incomplete",
        "SyncGroup",
        Error.INCONSISTENT_GROUP_PROTOCOL,
        "protocol type or name is null in version 5 or later",
        "SYNC-06",
    ),
    rule("sync.invalid-group", "SyncGroup", Error.INVALID_GROUP_ID, "the group id is empty", "SYNC-01"),
    rule("sync.unknown-group", "SyncGroup", UNKNOWN, "the group does not exist", "SYNC-02"),
    rule("sync.empty", "SyncGroup", UNKNOWN, "the group has no members", "SYNC-02"),
    rule("sync.unknown-member", "SyncGroup", UNKNOWN, "the member id or instance id is not in the group", "SYNC-03"),
    rule("sync.fenced", "SyncGroup", FENCED, "the instance id belongs to another member id", "STATIC-03"),
    rule(
        "sync.other-generation",
        "SyncGroup",
        ILLEGAL,
        "the generation is not the group's",
        "SYNC-04 SYNC-20 GEN-15",
    ),
    rule(
        "sync.other-protocol",
        "SyncGroup",
        Error.INCONSISTENT_GROUP_PROTOCOL,
        "protocol type or name differ from the group's",
        "SYNC-05",
        MappingProxyType({"protocol": "SYNC-05", "assignment": "SYNC-22"}),
    ),
    rule("sync.preparing", "SyncGroup", REBALANCE, "the join phase of a rebalance is under way", "SYNC-09"),
    rule(
        "sync.follower",
        "SyncGroup",
        None,
        "a follower syncs before the leader did",
        "SYNC-10 SYNC-15",
        SYNC_RESPONSE_FIELDS,
    ),
    rule(
        "sync.leader",
        "SyncGroup",
        Error.NONE,
        "the leader brings the assignments",
        "SYNC-11",
        MappingProxyType({**SYNC_RESPONSE_FIELDS}),
    ),
    rule(
        "sync.stable",
        "SyncGroup",
        Error.NONE,
        "the group is stable, so the stored assignment is handed out",
        "SYNC-16 SYNC-17",
        MappingProxyType({**SYNC_RESPONSE_FIELDS, "assignment": "SYNC-16"}),
    ),
)
HEARTBEAT = (
    rule("heartbeat.invalid-group", "Heartbeat", Error.INVALID_GROUP_ID, "the group id is empty", "HB-01"),
    rule("heartbeat.unknown-group", "Heartbeat", UNKNOWN, "the group does not exist", "HB-02"),
    rule("heartbeat.empty", "Heartbeat", UNKNOWN, "the group has no members", "HB-02 HB-08"),
    rule(
        "heartbeat.unknown-member",
        "Heartbeat",
        UNKNOWN,
        "the member id or instance id is not in the group",
        "HB-03 HB-08",
    ),
    rule("heartbeat.fenced", "Heartbeat", FENCED, "the instance id belongs to another member id", "HB-14"),
    rule("heartbeat.other-generation", "Heartbeat", ILLEGAL, "the generation is not the group's", "HB-04 GEN-15"),
    rule(
        "heartbeat.preparing",
        "Heartbeat",
        REBALANCE,
        "the join phase of a rebalance is under way",
        "HB-06 HB-11",
    ),
    rule("heartbeat.completing", "Heartbeat", Error.NONE, "the group waits for its leader's assignments", "HB-07"),
    rule("heartbeat.stable", "Heartbeat", Error.NONE, "the group is stable", "HB-05"),
)
LEAVE = (
    rule("leave.invalid-group", "LeaveGroup", Error.INVALID_GROUP_ID, "the group id is empty", "LEAVE-01"),
    rule("leave.unknown-group", "LeaveGroup", Error.NONE, "the group does not exist", "LEAVE-02"),
    rule("leave.member", "LeaveGroup", Error.NONE, "some entry names a member or a pending id", "LEAVE-04 LEAVE-11"),
    rule("leave.nobody", "LeaveGroup", Error.NONE, "no entry names a member or a pending id", "LEAVE-03"),
)
