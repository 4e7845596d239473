"""The calls of administrators on one group: describe, list, delete (coordinator.md 2.8 to 2.10)."""

from fencepost.model.classic.coordinator.deleted_offsets import add_deleted
from fencepost.model.classic.coordinator.state import GroupState, StepResult, respond
from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.protocol_selection import metadata_for
from fencepost.model.classic.core.state import Group, Phase, Slot
from fencepost.model.classic.messages.requests import DeleteGroup, DescribeGroup, ListGroups
from fencepost.model.classic.messages.responses import (
    DescribeGroupResponse,
    ErrorResponse,
    ListGroupsResponse,
    MemberDescription,
)
from fencepost.model.errors import Error

STATE_NAMES = {
    Phase.EMPTY: "Empty",
    Phase.PREPARING: "PreparingRebalance",
    Phase.COMPLETING: "CompletingRebalance",
    Phase.STABLE: "Stable",
}
"""States as they are named on the wire."""
DEAD = "Dead"
"""The state of a group that does not exist."""
CLASSIC = "classic"
"""The type of every group of this protocol (KIP-848)."""


def on_describe(state: GroupState, request: DescribeGroup) -> StepResult:
    """DescribeGroups of one group; v6 names an unknown group as an error (KIP-1043)."""
    group = state.group
    if group is None:
        error = Error.GROUP_ID_NOT_FOUND if request.version >= 6 else Error.NONE
        return respond(state, request, DescribeGroupResponse(error, DEAD), "describe.unknown-group")
    stable = group.phase == Phase.STABLE
    described = DescribeGroupResponse(
        error=Error.NONE,
        state=STATE_NAMES[group.phase],
        protocol_type=group.protocol_type or "",
        protocol=(group.protocol or "") if stable else "",
        members=tuple(describe_member(group, slot) for slot in group.slots if is_member(slot)),
        is_stored=is_stored(state),
    )
    return respond(state, request, described, "describe.stable" if stable else "describe.group")


def is_stored(state: GroupState) -> bool:
    """Whether anything of the group is in the log: a generation or an offset. Who looks at committed state overlooks a
    group that has handed out ids and no more (LAT-21)."""
    group = state.group
    return group is not None and (group.generation > 0 or bool(state.offsets) or bool(state.pending))


def describe_member(group: Group, slot: Slot) -> MemberDescription:
    """One member; between rounds its metadata is hidden and its assignment may be (LAT-20)."""
    stable = group.phase == Phase.STABLE
    return MemberDescription(
        id=slot.id,
        instance=slot.instance,
        metadata=metadata_for(slot, group.protocol) if stable else None,
        assignment=slot.assignment,
        any_assignment=not stable,
    )


def on_list(world: GroupState, request: ListGroups) -> StepResult:
    """ListGroups, as far as this group is concerned; filters are compared without regard to case (ADMIN-12)."""
    group = world.group
    if group is None:
        return respond(world, request, ListGroupsResponse(False), "list.unknown-group")
    state = STATE_NAMES[group.phase]
    wanted = (not request.states or state.lower() in request.states) and (not request.types or CLASSIC in request.types)
    if not wanted:
        return respond(world, request, ListGroupsResponse(False), "list.filtered")
    listed = ListGroupsResponse(True, state, group.protocol_type or "", is_stored=is_stored(world))
    return respond(world, request, listed, "list.group")


def on_delete(state: GroupState, request: DeleteGroup) -> StepResult:
    """DeleteGroups of one group."""
    if state.group is None:
        return respond(state, request, ErrorResponse(Error.GROUP_ID_NOT_FOUND), "delete.unknown-group")
    if state.group.phase != Phase.EMPTY:
        return respond(state, request, ErrorResponse(Error.NON_EMPTY_GROUP), "delete.active")
    after = GroupState(deleted=add_deleted(state.deleted, state.pending, {}))
    return respond(after, request, ErrorResponse(Error.NONE), "delete.empty")
