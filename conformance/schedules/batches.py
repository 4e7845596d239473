"""Batches of schedules: the spec by which any process generates the same ones."""

from dataclasses import dataclass

from fencepost.conformance.schedules.protocol import ScheduleProtocol
from fencepost.conformance.schedules.schedule import GeneratedSchedule

BATCH_SIZE = 20
"""How many schedules are generated at a time."""


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """A batch of schedules to generate and play: its number and its size.

    `decisions` are the reference differences (DIV-nn) that are settled for the target.
    """

    protocol: ScheduleProtocol
    seed: int
    batch: int
    size: int
    decisions: tuple[tuple[str, bool], ...] = ()


def generate_batch(spec: BatchSpec) -> list[GeneratedSchedule]:
    """The schedules of a batch; the same for the same spec."""
    return spec.protocol.generate(spec.seed, spec.batch, spec.size)
