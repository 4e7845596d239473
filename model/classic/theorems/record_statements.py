"""The theorems about what a group records of its members, and about how their rounds and memberships end."""

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import (
    Group,
    Holder,
    JoinRequest,
    LeaveRequest,
    LeaveResponse,
    MemberView,
    Phase,
    Protocol,
    Slot,
)
from fencepost.model.classic.theorems.ghost_state import has_member
from fencepost.model.classic.theorems.step_statements import CoordinatorStep, TimerExpiry, TimerKind, join_responses
from fencepost.model.errors import Error
from fencepost.model.logic import Truth, absent, all_, and_, any_, not_, or_
from fencepost.model.sorts import InstanceId, MemberId
from fencepost.model.statement import implies, statement


@statement("T26", "A member has the protocols and timeouts of its last JoinGroup.")
def members_are_recorded(step: CoordinatorStep) -> Truth:
    """The vote and the timers go by what members said."""
    return all_(
        implies(is_member(new), or_(and_(is_member(old), has_record(new, old)), is_recorded_from(step, new)))
        for old, new in zip(step.before.slots, step.after.slots, strict=False)
    )


def is_recorded_from(step: CoordinatorStep, slot: Slot) -> Truth:
    """The step's input is a JoinGroup, and the slot says what it says."""
    return isinstance(step.input, JoinRequest) and has_record(slot, step.input)


def has_record(slot: Slot, source: Slot | JoinRequest) -> Truth:
    """The slot has the protocols and the timeouts of the other slot, or of the request."""
    return and_(
        slot.session_timeout == source.session_timeout,
        slot.rebalance_timeout == source.rebalance_timeout,
        are_same_protocols(slot.protocols, source.protocols),
    )


def are_same_protocols(some: tuple[Protocol, ...], others: tuple[Protocol, ...]) -> Truth:
    """The same names and metadata in the same order."""
    return and_(
        len(some) == len(others),
        *(and_(a.name == b.name, a.metadata == b.metadata) for a, b in zip(some, others, strict=False)),
    )


@statement("T27", "A join phase has a timer; it begins with the initial delay if, and only if, the group was empty.")
def join_phase_has_timer(step: CoordinatorStep) -> Truth:
    """No join phase lasts for ever."""
    before, after = step.before, step.after
    was_empty = before.phase == Phase.EMPTY
    prepares = after.phase == Phase.PREPARING
    begins = and_(before.phase != Phase.PREPARING, prepares)
    delays = and_(
        after.initial,
        after.from_empty,
        after.join_deadline == step.now + after.initial_wait,
        after.initial_left >= 0,
    )
    full = and_(not_(after.initial), not_(after.from_empty))
    return and_(
        implies(begins, and_(after.join_armed, or_(and_(was_empty, delays), and_(not_(was_empty), full)))),
        implies(and_(before.phase == Phase.PREPARING, before.join_armed, prepares), after.join_armed),
    )


@statement("T28", "A session timer removes no member that waits for a response, once its first join phase is over.")
def who_waits_stays(step: CoordinatorStep) -> Truth:
    """Waiting is a sign of life."""
    if not isinstance(step.input, TimerExpiry) or step.input.kind is not TimerKind.MEMBER:
        return True
    slot = step.before.slots[step.input.slot]
    return implies(is_waiting(slot), has_member(step.after, slot.id))


def is_waiting(slot: Slot) -> Truth:
    """A member whose first join phase is over waits for a response."""
    return and_(is_member(slot), not_(slot.is_new), or_(slot.join != 0, slot.sync != 0))


@statement("T29", "LeaveGroup removes whom its entries name, and says so of these entries and no others.")
def leaving_is_answered(step: CoordinatorStep) -> Truth:
    """Who left is gone, and who did not is told."""
    request = step.input
    if not isinstance(request, LeaveRequest):
        return True
    gone = all_(
        implies(any_(names(slot, *entry) for entry in request.entries), not_(holds_id(step.after, slot.id)))
        for slot in step.before.slots
    )
    responses = [output.response for output in step.outputs if isinstance(output.response, LeaveResponse)]
    told = all_(
        implies(error == Error.NONE, any_(names(slot, *entry) for slot in step.before.slots))
        for response in responses
        for error, entry in zip(response.entries, request.entries, strict=True)
    )
    first = all_(
        implies(any_(names(slot, *request.entries[0]) for slot in step.before.slots), response.entries[0] == Error.NONE)
        for response in responses
    )
    return and_(gone, told, first)


def names(slot: Slot, member: MemberId | None, instance: InstanceId | None) -> Truth:
    """The entry of a LeaveGroup names the pending id or the member in this slot."""
    by_id = and_(not_(absent(member)), slot.id == member)
    fits = or_(absent(instance), and_(not_(absent(slot.instance)), slot.instance == instance))
    static = and_(absent(member), not_(absent(instance)), not_(absent(slot.instance)), slot.instance == instance)
    return or_(
        and_(slot.holder == Holder.PENDING, by_id),
        and_(is_member(slot), or_(and_(by_id, fits), static)),
    )


def holds_id(group: Group, member: MemberId | None) -> Truth:
    """The id is pending or a member's."""
    return any_(and_(slot.holder != Holder.NOBODY, slot.id == member) for slot in group.slots)


@statement("T30", "When a generation begins, no member of it is new any more, and each has a whole session.")
def generation_begins_afresh(step: CoordinatorStep) -> Truth:
    """Who waited could not heartbeat."""
    begins = and_(step.after.generation != step.before.generation, step.after.phase == Phase.COMPLETING)
    return all_(
        implies(
            and_(begins, is_member(slot)),
            and_(not_(slot.is_new), slot.armed, slot.deadline == step.now + slot.session_timeout),
        )
        for slot in step.after.slots
    )


@statement("T31", "A successful JoinGroup response tells of the group as it is, and the leader of all its members.")
def joins_tell_of_group(step: CoordinatorStep) -> Truth:
    """Everyone speaks of the same generation. Each entry of a LeaveGroup may begin one (DIV-06)."""
    if isinstance(step.input, LeaveRequest):
        return True
    group = step.after
    return all_(
        implies(
            and_(output.when, response.error == Error.NONE),
            and_(
                response.generation == group.generation,
                response.protocol == group.protocol,
                response.protocol_type == group.protocol_type,
                implies(
                    response.member == response.leader,
                    all_(implies(is_member(slot), is_listed(slot, response.members, group)) for slot in group.slots),
                ),
            ),
        )
        for output, response in join_responses(step)
    )


def is_listed(slot: Slot, views: tuple[MemberView, ...], group: Group) -> Truth:
    """The list of members has this one, with the metadata that it offers under the group's protocol."""
    found: list[Truth] = []
    for view in views:
        metadata = any_(
            and_(protocol.name == group.protocol, protocol.metadata == view.metadata) for protocol in slot.protocols
        )
        found.append(and_(not_(absent(view.id)), view.id == slot.id, metadata))
    return or_(*found)


@statement("T32", "An empty group counts no generation, and the step to an empty group leaves no leader.")
def empty_groups_rest(step: CoordinatorStep) -> Truth:
    """Generations are of members."""
    before, after = step.before, step.after
    return and_(
        implies(before.phase == Phase.EMPTY, after.generation == before.generation),
        implies(
            and_(after.phase == Phase.EMPTY, before.phase != Phase.EMPTY),
            and_(absent(after.leader), absent(after.protocol)),
        ),
    )


@statement("T33", "The timer of a slot runs, unless a member waits in it whose first join phase is over.")
def slots_are_timed(step: CoordinatorStep) -> Truth:
    """Who is never heard of again is let go in the end. The handle 0 is that of no request."""
    has_handle = isinstance(step.input, TimerExpiry) or step.input.handle != 0
    return implies(
        and_(has_handle, all_(is_timed(slot) for slot in step.before.slots)),
        all_(is_timed(slot) for slot in step.after.slots),
    )


def is_timed(slot: Slot) -> Truth:
    """The slot is free, its timer runs, or its member waits for a response."""
    return or_(slot.holder == Holder.NOBODY, slot.armed, is_waiting(slot))


RECORD_THEOREMS = (
    members_are_recorded,
    join_phase_has_timer,
    who_waits_stays,
    leaving_is_answered,
    generation_begins_afresh,
    joins_tell_of_group,
    empty_groups_rest,
    slots_are_timed,
)
