"""Where the judge goes on after a wrong response: it believes what the target has told.

Some wrong responses leave no doubt about the state. Nothing depends on them; or the target goes by what they show from
now on: it counts from another generation, or has let a member in without an id (`certain_belief`).

After all others the state is a guess. The judge then takes every state in which the target may be if it means what it
has said, and later responses tell which of them it is (`BelievedStates`):

* A request that was refused has done nothing, or as much as if it had been accepted; who is told to be unknown may be
  no member any more, who is told to rejoin may be in a rebalance.
* A request that was accepted has done what it asks for, or nothing.
* A response that came early has ended the phase that it waited for, by the generation, leader and protocol that it
  tells, or its member alone no longer waits.
* A response that tells other values than the model tells those of the target, or shows them otherwise than they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from fencepost.model.classic.coordinator.dispatch import apply_core_step, with_free_slot
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.join import join_newcomer
from fencepost.model.classic.core.join_phase import complete_join, prepare_rebalance, trigger_rebalance
from fencepost.model.classic.core.member_table import (
    NOWHERE,
    add_member,
    clear_slot,
    find,
    find_free,
    is_member,
    no_members,
    offers,
    with_slot,
)
from fencepost.model.classic.core.membership import rebalance_after_leave, remove_member
from fencepost.model.classic.core.state import (
    Choices,
    Context,
    Group,
    HeartbeatResponse,
    Holder,
    JoinResponse,
    LeaveResponse,
    Output,
    Phase,
    Step,
    SyncResponse,
)
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import JoinGroup, LeaveGroup, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import (
    DeleteGroup,
    DescribeGroupResponse,
    ListGroupsResponse,
    OffsetCommit,
    OffsetDelete,
    OffsetFetchResponse,
    PartitionErrors,
    TxnOffsetCommit,
)
from fencepost.model.groups.offsets import add_pending
from fencepost.model.sorts import MemberId
from fencepost.traces.classic.attribution import OFFSET_DETAIL_FIELDS
from fencepost.traces.classic.nondeterminism import unseen_of, with_group
from fencepost.traces.classic.stepping import SHOWN_FIELDS, CoordinatorStepper, sender_of
from fencepost.traces.events import Body
from fencepost.traces.judge.diagnosis.diagnosis import Belief, Diagnoser, Diagnosis, errors_in, is_accepted
from fencepost.traces.judge.search.configuration import (
    Configuration,
    GroupOperation,
    Instant,
    Mismatch,
    TimeInterval,
    high,
    low,
    step_that_responds,
)
from fencepost.traces.judge.search.search import Search

MAX_BELIEFS = 8
"""How many configurations are gone on from after a wrong response."""
MAX_STARTS = 3
"""From how many configurations before an early response others are looked for."""


def believe(diagnosis: Diagnosis, part: GroupOperation, search: Search, time: int) -> Belief | None:
    """Where to go on after a wrong response to `part`, which was found at `time`, in milliseconds."""
    operations = search.open_operations
    wrong = operations.get(diagnosis.mismatches[-1].handle, part)
    certain = certain_belief(diagnosis, wrong.operation.response or {}, operations)
    if certain is not None:
        return certain
    stepper = search.stepper
    assert isinstance(stepper, CoordinatorStepper)
    believed = BelievedStates(stepper, search, part, time)
    stepper.allow_mismatches = True
    try:
        if is_asked_to_come_again(diagnosis.mismatches[-1], wrong):
            again = dict.fromkeys(each for one in search.configurations for each in believed.expecting(one, wrong))
            return Belief(tuple(again)[:MAX_BELIEFS])
        found = dict.fromkeys(islice(believed.after(diagnosis), MAX_BELIEFS))
    finally:
        stepper.allow_mismatches = False
    handle = part.operation.handle
    is_explained = any(handle in one.matched and all(each.handle != handle for each in one.mismatches) for one in found)
    return Belief(tuple(found), is_certain=False, is_explained=is_explained) if found else None


# --- Beliefs beyond doubt.

READ_ONLY_RESPONSES = (HeartbeatResponse, OffsetFetchResponse, DescribeGroupResponse, ListGroupsResponse)
"""Responses to requests that change nothing that matters."""
NO_EFFECT_RULES = frozenset({"sync.stable"})
"""Rules of other requests that change nothing."""
SAME_GENERATION_RULES = frozenset(
    {"join.completing.same-protocols", "join.stable.same-protocols", "join.replace.stable"}
)
"""Rules whose response names the generation that the other members are in already."""


def is_generation_announced(configuration: Configuration, operations: Mapping[int, GroupOperation]) -> bool:
    """The response to another member names the right generation."""
    assert configuration.world.group is not None
    responses = (operations[each].operation.response or {} for each in configuration.matched if each in operations)
    return any(each.get("generation_id") == configuration.world.group.generation for each in responses)


def certain_belief(diagnosis: Diagnosis, body: Body, operations: Mapping[int, GroupOperation]) -> Belief | None:
    """Where to go on after wrong responses, if that is beyond doubt; else None. `operations` are requests by handle.

    Either nothing depends on the response, or the target goes by it from now on: it counts from a generation, it has
    let a member in without an id, or it shows what is stored beside an offset. After a commit or a leave it is in doubt
    what the group is if several states are possible, or a clean-up pass was assumed to explain another error.
    """
    after = diagnosis.after
    if after is None:
        return None
    clean = evolve(after, mismatches=())
    rest = [each for each in after.mismatches if not each.is_certain]
    if not rest:
        return Belief((clean,), after.mismatches)
    if is_round_told(rest, body) and clean.world.group is not None:
        if any(each.rule in SAME_GENERATION_RULES for each in rest) or is_generation_announced(clean, operations):
            return Belief((clean,))
        late = operations.get(rest[0].handle)
        if "time" in rest[0].fields and late is not None:
            clean = extend_deadlines(clean, late, rest[0])
        group = evolve(clean.world.group, generation=body.get("generation_id", -1))
        return Belief((with_group(clean, group),), after.mismatches)
    if all(map(is_detail_for_the_client, rest)) and not diagnosis.is_state_ambiguous:
        return Belief(tuple(with_type_told(clean, rest, body)), after.mismatches)
    mismatch = rest[0]
    if len(after.mismatches) != 1 or "time" in mismatch.fields:
        return None
    if mismatch.fields <= OFFSET_DETAIL_FIELDS:
        return Belief((clean,), (mismatch,))
    unmoved = isinstance(mismatch.expected, READ_ONLY_RESPONSES) or mismatch.rule in NO_EFFECT_RULES
    doubtful = isinstance(mismatch.expected, PartitionErrors | LeaveResponse) and (
        diagnosis.is_state_ambiguous or unseen_of(clean).last_cleanup is not None
    )
    refused = is_refused(mismatch.expected, body) and not doubtful
    return Belief((clean,)) if unmoved or refused else None


def is_round_told(wrong: Sequence[Mismatch], body: Body) -> bool:
    """Whether the target has told its round, whenever that ended: all that is wrong is the generation, or the time of a
    response as well; or it tells the leader, late, who the members are."""
    fields = {name for each in wrong for name in each.fields}
    is_ended = all(each.expected is not None for each in wrong)
    is_list_for_leader = bool(body.get("members")) and "generation_id" in body
    is_whole = "generation" in fields or (len(wrong) == 1 and is_list_for_leader)
    return fields == {"generation"} or (fields <= {"generation", "time"} and is_ended and is_whole)


def is_detail_for_the_client(mismatch: Mismatch) -> bool:
    """Whether a response is wrong only in what it tells the member, and the coordinator does not go by it.

    That is the selected protocol beside an assignment, a list of members for one that does not lead and is not told
    that it does, a detail of the list, or the ids beside the errors of a LeaveGroup.
    """
    expected = mismatch.expected
    if isinstance(expected, LeaveResponse):
        return mismatch.fields == {"echo"}
    if isinstance(expected, SyncResponse):
        return mismatch.fields <= SHOWN_FIELDS | {"protocol"}
    if not isinstance(expected, JoinResponse) or expected.error != Error.NONE:
        return False
    return mismatch.fields <= SHOWN_FIELDS or (mismatch.fields == {"members"} and not expected.members)


def with_type_told(clean: Configuration, rest: Sequence[Mismatch], body: Body) -> Iterator[Configuration]:
    """The configuration after wrong details, and the one whose group is of the protocol type that a JoinGroup response
    tells: it refuses everybody from now on."""
    yield clean
    is_told = any("protocol_type" in each.fields and isinstance(each.expected, JoinResponse) for each in rest)
    if is_told and clean.world.group is not None:
        yield with_group(clean, evolve(clean.world.group, protocol_type=body.get("protocol_type") or None))


def is_asked_to_come_again(mismatch: Mismatch, wrong: GroupOperation) -> bool:
    """Whether a member was told an id to join with, by mistake: nothing else has come of its request."""
    body = wrong.operation.response or {}
    is_told = Error.MEMBER_ID_REQUIRED in errors_in(body) and bool(body.get("member_id"))
    return isinstance(wrong.request, JoinGroup) and is_told and "error" in mismatch.fields


def is_refused(expected: object, body: Body) -> bool:
    """Whether the response allowed and the one seen refuse the request in all its parts: then nothing came of it."""
    whole = getattr(expected, "error", Error.NONE)
    allowed, rows = {whole}, list[Body]()
    if isinstance(expected, PartitionErrors) and whole == Error.NONE:
        allowed = set(expected.errors.values())
    elif isinstance(expected, LeaveResponse) and whole == Error.NONE:
        allowed = set(expected.entries)
    if isinstance(expected, PartitionErrors):
        rows = [row for topic in body.get("topics") or () for row in topic.get("partitions") or ()]
    elif isinstance(expected, LeaveResponse):
        rows = list(body.get("members") or ())
    seen = {body["error_code"]} if body.get("error_code") else {row.get("error_code") for row in rows}
    return bool(allowed and seen) and Error.NONE not in allowed and not seen & {None, 0}


# --- Believed states.


def adopt_round(group: Group, body: Body) -> Group:
    """The group with the generation, the leader, the protocol and the members that a JoinGroup response tells, as far
    as there can be such a group."""
    generation, leader, protocol = body.get("generation_id"), body.get("leader"), body.get("protocol_name")
    told = {row.get("member_id") for row in body.get("members") or ()}
    if told and body.get("member_id") in told:
        for index, slot in enumerate(group.slots):
            if is_member(slot) and slot.id not in told:
                group = clear_slot(group, index)
    if isinstance(generation, int) and generation >= 0:
        group = evolve(group, generation=generation)
    if find(group, leader, Holder.MEMBER) != NOWHERE:
        group = evolve(group, leader=leader, leader_open=False)
    if any(is_member(slot) and offers(slot, protocol) for slot in group.slots):
        group = evolve(group, protocol=protocol)
    return group


def adopt_member_id(group: Group, shown: MemberId, told: Any) -> Group:
    """The group with the id that a JoinGroup response tells its member."""
    index = find(group, shown, Holder.MEMBER)
    if index == NOWHERE or not told or not isinstance(told, str):
        return group
    renamed = with_slot(group, index, evolve(group.slots[index], id=told))
    return evolve(renamed, leader=told) if group.leader == shown else renamed


def without_place(group: Group, handle: int) -> Group:
    """The group in which a parked request no longer waits."""
    slots = tuple(
        evolve(slot, join=0 if slot.join == handle else slot.join, sync=0 if slot.sync == handle else slot.sync)
        for slot in group.slots
    )
    return evolve(group, slots=slots)


NOBODYS_REQUEST = -1
"""The handle of a JoinGroup that was never sent."""


def with_all_joined(group: Group) -> Group:
    """The group in which every member waits for the end of the join phase."""
    slots = (evolve(slot, join=slot.join or NOBODYS_REQUEST) if is_member(slot) else slot for slot in group.slots)
    return evolve(group, slots=tuple(slots))


class BelievedStates:
    """The configurations in which a target may be that means what it has told in a wrong response."""

    def __init__(self, stepper: CoordinatorStepper, search: Search, part: GroupOperation, time: int) -> None:
        self.stepper = stepper
        self.search = search
        self.part = part
        self.now: Instant = time

    def after(self, diagnosis: Diagnosis) -> Iterator[Configuration]:
        """The configurations after what a diagnosis has found, the likeliest first."""
        if diagnosis.after is None:
            yield from self.after_early_response()
        else:
            yield from self.after_wrong_response(diagnosis.after)
        for one in self.search.configurations[:MAX_STARTS]:
            yield self.ignoring(one)

    def ignoring(self, configuration: Configuration) -> Configuration:
        """The configuration in which the request never was."""
        handle = self.part.operation.handle
        if configuration.world.group is not None and self.stepper.is_parked(configuration.world, handle):
            configuration = with_group(configuration, without_place(configuration.world.group, handle))
        predicted = tuple(each for each in configuration.predicted if each[0] != handle)
        return evolve(configuration, waiting=configuration.waiting - {handle}, predicted=predicted)

    def expecting(self, configuration: Configuration, wrong: GroupOperation) -> Iterator[Configuration]:
        """The configurations in which a member was told an id and has to join with it."""
        body, request, before = wrong.operation.response or {}, wrong.request, self.ignoring(configuration)
        if request.core.instance is not None:
            unseen = unseen_of(before)
            yield evolve(before, unseen=evolve(unseen, told_ids=unseen.told_ids | {body["member_id"]}))
        else:
            group, asked = with_free_slot(before.world.group or Group()), evolve(request.core, requires_id=True)
            yield from self.take(before, join_newcomer(group, asked, self.context(body)), body)

    def context(self, body: Body) -> Context:
        """The context of a step that chooses what a response tells."""
        choices = Choices(body.get("member_id"), body.get("leader"), body.get("protocol_name"))
        return self.stepper.step_context(self.now, choices, Dialect())

    def take(self, configuration: Configuration, step: Step, body: Body) -> Iterator[Configuration]:
        """The configurations after a step of the core that the target has taken by itself."""
        result = apply_core_step(configuration.world, step, self.context(body))
        yield from self.stepper.apply(configuration, result, result.state, 0, self.now)

    # --- a response that came although its request had to wait --------------------------------------------------

    def after_early_response(self) -> Iterator[Configuration]:
        """The configurations after a response to a request that the model has wait."""
        body, diagnoser = self.part.operation.response or {}, Diagnoser(self.search)
        for before in self.search.configurations[:MAX_STARTS]:
            for parked in islice(diagnoser.parked_after(before, self.part), MAX_STARTS):
                if not is_accepted(body):
                    yield from self.after_refusal(parked, body)
                elif isinstance(self.part.request, JoinGroup):
                    yield from self.end_join_phase(parked, body)
                else:
                    yield from self.end_sync_phase(parked, body)

    def end_join_phase(self, configuration: Configuration, body: Body) -> Iterator[Configuration]:
        """The join phase is over with the round that the response tells of: those that have not joined are dropped, or
        stay as if they had."""
        group, told = configuration.world.group, body.get("generation_id")
        for joined in dict.fromkeys((group, with_all_joined(group))):
            for generation in dict.fromkeys(
                (group.generation, told - 1 if isinstance(told, int) else group.generation)
            ):
                after, outputs = complete_join(evolve(joined, generation=generation), self.context(body))
                for one in self.take(configuration, Step(after, outputs, "timer.rebalance"), body):
                    yield with_group(one, adopt_round(one.world.group, body))

    def end_sync_phase(self, configuration: Configuration, body: Body) -> Iterator[Configuration]:
        """The member has its assignment; either so has everybody, or the others wait on."""
        group, handle = configuration.world.group, self.part.operation.handle
        slots = tuple(
            evolve(slot, sync=0, assignment=body.get("assignment") or None) if slot.sync == handle else slot
            for slot in group.slots
        )
        alone = evolve(group, slots=slots)
        yield with_group(configuration, alone)
        outputs = tuple(
            Output(slot.sync, SyncResponse(Error.NONE, group.protocol_type, group.protocol, slot.assignment))
            for slot in slots
            if is_member(slot) and slot.sync
        )
        freed = evolve(alone, slots=tuple(evolve(slot, sync=0, unsynced=False) for slot in slots))
        yield from self.take(configuration, Step(evolve(freed, phase=Phase.STABLE), outputs, "sync.leader"), body)

    # --- a response that should be another ----------------------------------------------------------------------

    def after_wrong_response(self, after: Configuration) -> Iterator[Configuration]:
        """The configurations after a response in the place of another one."""
        mismatch = after.mismatches[-1]
        after = evolve(after, mismatches=())
        wrong = self.search.open_operations.get(mismatch.handle, self.part)
        body = wrong.operation.response or {}
        step = step_that_responds(after.path, mismatch.handle)
        before = None
        if step is not None and step.handle == mismatch.handle and step.start is not None:
            before = evolve(after, world=step.start)
        if mismatch.fields == {"time"}:
            yield extend_deadlines(after, wrong, mismatch)
        elif is_accepted(body):
            if is_success(mismatch.expected):
                yield from self.adopting(after, mismatch, body)
            elif before is not None:
                yield from self.accepting(before, wrong, body)
            yield after
        else:
            if before is not None:
                yield before
            yield after
            yield from self.after_refusal(before if before is not None else after, body)

    def adopting(self, after: Configuration, mismatch: Mismatch, body: Body) -> Iterator[Configuration]:
        """The configurations in which the values are those that the response tells."""
        group = after.world.group
        if isinstance(mismatch.expected, JoinResponse) and group is not None:
            if "member" in mismatch.fields and mismatch.expected.member is not None:
                group = adopt_member_id(group, mismatch.expected.member, body.get("member_id"))
            yield with_group(after, adopt_round(group, body))
        elif isinstance(mismatch.expected, SyncResponse) and group is not None:
            index = find(group, sender_of(self.part.request), Holder.MEMBER)
            if index != NOWHERE and "assignment" in mismatch.fields:
                told = evolve(group.slots[index], assignment=body.get("assignment") or None)
                yield with_group(after, with_slot(group, index, told))

    def accepting(self, before: Configuration, wrong: GroupOperation, body: Body) -> Iterator[Configuration]:
        """The configurations after a request was accepted that the model refuses."""
        request, world = wrong.request, before.world
        match request:
            case JoinGroup():
                yield from self.admit(before, request, body)
            case LeaveGroup() if world.group is not None:
                for member, instance in request.core.entries:
                    for index, slot in enumerate(world.group.slots):
                        if is_member(slot) and (slot.id == member or (instance and slot.instance == instance)):
                            yield from self.remove(before, index, body)
            case OffsetCommit() | TxnOffsetCommit():
                yield evolve(before, world=self.store(world, request))
            case DeleteGroup():
                yield evolve(before, world=GroupState())
            case OffsetDelete():
                asked = set(request.partitions)
                left = {where: offset for where, offset in world.offsets.items() if where not in asked}
                yield evolve(before, world=evolve(world, offsets=left))
            case SyncGroup() if world.group is not None and world.group.phase is Phase.COMPLETING:
                yield from self.end_sync_phase(before, body)

    def store(self, world: GroupState, request: OffsetCommit | TxnOffsetCommit) -> GroupState:
        """The state with the offsets of a commit, whoever sent it."""
        known = world if world.group is not None else evolve(world, group=Group(), stored=Group())
        asked = {where: evolve(offset, committed=self.now) for where, offset in request.offsets}
        if isinstance(request, TxnOffsetCommit):
            return evolve(
                known,
                pending=add_pending(known.pending, request.producer, asked),
                epochs={**known.epochs, request.producer: request.epoch},
            )
        return evolve(known, offsets={**known.offsets, **asked})

    def admit(self, before: Configuration, request: JoinGroup, body: Body) -> Iterator[Configuration]:
        """The member was let in: it waits for the round, or the round is over by its response."""
        context, core = self.context(body), request.core
        group = with_free_slot(before.world.group or Group())
        known = find(group, body.get("member_id"), Holder.MEMBER)
        index = known if known != NOWHERE else find_free(group)
        admitted = add_member(group, index, core, body.get("member_id"), context)
        waiting = prepare_rebalance if admitted.phase == Phase.EMPTY else trigger_rebalance
        after, outputs = waiting(admitted, context)
        for one in self.take(before, Step(after, outputs, "join.new"), body):
            yield one
            if self.stepper.is_parked(one.world, core.handle):
                yield from self.end_join_phase(one, body)

    def after_refusal(self, before: Configuration, body: Body) -> Iterator[Configuration]:
        """The configurations in which a refusal tells how the group stands."""
        if before.world.group is None:
            return
        group, errors = without_place(before.world.group, self.part.operation.handle), errors_in(body)
        yield with_group(before, group)
        index = find(group, sender_of(self.part.request), Holder.MEMBER)
        if Error.UNKNOWN_MEMBER_ID in errors and index != NOWHERE:
            yield from self.remove(with_group(before, group), index, body)
        elif Error.REBALANCE_IN_PROGRESS in errors and group.phase in (Phase.STABLE, Phase.COMPLETING):
            after, outputs = prepare_rebalance(group, self.context(body))
            yield from self.take(before, Step(after, outputs, "timer.session"), body)

    def remove(self, before: Configuration, index: int, body: Body) -> Iterator[Configuration]:
        """The member is gone: the others rebalance, or nobody has told them."""
        rest, outputs = remove_member(before.world.group, index)
        after, responses = rebalance_after_leave(rest, self.context(body))
        yield from self.take(before, Step(after, outputs + responses, "leave.member"), body)
        if not no_members(rest):
            yield from self.take(before, Step(rest, outputs, "leave.member"), body)


def extend_deadlines(after: Configuration, late: GroupOperation, mismatch: Mismatch) -> Configuration:
    """The configuration in which all that runs since a response was due may have begun as late as it came."""
    group, responded_at = after.world.group, late.operation.responded_at or 0
    delay = responded_at - (late.operation.sent_at if mismatch.due is None else mismatch.due)
    if group is None or delay <= 0:
        return after
    slots = tuple(evolve(slot, deadline=extend(slot.deadline, delay)) if slot.armed else slot for slot in group.slots)
    extended = evolve(
        group,
        slots=slots,
        sync_deadline=extend(group.sync_deadline, delay),
        join_deadline=extend(group.join_deadline, delay),
    )
    return with_group(after, extended)


def extend(deadline: Instant, delay: int) -> Instant:
    """The deadline, which may be as much later, in milliseconds."""
    return TimeInterval(low(deadline), high(deadline) + delay)


def is_success(expected: Any) -> bool:
    """Whether a response of the model has no error in any of its parts."""
    if getattr(expected, "error", Error.NONE) != Error.NONE:
        return False
    parts = getattr(expected, "entries", ()) or tuple(getattr(expected, "errors", {}).values())
    return all(each == Error.NONE for each in parts)
