"""The metrics of an operator (page, Partition assignment, Drain processing)."""

from collections.abc import Iterable
from dataclasses import dataclass

from fencepost.model.frozen import fast_frozen


@fast_frozen
@dataclass(frozen=True, slots=True)
class DrainTimes:
    """The time of the last drain and the longest one, in milliseconds."""

    last_ms: int = 0
    longest_ms: int = 0


def count_drain(times: DrainTimes, took_ms: int) -> DrainTimes:
    """The times after a drain."""
    return DrainTimes(took_ms, max(times.longest_ms, took_ms))


def assignment_metrics(partitions: Iterable[tuple[str, int]]) -> tuple[int, int]:
    """The numbers of assigned partitions and of their topics."""
    held = set(partitions)
    return len(held), len({topic for topic, _ in held})
