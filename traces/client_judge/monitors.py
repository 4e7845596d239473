"""Monitors: each judges a family of requirements, with a state of its own that nobody else sees.

A monitor is shown the events that it observes and the view of the client, and yields what it finds: that a requirement
is kept, is broken, or stays open. It writes nothing but its own state, neither in the view nor in another monitor: so
each can be taken away, and all others say what they said before.

After P's `spec ... observes`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

from fencepost.traces.client_judge.judge import Evidence, build_violation
from fencepost.traces.events import Event, Kind, Operation
from fencepost.traces.verdict import CheckResult, CheckStatus, Violation

Finding: TypeAlias = Violation | CheckResult
Findings: TypeAlias = Iterator[Finding]


@dataclass(frozen=True, slots=True)
class Seen:
    """An event that monitors are shown, with the operation of the client that it belongs to, if there is one."""

    event: Event
    operation: Operation | None = None
    is_loss: bool = False
    """The operation has no response, and will have none."""
    is_foreign: bool = False
    """It is another member's."""

    @property
    def name(self) -> str:
        """What monitors observe it by: its API, or what happened, and its kind; for a callback, a poll or a loss just
        that."""
        if self.is_loss or self.event.kind in (Kind.CALLBACK, Kind.POLL):
            return "loss" if self.is_loss else self.event.kind.value
        return f"{'foreign ' if self.is_foreign else ''}{self.event.api} {self.event.kind}"

    @property
    def request(self) -> Operation:
        """The operation of an event that has one."""
        assert self.operation is not None
        return self.operation


Reaction = TypeVar("Reaction", bound=Callable[..., Findings | None])
Monitor: TypeAlias = Callable[..., Any]
"""A class of which each client has an instance with reactions, or a single reaction that keeps nothing."""


def before(*names: str) -> Callable[[Reaction], Reaction]:
    """The reaction sees the events of these names, each with the view before it."""
    return partial(mark, "before", names)


def after(*names: str) -> Callable[[Reaction], Reaction]:
    """The reaction sees the events of these names, each with the view after it."""
    return partial(mark, "after", names)


def at_end(reaction: Reaction) -> Reaction:
    """The reaction sees the last view when the trace ends, and the time of that."""
    return mark("end", ("",), reaction)


def mark(when: str, names: tuple[str, ...], reaction: Reaction) -> Reaction:
    """Note in a reaction what it observes."""
    observed = (*getattr(reaction, "observes", ()), *((when, name) for name in names))
    setattr(reaction, "observes", observed)  # noqa: B010
    return reaction


def monitors_in(*modules: ModuleType) -> tuple[Monitor, ...]:
    """The monitors in these modules: what observes events there."""
    found = [(each, module.__name__) for module in modules for each in vars(module).values() if callable(each)]
    own = [each for each, name in found if getattr(each, "__module__", "") == name]
    return tuple(each for each in own if any(hasattr(part, "observes") for part in (each, *vars(each).values())))


class Monitors:
    """Monitors at work on one client; what they find is evidence."""

    def __init__(self, monitors: Iterable[Monitor], evidence: Evidence) -> None:
        self._evidence = evidence
        self._reactions: dict[tuple[str, str], list[Callable[..., Findings | None]]] = defaultdict(list)
        for monitor in monitors:
            own = [monitor()] if isinstance(monitor, type) else []
            named = [getattr(each, name) for each in own for name in vars(type(each))] if own else [monitor]
            for reaction in named:
                for observed in getattr(reaction, "observes", ()):
                    self._reactions[observed].append(reaction)

    def show(self, when: str, view: object, seen: Seen | int) -> None:
        """Show an event to those that observe it with the view before or after it, or the end of the trace."""
        for reaction in self._reactions.get((when, seen.name if isinstance(seen, Seen) else ""), ()):
            self._evidence.take(reaction(view, seen) or ())


def build_pass(requirement: str, sequence: int) -> Finding:
    """A requirement is kept by the event with this sequence number."""
    return CheckResult(requirement, sequence, CheckStatus.PASS)


def check(
    holds: bool, requirement: str, at: Event | int, title: str, expected: str, observed: str, told: str = ""
) -> Finding:
    """An event, or the one with this sequence number, keeps a requirement, or else breaks it in this way."""
    sequence = at if isinstance(at, int) else at.sequence
    if holds:
        return build_pass(requirement, sequence)
    return build_violation(requirement, sequence, title, expected, observed, told)


def leave_open(requirement: str, sequence: int, note: str) -> Finding:
    """The event with this sequence number might keep a requirement or break it."""
    return CheckResult(requirement, sequence, CheckStatus.INCONCLUSIVE, note)
