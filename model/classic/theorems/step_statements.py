"""The theorems about single steps of the coordinator: the changes and the responses that an input may cause.

They need no ghost state: a step is the group before it, its input, the moment, the group after it and the responses.
Between steps nothing changes, so what holds of each step holds of a whole run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from fencepost.model.classic.core.member_table import is_member, offered_by_all
from fencepost.model.classic.core.state import (
    CommitResponse,
    Context,
    CoreResponse,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    Output,
    Phase,
    Slot,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.theorems.ghost_state import CommitAccepted, has_member
from fencepost.model.classic.theorems.lemmas import is_generation_active, partition_count
from fencepost.model.errors import Error
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import Time, Truth, absent, all_, and_, any_, holds, not_, or_
from fencepost.model.sorts import Assignment, InstanceId, MemberId
from fencepost.model.statement import are_equal, implies, statement


class TimerKind(Enum):
    """The three kinds of timers."""

    MEMBER = auto()
    JOIN = auto()
    SYNC = auto()


@dataclass(frozen=True, slots=True)
class TimerExpiry:
    """A timer fires: its kind, and the slot of a member's timer."""

    kind: TimerKind
    slot: int = -1


Input = JoinRequest | SyncRequest | HeartbeatRequest | LeaveRequest | CommitRequest | TimerExpiry


RESPONSES: Mapping[type, type[CoreResponse]] = {
    JoinRequest: JoinResponse,
    SyncRequest: SyncResponse,
    HeartbeatRequest: HeartbeatResponse,
    CommitRequest: CommitResponse,
    LeaveRequest: LeaveResponse,
}
"""The kind of response to each kind of request."""


@dataclass(frozen=True, slots=True)
class CoordinatorStep:
    """One step of the coordinator."""

    before: Group
    input: Input
    moment: Context
    after: Group
    outputs: tuple[Output, ...]

    @property
    def now(self) -> Time:
        """When it happens."""
        return self.moment.now


@statement("T2-simple", "A commit without a generation is accepted only while the group is empty.")
def no_commit_without_generation(acceptance: CommitAccepted) -> Truth:
    """Nobody commits beside the members."""
    return implies(acceptance.commit.request.generation < 0, acceptance.group.phase == Phase.EMPTY)


@statement("T2-awaited", "No commit is accepted while its generation's assignment is awaited.")
def no_commit_before_assignment(acceptance: CommitAccepted) -> Truth:
    """A partition may soon belong to another member."""
    return acceptance.group.phase != Phase.COMPLETING


@statement("T7", "The leader of a generation is one of its members.")
def leader_is_member(group: Group) -> Truth:
    """Somebody is there to compute the assignment."""
    return implies(is_generation_active(group), or_(absent(group.leader), has_member(group, group.leader)))


@statement("T7-exists", "A generation has a leader.")
def generation_has_leader(group: Group) -> Truth:
    """Somebody is asked to compute the assignment. Between the entries of a LeaveGroup of several there may be none."""
    return implies(is_generation_active(group), not_(absent(group.leader)))


@statement("T8", "The assignment that a member receives is the one that the leader of its generation sent for it.")
def assignment_is_leaders(step: CoordinatorStep) -> Truth:
    """The coordinator passes assignments on, and changes none."""
    before, after = step.before, step.after
    arrives = and_(before.phase != Phase.STABLE, after.phase == Phase.STABLE)
    lasts = and_(before.phase == Phase.STABLE, after.phase == Phase.STABLE)
    pairs = tuple(zip(before.slots, after.slots, strict=False))
    return and_(
        implies(
            arrives, and_(is_from_leader(step), all_(stores_leaders_assignment(step, slot) for slot in after.slots))
        ),
        *(
            implies(and_(lasts, is_member(old), is_member(new)), is_same_assignment(old.assignment, new.assignment))
            for old, new in pairs
        ),
        *(
            implies(and_(output.when, output.response.error == Error.NONE), hands_out_stored(step, output))
            for output in step.outputs
            if isinstance(output.response, SyncResponse)
        ),
    )


def is_from_leader(step: CoordinatorStep) -> Truth:
    """The input is a SyncGroup of the leader."""
    return isinstance(step.input, SyncRequest) and step.input.member == step.before.leader


def stores_leaders_assignment(step: CoordinatorStep, slot: Slot) -> Truth:
    """The member's assignment is the last one that the SyncGroup has for its id, and names nothing if it has none."""
    if not isinstance(step.input, SyncRequest):
        return False
    left_out: Truth = True
    found: list[Truth] = []
    for member, given in reversed(step.input.assignments):
        found.append(and_(left_out, member == slot.id, is_same_assignment(slot.assignment, given)))
        left_out = and_(left_out, member != slot.id)
    return implies(is_member(slot), or_(*found, and_(left_out, is_same_assignment(slot.assignment, None))))


def hands_out_stored(step: CoordinatorStep, output: Output) -> Truth:
    """The response has the assignment of the member that waits for it."""
    assert isinstance(output.response, SyncResponse)
    given, request = output.response.assignment, step.input
    found: list[Truth] = []
    for old, new in zip(step.before.slots, step.after.slots, strict=False):
        waited = and_(is_member(old), old.sync == output.handle)
        if isinstance(request, SyncRequest):
            waited = or_(waited, and_(request.handle == output.handle, new.id == request.member))
        found.append(and_(waited, is_member(new), is_same_assignment(new.assignment, given)))
    return any_(found)


def is_same_assignment(a: Assignment | None, b: Assignment | None) -> Truth:
    """Both name the same partitions."""
    count = max(partition_count(a), partition_count(b))
    return all_(
        or_(and_(holds(a, part), holds(b, part)), not_(or_(holds(a, part), holds(b, part)))) for part in range(count)
    )


@statement("T9", "A timer changes something if and only if it is due.")
def timer_is_due(step: CoordinatorStep) -> Truth:
    """Time is never cut short, and runs out."""
    if not isinstance(step.input, TimerExpiry):
        return True
    unchanged = and_(are_equal(step.before, step.after), *(not_(output.when) for output in step.outputs))
    is_due = is_timer_due(step.before, step.input, step.now)
    return or_(and_(is_due, not_(unchanged)), and_(not_(is_due), unchanged))


def is_timer_due(group: Group, timer: TimerExpiry, now: Time) -> Truth:
    """The timer is armed, and its deadline has come."""
    if timer.kind is TimerKind.JOIN:
        return and_(group.phase == Phase.PREPARING, group.join_armed, not_(now < group.join_deadline))
    if timer.kind is TimerKind.SYNC:
        return and_(group.sync_armed, not_(now < group.sync_deadline))
    slot = group.slots[timer.slot]
    return and_(slot.holder != Holder.NOBODY, slot.armed, not_(now < slot.deadline))


@statement("T10", "A join phase lasts until every member has joined, or its timer fires.")
def join_phase_waits(step: CoordinatorStep) -> Truth:
    """Nobody is left behind while there is time."""
    if isinstance(step.input, TimerExpiry) and step.input.kind is TimerKind.JOIN:
        return True
    return implies(
        ends_join_phase(step),
        all_(
            or_(slot.holder == Holder.NOBODY, slot.join != 0, joins_or_goes(step.input, index, slot))
            for index, slot in enumerate(step.before.slots)
        ),
    )


def ends_join_phase(step: CoordinatorStep) -> Truth:
    """The join phase ends, be it that another one begins at once."""
    before, after = step.before, step.after
    return and_(
        before.phase == Phase.PREPARING,
        or_(after.phase != Phase.PREPARING, after.generation != before.generation),
    )


@statement("T11", "Who joined in time is in the next generation, and a dynamic member that did not is not.")
def generation_is_who_joined(step: CoordinatorStep) -> Truth:
    """The members of a generation."""
    return and_(
        *(
            implies(
                and_(begins_generation(step), is_member(slot), not_(joins_or_goes(step.input, index, slot))),
                and_(
                    implies(slot.join != 0, has_member(step.after, slot.id)),
                    implies(and_(slot.join == 0, absent(slot.instance)), not_(has_member(step.after, slot.id))),
                ),
            )
            for index, slot in enumerate(step.before.slots)
        )
    )


def begins_generation(step: CoordinatorStep) -> Truth:
    """A join phase ends in a generation with members; it may have begun in the same step."""
    return and_(step.after.generation != step.before.generation, is_generation_active(step.after))


def sync_timer_stays(step: CoordinatorStep) -> Truth:
    """No sync timer begins: it does not run after the step, or goes on."""
    before, after = step.before, step.after
    same = and_(before.sync_armed, after.sync_deadline == before.sync_deadline)
    return or_(not_(after.sync_armed), and_(same, not_(begins_generation(step))))


def joins_or_goes(cause: Input, index: int, slot: Slot) -> Truth:
    """The input may bring this member to join or to go: its JoinGroup, a LeaveGroup that names it, its timer."""
    return isinstance(cause, JoinRequest | LeaveRequest | TimerExpiry) and is_about(cause, index, slot)


def is_about(cause: Input, index: int, slot: Slot) -> Truth:
    """The input comes from this member, names it, or is its timer."""
    match cause:
        case TimerExpiry(kind, which):
            return kind is TimerKind.MEMBER and which == index
        case LeaveRequest(entries=entries):
            return any_(names(slot, member, instance) for member, instance in entries)
        case _:
            return is_named(slot, cause.member, cause.instance)


def is_named(slot: Slot, member: object, instance: object) -> Truth:
    """The slot has this member id or this instance id."""
    return or_(and_(not_(absent(member)), slot.id == member), and_(not_(absent(instance)), slot.instance == instance))


def names(slot: Slot, member: MemberId | None, instance: InstanceId | None) -> Truth:
    """The entry of a LeaveGroup names the pending id or the member in this slot."""
    by_id = and_(not_(absent(member)), slot.id == member)
    fits = or_(absent(instance), and_(not_(absent(slot.instance)), slot.instance == instance))
    static = and_(absent(member), not_(absent(instance)), not_(absent(slot.instance)), slot.instance == instance)
    return or_(
        and_(slot.holder == Holder.PENDING, by_id),
        and_(is_member(slot), or_(and_(by_id, fits), static)),
    )


@statement("T12", "A join phase that ends in a generation answers each of its members that waits, with success.")
def joins_are_answered(step: CoordinatorStep) -> Truth:
    """Nobody waits for ever. Who goes in the same step, or asks again, is answered as T19 has it."""
    mine = step.input.handle if isinstance(step.input, JoinRequest) else 0
    return all_(
        implies(
            and_(begins_generation(step), is_member(new), or_(and_(is_member(old), old.join != 0), mine != 0)),
            or_(
                and_(is_member(old), old.join == 0, old.id == new.id),  # a static member that is not there (STATIC-20)
                any_(
                    and_(
                        output.when,
                        or_(output.handle == old.join, output.handle == mine),
                        response.error == Error.NONE,
                        response.member == new.id,
                    )
                    for output, response in join_responses(step)
                ),
            ),
        )
        for old, new in zip(step.before.slots, step.after.slots, strict=False)
    )


@statement("T13", "The sync timer, once it is due, removes the members that have not sent SyncGroup, and no other.")
def sync_timer_removes_late(step: CoordinatorStep) -> Truth:
    """Who holds up the others."""
    if not isinstance(step.input, TimerExpiry) or step.input.kind is not TimerKind.SYNC:
        return True
    due = is_timer_due(step.before, step.input, step.now)
    return all_(
        implies(is_member(slot), has_member(step.after, slot.id) == not_(and_(due, slot.unsynced)))
        for slot in step.before.slots
    )


@statement("T14", "A leader leads until it is no member or misses a join phase.")
def leader_stays(step: CoordinatorStep) -> Truth:
    """A newcomer does not unseat it."""
    before, after = step.before, step.after
    return all_(
        implies(
            and_(
                is_member(old),
                old.id == before.leader,
                has_member(after, old.id),
                or_(after.generation == before.generation, old.join != 0, is_about(step.input, index, old)),
            ),
            after.leader == before.leader,
        )
        for index, old in enumerate(before.slots)
    )


@statement("T15", "A Heartbeat without an error goes to a member, for the current generation.")
def heartbeat_is_current(step: CoordinatorStep) -> Truth:
    """Who is told that all is well."""
    request = step.input
    if not isinstance(request, HeartbeatRequest):
        return True
    current = and_(request.generation == step.before.generation, has_member(step.before, request.member))
    return all_(
        implies(and_(output.when, output.response.error == Error.NONE), current)
        for output in step.outputs
        if isinstance(output.response, HeartbeatResponse)
    )


@statement("T16", "Only the leader is told of the members.")
def roster_is_leaders(step: CoordinatorStep) -> Truth:
    """Who is to compute the assignment."""
    return all_(
        implies(
            and_(output.when, any_(not_(absent(view.id)) for view in response.members)),
            response.member == response.leader,
        )
        for output, response in join_responses(step)
    )


def join_responses(step: CoordinatorStep) -> Iterator[tuple[Output, JoinResponse]]:
    """The responses to JoinGroup, each with its output."""
    for output in step.outputs:
        if isinstance(output.response, JoinResponse):
            yield output, output.response


@statement("T17", "The generation never falls.")
def generation_never_falls(step: CoordinatorStep) -> Truth:
    """Numbers are not given again."""
    return step.after.generation >= step.before.generation


@statement("T18", "A generation has a protocol, and each of its members offers it.")
def protocol_is_common(group: Group) -> Truth:
    """Everyone understands the assignment."""
    return implies(is_generation_active(group), offered_by_all(group, group.protocol))


GENERATION_THEOREMS = (
    no_commit_without_generation,
    no_commit_before_assignment,
    leader_is_member,
    generation_has_leader,
    assignment_is_leaders,
    timer_is_due,
    join_phase_waits,
    generation_is_who_joined,
    joins_are_answered,
    sync_timer_removes_late,
    leader_stays,
    heartbeat_is_current,
    roster_is_leaders,
    generation_never_falls,
    protocol_is_common,
)
