"""How a response that was seen differs from one that the protocol allows, and which fresh ids it shows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fencepost.model.logic import Token


@dataclass(frozen=True, slots=True)
class FreshId:
    """An id that the target issued and has not shown yet, by the handle of the request that it was issued for."""

    handle: int


class DifferentValue(NamedTuple):
    """A field with the value expected and the value seen; `place` tells in which row of the
    response it is, if in any."""

    name: str
    expected: Any
    seen: Any
    place: Any = None


@dataclass(slots=True)
class ResponseDifference:
    """The fields that differ, and the fresh ids that the response shows."""

    required: set[str] = field(default_factory=set)
    """Fields in which the protocol forbids the difference."""
    advisory: set[str] = field(default_factory=set)
    """Fields in which the difference is allowed, but unusual."""
    fresh_ids: dict[FreshId, str] = field(default_factory=dict)
    choices: tuple[int, ...] = ()
    """Which of several fitting ids to take, each time that there is a choice; the first beyond the end."""
    choice_points: list[int] = field(default_factory=list)
    """How many ids there were to choose from, each time."""

    def require_equal(self, name: str, expected: Token, seen: Token, place: Any = None) -> None:
        """The field has to be as expected; a fresh id takes the value seen."""
        if isinstance(expected, FreshId):
            known = self.fresh_ids.setdefault(expected, seen)
            if known != seen or not isinstance(seen, str) or not seen:
                self.require(name, expected, seen, place)
        elif expected != seen:
            self.require(name, expected, seen, place)

    def require(self, name: str, expected: Any, seen: Any, place: Any = None) -> None:
        """The protocol forbids the value seen in this field."""
        self.required.add(name)

    def expect_equal(self, name: str, expected: Token, seen: Token) -> None:
        """The field should be as expected."""
        if expected != seen:
            self.advisory.add(name)

    def choose(self, count: int) -> int:
        """Return which of so many ids to take."""
        self.choice_points.append(count)
        place = len(self.choice_points) - 1
        return self.choices[place] if place < len(self.choices) else 0


@dataclass(slots=True)
class DetailedDifference(ResponseDifference):
    """A difference that keeps the values, for the text of a violation."""

    values: list[DifferentValue] = field(default_factory=list)

    def require(self, name: str, expected: Any, seen: Any, place: Any = None) -> None:
        """The protocol forbids the value seen in this field."""
        self.required.add(name)
        self.values.append(DifferentValue(name, expected, seen, place))


def differences_over_choices(compare: Callable[[tuple[int, ...]], ResponseDifference]) -> Iterator[ResponseDifference]:
    """Compare two responses in every way in which ids that were not known before can be matched."""
    first = compare(())
    yield first
    left = untried_choices(first)
    while left:
        difference = compare(left.pop())
        yield difference
        left += untried_choices(difference)


def untried_choices(difference: ResponseDifference) -> list[tuple[int, ...]]:
    """Return the choices that differ from those of this comparison beyond the prescribed ones."""
    prescribed, points = difference.choices, difference.choice_points
    return [
        (*prescribed, *(0 for _ in points[len(prescribed) : place]), other)
        for place in range(len(prescribed), len(points))
        for other in range(1, points[place])
    ]
