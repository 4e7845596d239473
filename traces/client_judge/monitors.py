"""Monitors: each judges a family of requirements, with a state of its own that nobody else sees.

A monitor is shown the events that it observes and the view of the client, and yields what it finds: that a requirement
is kept, is broken, or stays open. It writes nothing but its own state, neither in the view nor in another monitor: so
each can be taken away, and all others say what they said before.

After P's `spec ... observes`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from fencepost.traces.client_judge.judge import Evidence, build_violation
from fencepost.traces.events import Event, Operation
from fencepost.traces.verdict import CheckResult, CheckStatus, Violation

Finding: TypeAlias = Violation | CheckResult
Findings: TypeAlias = Iterator[Finding]
View = TypeVar("View")


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
        """What monitors observe it by: its API, or what happened, and its kind."""
        if self.is_loss:
            return "loss"
        return f"{'foreign ' if self.is_foreign else ''}{self.event.api} {self.event.kind}"

    @property
    def request(self) -> Operation:
        """The operation of an event that has one."""
        assert self.operation is not None
        return self.operation


Reaction: TypeAlias = Callable[[View, Seen], Findings | None]
Finish: TypeAlias = Callable[[View, int], Findings]


@dataclass(frozen=True, slots=True)
class Monitor(Generic[View]):
    """A family of requirements at work on one client: what it does at the events that it observes, by their names, with
    the view before an event or after it, and at the end of the trace. What it keeps between them nobody else sees."""

    before: Mapping[str, Reaction[View]] = field(default_factory=dict)
    after: Mapping[str, Reaction[View]] = field(default_factory=dict)
    finish: Finish[View] | None = None


BeginMonitor: TypeAlias = Callable[[], Monitor[View]]
"""Begins to judge a client."""


class Monitors(Generic[View]):
    """Monitors at work on one client; what they find is evidence."""

    def __init__(self, begin: Iterable[BeginMonitor[View]], evidence: Evidence) -> None:
        self._monitors = [each() for each in begin]
        self._evidence = evidence

    def show_before(self, view: View, seen: Seen) -> None:
        """Show an event to the monitors that observe it, with the view before it."""
        for monitor in self._monitors:
            if reaction := monitor.before.get(seen.name):
                self._evidence.take(reaction(view, seen) or ())

    def show_after(self, view: View, seen: Seen) -> None:
        """Show an event to the monitors that observe it, with the view after it."""
        for monitor in self._monitors:
            if reaction := monitor.after.get(seen.name):
                self._evidence.take(reaction(view, seen) or ())

    def finish(self, view: View, time: int) -> None:
        """The trace ends."""
        for monitor in self._monitors:
            if monitor.finish is not None:
                self._evidence.take(monitor.finish(view, time))


def build_pass(requirement: str, sequence: int) -> Finding:
    """A requirement is kept by the event with this sequence number."""
    return CheckResult(requirement, sequence, CheckStatus.PASS)


def check(
    holds: bool, requirement: str, sequence: int, title: str, expected: str, observed: str, told: str = ""
) -> Finding:
    """The event with this sequence number keeps a requirement, or else breaks it in this way."""
    if holds:
        return build_pass(requirement, sequence)
    return build_violation(requirement, sequence, title, expected, observed, told)


def leave_open(requirement: str, sequence: int, note: str) -> Finding:
    """The event with this sequence number might keep a requirement or break it."""
    return CheckResult(requirement, sequence, CheckStatus.INCONCLUSIVE, note)
