"""What the classic protocol says of a group to those who ask about its offsets, describe, list or delete it."""

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.membership import commit
from fencepost.model.classic.core.protocol_selection import metadata_for
from fencepost.model.classic.core.state import CommitResponse, Context, Group, Phase, Slot, Step
from fencepost.model.classic.dialect import dialect_of
from fencepost.model.classic.messages import CONSUMER
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import (
    DescribeGroupResponse,
    ListGroupsResponse,
    MemberDescription,
    Offset,
    OffsetCommit,
    TxnOffsetCommit,
)
from fencepost.model.groups.protocol import DeletedOffsets, GroupProtocol
from fencepost.model.logic import Time

STATE_NAMES = {
    Phase.EMPTY: "Empty",
    Phase.PREPARING: "PreparingRebalance",
    Phase.COMPLETING: "CompletingRebalance",
    Phase.STABLE: "Stable",
}
"""States as they are named on the wire."""
CLASSIC = "classic"
"""The type of every group of this protocol (KIP-848)."""


def group_of(state: GroupState) -> Group:
    """The group of a world that has one."""
    assert state.group is not None
    return state.group


def may_commit(state: GroupState, request: OffsetCommit, context: Context) -> tuple[Error, str, GroupState]:
    """What membership says of a commit; the offsets themselves are kept outside the core."""
    step = commit(group_of(state), request.core, context)
    return commit_error(step), step.rule, evolve(state, group=step.group)


def may_commit_in_transaction(state: GroupState, request: TxnOffsetCommit, context: Context) -> Error:
    """What membership says of a transactional commit (coordinator.md 2.12): no barrier in Completing, no session
    extended. Membership and generation are checked alike in every state with members, and nothing else is."""
    group = group_of(state)
    seen_as = Phase.EMPTY if group.phase == Phase.EMPTY else Phase.STABLE
    return commit_error(commit(evolve(group, phase=seen_as), request.core, context))


def commit_error(step: Step) -> Error:
    """What a step of the core says of a commit."""
    verdict = step.outputs[0].response
    assert isinstance(verdict, CommitResponse)
    return verdict.error


def may_lose_offsets(state: GroupState) -> bool:
    """Whether the group is Empty or its subscriptions can be read (KIP-496)."""
    group = group_of(state)
    return group.phase == Phase.EMPTY or group.protocol_type == CONSUMER


def protects(state: GroupState, topic: str) -> bool:
    """Whether the group subscribes to a topic, or may do so: not all of its subscriptions can be read."""
    group = group_of(state)
    if group.protocol_type != CONSUMER:
        return False
    unknown = state.subscribed is None and group.phase != Phase.EMPTY
    return unknown or (state.subscribed is not None and topic in state.subscribed)


def unused_since(state: GroupState, topic: str, offset: Offset) -> Time | None:
    """Since when an offset has been of no use (coordinator.md 3.3): its commit, if the group never had members or does
    not subscribe to the topic; the moment from which on the group is Empty."""
    group = state.group
    if group is None or group.protocol_type is None:
        return offset.committed
    if group.phase == Phase.EMPTY:
        return state.emptied_at
    if group.protocol_type == CONSUMER and group.phase == Phase.STABLE and state.subscribed is not None:
        return None if topic in state.subscribed else offset.committed
    return None


def describe(state: GroupState, version: int) -> tuple[DescribeGroupResponse, str]:
    """The description of a group; one of every version is the same."""
    group = group_of(state)
    stable = group.phase == Phase.STABLE
    described = DescribeGroupResponse(
        error=Error.NONE,
        state=STATE_NAMES[group.phase],
        protocol_type=group.protocol_type or "",
        protocol=(group.protocol or "") if stable else "",
        members=tuple(describe_member(group, slot) for slot in group.slots if is_member(slot)),
        is_stored=is_stored(state),
    )
    return described, "describe.stable" if stable else "describe.group"


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


def summarize(state: GroupState) -> ListGroupsResponse:
    """The group as it is listed."""
    group = group_of(state)
    return ListGroupsResponse(True, STATE_NAMES[group.phase], group.protocol_type or "", is_stored=is_stored(state))


def forget(deleted: DeletedOffsets) -> GroupState:
    """The world without the group."""
    return GroupState(deleted=deleted)


CLASSIC_GROUP: GroupProtocol[GroupState, Context] = GroupProtocol(
    dialect=dialect_of,
    exists=lambda state: state.group is not None,
    create=lambda state: evolve(state, group=Group(), stored=Group()),
    forget=forget,
    is_empty=lambda state: group_of(state).phase == Phase.EMPTY,
    may_commit=may_commit,
    may_commit_in_transaction=may_commit_in_transaction,
    may_lose_offsets=may_lose_offsets,
    protects=protects,
    unused_since=unused_since,
    describe=describe,
    summarize=summarize,
    type_of=lambda state: CLASSIC,
)
"""The questions about a classic group, answered."""
