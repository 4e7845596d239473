"""States as integers: one field of bits for each column, wide enough for the number of its value.

A number is exact: two states are one if and only if their integers are equal. A move then is two operations,
`state & keep | put`, on Python's integers and on numpy's alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.model.explore.transition_system import TransitionSystem


@dataclass(frozen=True, slots=True)
class BitLayout:
    """Where each column lies. Blocks that are alike come first, all cut the same way; then the other columns."""

    shifts: tuple[int, ...]
    widths: tuple[int, ...]
    bits: int

    def mask(self, columns: Sequence[int]) -> int:
        """The bits of these columns."""
        return sum((1 << self.widths[column]) - 1 << self.shifts[column] for column in columns)

    def places(self, columns: Sequence[int]) -> list[tuple[int, int]]:
        """How far to shift a state for each of these columns, and what to mask then."""
        return [(self.shifts[column], (1 << self.widths[column]) - 1) for column in columns]

    def field(self, state: Any, column: int) -> Any:
        """The number in a column; of an array of states, all of them."""
        return state >> self.shifts[column] & (1 << self.widths[column]) - 1

    def pack(self, numbers: Sequence[int], columns: Sequence[int] | None = None) -> int:
        """The state with these numbers in these columns, by default in all."""
        chosen = range(len(self.shifts)) if columns is None else columns
        return sum(number << self.shifts[column] for column, number in zip(chosen, numbers, strict=True))

    def repack(self, state: Any, to: "BitLayout") -> Any:
        """The state, or an array of states, in another layout."""
        return sum(self.field(state, column) << to.shifts[column] for column in range(len(self.shifts)))


def layout_for(system: TransitionSystem, widths: Sequence[int]) -> BitLayout:
    """The layout with the given width of each column."""
    blocks = system.symmetry.blocks if system.symmetry else ()
    first = [column for block in blocks for column in block]
    order = first + [column for column in range(len(system.columns)) if column not in set(first)]
    shifts = [0] * len(order)
    bits = 0
    for column in order:
        shifts[column] = bits
        bits += widths[column]
    return BitLayout(tuple(shifts), tuple(widths), bits)
