"""The findings of a search of poll loops: each phenomenon of KIP-41's opening as a shortest run, or that there is none.

- `EVICTED`: the group removes a process while it works on a batch.
- `REPEATED`, `REPEATED_ELSEWHERE`: a record is processed again, or by another process as well.
- `LOST`: the committed offset passes a record that nobody processed.
- a stall: a run without end in which records are processed and nothing is ever committed.
- slow rebalances: how long a JoinGroup waits for the processes that are at work.

The bound that removes the first four is `worst_heartbeat_gap(setting) < session_ticks`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import networkx as nx

from fencepost.model.classic.explore.poll_loop.actions import moves_from
from fencepost.model.classic.explore.poll_loop.world import (
    PollLoop,
    PollLoops,
    PollLoopSetting,
    committed_offset,
    initial_loops,
    is_in_group,
    is_processing,
)
from fencepost.model.explore.engine import replay_path
from fencepost.model.explore.fair_runs import RowNumbers, RunGraph, State, end_components
from fencepost.model.explore.search import Discovery, PlainSearch, SearchProgress
from fencepost.model.explore.transition_system import (
    Action,
    Check,
    Column,
    PropertyKind,
    Transition,
    TransitionSystem,
)
from fencepost.model.explore.transition_tables import TransitionTables

EVICTED = "evicted-at-work"
REPEATED = "record-processed-again"
REPEATED_ELSEWHERE = "record-processed-elsewhere"
LOST = "record-lost"


@dataclass(frozen=True, slots=True)
class EndlessRun:
    """A run without end in which nothing is ever committed: the moves that lead in, and those that repeat."""

    path: tuple[str, ...]
    cycle: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PollLoopFindings:
    """The result of a search: a shortest run to each phenomenon that there is, and the longest wait of a JoinGroup."""

    states: int
    is_finished: bool
    runs: dict[str, tuple[str, ...]]
    longest_wait: int
    """Ticks for which a JoinGroup was parked."""
    stall: EndlessRun | None


def is_at_work(loop: PollLoop) -> bool:
    """Whether the application has a batch, or has not committed it."""
    return is_processing(loop) or loop.must_commit


def is_evicted_at_work(world: PollLoops) -> bool:
    """Whether a process works on records of a group that has removed it, and does not know that."""
    return any(is_at_work(loop) and not is_in_group(world, loop) for loop in world.loops)


def is_repeated_elsewhere(world: PollLoops) -> bool:
    """Whether two processes processed one record."""
    return any(processors & (processors - 1) for processors in world.processors)


def has_lost_record(world: PollLoops) -> bool:
    """Whether the committed offset passes a record that nobody processed."""
    return not all(world.processors[: committed_offset(world)])


PHENOMENA: dict[str, Callable[[PollLoops], bool]] = {
    EVICTED: is_evicted_at_work,
    REPEATED: lambda world: world.is_repeated,
    REPEATED_ELSEWHERE: is_repeated_elsewhere,
    LOST: has_lost_record,
}


def poll_loop_system(setting: PollLoopSetting, *more: Check) -> TransitionSystem:
    """The system of a setting, with a witness of each phenomenon."""

    def transitions(world: PollLoops) -> tuple[Transition, ...]:
        return tuple(Transition(label, ((0, after),)) for label, after in moves_from(setting, world))

    checks = tuple(Check(name, (0,), holds, PropertyKind.SOMETIMES) for name, holds in PHENOMENA.items())
    columns = (Column("poll loops", "poll loops"),)
    return TransitionSystem(
        columns, (initial_loops(setting),), (Action("move", (0,), transitions),), (), (*checks, *more)
    )


def explore_poll_loops(setting: PollLoopSetting) -> PollLoopFindings:
    """Search every state of the setting."""
    result = PlainSearch(TransitionTables(poll_loop_system(setting))).run()
    runs = {one.name: labels_of(result.tables, one) for one in result.discoveries if one.name in PHENOMENA}
    waits = (result.tables.values(state)[0].parked_ticks for state in result.reached_states())
    return PollLoopFindings(result.states, result.finished, runs, max(waits), find_stall(setting))


def labels_of(tables: TransitionTables, discovery: Discovery) -> tuple[str, ...]:
    """The moves of a run in words."""
    return tuple(step.label for step in replay_path(tables, discovery))


def slow_rebalance(setting: PollLoopSetting, ticks: int) -> tuple[str, ...] | None:
    """A shortest run in which a JoinGroup is parked for so many ticks, None if there is none."""
    name = f"parked-{ticks}"
    check = Check(name, (0,), lambda world: world.parked_ticks >= ticks, PropertyKind.SOMETIMES)
    search = PlainSearch(TransitionTables(poll_loop_system(setting, check)))

    def is_missing(progress: SearchProgress) -> bool:
        return all(one.name != name for one in search.result.discoveries)

    result = search.run(is_missing)
    return next((labels_of(result.tables, one) for one in result.discoveries if one.name == name), None)


def find_stall(setting: PollLoopSetting) -> EndlessRun | None:
    """A run without end, in which records are processed again and again and none is committed, if there is one."""
    runs = RunGraph(poll_loop_system(setting), RowNumbers(lambda row: row))
    runs.explore([(initial_loops(setting),)])
    found = list(endless_runs(runs, setting))
    return min(found, key=lambda run: len(run.path) + len(run.cycle), default=None)


def endless_runs(runs: RunGraph, setting: PollLoopSetting) -> Iterator[EndlessRun]:
    """From each set of states among which a run can stay, one run that works and does not get on."""
    for component, _ in end_components(runs):
        worlds: dict[State, PollLoops] = {state: runs.row(state)[0] for state in component}
        if all(committed_offset(world) < setting.records for world in worlds.values()):
            at_work = [state for state, world in worlds.items() if any(map(is_at_work, world.loops))]
            entry = min(at_work, key=lambda state: len(runs.path_to(state)), default=None)
            if entry is not None:
                yield EndlessRun(tuple(runs.path_to(entry)), shortest_cycle(runs, component, entry))


def shortest_cycle(runs: RunGraph, component: frozenset[State], state: State) -> tuple[str, ...]:
    """The labels of a shortest way from the state back to it."""
    inside = runs.graph.subgraph(component)
    ways = [[state, *nx.shortest_path(inside, following, state)] for following in inside.successors(state)]
    way = min(ways, key=len)
    return tuple(next(iter(inside[here][there].values()))["label"] for here, there in pairwise(way))


def worst_heartbeat_gap(setting: PollLoopSetting) -> int:
    """The most ticks between two heartbeats of a process that never stops polling: the first multiple of a batch's
    time that is no shorter than the interval."""
    batch = setting.max_poll_records * setting.ticks_per_record
    return -(-setting.heartbeat_ticks // batch) * batch


def largest_safe_limit(setting: PollLoopSetting, most: int) -> int:
    """The largest `max.poll.records` up to `most` under which a search finds neither eviction nor repetition nor a
    stall, 0 if there is none."""
    safe = 0
    for limit in range(1, most + 1):
        found = explore_poll_loops(replace(setting, max_poll_records=limit))
        if {EVICTED, REPEATED} & found.runs.keys() or found.stall is not None:
            break
        safe = limit
    return safe
