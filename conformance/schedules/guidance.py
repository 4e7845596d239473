"""Steering: of the schedules drawn, those come first that are foretold to show what this target was not seen to do."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from fencepost.conformance.schedules.classic.generation import GeneratedSchedule, ScheduleScope, generate_schedules
from fencepost.traces.model_transitions import Transition

CANDIDATES_PER_SCHEDULE = 2
"""How many schedules are drawn for each that is played."""


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """A chunk of schedules to draw and play: how many, and what the target was `seen` to do by then.

    `decisions` are the reference differences (DIV-nn) that are settled for the target.
    """

    scope: ScheduleScope
    seed: int
    batch: int
    size: int
    seen: frozenset[Transition] = frozenset()
    decisions: tuple[tuple[str, bool], ...] = field(default=())


def generate_batch(spec: BatchSpec) -> list[GeneratedSchedule]:
    """The schedules of a chunk: the same for the same order."""
    return select_by_novelty(
        generate_schedules(spec.scope, spec.seed, spec.batch, CANDIDATES_PER_SCHEDULE * spec.size), spec.seen, spec.size
    )


def select_by_novelty(
    candidates: Sequence[GeneratedSchedule], seen: Collection[Transition], size: int
) -> list[GeneratedSchedule]:
    """So many of the candidates, each the one that promises most that is not seen or promised yet, in that order."""
    left, known = list(candidates), set(seen)
    found: list[GeneratedSchedule] = []
    while left and len(found) < size:
        best = max(left, key=lambda one: len(one.transitions.keys() - known))  # the first of equals
        left.remove(best)
        found.append(best)
        known |= best.transitions.keys()
    return found
