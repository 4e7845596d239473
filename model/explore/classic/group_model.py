"""The world that is explored: one group at its coordinator, the processes that want to be members, and their network.

Each process has one register for requests, one for commits and one for answers. A request stays where it is after it
was handled, or goes: so it may come twice or late. An answer is heard at most once, and may be lost. What is written
over a message loses it. Time is left out: every armed timer may fire at any moment. What a step leaves open is tried
out in every way.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product

from fencepost.model.classic.coordinator.dispatch import takes_slot
from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import commit, heartbeat, leave
from fencepost.model.classic.core.sorts import Handle, HandleNumber, MemberId, numbered_id
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    CommitRequest,
    CommitResponse,
    Context,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    NoResponse,
    Output,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_join, expire_member, expire_sync
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import MemberRequest, MemberStep, PartitionCommit
from fencepost.model.errors import Error
from fencepost.model.explore.classic.absent_group import empty_group_step
from fencepost.model.explore.classic.properties import violated_property
from fencepost.model.explore.classic.rendering import render_value
from fencepost.model.explore.classic.state_layout import (
    COLUMNS_PER_PROCESS,
    COMMIT,
    COORDINATOR,
    PROCESS,
    REQUEST,
    RESPONSE,
    Bounds,
    CoordinatorState,
    IncomingResponse,
    ModelConfig,
    ProcessState,
    column_of,
)
from fencepost.model.explore.transition_system import (
    Action,
    Column,
    Permutation,
    Symmetry,
    Transition,
    TransitionSystem,
    Value,
)
from fencepost.model.frozen import evolve

COMMIT_HANDLE = HandleNumber(1)
"""The handle of every commit: nobody looks at it."""


class GroupModel:
    """Builds the system to explore from a setting and bounds."""

    def __init__(self, config: ModelConfig, bounds: Bounds) -> None:
        self.config = config
        self.bounds = bounds
        self.count = len(config.members)
        self.names = tuple("ABCDEFGH"[: self.count])

    def system(self) -> TransitionSystem:
        """The system, without reductions and properties."""
        columns = [Column("coordinator", "coordinator")]
        initial: list[Value] = [CoordinatorState(Group(slots=(FREE,) * self.bounds.slots))]
        sites: list[Action] = []
        for index, (name, settings) in enumerate(zip(self.names, self.config.members, strict=True)):
            process, request, response, late = (column_of(index, which) for which in range(COLUMNS_PER_PROCESS))
            columns += [Column(f"{name} {what}", what) for what in ("process", "request", "response", "commit")]
            begun = ProcessState(members.new_member(settings, self.config.partitions))
            initial += [self.reduce_process(begun), None, None, None]
            sites += [
                Action(f"{name} acts", (process,), MemberAct(self, index)),
                Action(f"{name} hears", (process, response), ReceiveResponse(self, index)),
                Action(f"{name} is served", (COORDINATOR, request), HandleRequest(self, index, request)),
                Action(f"{name} commits", (COORDINATOR, late), HandleRequest(self, index, late)),
            ]
        sites.append(Action("timers", (COORDINATOR,), self.timer_transitions))
        return TransitionSystem(tuple(columns), tuple(initial), tuple(sites), render_value=render_value)

    def symmetry(self) -> Symmetry:
        """Processes with the same settings are alike."""
        settings = self.config.members
        allowed = tuple(
            permutation
            for permutation in permutations(range(self.count))
            if all(settings[place] == mine for place, mine in zip(permutation, settings, strict=True))
        )
        blocks = tuple(
            tuple(column_of(index, which) for which in range(COLUMNS_PER_PROCESS)) for index in range(self.count)
        )
        return Symmetry(blocks, allowed, self.permute_handles)

    def reduce_process(self, process: ProcessState) -> ProcessState:
        """The process as it is kept; a reduced world leaves out what is over."""
        return process

    def reduce_coordinator(self, coordinator: CoordinatorState) -> CoordinatorState:
        """The coordinator as it is kept; a reduced world leaves out what is over."""
        return coordinator

    # -- handles ------------------------------------------------------------------------------------------------

    def handle_of(self, process: int, number: int) -> Handle:
        """The coordinator's name for a request of a process."""
        return HandleNumber(number * self.count + process + 1)

    def sender_of(self, handle: int) -> tuple[int, int]:
        """Which process sent a request, and its number there."""
        number, process = divmod(handle - 1, self.count)
        return process, number

    def permute_handles(
        self, coordinator: CoordinatorState | None, permutation: Permutation
    ) -> CoordinatorState | None:
        """The coordinator as it would be had the processes changed places."""
        if coordinator is None:
            return None

        def place(handle: Handle) -> Handle:
            process, number = self.sender_of(handle)
            return self.handle_of(permutation[process], number) if handle else 0

        slots = tuple(evolve(slot, join=place(slot.join), sync=place(slot.sync)) for slot in coordinator.group.slots)
        return evolve(coordinator, group=evolve(coordinator.group, slots=slots))

    # -- the coordinator ----------------------------------------------------------------------------------------

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

    def possible_steps(
        self, coordinator: CoordinatorState, process: int, request: MemberRequest
    ) -> list[tuple[Step, CoordinatorState]]:
        """Every step that a request can bring about, and the coordinator after it."""
        group = self.with_spare_slot(coordinator) if takes_slot(request) else coordinator.group
        return self.distinct_steps(
            coordinator, [self.handle_request(group, process, request, c) for c in self.contexts(coordinator)]
        )

    def with_spare_slot(self, coordinator: CoordinatorState) -> Group:
        """The group with a slot more than the bounds allow, for a JoinGroup without an id: it never finds none free."""
        return evolve(coordinator.group, slots=(*coordinator.group.slots, FREE))

    def without_spare_slot(self, coordinator: CoordinatorState) -> CoordinatorState:
        """The coordinator with the slots that the bounds allow."""
        slots = coordinator.group.slots[: self.bounds.slots]
        return evolve(coordinator, group=evolve(coordinator.group, slots=slots))

    def handle_request(self, group: Group, process: int, request: MemberRequest, context: Context) -> Step:
        """One step of the shipped core."""
        match request:
            case JoinRequest():
                return join(group, evolve(request, handle=self.handle_of(process, request.handle)), context)
            case SyncRequest():
                syncing = evolve(request, handle=self.handle_of(process, request.handle))
                return empty_group_step(group, syncing) or sync(group, syncing, context)
            case HeartbeatRequest():
                beating = evolve(request, handle=self.handle_of(process, 0))
                return empty_group_step(group, beating) or heartbeat(group, beating, context)
            case LeaveRequest():
                return leave(group, evolve(request, handle=self.handle_of(process, 0)), context)
            case PartitionCommit():
                return commit(group, evolve(request.request, handle=self.handle_of(process, 0)), context)

    def distinct_steps(self, before: CoordinatorState, steps: list[Step]) -> list[tuple[Step, CoordinatorState]]:
        """The different ones among the steps, with time left out."""
        found: dict[tuple[Step, CoordinatorState], None] = {}
        for step in dict.fromkeys(steps):
            used = any(slot.id == numbered_id(before.last_id + 1) for slot in step.group.slots)
            after = self.reduce_coordinator(CoordinatorState(without_deadlines(step.group), before.last_id + used))
            found[evolve(step, group=after.group), after] = None
        return list(found)

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
        return self.timer_steps(coordinator, [expire_member(group, index, c) for c in self.contexts(coordinator)])

    def phase_timer_transitions(self, coordinator: CoordinatorState) -> tuple[Transition, ...]:
        """The join timer and the sync timer, if they can fire."""
        group, contexts = coordinator.group, list(self.contexts(coordinator))
        joins = self.timer_steps(coordinator, [expire_join(group, context) for context in contexts])
        return (*joins, *self.timer_steps(coordinator, [expire_sync(group, context) for context in contexts]))

    def timer_steps(self, coordinator: CoordinatorState, steps: list[Step]) -> tuple[Transition, ...]:
        """What came of a timer as moves."""
        different = self.distinct_steps(coordinator, steps)
        return tuple(
            self.coordinator_transition(step.rule, coordinator, step, after, None)
            for step, after in different
            if step.outputs or self.without_spare_slot(after) != coordinator
        )

    def coordinator_transition(
        self, label: str, before: CoordinatorState, step: Step, after: CoordinatorState, request: MemberRequest | None
    ) -> Transition:
        """A step of the coordinator as a move: what it writes into its own column and into those of answers."""
        if self.is_out_of_bounds(after):
            return Transition(label, rule=step.rule, cut=True)
        writes: dict[int, Value] = {COORDINATOR: self.without_spare_slot(after)}
        for output in step.outputs:
            process, heard = self.route_response(output, request)
            if heard is not None:
                writes[column_of(process, RESPONSE)] = heard
        breach = violated_property(before.group, request, step, self.config.by_id)
        return Transition(label, tuple(writes.items()), step.rule, violates=breach)

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


def without_deadlines(group: Group) -> Group:
    """The group with every deadline at zero, so that what is armed is due."""
    slots = tuple(slot if slot.deadline == 0 else evolve(slot, deadline=0) for slot in group.slots)
    return evolve(group, slots=slots, join_deadline=0, sync_deadline=0, initial_wait=0, initial_left=0)


@dataclass(frozen=True, slots=True)
class MemberAct:
    """What a process does by itself."""

    model: GroupModel
    index: int

    def __call__(self, process: ProcessState) -> tuple[Transition, ...]:
        member, number = process.member, HandleNumber(process.last + 1)
        again = members.disconnect(members.ask_rejoin(member).member).member
        everything = (True,) * self.model.config.partitions
        steps = [
            ("joins", members.join(again, number), number),
            ("restarts", members.restart(member), process.last),
            ("leaves", members.leave(member, 0), process.last),
            ("commits", members.commit(member, COMMIT_HANDLE, everything), process.last),
        ]
        if self.model.config.heartbeats:
            steps.append(("heartbeats", members.heartbeat(member, 0), process.last))
        name = self.model.names[self.index]
        moves = (
            member_transition(self.model, self.index, f"{name} {what}", process, step, last)
            for what, step, last in steps
        )
        return tuple(move for move in moves if move is not None)


def member_transition(
    model: GroupModel, index: int, label: str, before: ProcessState, step: MemberStep, last: int, heard: bool = False
) -> Transition | None:
    """A step of a member as a move; None if nothing happens."""
    if last > model.bounds.requests:
        return Transition(label, rule=step.rule, cut=True)
    after = model.reduce_process(ProcessState(step.member, last))
    sent = [one.request for one in step.sent_requests if one.when]
    if after == before and not sent and not heard:
        return None
    writes: dict[int, Value] = {column_of(index, PROCESS): after}
    if heard:
        writes[column_of(index, RESPONSE)] = None
    for request in sent:
        writes[column_of(index, COMMIT if isinstance(request, PartitionCommit) else REQUEST)] = request
    return Transition(label, tuple(writes.items()), step.rule)


@dataclass(frozen=True, slots=True)
class ReceiveResponse:
    """A process gets an answer, or (the first move) never does."""

    model: GroupModel
    index: int

    def __call__(self, process: ProcessState, incoming: IncomingResponse | None) -> tuple[Transition, ...]:
        if incoming is None:
            return ()
        lost = Transition(f"{self.model.names[self.index]} loses an answer", ((column_of(self.index, RESPONSE), None),))
        found: dict[Transition, None] = {lost: None}
        for step, last in self.steps(process, incoming):
            label = f"{self.model.names[self.index]} hears {step.rule}"
            move = member_transition(self.model, self.index, label, process, step, last, heard=True)
            if move is not None:
                found[move] = None
        return tuple(found)

    def steps(self, process: ProcessState, incoming: IncomingResponse) -> Iterator[tuple[MemberStep, int]]:
        """Every step that the answer can bring about: a leader may plan in many ways."""
        member, number = process.member, HandleNumber(incoming.number)
        match incoming.response:
            case JoinResponse() as response:
                following = HandleNumber(process.last + 1)
                for plan in self.plans(response):
                    step = members.on_join_response(member, number, response, following, plan)
                    yield step, process.last + (1 if step.sent_requests else 0)
            case SyncResponse() as response:
                yield (
                    members.on_sync_response(member, number, response, COMMIT_HANDLE),
                    process.last,
                )
            case HeartbeatResponse() as response:
                assert isinstance(incoming.request, HeartbeatRequest)
                yield members.on_heartbeat_response(member, incoming.request, response), process.last
            case CommitResponse() as response:
                assert isinstance(incoming.request, CommitRequest)
                yield members.on_commit_response(member, incoming.request, response), process.last
            case LeaveResponse() | NoResponse():
                return

    def plans(self, response: JoinResponse) -> Iterable[tuple[MemberId | None, ...]]:
        """Every plan that a leader could make."""
        ids = [view.id for view in response.members if view.id is not None]
        return product([None, *ids], repeat=self.model.config.partitions)


@dataclass(frozen=True, slots=True)
class HandleRequest:
    """The coordinator gets what lies in a register, for the last time or not."""

    model: GroupModel
    index: int
    register: int

    def __call__(self, coordinator: CoordinatorState, request: MemberRequest | None) -> tuple[Transition, ...]:
        if request is None:
            return ()
        moves: list[Transition] = []
        for step, after in self.model.possible_steps(coordinator, self.index, request):
            label = f"{self.model.names[self.index]} gets {step.rule}"
            move = self.model.coordinator_transition(label, coordinator, step, after, request)
            moves.append(move)
            if not move.cut:
                moves.append(evolve(move, writes=(*move.writes, (self.register, None))))
        return tuple(moves)
