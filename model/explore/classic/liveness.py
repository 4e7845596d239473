"""What happens once the members stop changing: nobody leaves, crashes or joins without having to, nothing is lost.

From every state of a bounded search the run goes on without bounds, with any set of processes alive and the others
dead. Members and messages are quicker than timers: a timer fires only when nothing else can happen. A run is fair if
what can happen all the time happens at last, and a timer that runs all the time fires at last. The 300 s that a first
JoinGroup may be parked are longer than a phase. Leaders are steady: what they find, they leave where it is. Without
that a cooperative group need not settle, as the check shows.

Every fair run must end settled: a Stable group of just the living, each of them stable in its generation, and no
request parked.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TypeAlias

import networkx as nx

from fencepost.model.classic.core.membership import heartbeat
from fencepost.model.classic.core.sorts import HandleNumber, MemberId
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
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberState
from fencepost.model.explore.classic.absent_group import empty_group_step
from fencepost.model.explore.classic.group_model import GroupModel, HandleRequest, ReceiveResponse, member_transition
from fencepost.model.explore.classic.reductions import ReducedGroupModel
from fencepost.model.explore.classic.state_layout import (
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
from fencepost.model.explore.classic.symmetry import Canonicalizer
from fencepost.model.explore.search import PlainSearch, Row
from fencepost.model.explore.transition_system import Action, Transition, TransitionSystem, Value
from fencepost.model.explore.transition_tables import TransitionTables
from fencepost.model.logic import holds

NO_BOUND = 1 << 40
State: TypeAlias = tuple[int, ...]
"""A row by the numbers of its values."""
HEARTBEATING_STATES = (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)


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


class QuietModel:
    """The world from some moment on: the living do what they have to, the dead do nothing."""

    def __init__(self, config: ModelConfig, slots: int, alive: frozenset[int], steady: bool = True) -> None:
        self.model = GroupModel(config, Bounds(NO_BOUND, NO_BOUND, NO_BOUND, slots))
        self.alive = alive
        self.hearing = SteadyLeaderReceive if steady else ReceiveResponse

    def system(self) -> TransitionSystem:
        """The system; its initial row is that of the whole world."""
        sites: list[Action] = []
        for index, name in enumerate(self.model.names):
            process, request, response, late = (
                column_of(index, which) for which in (PROCESS, REQUEST, RESPONSE, COMMIT)
            )
            sites.append(
                Action(
                    f"{name} is served", (COORDINATOR, request), HandleOnce(HandleRequest(self.model, index, request))
                )
            )
            sites.append(
                Action(f"{name} commits", (COORDINATOR, late), HandleOnce(HandleRequest(self.model, index, late)))
            )
            if index in self.alive:
                sites += [
                    Action(f"{name} joins", (process,), SendJoin(self.model, index)),
                    Action(f"{name} hears", (process, response), ReceiveWithoutLoss(self.hearing(self.model, index))),
                    Action(f"{name} heartbeats", (COORDINATOR, process), HeartbeatRoundTrip(self.model, index)),
                    Action(
                        f"{name} gives up",
                        (COORDINATOR, process, request, response),
                        GiveUpRequest(self.model, index),
                        True,
                    ),
                ]
        processes = tuple(column_of(index, PROCESS) for index in range(self.model.count))
        for slot in range(self.model.bounds.slots):
            sites.append(Action(f"timer of slot {slot}", (COORDINATOR, *processes), ExpireSlot(self, slot), True))
        sites.append(Action("timers of the phase", (COORDINATOR,), self.model.phase_timer_transitions, True))
        return replace(self.model.system(), actions=tuple(sites))

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


@dataclass(frozen=True, slots=True)
class HandleOnce:
    """A request is handled, and is then gone."""

    serving: HandleRequest

    def __call__(self, coordinator: CoordinatorState, request: Value) -> tuple[Transition, ...]:
        moves = self.serving(coordinator, request)
        return tuple(move for move in moves if (self.serving.register, None) in move.writes)


@dataclass(frozen=True, slots=True)
class ReceiveWithoutLoss:
    """An answer is heard and not lost."""

    hearing: ReceiveResponse

    def __call__(self, process: ProcessState, incoming: IncomingResponse | None) -> tuple[Transition, ...]:
        moves = self.hearing(process, incoming)
        return moves[1:]


@dataclass(frozen=True, slots=True)
class SteadyLeaderReceive(ReceiveResponse):
    """A leader that leaves a partition with whom it finds it, and gives any other to the first member."""

    def plans(self, response: JoinResponse) -> Iterable[tuple[MemberId | None, ...]]:
        """The one plan."""
        views = [view for view in response.members if view.id is not None]
        partitions = range(self.model.config.partitions)
        claims = [[view.id for view in views if holds(view.metadata, part)] for part in partitions]
        first = [view.id for view in views][:1]
        return [tuple(next(iter(claim or first), None) for claim in claims)]


@dataclass(frozen=True, slots=True)
class SendJoin:
    """A process that has to join does."""

    model: GroupModel
    index: int

    def __call__(self, process: ProcessState) -> tuple[Transition, ...]:
        number = HandleNumber(process.last + 1)
        step = members.join(process.member, number)
        name = self.model.names[self.index]
        move = (
            member_transition(self.model, self.index, f"{name} joins", process, step, number)
            if step.sent_requests
            else None
        )
        return () if move is None else (move,)


@dataclass(frozen=True, slots=True)
class HeartbeatRoundTrip:
    """A heartbeat and its answer at once, if the member learns something from it."""

    model: GroupModel
    index: int

    def __call__(self, coordinator: CoordinatorState, process: ProcessState) -> tuple[Transition, ...]:
        for sent in members.heartbeat(process.member, HandleNumber(1)).sent_requests:
            request = sent.request
            assert isinstance(request, HeartbeatRequest)
            group = coordinator.group
            step = empty_group_step(group, request) or heartbeat(group, request, Context(now=0))
            response = step.outputs[0].response
            assert isinstance(response, HeartbeatResponse)
            learned = members.on_heartbeat_response(process.member, request, response).member
            if learned != process.member:
                after = replace(process, member=learned)
                return (Transition(f"{self.model.names[self.index]} hears of {step.rule}", ((self.column, after),)),)
        return ()

    @property
    def column(self) -> int:
        """The column of the process."""
        return column_of(self.index, PROCESS)


@dataclass(frozen=True, slots=True)
class GiveUpRequest:
    """A process waits for an answer to a request that is nowhere any more: it asks again at last."""

    model: GroupModel
    index: int

    def __call__(
        self, coordinator: CoordinatorState, process: ProcessState, request: Value, incoming: IncomingResponse | None
    ) -> tuple[Transition, ...]:
        waiting = process.member.waiting
        handle = self.model.handle_of(self.index, waiting)
        parked = any(handle in (slot.join, slot.sync) for slot in coordinator.group.slots)
        if waiting == 0 or parked or request is not None or incoming is not None:
            return ()
        after = replace(process, member=members.disconnect(process.member).member)
        return (Transition(f"{self.model.names[self.index]} gives up", ((column_of(self.index, PROCESS), after),)),)


@dataclass(frozen=True, slots=True)
class ExpireSlot:
    """The timer of one slot, unless somebody alive sends heartbeats for it or waits there with a first JoinGroup."""

    quiet: QuietModel
    slot: int

    def __call__(self, coordinator: CoordinatorState, *processes: ProcessState) -> tuple[Transition, ...]:
        slot = coordinator.group.slots[self.slot]
        for index in self.quiet.alive:
            member = processes[index].member
            if member.id == slot.id and member.state in HEARTBEATING_STATES:
                return ()
            if slot.is_new and slot.join == self.quiet.model.handle_of(index, member.waiting):
                return ()
        return self.quiet.model.slot_timer_transitions(coordinator, self.slot)


class QuietGraph:
    """All that follows on some rows: states up to names, and what leads from one to the other, by site."""

    def __init__(self, system: TransitionSystem, rename: Callable[[Row], Row]) -> None:
        self.graph: nx.MultiDiGraph[State] = nx.MultiDiGraph()
        self.parents: dict[State, State | None] = {}
        self.cut = 0
        self._sites = system.actions
        self._rename = rename
        self._values: list[Value] = []
        self._numbers: dict[Value, int] = {}
        self._moves: dict[tuple[int, State], list[tuple[str, tuple[tuple[int, int], ...]]]] = {}
        self._canonical: dict[State, State] = {}

    def explore(self, rows: Iterable[Row]) -> None:
        """Follow every run from these rows."""
        level = [self._canonical_state(self._state(row)) for row in rows]
        self.parents = dict.fromkeys(level)
        level = list(self.parents)
        while level:
            found: list[State] = []
            for state in level:
                for which, label, successor in self._edges(state):
                    self.graph.add_edge(state, successor, site=which, label=label)
                    if successor not in self.parents:
                        self.parents[successor] = state
                        found.append(successor)
            level = found

    def row(self, state: State) -> Row:
        """The row of a state."""
        return tuple(self._values[number] for number in state)

    def enabled_actions(self, state: State) -> set[int]:
        """The sites at which something can happen, or could if the others were done: a timer runs while it waits."""
        return {which for which in range(len(self._sites)) if self._moves_at(which, state)}

    def path_to(self, state: State) -> list[str]:
        """What happened from some start to this state."""
        labels: list[str] = []
        before = self.parents[state]
        while before is not None:
            labels.append(next(iter(self.graph[before][state].values()))["label"])
            state, before = before, self.parents[before]
        return labels[::-1]

    def _edges(self, state: State) -> list[tuple[int, str, State]]:
        """What can happen in a state. What is patient waits until the others are done."""
        self.graph.add_node(state)
        for patient in (False, True):
            edges: list[tuple[int, str, State]] = []
            for which, site in enumerate(self._sites):
                for label, writes in self._moves_at(which, state) if site.patient == patient else ():
                    columns = list(state)
                    for column, number in writes:
                        columns[column] = number
                    edges.append((which, label, self._canonical_state(tuple(columns))))
            if edges:
                return edges
        return []

    def _moves_at(self, which: int, state: State) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
        site = self._sites[which]
        key = (which, tuple(state[column] for column in site.columns))
        moves = self._moves.get(key)
        if moves is None:
            found = site.transitions(*(self._values[number] for number in key[1]))
            self.cut += sum(move.cut for move in found)
            moves = self._moves[key] = [
                (move.label, tuple((column, self._number(value)) for column, value in move.writes)) for move in found
            ]
        return moves

    def _canonical_state(self, state: State) -> State:
        known = self._canonical.get(state)
        if known is None:
            known = self._canonical[state] = self._state(self._rename(self.row(state)))
        return known

    def _state(self, row: Row) -> State:
        return tuple(self._number(value) for value in row)

    def _number(self, value: Value) -> int:
        number = self._numbers.setdefault(value, len(self._values))
        if number == len(self._values):
            self._values.append(value)
        return number


def end_components(quiet: QuietGraph) -> Iterator[tuple[frozenset[State], bool]]:
    """The sets of states that a run can stay among for ever, final states included, and whether it is fair to.

    It is if whatever can happen in all of them happens among them. A larger set is never less fair, so the strongly
    connected components are enough.
    """
    graph = quiet.graph
    for component in nx.strongly_connected_components(graph):
        inside = {data["site"] for _, to, data in graph.out_edges(component, data=True) if to in component}
        if not inside and any(True for _ in graph.out_edges(component)):
            continue
        always = set.intersection(*(quiet.enabled_actions(state) for state in component))
        yield frozenset(component), always <= inside


def check_liveness(
    config: ModelConfig,
    bounds: Bounds,
    steady: bool = True,
    only: tuple[int, ...] | None = None,
    progress: Callable[[str], None] | None = None,
) -> LivenessResult:
    """Look at every fair run from every state within the bounds, for every set of living processes or `only` one.

    Leaders that are not `steady` may make another plan each time.
    """
    world = ReducedGroupModel(config, bounds, restless=False)
    before = PlainSearch(TransitionTables(world.system()))
    before.run()
    extra = (FREE,) * (world.count + 1)
    rows = [with_extra_slots(before.tables.values(state), extra) for state in before.parents]
    total = LivenessResult(len(rows), 0, 0, 0, 0, 0, ())
    anyone = chain.from_iterable(combinations(range(world.count), some) for some in range(world.count + 1))
    for alive in anyone if only is None else [only]:
        if progress is not None:
            progress(f"alive: {', '.join(world.names[index] for index in alive) or 'nobody'}")
        total = add_runs(total, QuietModel(config, bounds.slots + len(extra), frozenset(alive), steady), rows)
    return total


def with_extra_slots(row: Row, extra: tuple[Slot, ...]) -> Row:
    """The row with more free slots."""
    coordinator: CoordinatorState = row[COORDINATOR]
    group = replace(coordinator.group, slots=(*coordinator.group.slots, *extra))
    return (replace(coordinator, group=group), *row[1:])


def add_runs(total: LivenessResult, quiet: QuietModel, rows: Sequence[Row]) -> LivenessResult:
    """The totals with the runs of one set of living processes."""
    runs = QuietGraph(quiet.system(), Canonicalizer(quiet.model))
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
