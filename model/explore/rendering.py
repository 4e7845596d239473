"""Rows in words, for counterexamples and for the nodes of exported graphs."""

from fencepost.model.explore.search import Row
from fencepost.model.explore.transition_system import TransitionSystem


def render_row(system: TransitionSystem, row: Row, only: frozenset[int] | None = None) -> str:
    """The columns of a row that hold something, by default all of them, each with its name."""
    told = [
        f"{column.name}: {system.render_value(value)}"
        for index, (column, value) in enumerate(zip(system.columns, row, strict=True))
        if (only is None and value is not None) or (only is not None and index in only)
    ]
    return "; ".join(told)


def changed_columns(before: Row, after: Row) -> frozenset[int]:
    """The columns that differ."""
    return frozenset(index for index, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)
