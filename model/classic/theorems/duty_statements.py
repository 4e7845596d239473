"""The theorems about what must happen: requests are answered as a table has it, timers that are due have their effect,
deadlines are no later than they may be, and no rebalance comes without a cause.

`ANSWERS` is the table: for each request, lines that are read from the top; the first that fits says what is answered in
each phase. People read it in PROOFS.md, the theorem T52 says it of the shipped handlers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from fencepost.model.classic.core.member_table import is_member, offered_by_all
from fencepost.model.classic.core.state import (
    Group,
    HeartbeatRequest,
    Holder,
    JoinRequest,
    LeaveRequest,
    LeaveResponse,
    NoResponse,
    Output,
    Phase,
    Slot,
    SyncRequest,
)
from fencepost.model.classic.theorems.ghost_state import has_member
from fencepost.model.classic.theorems.lemmas import is_generation_active
from fencepost.model.classic.theorems.phase_statements import (
    are_same_protocols,
    has_no_newcomer,
    holds_id,
    is_full,
    is_of_member,
    is_return,
    is_waiting,
)
from fencepost.model.classic.theorems.step_statements import (
    CoordinatorStep,
    TimerExpiry,
    TimerKind,
    ends_join_phase,
    is_timer_due,
    names,
    sync_timer_stays,
)
from fencepost.model.errors import Error
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import Time, Truth, absent, all_, and_, any_, not_, or_
from fencepost.model.sorts import InstanceId, MemberId
from fencepost.model.statement import implies, statement


class Outcome(Enum):
    """What becomes of a request, if it is no error."""

    WAITS = "waits"
    JOINS = "joins"
    """It waits, or ends the join phase and is answered with the next generation."""
    RETURNS = "joins or goes on"
    """It joins, or is answered with the present generation at once."""
    BELOW = "see below"
    """A later line says it."""
    NEVER = "-"
    """It cannot be."""


Applies = Callable[[CoordinatorStep], Truth]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table: who asks, whether a step fits, and what comes of it in each phase."""

    sender: str
    applies: Applies
    outcomes: tuple[Error | Outcome, ...]
    """In the order of `PHASES`."""


PHASES = (Phase.EMPTY, Phase.PREPARING, Phase.COMPLETING, Phase.STABLE)


def always(sender: str, applies: Applies, outcome: Error | Outcome) -> Line:
    """A line that says the same of every phase."""
    return Line(sender, applies, (outcome,) * len(PHASES))


def sender_of(step: CoordinatorStep) -> tuple[MemberId | None, InstanceId | None]:
    """The ids that a request carries; those of the first entry of a LeaveGroup."""
    request = step.input
    assert not isinstance(request, TimerExpiry)
    return request.entries[0] if isinstance(request, LeaveRequest) else (request.member, request.instance)


def is_stranger(step: CoordinatorStep) -> Truth:
    """The group has no member of this id, and no instance of this name."""
    member, instance = sender_of(step)
    return not_(or_(is_of_member(step.before, member, instance), has_instance(step.before, instance)))


def has_instance(group: Group, instance: InstanceId | None) -> Truth:
    """The instance id is a member's."""
    return any_(and_(is_member(slot), not_(absent(instance)), slot.instance == instance) for slot in group.slots)


def is_fenced(step: CoordinatorStep) -> Truth:
    """The instance id is that of a member with another member id."""
    member, instance = sender_of(step)
    return and_(has_instance(step.before, instance), not_(is_of_member(step.before, member, instance)))


def is_pending(step: CoordinatorStep) -> Truth:
    """The id was issued, and its member has not joined."""
    member, _ = sender_of(step)
    pending = (and_(slot.holder == Holder.PENDING, slot.id == member) for slot in step.before.slots)
    return and_(not_(absent(member)), any_(pending))


def is_anybody(_: CoordinatorStep) -> Truth:
    """Whoever is left."""
    return True


def names_other_generation(step: CoordinatorStep) -> Truth:
    """The request is for another generation."""
    assert isinstance(step.input, SyncRequest | HeartbeatRequest | CommitRequest)
    return step.input.generation != step.before.generation


def names_other_protocol(step: CoordinatorStep) -> Truth:
    """The SyncGroup names another protocol type or protocol; where none is selected, some take any (DIV-21)."""
    request, group = step.input, step.before
    assert isinstance(request, SyncRequest)
    any_fits = and_(absent(group.protocol), step.moment.dialect.unselected_protocol_fits_any)
    other = and_(not_(absent(request.protocol)), request.protocol != group.protocol, not_(any_fits))
    other_type = and_(not_(absent(request.protocol_type)), request.protocol_type != group.protocol_type)
    return or_(other, other_type)


def is_leader(step: CoordinatorStep) -> Truth:
    """The id is the leader's."""
    return sender_of(step)[0] == step.before.leader


def is_below_generation_0(step: CoordinatorStep) -> Truth:
    """The commit claims no generation."""
    assert isinstance(step.input, CommitRequest)
    return step.input.generation < 0


def finds_no_room(step: CoordinatorStep) -> Truth:
    """The group is full; a static member that returns may be let in all the same (STATIC-26), and protocols may be
    looked at first (LAT-27)."""
    assert isinstance(step.input, JoinRequest)
    dialect = step.moment.dialect
    let_in = and_(is_return(step, step.input), not_(dialect.restart_needs_room))
    later = and_(shares_no_protocol(step), not_(dialect.room_comes_before_protocols))
    return and_(is_full(step, step.input), not_(let_in), not_(later))


def shares_no_protocol(step: CoordinatorStep) -> Truth:
    """Another protocol type than the group's, or no protocol that all members offer; in an empty group, none at all."""
    request, group = step.input, step.before
    assert isinstance(request, JoinRequest)
    offered = any_(not_(absent(one.name)) for one in request.protocols)
    shared = any_(offered_by_all(group, one.name) for one in request.protocols)
    first = and_(group.phase == Phase.EMPTY, not_(absent(request.protocol_type)), offered)
    later = and_(group.phase != Phase.EMPTY, request.protocol_type == group.protocol_type, shared)
    return not_(or_(first, later))


def has_no_id(step: CoordinatorStep) -> Truth:
    """The JoinGroup comes without a member id."""
    return absent(sender_of(step)[0])


def asks_for_id(step: CoordinatorStep) -> Truth:
    """The JoinGroup of a dynamic member comes without an id, in a version that has to ask for one (KIP-394)."""
    assert isinstance(step.input, JoinRequest)
    return and_(has_no_id(step), absent(step.input.instance), step.input.requires_id)


def returns(step: CoordinatorStep) -> Truth:
    """A static member comes back without its member id."""
    return and_(has_no_id(step), has_instance(step.before, sender_of(step)[1]))


def is_static_pending(step: CoordinatorStep) -> Truth:
    """An id that was issued comes back with an instance id, for which none is issued."""
    return and_(is_pending(step), not_(absent(sender_of(step)[1])))


def offers_others(step: CoordinatorStep) -> Truth:
    """The member has other protocols than before, or others' metadata."""
    request = step.input
    assert isinstance(request, JoinRequest)
    mine = (and_(is_member(slot), slot.id == request.member) for slot in step.before.slots)
    same = (are_same_protocols(slot.protocols, request.protocols) for slot in step.before.slots)
    return any_(and_(here, not_(alike)) for here, alike in zip(mine, same, strict=True))


_STRANGER = always("nobody that the group knows", is_stranger, Error.UNKNOWN_MEMBER_ID)
_FENCED = always("an instance id under another member id", is_fenced, Error.FENCED_INSTANCE_ID)
_LATE = always("a member, for another generation", names_other_generation, Error.ILLEGAL_GENERATION)
_NEVER, _BELOW, _JOINS, _OK = Outcome.NEVER, Outcome.BELOW, Outcome.JOINS, Error.NONE
_REBALANCE = Error.REBALANCE_IN_PROGRESS
ANSWERS: Mapping[type, tuple[Line, ...]] = {
    JoinRequest: (
        Line("one that finds no room", finds_no_room, (_NEVER, *(Error.GROUP_MAX_SIZE_REACHED,) * 3)),
        always("one that shares no protocol", shares_no_protocol, Error.INCONSISTENT_GROUP_PROTOCOL),
        always("one that has to ask for an id", asks_for_id, Error.MEMBER_ID_REQUIRED),
        Line("a static member that returns without its id", returns, (_NEVER, _JOINS, _JOINS, Outcome.RETURNS)),
        always("another one without an id", has_no_id, _JOINS),
        always("an issued id with an instance id", is_static_pending, Error.UNKNOWN_SERVER_ERROR),
        always("an issued id", is_pending, _JOINS),
        _STRANGER,
        _FENCED,
        Line("a member with other protocols", offers_others, (_NEVER, _JOINS, _JOINS, _JOINS)),
        Line("the leader", is_leader, (_NEVER, _JOINS, _OK, _JOINS)),
        Line("another member", is_anybody, (_NEVER, _JOINS, _OK, _OK)),
    ),
    SyncRequest: (
        _STRANGER,
        _FENCED,
        _LATE,
        always("a member that names another protocol", names_other_protocol, Error.INCONSISTENT_GROUP_PROTOCOL),
        Line("the leader", is_leader, (_NEVER, _REBALANCE, _OK, _OK)),
        Line("another member", is_anybody, (_NEVER, _REBALANCE, Outcome.WAITS, _OK)),
    ),
    HeartbeatRequest: (
        _STRANGER,
        _FENCED,
        _LATE,
        Line("a member", is_anybody, (_NEVER, _REBALANCE, _OK, _OK)),
    ),
    CommitRequest: (
        Line("whoever names no generation", is_below_generation_0, (_OK, _BELOW, _BELOW, _BELOW)),
        _STRANGER,
        _FENCED,
        _LATE,
        Line("a member", is_anybody, (_NEVER, _OK, _REBALANCE, _OK)),
    ),
    LeaveRequest: (
        always("an issued id", is_pending, _OK),
        Line("an instance id without a member id", returns, (_NEVER, _OK, _OK, _OK)),
        _STRANGER,
        _FENCED,
        Line("a member", is_anybody, (_NEVER, _OK, _OK, _OK)),
    ),
}
"""By request: who asks, from the top, and what is answered in each phase."""


@statement(
    "T52", "Each request is answered as the table has it: by the phase of the group and the standing of its sender."
)
def requests_are_answered(step: CoordinatorStep) -> Truth:
    """A LeaveGroup of several entries is answered by T29."""
    request = step.input
    if isinstance(request, TimerExpiry):
        return True
    if isinstance(request, LeaveRequest) and (len(request.entries) != 1 or request.handle is PART):
        return True
    is_open: Truth = True
    terms: list[Truth] = []
    for line in ANSWERS[type(request)]:
        applies = line.applies(step)
        fits = and_(is_open, applies)
        outcomes = tuple(zip(PHASES, line.outcomes, strict=True))
        if len(set(line.outcomes)) == 1:
            terms.append(implies(fits, has_outcome(step, line.outcomes[0])))
        else:
            terms += (
                implies(and_(fits, step.before.phase == phase), has_outcome(step, outcome))
                for phase, outcome in outcomes
                if outcome is not Outcome.BELOW
            )
        goes_on = (step.before.phase == phase for phase, outcome in outcomes if outcome is Outcome.BELOW)
        is_open = and_(is_open, or_(not_(applies), *goes_on))
    return and_(*terms)


PART = 0
"""The handle of the parts of which a LeaveGroup of several entries is made: they have no response."""


def has_outcome(step: CoordinatorStep, outcome: Error | Outcome) -> Truth:
    """The request at hand comes to this."""
    request, risen = step.input, step.after.generation != step.before.generation
    assert not isinstance(request, TimerExpiry)
    match outcome:
        case Error():
            return is_answered_with(step, outcome)
        case Outcome.WAITS:
            return any_(slot.sync == request.handle for slot in step.after.slots)
        case Outcome.JOINS | Outcome.RETURNS:
            waits = any_(slot.join == request.handle for slot in step.after.slots)
            free = True if outcome is Outcome.RETURNS else risen
            return or_(waits, and_(free, is_answered_with(step, Error.NONE)))
        case _:
            return False


def is_answered_with(step: CoordinatorStep, error: Error) -> Truth:
    """The request at hand is answered with this error, that of the first entry for a LeaveGroup."""
    assert not isinstance(step.input, TimerExpiry)
    return any_(
        and_(output.when, output.handle == step.input.handle, error_of(output) == error)
        for output in step.outputs
        if not isinstance(output.response, NoResponse)
    )


def error_of(output: Output) -> Error:
    """The error of a response."""
    assert not isinstance(output.response, NoResponse)
    return output.response.entries[0] if isinstance(output.response, LeaveResponse) else output.response.error


# --- Timers that are due, and how late a deadline may be.


@statement(
    "T53", "The timer of a slot that is due ends its membership or pending id, unless its member waits and is not new."
)
def due_slots_are_cleared(step: CoordinatorStep) -> Truth:
    """Who is not heard of goes."""
    if not isinstance(step.input, TimerExpiry) or step.input.kind is not TimerKind.MEMBER:
        return True
    slot = step.before.slots[step.input.slot]
    stays = and_(is_member(slot), is_waiting(slot), not_(slot.is_new))
    due = is_timer_due(step.before, step.input, step.now)
    return implies(and_(due, not_(stays)), not_(holds_id(step.after, slot.id)))


@statement(
    "T54",
    "A join timer that is due ends its phase, but where a newcomer extends the initial delay, or only absent static"
    " members are left.",
)
def due_join_timers_end(step: CoordinatorStep) -> Truth:
    """Who does not come is not waited for. The delay has an end: each step of it uses up what is left of it."""
    if not isinstance(step.input, TimerExpiry) or step.input.kind is not TimerKind.JOIN:
        return True
    before, after = step.before, step.after
    waited = before.initial_wait
    grows = and_(before.initial, before.newcomer, before.initial_left != 0)
    used = and_(
        after.initial,
        not_(after.newcomer),
        or_(after.initial_left == before.initial_left - waited, after.initial_left == 0),
    )
    static = any_(and_(is_member(slot), not_(absent(slot.instance))) for slot in before.slots)
    nobody = not_(any_(and_(is_member(slot), slot.join != 0) for slot in before.slots))
    due = is_timer_due(before, step.input, step.now)
    return implies(due, or_(after.phase != Phase.PREPARING, and_(grows, used), and_(static, nobody)))


@statement("T55", "A sync timer that is due ends its generation, if a SyncGroup is missing.")
def due_sync_timers_end(step: CoordinatorStep) -> Truth:
    """The members join again without those that hold them up."""
    if not isinstance(step.input, TimerExpiry) or step.input.kind is not TimerKind.SYNC:
        return True
    return implies(misses_sync(step, step.input), not_(is_generation_active(step.after)))


def misses_sync(step: CoordinatorStep, timer: TimerExpiry) -> Truth:
    """The sync timer is due, and a SyncGroup is missing."""
    before = step.before
    missing = or_(before.stale_unsynced, *(and_(is_member(slot), slot.unsynced) for slot in before.slots))
    return and_(is_timer_due(before, timer, step.now), missing)


@statement(
    "T56",
    "No phase is longer than the longest rebalance timeout of the members that it begins with, nor the initial delay"
    " than its setting, nor a first JoinGroup's wait than its setting or a session that begins meanwhile.",
)
def deadlines_are_bounded(step: CoordinatorStep) -> Truth:
    """What is given whole (T20, T21) is given once; T54 has how an initial delay uses it up. Of no timeout at all, 1 ms
    is left (STATIC-20). When the first of those that leave in one request begins the phase, the others are members
    still."""
    before, after, moment = step.before, step.after, step.moment
    delay = moment.initial_rebalance_delay
    joins = or_(
        not_(and_(after.phase == Phase.PREPARING, after.join_armed)),
        and_(before.phase == Phase.PREPARING, before.join_armed, after.join_deadline == before.join_deadline),
        and_(after.initial, not_(after.join_deadline > step.now + delay), is_within_rest(step)),
        is_within_timeout(after, after.join_deadline, step.now),
        is_within_timeout(before, after.join_deadline, step.now),
    )
    syncs = or_(sync_timer_stays(step), is_within_timeout(after, after.sync_deadline, step.now))
    firsts = (
        implies(and_(is_member(new), new.is_new), waits_its_time(step, old, new))
        for old, new in zip(before.slots, after.slots, strict=False)
    )
    return and_(joins, syncs, *firsts)


def is_within_timeout(group: Group, deadline: Time, now: Time) -> Truth:
    """Some member has the time until then."""
    some = (and_(is_member(slot), not_(deadline > now + slot.rebalance_timeout)) for slot in group.slots)
    return or_(not_(deadline > now + 1), *some)


def is_within_rest(step: CoordinatorStep) -> Truth:
    """The initial delay begins with what some member's timeout leaves beside it, and goes on within what is left."""
    before, after, delay = step.before, step.after, step.moment.initial_rebalance_delay
    goes_on = and_(before.phase == Phase.PREPARING, before.initial)
    some = (and_(is_member(slot), not_(after.initial_left > slot.rebalance_timeout - delay)) for slot in after.slots)
    begins = and_(not_(goes_on), or_(not_(after.initial_left > 0), *some))
    return or_(begins, and_(goes_on, not_(after.join_deadline > step.now + before.initial_left)))


def waits_its_time(step: CoordinatorStep, old: Slot, new: Slot) -> Truth:
    """The first JoinGroup of a member waits until the limit; who replaces it, as long as a session too."""
    return or_(
        and_(is_member(old), old.is_new, new.deadline == old.deadline),
        new.deadline == step.now + step.moment.new_member_timeout,
        and_(is_member(old), old.id != new.id, new.deadline == step.now + old.session_timeout),
        new.deadline == step.now + new.session_timeout,
    )


@statement(
    "T57",
    "A generation ends only as a member joins, returns or goes, brings other protocols, leads and joins again, or"
    " misses its SyncGroup.",
)
def rebalances_have_causes(step: CoordinatorStep) -> Truth:
    """No rebalance for nothing: it stops everybody's work."""
    before, after = step.before, step.after
    ends = or_(after.phase == Phase.PREPARING, after.generation != before.generation)
    return implies(and_(is_generation_active(before), ends), has_cause(step))


def has_cause(step: CoordinatorStep) -> Truth:
    """The input is one of those that end a generation."""
    before = step.before
    match step.input:
        case JoinRequest():
            leads = and_(before.phase == Phase.STABLE, is_leader(step))
            sent = and_(has_member(before, step.input.member), or_(leads, offers_others(step)))
            return or_(not_(has_no_newcomer(step)), and_(not_(absent(step.input.member)), sent))
        case LeaveRequest(entries=entries):
            # The look at the round after the entries of a LeaveGroup is a step of its own, without any.
            return not entries or any_(names(slot, *entry) for slot in before.slots for entry in entries)
        case TimerExpiry(TimerKind.MEMBER, place):
            return and_(is_member(before.slots[place]), is_timer_due(before, step.input, step.now))
        case TimerExpiry(TimerKind.SYNC):
            return misses_sync(step, step.input)
        case _:
            return False


@statement(
    "T58",
    "A member or a pending id goes only by its LeaveGroup, its timer or a JoinGroup that finds no room, a member by its"
    " successor, a missing SyncGroup or a join phase that is over without it as well.",
)
def members_go_for_a_cause(step: CoordinatorStep) -> Truth:
    """Every id is still there, a member's as such, or one of the causes has put it out."""
    return all_(
        or_(
            has_member(step.after, slot.id),
            and_(slot.holder == Holder.PENDING, holds_id(step.after, slot.id)),
            slot.holder == Holder.NOBODY,
            is_put_out(step, index, slot),
        )
        for index, slot in enumerate(step.before.slots)
    )


def is_put_out(step: CoordinatorStep, index: int, slot: Slot) -> Truth:
    """The input is one by which this id goes, or the join phase of this member ends."""
    left_behind = and_(is_member(slot), ends_join_phase(step), slot.join == 0)
    match step.input:
        case JoinRequest(member=member, instance=instance):
            replaced = and_(is_member(slot), absent(member), not_(absent(instance)), slot.instance == instance)
            refused = and_(slot.id == member, is_answered_with(step, Error.GROUP_MAX_SIZE_REACHED))
            return or_(left_behind, replaced, refused)
        case LeaveRequest(entries=entries):
            return or_(left_behind, *(names(slot, *entry) for entry in entries))
        case TimerExpiry(TimerKind.MEMBER, place):
            return or_(left_behind, place == index)
        case TimerExpiry(TimerKind.SYNC):
            return or_(left_behind, and_(is_member(slot), slot.unsynced))
        case TimerExpiry(TimerKind.JOIN):
            return and_(is_member(slot), slot.join == 0)  # the phase may go on for static members (STATIC-20)
        case _:
            return left_behind


DUTY_THEOREMS = (
    requests_are_answered,
    due_slots_are_cleared,
    due_join_timers_end,
    due_sync_timers_end,
    deadlines_are_bounded,
    rebalances_have_causes,
    members_go_for_a_cause,
)
