"""The search of a system as one call: choose the engine, and replay the paths that it found."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from fencepost.model.explore.search import (
    NO_LIMIT,
    Discovery,
    Exploration,
    PlainSearch,
    Row,
    SearchProgress,
    SearchWatch,
    watch_nothing,
)
from fencepost.model.explore.transition_system import Transition, TransitionSystem
from fencepost.model.explore.transition_tables import TransitionTables


class Engine(StrEnum):
    """Which search runs. Both are exact and find the same."""

    PLAIN = "plain"
    """Plain Python, states of any width."""
    NUMPY = "numpy"
    """A level at a time with numpy, states of up to 64 bits."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step of a retold way: what happened, and the row after it."""

    label: str
    row: Row


def has_numpy() -> bool:
    """Whether numpy is installed."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True


def explore_system(
    system: TransitionSystem, engine: Engine | None = None, limit: int = NO_LIMIT, watch: SearchWatch = watch_nothing
) -> tuple[Exploration, Engine]:
    """Explore a system; by default with numpy if it is there and the states turn out to fit."""
    if engine == Engine.PLAIN or (engine is None and not has_numpy()):
        return PlainSearch(TransitionTables(system), limit).run(watch), Engine.PLAIN
    from fencepost.model.explore.vectorized_search import StateTooWide, VectorizedSearch

    quick = VectorizedSearch(TransitionTables(system), limit)
    try:
        return quick.run(watch), Engine.NUMPY
    except StateTooWide:
        if engine == Engine.NUMPY:
            raise
    slow = PlainSearch(TransitionTables(system), limit).run(watch)
    # A search that is ended before it has caught up knows less than the one that did not fit.
    if not slow.finished and slow.states < quick.result.states:
        return quick.result, Engine.NUMPY
    return slow, Engine.PLAIN


def replay_path(tables: TransitionTables, discovery: Discovery) -> tuple[PathStep, ...]:
    """A way as it went, nobody having changed places and nothing left out: from the first row on, label by label."""
    row = tables.system.initial
    story: list[PathStep] = []
    for wanted in discovery.path[1:]:
        move = next(
            move
            for move in transitions_from(tables.system, row)
            if tables.canonical_row(apply_transition(row, move)) == wanted
        )
        row = apply_transition(row, move)
        story.append(PathStep(move.label, row))
    if discovery.violating_step is not None:
        last = next(move for move in transitions_from(tables.system, row) if move.violates == discovery.name)
        story.append(PathStep(last.label, apply_transition(row, last)))
    return tuple(story)


def search_until_found(system: TransitionSystem, names: Collection[str], limit: int = NO_LIMIT) -> Exploration:
    """A search in plain Python that ends once it has made a discovery of each of these names."""
    search = PlainSearch(TransitionTables(system), limit)

    def is_missing(progress: SearchProgress) -> bool:
        return not set(names) <= {one.name for one in search.result.discoveries}

    return search.run(is_missing)


def find_run(exploration: Exploration, name: str) -> tuple[str, ...] | None:
    """The labels of a shortest run to what was discovered under this name, None if nothing was."""
    found = next((one for one in exploration.discoveries if one.name == name), None)
    return None if found is None else tuple(step.label for step in replay_path(exploration.tables, found))


def transitions_from(system: TransitionSystem, row: Row) -> list[Transition]:
    """Everything that can happen within the bounds."""
    moves = [move for site in system.actions for move in site.transitions(*(row[column] for column in site.columns))]
    return [move for move in moves if not move.cut]


def apply_transition(row: Row, transition: Transition) -> Row:
    """The row after a move."""
    writes = dict(transition.writes)
    return tuple(writes.get(column, value) for column, value in enumerate(row))
