"""The search of the group's world as one call: choose the reductions and the engine, and retell what was found."""

from dataclasses import dataclass, replace
from enum import StrEnum

from fencepost.model.explore.classic.group_model import GroupWorld
from fencepost.model.explore.classic.properties import checks
from fencepost.model.explore.classic.reductions import ReducedWorld
from fencepost.model.explore.classic.state_layout import Bounds, Setting
from fencepost.model.explore.search import NEVER, Exploration, Finding, PlainSearch, Row, Watch, unwatched
from fencepost.model.explore.transition_system import Move, System
from fencepost.model.explore.transition_tables import Tables


class Engine(StrEnum):
    """Which search runs. Both are exact and find the same."""

    PLAIN = "plain"
    """Plain Python, states of any width."""
    NUMPY = "numpy"
    """A level at a time with numpy, states of up to 64 bits."""


@dataclass(frozen=True, slots=True)
class Told:
    """A step of a retold way: what happened, and the row after it."""

    label: str
    row: Row


def group_system(setting: Setting, bounds: Bounds, reduced: bool = True) -> System:
    """The group's world with its properties, by default in its smallest form."""
    world = (ReducedWorld if reduced else GroupWorld)(setting, bounds)
    return replace(world.system(), checks=checks(world.count))


def has_numpy() -> bool:
    """Whether numpy is installed."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True


def explore(
    system: System, engine: Engine | None = None, limit: int = NEVER, watch: Watch = unwatched
) -> tuple[Exploration, Engine]:
    """Explore a system; by default with numpy if it is there and the states turn out to fit."""
    if engine == Engine.PLAIN or (engine is None and not has_numpy()):
        return PlainSearch(Tables(system), limit).run(watch), Engine.PLAIN
    from fencepost.model.explore.vectorized_search import LevelSearch, TooWide

    quick = LevelSearch(Tables(system), limit)
    try:
        return quick.run(watch), Engine.NUMPY
    except TooWide:
        if engine == Engine.NUMPY:
            raise
    slow = PlainSearch(Tables(system), limit).run(watch)
    # A search that is ended before it has caught up knows less than the one that did not fit.
    if not slow.finished and slow.states < quick.result.states:
        return quick.result, Engine.NUMPY
    return slow, Engine.PLAIN


def retold(tables: Tables, finding: Finding) -> tuple[Told, ...]:
    """A way as it went, nobody having changed places and nothing left out: from the first row on, label by label."""
    row = tables.system.initial
    story: list[Told] = []
    for wanted in finding.way[1:]:
        move = next(move for move in moves_from(tables.system, row) if tables.stands_for(after(row, move)) == wanted)
        row = after(row, move)
        story.append(Told(move.label, row))
    if finding.breach is not None:
        last = next(move for move in moves_from(tables.system, row) if move.breach == finding.name)
        story.append(Told(last.label, after(row, last)))
    return tuple(story)


def moves_from(system: System, row: Row) -> list[Move]:
    """Everything that can happen within the bounds."""
    moves = [move for site in system.sites for move in site.moves(*(row[column] for column in site.columns))]
    return [move for move in moves if not move.cut]


def after(row: Row, move: Move) -> Row:
    """The row after a move."""
    writes = dict(move.writes)
    return tuple(writes.get(column, value) for column, value in enumerate(row))
