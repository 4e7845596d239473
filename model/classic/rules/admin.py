"""The rules of describing, listing and deleting."""

from types import MappingProxyType

from fencepost.model.classic.rules.rule import rule
from fencepost.model.errors import Error

ADMIN = (
    rule("describe.unknown-group", "DescribeGroups", Error.NONE, "the group does not exist", "ADMIN-01"),
    rule(
        "describe.group",
        "DescribeGroups",
        Error.NONE,
        "the group exists and is not stable",
        "ADMIN-02 ADMIN-04 ADMIN-34",
        MappingProxyType(
            {"members": "ADMIN-04", "protocol": "ADMIN-04", "groups": "ADMIN-07", "instances": "ADMIN-06"}
        ),
    ),
    rule(
        "describe.stable",
        "DescribeGroups",
        Error.NONE,
        "the group is stable",
        "ADMIN-03",
        MappingProxyType({"state": "ADMIN-02", "groups": "ADMIN-07", "instances": "ADMIN-06"}),
    ),
    rule("list.unknown-group", "ListGroups", Error.NONE, "the group does not exist", "ADMIN-15"),
    rule("list.filtered", "ListGroups", Error.NONE, "a filter leaves the group out", "ADMIN-12 ADMIN-13 ADMIN-14"),
    rule(
        "list.group",
        "ListGroups",
        Error.NONE,
        "the group exists and passes the filters",
        "ADMIN-11 ADMIN-33 ADMIN-34",
        MappingProxyType({"state": "ADMIN-12", "type": "ADMIN-13"}),
    ),
    rule("delete.unknown-group", "DeleteGroups", Error.GROUP_ID_NOT_FOUND, "the group does not exist", "ADMIN-16"),
    rule("delete.active", "DeleteGroups", Error.NON_EMPTY_GROUP, "the group has members", "ADMIN-17"),
    rule("delete.empty", "DeleteGroups", Error.NONE, "the group has no members", "ADMIN-18 ADMIN-20 ADMIN-21"),
    rule("offset-delete.invalid-group", "OffsetDelete", Error.INVALID_GROUP_ID, "the group id is empty", "ADMIN-23"),
    rule(
        "offset-delete.unknown-group",
        "OffsetDelete",
        Error.GROUP_ID_NOT_FOUND,
        "the group does not exist",
        "ADMIN-23",
    ),
    rule(
        "offset-delete.active",
        "OffsetDelete",
        Error.NON_EMPTY_GROUP,
        "the group has members and is not of type consumer",
        "ADMIN-24",
    ),
    rule(
        "offset-delete.partitions",
        "OffsetDelete",
        Error.NONE,
        "the group is empty or of type consumer",
        "ADMIN-26 ADMIN-25 ADMIN-27",
    ),
)
