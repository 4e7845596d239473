"""Theorems across fail-overs: one coordinator after another goes on with the group of the log.

The next coordinator begins with the record, so a statement about the group is needed of the record too (`of_record`).
Within a term nothing else is new. How far the record is behind depends on the design. The proposal of client-side
assignment stores a generation before JoinGroup is answered, and keeps every theorem. Kafka stores it with its
assignment, so whatever a member was assigned is stored, and what is said of assignments holds. If the assignment has
not come, the number of the generation is given again, and T1 is false (`non_theorems.coordinator_failover`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fencepost.model.classic.core.member_table import is_member, member_count, no_members
from fencepost.model.classic.core.protocol_selection import metadata_for
from fencepost.model.classic.core.state import Context, Group, Holder, Output, Phase, Slot, SyncRequest, SyncResponse
from fencepost.model.classic.theorems.ghost_state import GhostState, GroupRecord, JoinResponseSent
from fencepost.model.classic.theorems.lemmas import (
    LEMMAS,
    is_generation_active,
    join_request,
    join_response,
    join_response_id,
    member_id,
    member_owns,
    member_waits,
    parked_join,
    parked_sync,
    stable_assignment,
    sync_request,
    sync_response,
    sync_response_owner,
)
from fencepost.model.classic.theorems.member_statements import MemberChange
from fencepost.model.classic.theorems.ownership_lemmas import (
    OWNERSHIP_LEMMAS,
    claimed_partitions,
    claims_partition,
    open_generation,
)
from fencepost.model.classic.theorems.request_statements import STEP_THEOREMS
from fencepost.model.classic.theorems.statements import (
    THEOREMS,
    WHATEVER_CLIENTS_SEND,
    one_assignee,
    one_leader,
    one_owner,
    one_process,
)
from fencepost.model.classic.theorems.step_statements import (
    CoordinatorStep,
    is_same_assignment,
    join_responses,
)
from fencepost.model.errors import Error
from fencepost.model.logic import Time, Truth, all_, and_, any_, not_, or_
from fencepost.model.sorts import Assignment, MemberId
from fencepost.model.statement import Statement, are_equal, implies, statement


def of_record(one: Statement) -> Statement:
    """The statement about the group, said of its record."""
    place = one.subjects.index(Group)

    def holds(*arguments: object) -> Truth:
        record = arguments[place]
        assert isinstance(record, GroupRecord)
        return one.holds(*arguments[:place], record.group, *arguments[place + 1 :])

    subjects = (*one.subjects[:place], GroupRecord, *one.subjects[place + 1 :])
    return replace(
        one, id=f"record:{one.id}", sentence=f"Of the record: {one.sentence}", holds=holds, subjects=subjects
    )


@statement("record-phase", "A record is of a generation with a leader, or of a group without members.")
def record_phase(record: GroupRecord) -> Truth:
    """A join phase is not recorded."""
    return or_(is_generation_active(record.group), and_(record.group.phase == Phase.EMPTY, no_members(record.group)))


@statement("record-generation", "The next coordinator goes on from the generation that the group was in.")
def record_generation(group: Group, record: GroupRecord) -> Truth:
    """No number is given again."""
    return group.generation == record.group.generation


@statement("record-leader", "A generation in use is recorded as it is, with its leader.")
def record_leader(group: Group, record: GroupRecord, ghost: GhostState) -> Truth:
    """The next coordinator knows who leads."""
    stored = record.group
    return implies(
        is_generation_active(group),
        and_(group.phase == stored.phase, ghost.identity_of(group.leader) == ghost.identity_of(stored.leader)),
    )


@statement("record-claims", "A generation in use is recorded with the claims of its members.")
def record_claims(group: Group, record: GroupRecord) -> Truth:
    """The next coordinator tells the leader of the same claims."""
    return implies(
        is_generation_active(group), and_(has_claims_of(record.group, group), has_claims_of(group, record.group))
    )


def has_claims_of(group: Group, other: Group) -> Truth:
    """Whatever a member claims in the other group, it claims in this one."""
    return all_(
        implies(
            claims_partition(other, mine, part),
            any_(and_(slot.id == mine.id, claims_partition(group, slot, part)) for slot in group.slots),
        )
        for mine in other.slots
        for part in claimed_partitions(mine)
    )


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step of a coordinator, and the group's record when its responses are sent: what it writes is stored before."""

    step: CoordinatorStep
    record: Group


@statement("record-assignments", "In a stable group a member's assignment is the recorded one.")
def record_assignments(group: Group, record: GroupRecord) -> Truth:
    """The next coordinator hands out the same."""
    return implies(
        group.phase == Phase.STABLE,
        all_(implies(is_member(slot), has_assignment(record.group, slot.id, slot.assignment)) for slot in group.slots),
    )


def has_assignment(group: Group, member: MemberId | None, given: Assignment | None) -> Truth:
    """The member is in the group with this assignment."""
    return any_(
        and_(is_member(slot), slot.id == member, is_same_assignment(slot.assignment, given)) for slot in group.slots
    )


@statement("stored-assignment", "An assignment that a coordinator hands out is in its log.")
def assignment_is_stored(recorded: RecordedStep) -> Truth:
    """An old coordinator, whose writes are refused, hands out none that the next one does not know."""
    step, record = recorded.step, recorded.record
    return all_(
        implies(
            and_(output.when, output.response.error == Error.NONE),
            and_(
                record.phase == Phase.STABLE,
                record.generation == step.after.generation,
                any_(
                    and_(waits, has_assignment(record, member, output.response.assignment))
                    for waits, member in who_waits(step, output)
                ),
            ),
        )
        for output in step.outputs
        if isinstance(output.response, SyncResponse)
    )


def who_waits(step: CoordinatorStep, output: Output) -> Iterator[tuple[Truth, MemberId | None]]:
    """The members that may wait for the response, each with whether it does."""
    yield from ((and_(is_member(slot), slot.sync == output.handle), slot.id) for slot in step.before.slots)
    if isinstance(step.input, SyncRequest):
        yield step.input.handle == output.handle, step.input.member


@statement("stored-generation", "A generation that a coordinator tells of is in its log, with its leader.")
def generation_is_stored(recorded: RecordedStep, ghost: GhostState) -> Truth:
    """An old coordinator, whose writes are refused, begins none. Not so Kafka's."""
    step, record = recorded.step, recorded.record
    return all_(
        implies(
            and_(output.when, response.error == Error.NONE),
            and_(
                response.generation == record.generation,
                ghost.identity_of(response.leader) == ghost.identity_of(record.leader),
            ),
        )
        for output, response in join_responses(step)
    )


# --- What is in the log, and what a coordinator makes of it.


@statement("stored-group", "The record of a stable group is that of its members; that of an empty group has none.")
def group_is_stored(group: Group, record: GroupRecord) -> Truth:
    """Its generation, leader and protocol, and each member as it is. Of a rebalance the log knows nothing."""
    stored = record.group
    same = and_(is_same_round(stored, group), has_same_members(stored, group))
    return and_(implies(group.phase == Phase.STABLE, same), implies(group.phase == Phase.EMPTY, no_members(stored)))


def is_same_round(group: Group, other: Group) -> Truth:
    """The groups have one generation, leader and protocol."""
    names = ("generation", "leader", "protocol", "protocol_type")
    return and_(*(are_equal(getattr(group, name), getattr(other, name)) for name in names))


def has_same_members(group: Group, other: Group) -> Truth:
    """Each member of one of the groups is in the other, as it is there; the second one says whether it is stable."""
    return and_(
        *(
            implies(is_member(slot), any_(and_(is_member(one), is_same_member(one, slot, other)) for one in its.slots))
            for its, here in ((group, other), (other, group))
            for slot in here.slots
        )
    )


def is_same_member(slot: Slot, other: Slot, group: Group) -> Truth:
    """The slots have one member: its settings, what it says with the group's protocol, and what it was assigned in a
    stable group."""
    names = ("id", "instance", "client", "session_timeout", "rebalance_timeout")
    said = (metadata_for(one, group.protocol) for one in (slot, other))
    same = and_(*(are_equal(getattr(slot, name), getattr(other, name)) for name in names))
    assigned = or_(group.phase != Phase.STABLE, is_same_assignment(slot.assignment, other.assignment))
    return and_(same, are_equal(*said), assigned)


@dataclass(frozen=True, slots=True)
class Loading:
    """A coordinator has loaded a group from its record."""

    record: Group
    group: Group
    moment: Context


@statement("loaded-members", "A loaded group is that of its record: its generation, leader, protocol and members.")
def record_is_loaded(loading: Loading) -> Truth:
    """Each member is as the record has it, and no id is pending."""
    record, group = loading.record, loading.group
    pending = any_(slot.holder == Holder.PENDING for slot in group.slots)
    return and_(is_same_round(group, record), has_same_members(group, record), not_(pending))


@statement(
    "loaded-timers",
    "In a loaded group each member has a whole session, and nobody waits; a join phase begins if, and only if, the"
    " group is too large, and a sync timer if a SyncGroup is missing, each for the longest rebalance timeout.",
)
def loaded_timers_begin(loading: Loading) -> Truth:
    """A coordinator knows nothing of the time before it."""
    group, now = loading.group, loading.moment.now
    limit = loading.moment.max_group_size
    too_large = member_count(group) > limit
    awaits = any_(and_(is_member(slot), slot.unsynced) for slot in group.slots)
    begins = and_(
        *(implies(is_member(slot), has_whole_session(slot, now)) for slot in group.slots),
        or_(and_(group.phase == Phase.PREPARING, too_large), and_(group.phase != Phase.PREPARING, not_(too_large))),
        or_(and_(group.join_armed, too_large), and_(not_(group.join_armed), not_(too_large))),
        implies(too_large, is_longest_wait(group, group.join_deadline, now)),
        or_(and_(group.sync_armed, awaits), and_(not_(group.sync_armed), not_(awaits))),
        implies(awaits, is_longest_wait(group, group.sync_deadline, now)),
        implies(group.phase == Phase.COMPLETING, all_(implies(is_member(slot), slot.unsynced) for slot in group.slots)),
    )
    return or_(limit < 0, begins)


def has_whole_session(slot: Slot, now: Time) -> Truth:
    """The session of the member begins now, and nothing of it waits."""
    begins = and_(slot.armed, slot.deadline == now + slot.session_timeout, not_(slot.is_new))
    return and_(begins, slot.join == 0, slot.sync == 0)


def is_longest_wait(group: Group, deadline: Time, now: Time) -> Truth:
    """From now to the deadline it is the longest rebalance timeout of the members, none if all are below 0."""
    ends: list[tuple[Truth, Time]] = [(is_member(slot), now + slot.rebalance_timeout) for slot in group.slots]
    ends.append((True, now))
    no_shorter = and_(*(implies(here, deadline >= end) for here, end in ends))
    return and_(no_shorter, any_(and_(here, deadline == end) for here, end in ends))


LOADING_THEOREMS = (group_is_stored, record_is_loaded, loaded_timers_begin)
"""What the log has of a group, and what the next coordinator makes of it."""

RECORD_IS_CURRENT = (record_generation, record_leader, record_claims)
"""What holds only where a generation is stored before JoinGroup is answered."""

IN_ONE_TERM = tuple(
    one
    for one in (*THEOREMS, *STEP_THEOREMS, *LEMMAS, *OWNERSHIP_LEMMAS)
    if not {CoordinatorStep, MemberChange} & set(one.subjects)
)
"""The statements about states. Those about single steps rest on them, and a loading is no step of a term."""
ACROSS_FAILOVERS = (
    *IN_ONE_TERM,
    *(of_record(one) for one in IN_ONE_TERM if Group in one.subjects),
    record_phase,
    *RECORD_IS_CURRENT,
    record_assignments,
    assignment_is_stored,
    generation_is_stored,
    *LOADING_THEOREMS,
)
"""What is proved together of the design that stores a generation early."""
FAILOVER_THEOREMS = (*THEOREMS, record_generation, assignment_is_stored, generation_is_stored, *LOADING_THEOREMS)
"""The theorems among them that people read."""


@statement(
    "record-settled",
    "A record has an assignment: an older one while one is awaited, the current one in a stable group.",
)
def record_settled(group: Group, record: GroupRecord) -> Truth:
    """Kafka's record: whatever a member was assigned is stored."""
    stored = record.group
    return and_(
        stored.phase != Phase.COMPLETING,
        stored.generation <= group.generation,
        implies(group.phase == Phase.COMPLETING, stored.generation < group.generation),
        implies(group.phase == Phase.STABLE, and_(stored.phase == Phase.STABLE, stored.generation == group.generation)),
    )


@statement("join-response-generation", "A JoinGroup answer without an error speaks of a generation from 1 on.")
def join_response_generation(given: JoinResponseSent) -> Truth:
    """A member has a generation."""
    return implies(given.response.error == Error.NONE, given.response.generation >= 1)


_KEPT_BY_COORDINATOR = tuple(
    one for one in IN_ONE_TERM if one in WHATEVER_CLIENTS_SEND and one not in (one_leader, join_response)
)
_KEPT_WITH_CLIENTS = (
    one_assignee,
    one_owner,
    one_process,
    stable_assignment,
    parked_join,
    parked_sync,
    join_request,
    sync_request,
    join_response_id,
    sync_response,
    sync_response_owner,
    member_waits,
    member_id,
    member_owns,
    open_generation,
)
_KEPT = (*_KEPT_BY_COORDINATOR, *_KEPT_WITH_CLIENTS)
KEPT_BY_KAFKA = (
    *_KEPT,
    *(of_record(one) for one in _KEPT if Group in one.subjects),
    record_phase,
    record_settled,
    record_assignments,
    join_response_generation,
    assignment_is_stored,
    *LOADING_THEOREMS,
)
"""What is proved together of Kafka's design. T1 is false of it, and T3 rests on lemmas that are."""

FAILOVERS_WHATEVER_CLIENTS_SEND = frozenset(
    {
        *(of_record(one).id for one in WHATEVER_CLIENTS_SEND if Group in one.subjects),
        *(one.id for one in (record_phase, record_generation, record_leader, record_settled, record_assignments)),
        *(one.id for one in (assignment_is_stored, generation_is_stored, *LOADING_THEOREMS)),
        join_response_generation.id,
    }
)
"""The statements about records that assume nothing of clients."""
