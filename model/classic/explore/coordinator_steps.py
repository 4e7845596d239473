"""The coordinator of the explored world: every step that a request or a timer can bring about, judged."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from fencepost.model.classic.coordinator.dispatch import takes_slot
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    CommitResponse,
    Context,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveResponse,
    NoResponse,
    Output,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.explore.coordinator_inputs import CoreRequest
from fencepost.model.classic.explore.coordinator_tour import core_step
from fencepost.model.classic.explore.properties import violated_property
from fencepost.model.classic.explore.state_layout import (
    COORDINATOR,
    RESPONSE,
    Bounds,
    CoordinatorState,
    IncomingResponse,
    ModelConfig,
    column_of,
)
from fencepost.model.classic.explore.step_checks import NO_FINDINGS, StepFindings, judge_step
from fencepost.model.classic.member.member import MemberRequest, PartitionCommit
from fencepost.model.classic.theorems.step_statements import CoordinatorStep, Input, TimerExpiry, TimerKind
from fencepost.model.errors import Error
from fencepost.model.explore.transition_system import (
    Transition,
    Value,
)
from fencepost.model.frozen import evolve
from fencepost.model.sorts import Handle, HandleNumber, numbered_id


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """A step of the coordinator as the search keeps it, the coordinator after it, and what was found in it."""

    step: Step
    after: CoordinatorState
    findings: StepFindings


def without_deadlines(group: Group) -> Group:
    """The group with every deadline at zero, so that what is armed is due."""
    slots = tuple(slot if slot.deadline == 0 else evolve(slot, deadline=0) for slot in group.slots)
    return evolve(group, slots=slots, join_deadline=0, sync_deadline=0, initial_wait=0, initial_left=0)


class CoordinatorSteps:
    """The steps of the coordinator in a world with these processes and bounds."""

    judges_steps = True
    """Whether theorems and properties are checked of each step."""

    def __init__(self, config: ModelConfig, bounds: Bounds) -> None:
        self.config = config
        self.bounds = bounds
        self.count = len(config.members)
        self.names = tuple("ABCDEFGH"[: self.count])

    def reduce_coordinator(self, coordinator: CoordinatorState) -> CoordinatorState:
        """The coordinator as it is kept; a reduced world leaves out what is over."""
        return coordinator

    def handle_of(self, process: int, number: int) -> Handle:
        """The coordinator's name for a request of a process."""
        return HandleNumber(number * self.count + process + 1)

    def sender_of(self, handle: int) -> tuple[int, int]:
        """Which process sent a request, and its number there."""
        number, process = divmod(handle - 1, self.count)
        return process, number

    def contexts(self, coordinator: CoordinatorState) -> Iterator[Context]:
        """Every way in which a step can be left open: the leader to be, the protocol to be."""
        leaders = [slot.id for slot in coordinator.group.slots if slot.holder != Holder.NOBODY]
        leaders.append(numbered_id(coordinator.last_id + 1))
        names = {name for settings in self.config.members for name in settings.names}
        for leader, name in product(leaders, sorted(names) if len(names) > 1 else [None]):
            yield Context(
                now=0,
                choices=Choices(numbered_id(coordinator.last_id + 1), leader, name),
                dialect=self.config.dialect,
                max_group_size=self.config.max_group_size,
                initial_rebalance_delay=0,
                new_member_timeout=0,
            )

    def possible_steps(self, coordinator: CoordinatorState, process: int, request: MemberRequest) -> list[JudgedStep]:
        """Every step that a request can bring about."""
        group = coordinator.group
        if takes_slot(request):
            # A JoinGroup without an id never finds no slot free.
            group = evolve(group, slots=(*group.slots, FREE))
        steps = [self.handle_request(group, process, request, c) for c in self.contexts(coordinator)]
        return self.distinct_steps(coordinator, group, self.address_request(process, request), steps, request)

    def without_spare_slot(self, coordinator: CoordinatorState) -> CoordinatorState:
        """The coordinator with the slots that the bounds allow."""
        slots = coordinator.group.slots[: self.bounds.slots]
        return evolve(coordinator, group=evolve(coordinator.group, slots=slots))

    def handle_request(self, group: Group, process: int, request: MemberRequest, context: Context) -> Step:
        """One step of the shipped core."""
        return core_step(group, self.address_request(process, request), context)

    def address_request(self, process: int, request: MemberRequest) -> CoreRequest:
        """The request as the coordinator gets it: its handle tells which process it is from."""
        match request:
            case JoinRequest() | SyncRequest():
                return evolve(request, handle=self.handle_of(process, request.handle))
            case PartitionCommit():
                return evolve(request.request, handle=self.handle_of(process, 0))
            case _:
                return evolve(request, handle=self.handle_of(process, 0))

    def distinct_steps(
        self,
        before: CoordinatorState,
        group: Group,
        cause: Input,
        steps: list[Step],
        request: MemberRequest | None = None,
    ) -> list[JudgedStep]:
        """The different ones among the steps from this group, judged, with time left out."""
        moment = next(self.contexts(before))  # no statement speaks of the choices, in which contexts differ
        found: dict[tuple[Step, CoordinatorState], JudgedStep] = {}
        for step in dict.fromkeys(steps):
            findings = NO_FINDINGS
            if self.judges_steps:
                findings = judge_step(CoordinatorStep(group, cause, moment, step.group, step.outputs), request)
            used = any(slot.id == numbered_id(before.last_id + 1) for slot in step.group.slots)
            after = self.reduce_coordinator(self.coordinator_after(before, group, step, before.last_id + used))
            short = evolve(step, group=after.group)
            known = found.get((short, after))
            if known is None or findings.violated:
                found[short, after] = JudgedStep(short, after, findings)
        return list(found.values())

    def coordinator_after(self, before: CoordinatorState, group: Group, step: Step, last_id: int) -> CoordinatorState:
        """The coordinator after a step from this group, with time left out."""
        return CoordinatorState(without_deadlines(step.group), last_id)

    def is_out_of_bounds(self, coordinator: CoordinatorState) -> bool:
        """The coordinator has left the bounds."""
        group = coordinator.group
        full = group.slots[self.bounds.slots :] not in ((), (FREE,))
        return full or group.generation > self.bounds.generations or coordinator.last_id > self.bounds.ids

    def timer_transitions(self, coordinator: CoordinatorState) -> tuple[Transition, ...]:
        """Every timer that can fire."""
        slots = range(len(coordinator.group.slots))
        moves = [move for index in slots for move in self.slot_timer_transitions(coordinator, index)]
        return (*moves, *self.phase_timer_transitions(coordinator))

    def slot_timer_transitions(self, coordinator: CoordinatorState, index: int) -> tuple[Transition, ...]:
        """The timer of one slot, if it can fire."""
        group = coordinator.group
        steps = [expire_member(group, index, context) for context in self.contexts(coordinator)]
        return self.timer_steps(coordinator, TimerExpiry(TimerKind.MEMBER, index), steps)

    def phase_timer_transitions(self, coordinator: CoordinatorState) -> tuple[Transition, ...]:
        """The join timer and the sync timer, if they can fire."""
        group, contexts = coordinator.group, list(self.contexts(coordinator))
        joins = [expire_join(group, context) for context in contexts]
        syncs = [expire_sync(group, context) for context in contexts]
        return (
            *self.timer_steps(coordinator, TimerExpiry(TimerKind.JOIN), joins),
            *self.timer_steps(coordinator, TimerExpiry(TimerKind.SYNC), syncs),
        )

    def timer_steps(
        self, coordinator: CoordinatorState, timer: TimerExpiry, steps: list[Step]
    ) -> tuple[Transition, ...]:
        """What came of a timer as moves."""
        return tuple(
            self.coordinator_transition(one.step.rule, coordinator, one, None)
            for one in self.distinct_steps(coordinator, coordinator.group, timer, steps)
            if one.step.outputs or one.findings.violated or self.without_spare_slot(one.after) != coordinator
        )

    def coordinator_transition(
        self, label: str, before: CoordinatorState, judged: JudgedStep, request: MemberRequest | None
    ) -> Transition:
        """A step of the coordinator as a move: what it writes into its own column and into those of answers."""
        step, after = judged.step, judged.after
        if self.is_out_of_bounds(after):
            return Transition(label, rule=step.rule, cut=True)
        writes: dict[int, Value] = {COORDINATOR: self.without_spare_slot(after)}
        for output in step.outputs:
            process, heard = self.route_response(output, request)
            if heard is not None:
                writes[column_of(process, RESPONSE)] = heard
        breach = judged.findings.violated
        if self.judges_steps:
            breach = violated_property(before.group, request, step, self.config.by_id) or breach
        return Transition(label, tuple(writes.items()), step.rule, violates=breach, shows=judged.findings.shown)

    def route_response(self, output: Output, request: MemberRequest | None) -> tuple[int, IncomingResponse | None]:
        """Whom an answer goes to, and what there is to hear: nothing if it would not change anything there."""
        process, number = self.sender_of(output.handle)
        match output.response:
            case JoinResponse(members=views) as response:
                # Free slots are no members: how many there are must not tell states apart.
                told = tuple(view for view in views if view.id is not None)
                return process, IncomingResponse(evolve(response, members=told), number)
            case SyncResponse():
                return process, IncomingResponse(output.response, number)
            case HeartbeatResponse(error) if error != Error.NONE and isinstance(request, HeartbeatRequest):
                return process, IncomingResponse(output.response, request=request)
            case CommitResponse(error) if error != Error.NONE and isinstance(request, PartitionCommit):
                return process, IncomingResponse(output.response, request=request.request)
            case HeartbeatResponse() | CommitResponse() | LeaveResponse() | NoResponse():
                return process, None
