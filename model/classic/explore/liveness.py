"""Liveness once the members stop changing: none leaves, crashes or joins without having to, nothing is lost.

From every state of a bounded search the run goes on without bounds, with any set of processes alive and the others
dead. Members and messages are quicker than timers: a timer fires only when nothing else can happen. A run is fair if
what can happen all the time happens at last, and a timer that runs all the time fires at last. The 300 s that a first
JoinGroup may be parked are longer than a phase. Leaders are steady: what they find, they leave where it is. Without
that a cooperative group need not settle, as the check shows.

Every fair run must end settled: a Stable group of just the living, each of them stable in its generation, and no
request parked.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations

from fencepost.model.classic.core.state import (
    FREE,
    Context,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinResponse,
    Phase,
    Slot,
)
from fencepost.model.classic.explore.coordinator_tour import core_step
from fencepost.model.classic.explore.group_model import GroupModel, ProcessActions
from fencepost.model.classic.explore.state_layout import (
    COLUMNS_PER_PROCESS,
    COMMIT,
    COORDINATOR,
    PROCESS,
    REQUEST,
    Bounds,
    CoordinatorState,
    IncomingResponse,
    ModelConfig,
    ProcessState,
    column_of,
)
from fencepost.model.classic.explore.symmetry import Canonicalizer, ReducedGroupModel
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberState
from fencepost.model.explore.fair_runs import RowNumbers, RunGraph, end_components
from fencepost.model.explore.search import PlainSearch, Row
from fencepost.model.explore.transition_system import Action, Transition, TransitionSystem, Value
from fencepost.model.explore.transition_tables import TransitionTables
from fencepost.model.logic import holds
from fencepost.model.sorts import HandleNumber, MemberId

# --- The group once its members stop changing: live members act when they have to, dead ones never, nothing is lost.


NO_BOUND = 1 << 40
HEARTBEATING_STATES = (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)


class UnboundedModel(GroupModel):
    """The world without bounds but the number of slots. Nobody judges its steps: the search with bounds has.

    Leaders that are not `steady` may make another plan each time. What a timer of a slot brings about is computed once.
    """

    judges_steps = False

    def __init__(self, config: ModelConfig, slots: int, steady: bool = True) -> None:
        super().__init__(config, Bounds(NO_BOUND, NO_BOUND, NO_BOUND, slots))
        self.processes = tuple(QuietProcess(self, index, steady) for index in range(self.count))
        self._of_slots: dict[tuple[CoordinatorState, int], tuple[Transition, ...]] = {}

    def slot_timer_transitions(self, coordinator: CoordinatorState, index: int) -> tuple[Transition, ...]:
        """The timer of one slot, if it can fire."""
        key = (coordinator, index)
        found = self._of_slots.get(key)
        if found is None:
            found = self._of_slots[key] = super().slot_timer_transitions(coordinator, index)
        return found


@dataclass(frozen=True, slots=True)
class QuietProcess(ProcessActions):
    """What a process does when it has to. A `steady` leader leaves a partition with whom it finds it, and gives any
    other to the first member."""

    steady: bool

    def plans(self, response: JoinResponse) -> Iterable[tuple[MemberId | None, ...]]:
        """The one plan of a steady leader."""
        if not self.steady:
            return ProcessActions.plans(self, response)
        views = [view for view in response.members if view.id is not None]
        partitions = range(self.model.config.partitions)
        claims = [[view.id for view in views if holds(view.metadata, part)] for part in partitions]
        first = [view.id for view in views][:1]
        return [tuple(next(iter(claim or first), None) for claim in claims)]

    def hear_surely(self, process: ProcessState, incoming: IncomingResponse | None) -> tuple[Transition, ...]:
        """An answer is heard and not lost."""
        return self.hear(process, incoming)[1:]

    def serve_once(self, coordinator: CoordinatorState, request: Value) -> tuple[Transition, ...]:
        """A request is handled, and is then gone."""
        gone = (column_of(self.index, REQUEST), None)
        return tuple(move for move in self.serve(coordinator, request) if gone in move.writes)

    def serve_commit_once(self, coordinator: CoordinatorState, request: Value) -> tuple[Transition, ...]:
        """A commit is handled, and is then gone."""
        gone = (column_of(self.index, COMMIT), None)
        return tuple(move for move in self.serve_commit(coordinator, request) if gone in move.writes)

    def join(self, process: ProcessState) -> tuple[Transition, ...]:
        """A process that has to join does."""
        number = HandleNumber(process.last + 1)
        step = members.join(process.member, number)
        move = self.move("joins", process, step, number) if step.sent_requests else None
        return () if move is None else (move,)

    def heartbeat(self, coordinator: CoordinatorState, process: ProcessState) -> tuple[Transition, ...]:
        """A heartbeat and its answer at once, if the member learns something from it."""
        for sent in members.heartbeat(process.member, HandleNumber(1)).sent_requests:
            request = sent.request
            assert isinstance(request, HeartbeatRequest)
            step = core_step(coordinator.group, request, Context(now=0))
            response = step.outputs[0].response
            assert isinstance(response, HeartbeatResponse)
            learned = members.on_heartbeat_response(process.member, request, response).member
            if learned != process.member:
                after = replace(process, member=learned)
                return (Transition(f"{self.name} hears of {step.rule}", ((column_of(self.index, PROCESS), after),)),)
        return ()

    def give_up(
        self, coordinator: CoordinatorState, process: ProcessState, request: Value, incoming: IncomingResponse | None
    ) -> tuple[Transition, ...]:
        """A process waits for an answer to a request that is nowhere any more: it asks again at last."""
        waiting = process.member.waiting
        handle = self.model.handle_of(self.index, waiting)
        parked = any(handle in (slot.join, slot.sync) for slot in coordinator.group.slots)
        if waiting == 0 or parked or request is not None or incoming is not None:
            return ()
        after = replace(process, member=members.disconnect(process.member).member)
        return (Transition(f"{self.name} gives up", ((column_of(self.index, PROCESS), after),)),)


class QuietModel:
    """The world from some moment on: the living do what they have to, the dead do nothing.

    Models of the same world with others alive have the same actions, but for the timers of slots.
    """

    def __init__(self, model: UnboundedModel, alive: frozenset[int]) -> None:
        self.model = model
        self.alive = alive

    def system(self) -> TransitionSystem:
        """The system; its initial row is that of the whole world."""
        sites: list[Action] = []
        for index, actor in enumerate(self.model.processes):
            process, request, response, late = (column_of(index, each) for each in range(COLUMNS_PER_PROCESS))
            everything = (COORDINATOR, process, request, response)
            sites += [
                Action(f"{actor.name} is served", (COORDINATOR, request), actor.serve_once),
                Action(f"{actor.name} commits", (COORDINATOR, late), actor.serve_commit_once),
            ]
            if index in self.alive:
                sites += [
                    Action(f"{actor.name} joins", (process,), actor.join),
                    Action(f"{actor.name} hears", (process, response), actor.hear_surely),
                    Action(f"{actor.name} heartbeats", (COORDINATOR, process), actor.heartbeat),
                    Action(f"{actor.name} gives up", everything, actor.give_up, patient=True),
                ]
        processes = tuple(column_of(index, PROCESS) for index in range(self.model.count))
        for slot in range(self.model.bounds.slots):
            expire = partial(self.expire_slot, slot)
            sites.append(Action(f"timer of slot {slot}", (COORDINATOR, *processes), expire, patient=True))
        sites.append(Action("timers of the phase", (COORDINATOR,), self.model.phase_timer_transitions, patient=True))
        return replace(self.model.system(), actions=tuple(sites))

    def expire_slot(
        self, number: int, coordinator: CoordinatorState, *processes: ProcessState
    ) -> tuple[Transition, ...]:
        """The timer of a slot, unless somebody alive sends heartbeats for it or waits there with a first JoinGroup."""
        slot = coordinator.group.slots[number]
        for index in self.alive:
            member = processes[index].member
            if member.id == slot.id and member.state in HEARTBEATING_STATES:
                return ()
            if slot.is_new and slot.join == self.model.handle_of(index, member.waiting):
                return ()
        return self.model.slot_timer_transitions(coordinator, number)

    def is_settled(self, row: Row) -> bool:
        """Everyone alive is a stable member of a Stable group, and nobody else is; nothing is parked."""
        group = row[COORDINATOR].group
        living: list[Member] = [row[column_of(index, PROCESS)].member for index in sorted(self.alive)]
        if not living:
            return bool(group.phase == Phase.EMPTY)
        present = {slot.id for slot in group.slots if slot.holder != Holder.NOBODY}
        return bool(
            group.phase == Phase.STABLE
            and present == {member.id for member in living}
            and all(member.state == MemberState.STABLE for member in living)
            and all(member.generation == group.generation for member in living)
            and all(slot.join == 0 and slot.sync == 0 for slot in group.slots)
        )


# --- Every fair run from every state within the bounds.


@dataclass(frozen=True, slots=True)
class Stall:
    """A fair run that does not settle: the way in, and the rows that it stays among for ever."""

    alive: tuple[str, ...]
    path: tuple[str, ...]
    cycle: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class LivenessResult:
    """What was looked at, over all sets of living processes, and the runs that do not settle."""

    starts: int
    states: int
    edges: int
    cycles: int
    """Sets of states that a run can stay among, fair or not, besides final states."""
    finals: int
    cut: int
    """Moves that the size of the member table forbade: none, or the result says less."""
    stalls: tuple[Stall, ...]


def check_liveness(
    config: ModelConfig,
    bounds: Bounds,
    steady: bool = True,
    only: tuple[int, ...] | None = None,
    progress: Callable[[str], None] | None = None,
) -> LivenessResult:
    """Look at every fair run from every state within the bounds, for every set of living processes or `only` one."""
    world = ReducedGroupModel(config, bounds, restless=False)
    before = PlainSearch(TransitionTables(world.system()))
    before.run()
    extra = (FREE,) * (world.count + 1)
    rows = [with_extra_slots(before.tables.values(state), extra) for state in before.parents]
    total = LivenessResult(len(rows), 0, 0, 0, 0, 0, ())
    unbounded = UnboundedModel(config, bounds.slots + len(extra), steady)
    numbers = RowNumbers(Canonicalizer(unbounded))
    anyone = chain.from_iterable(combinations(range(world.count), some) for some in range(world.count + 1))
    for alive in anyone if only is None else [only]:
        if progress is not None:
            progress(f"alive: {', '.join(world.names[index] for index in alive) or 'nobody'}")
        total = add_runs(total, QuietModel(unbounded, frozenset(alive)), rows, numbers)
    return total


def with_extra_slots(row: Row, extra: tuple[Slot, ...]) -> Row:
    """The row with more free slots."""
    coordinator: CoordinatorState = row[COORDINATOR]
    group = replace(coordinator.group, slots=(*coordinator.group.slots, *extra))
    return (replace(coordinator, group=group), *row[1:])


def add_runs(total: LivenessResult, quiet: QuietModel, rows: Sequence[Row], numbers: RowNumbers) -> LivenessResult:
    """The totals with the runs of one set of living processes."""
    runs = RunGraph(quiet.system(), numbers)
    runs.explore(rows)
    cycles = finals = 0
    stalls = list(total.stalls)
    for component, fair in end_components(runs):
        final = not any(True for _ in runs.graph.out_edges(component))
        finals += final
        cycles += not final
        around = tuple(runs.row(state) for state in component)
        if fair and not all(quiet.is_settled(row) for row in around):
            names = tuple(quiet.model.names[index] for index in sorted(quiet.alive))
            stalls.append(Stall(names, tuple(runs.path_to(min(component))), around))
    return LivenessResult(
        total.starts,
        total.states + runs.graph.number_of_nodes(),
        total.edges + runs.graph.number_of_edges(),
        total.cycles + cycles,
        total.finals + finals,
        total.cut + runs.cut,
        tuple(stalls),
    )
