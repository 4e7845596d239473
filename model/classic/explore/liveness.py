"""Liveness once the members stop changing: none leaves, crashes or joins without having to, nothing is lost.

From every state of a bounded search the run goes on without bounds, with any set of processes alive and the others
dead. Members and messages are quicker than timers: a timer fires only when nothing else can happen. A run is fair if
what can happen all the time happens at last, and a timer that runs all the time fires at last. The 300 s that a first
JoinGroup may be parked are longer than a phase. Leaders are steady: what they find, they leave where it is. Without
that a cooperative group need not settle, as the check shows.

Every fair run must end settled: a Stable group of just the living, each of them stable in its generation, and no
request parked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

from fencepost.model.classic.core.state import (
    FREE,
    Slot,
)
from fencepost.model.classic.explore.group_model import QuietModel, UnboundedModel
from fencepost.model.classic.explore.state_layout import COORDINATOR, Bounds, CoordinatorState, ModelConfig
from fencepost.model.classic.explore.symmetry import Canonicalizer, ReducedGroupModel
from fencepost.model.explore.fair_runs import RowNumbers, RunGraph, end_components
from fencepost.model.explore.search import PlainSearch, Row
from fencepost.model.explore.transition_tables import TransitionTables


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
    """Look at every fair run from every state within the bounds, for every set of living processes or `only` one.

    Leaders that are not `steady` may make another plan each time.
    """
    world = ReducedGroupModel(config, bounds, restless=False)
    before = PlainSearch(TransitionTables(world.system()))
    before.run()
    extra = (FREE,) * (world.count + 1)
    rows = [with_extra_slots(before.tables.values(state), extra) for state in before.parents]
    total = LivenessResult(len(rows), 0, 0, 0, 0, 0, ())
    unbounded = UnboundedModel(config, bounds.slots + len(extra))
    numbers = RowNumbers(Canonicalizer(unbounded))
    anyone = chain.from_iterable(combinations(range(world.count), some) for some in range(world.count + 1))
    for alive in anyone if only is None else [only]:
        if progress is not None:
            progress(f"alive: {', '.join(world.names[index] for index in alive) or 'nobody'}")
        total = add_runs(total, QuietModel(unbounded, frozenset(alive), steady), rows, numbers)
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
