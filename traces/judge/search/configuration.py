"""Configurations: a possible state of a group, its requests to be handled, and its responses to be seen."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.traces.events import Operation
from fencepost.traces.judge.search.difference import ResponseDifference

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
