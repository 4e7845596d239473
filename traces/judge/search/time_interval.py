"""Moments known only to lie between two bounds in ms: the time of a request's handling in a trace seen by clients."""

from dataclasses import dataclass
from typing import TypeAlias, Union


@dataclass(frozen=True, slots=True)
class TimeInterval:
    """Somewhere from `low` to `high`, both in milliseconds. Comparisons are false unless they are certain."""

    low: int
    high: int

    def __add__(self, duration: int) -> "TimeInterval":
        return TimeInterval(self.low + duration, self.high + duration)

    def __lt__(self, other: "Instant") -> bool:
        return self.high < low(other)

    def __gt__(self, other: "Instant") -> bool:
        return self.low > high(other)


Instant: TypeAlias = Union[int, TimeInterval]  # noqa: UP007 (a string operand needs it)


def low(moment: Instant) -> int:
    """The earliest the moment can be."""
    return moment.low if isinstance(moment, TimeInterval) else moment


def high(moment: Instant) -> int:
    """The latest the moment can be."""
    return moment.high if isinstance(moment, TimeInterval) else moment


def cap_at(moment: Instant, latest: int) -> Instant:
    """The moment, now that it is known to be `latest` at the latest."""
    return TimeInterval(moment.low, min(moment.high, latest)) if isinstance(moment, TimeInterval) else moment
