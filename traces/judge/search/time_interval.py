"""A moment that is only known to lie between two bounds: what a clock reads when requests are seen at clients."""

from dataclasses import dataclass
from typing import TypeAlias, Union


@dataclass(frozen=True, slots=True)
class Span:
    """Somewhere from `low` to `high`, both in milliseconds. Comparisons are false unless they are certain."""

    low: int
    high: int

    def __add__(self, duration: int) -> "Span":
        return Span(self.low + duration, self.high + duration)

    def __lt__(self, other: "Moment") -> bool:
        return self.high < low(other)

    def __gt__(self, other: "Moment") -> bool:
        return self.low > high(other)


Moment: TypeAlias = Union[int, Span]  # noqa: UP007 (a string operand needs it)


def low(moment: Moment) -> int:
    """The earliest the moment can be."""
    return moment.low if isinstance(moment, Span) else moment


def high(moment: Moment) -> int:
    """The latest the moment can be."""
    return moment.high if isinstance(moment, Span) else moment


def no_later(moment: Moment, latest: int) -> Moment:
    """The moment, now that it is known to be `latest` at the latest."""
    return Span(moment.low, min(moment.high, latest)) if isinstance(moment, Span) else moment
