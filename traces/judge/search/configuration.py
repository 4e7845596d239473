"""Configurations: a possible state of a group, its requests to be handled, and its responses to be seen."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, Union

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.logic import Token
from fencepost.traces.events import Operation

# --- Moments known only to lie between two bounds in ms: the time of a request's handling in a trace seen by clients.


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


# --- How a response that was seen differs from one that the protocol allows, and which fresh ids it shows.


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


State: TypeAlias = Any
"""The state of a group, as its protocol has it: a frozen value."""
Request: TypeAlias = Any
"""A request, as the protocol has it, with the name of its `group`."""
Response: TypeAlias = Any
"""A response, as the protocol has it."""
Outcome: TypeAlias = Any
"""What comes of a step: the `state` after it, the `replies` (each a `handle` and a `response`) and the `rule`."""
Decisions: TypeAlias = tuple[tuple[str, bool], ...]
"""The differences of the reference implementations (DIV-nn) that are settled so far."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Path:
    """How a configuration came about: the last step, and those before it."""

    rule: str
    handle: int
    previous: "Path | None"
    start: State = None
    """The state before the step, where it was a step of the model, and what came of it."""
    outcome: Outcome = None
    request: Request = None
    """What was handled; None for a timer."""


def step_that_handles(path: Path | None, handle: int) -> Path | None:
    """The last step of a path that handles an operation."""
    while path is not None and path.handle != handle:
        path = path.previous
    return path


def step_that_responds(path: Path | None, handle: int) -> Path | None:
    """The last step of a path that gives the response to an operation."""
    while path is not None:
        if path.outcome is not None and any(reply.handle == handle for reply in path.outcome.replies):
            return path
        path = path.previous
    return None


def rules_of(path: Path | None, handle: int) -> frozenset[str]:
    """The rules by which the steps of a path handle an operation."""
    found: set[str] = set()
    while path is not None:
        if path.handle == handle and path.rule:
            found.add(path.rule)
        path = path.previous
    return frozenset(found)


@fast_frozen
@dataclass(frozen=True, slots=True)
class Configuration:
    """One explanation of what was seen."""

    world: State
    waiting: frozenset[int] = frozenset()
    """Requests sent and not handled yet."""
    matched: frozenset[int] = frozenset()
    """Requests that were given the response which is still to be seen."""
    predicted: tuple[tuple[int, Response], ...] = ()
    """Responses given to requests whose response, if any, is not known yet."""
    clock: int = 0
    """The earliest the present moment can be, in milliseconds."""
    decisions: Decisions = ()
    unseen: Hashable = None
    """What may have happened without a response showing it, as the protocol keeps it."""
    unusual: frozenset[tuple[int, str]] = frozenset()
    """Responses, and fields of theirs, that are unusual if this is what happened."""
    path: Path | None = field(default=None, compare=False)
    mismatches: tuple["Mismatch", ...] = ()
    """Wrong responses on the way; none but in a diagnosis."""

    def __hash__(self) -> int:
        """The hash of what distinguishes most configurations."""
        return hash((self.waiting, self.matched, self.clock, self.decisions, self.world))


@fast_frozen
@dataclass(frozen=True, slots=True)
class Mismatch:
    """A response that does not fit: the request, the fields that differ, the response allowed instead, and its rule.

    The field `time` stands for a response that came too early or too late.
    """

    handle: int
    fields: frozenset[str]
    expected: Response | None
    rule: str
    world: State
    is_certain: bool = False
    """The response is wrong on every path, so it does not distinguish them."""
    due: int | None = None
    """The latest moment at which a late response was due, in milliseconds."""
    sent_in: State = None
    """The state in which the request was sent, where its response was never seen."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class GroupOperation:
    """An operation as far as one group is concerned."""

    operation: Operation
    request: Request


def with_unusual_fields(configuration: Configuration, handle: int, difference: ResponseDifference) -> Configuration:
    """The configuration with the unusual fields of a response added."""
    found = {(handle, name) for name in difference.advisory}
    return evolve(configuration, unusual=configuration.unusual | found) if found else configuration


def merge_decisions(configurations: Iterable[Configuration]) -> list[Configuration]:
    """The configurations, those that differ in decisions alone taken as one in which only the common ones stand.

    To leave a decision open again allows more, never less; a later response that depends on it decides it anew.
    """
    merged: dict[Configuration, Configuration] = {}
    for one in configurations:
        bare = evolve(one, decisions=())
        twin = merged.get(bare)
        if twin is None:
            merged[bare] = one
        elif twin.decisions != one.decisions:
            common = tuple(each for each in twin.decisions if each in one.decisions)
            merged[bare] = evolve(twin, decisions=common)
    return list(merged.values())
