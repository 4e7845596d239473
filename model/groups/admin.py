"""Describing, listing and deleting one group, whatever its protocol (coordinator.md 2.8 to 2.10)."""

from fencepost.model.errors import Error
from fencepost.model.groups.messages import (
    DeleteGroup,
    DescribeGroup,
    DescribeGroupResponse,
    ErrorResponse,
    ListGroups,
    ListGroupsResponse,
)
from fencepost.model.groups.offsets import add_deleted
from fencepost.model.groups.protocol import Answer, GroupProtocol, Moment, World

DEAD = "Dead"
"""The state of a group that does not exist."""


def on_describe(
    state: World, request: DescribeGroup, protocol: GroupProtocol[World, Moment]
) -> Answer[World, DescribeGroupResponse]:
    """DescribeGroups of one group; v6 names an unknown group as an error (KIP-1043)."""
    if not protocol.exists(state):
        error = Error.GROUP_ID_NOT_FOUND if request.version >= 6 else Error.NONE
        return state, DescribeGroupResponse(error, DEAD), "describe.unknown-group"
    described, rule = protocol.describe(state, request.version)
    return state, described, rule


def on_list(
    state: World, request: ListGroups, protocol: GroupProtocol[World, Moment]
) -> Answer[World, ListGroupsResponse]:
    """ListGroups, as far as this group is concerned; filters are compared without regard to case (ADMIN-12)."""
    if not protocol.exists(state):
        return state, ListGroupsResponse(False), "list.unknown-group"
    listed = protocol.summarize(state)
    has_state = not request.states or listed.state.lower() in request.states
    if not (has_state and (not request.types or protocol.type_of(state) in request.types)):
        return state, ListGroupsResponse(False), "list.filtered"
    return state, listed, "list.group"


def on_delete(
    state: World, request: DeleteGroup, protocol: GroupProtocol[World, Moment]
) -> Answer[World, ErrorResponse]:
    """DeleteGroups of one group."""
    if not protocol.exists(state):
        return state, ErrorResponse(Error.GROUP_ID_NOT_FOUND), "delete.unknown-group"
    if not protocol.is_empty(state):
        return state, ErrorResponse(Error.NON_EMPTY_GROUP), "delete.active"
    return protocol.forget(add_deleted(state.deleted, state.pending, {})), ErrorResponse(Error.NONE), "delete.empty"
