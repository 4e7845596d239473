"""Coverage guidance: of the schedules generated, play those first whose predicted transitions were not seen yet."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from fencepost.conformance.schedules.protocol import ScheduleProtocol
from fencepost.conformance.schedules.schedule import GeneratedSchedule
from fencepost.traces.model_transitions import Transition

BATCH_SIZE = 20
"""How many schedules are generated at a time."""
CANDIDATES_PER_SCHEDULE = 2
"""How many schedules are generated for each that is played."""


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """A batch of schedules to generate and play: its number, its size, and the transitions `seen` on the target so far.

    `decisions` are the reference differences (DIV-nn) that are settled for the target.
    """

    protocol: ScheduleProtocol
    seed: int
    batch: int
    size: int
    seen: frozenset[Transition] = frozenset()
    decisions: tuple[tuple[str, bool], ...] = ()


def generate_batch(spec: BatchSpec) -> list[GeneratedSchedule]:
    """The schedules of a batch; the same for the same spec."""
    candidates = spec.protocol.generate(spec.seed, spec.batch, CANDIDATES_PER_SCHEDULE * spec.size)
    return select_by_novelty(candidates, spec.seen, spec.size)


def select_by_novelty(
    candidates: Sequence[GeneratedSchedule], seen: Collection[Transition], size: int
) -> list[GeneratedSchedule]:
    """`size` of the candidates: each the one with the most transitions that are neither seen nor predicted by one
    before it."""
    left, known = list(candidates), set(seen)
    found: list[GeneratedSchedule] = []
    while left and len(found) < size:
        best = max(left, key=lambda one: len(one.transitions.keys() - known))  # the first of equals
        left.remove(best)
        found.append(best)
        known |= best.transitions.keys()
    return found
