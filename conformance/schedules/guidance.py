"""Steering: of the schedules drawn, those come first that are foretold to show what this target was not seen to do."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from fencepost.conformance.schedules.classic.generation import Drawn, Ground, draw
from fencepost.traces.model_transitions import Transition

CANDIDATES = 2
"""How many schedules are drawn for each that is played."""


@dataclass(frozen=True, slots=True)
class Order:
    """A chunk of schedules to draw and play: how many, and what the target was `seen` to do by then.

    `decisions` are the reference differences (DIV-nn) that are settled for the target.
    """

    ground: Ground
    seed: int
    chunk: int
    size: int
    seen: frozenset[Transition] = frozenset()
    decisions: tuple[tuple[str, bool], ...] = field(default=())


def drawn_for(order: Order) -> list[Drawn]:
    """The schedules of a chunk: the same for the same order."""
    return chosen(draw(order.ground, order.seed, order.chunk, CANDIDATES * order.size), order.seen, order.size)


def chosen(candidates: Sequence[Drawn], seen: Collection[Transition], size: int) -> list[Drawn]:
    """So many of the candidates, each the one that promises most that is not seen or promised yet, in that order."""
    left, known = list(candidates), set(seen)
    found: list[Drawn] = []
    while left and len(found) < size:
        best = max(left, key=lambda one: len(one.transitions.keys() - known))  # the first of equals
        left.remove(best)
        found.append(best)
        known |= best.transitions.keys()
    return found
