"""Monitors: each judges a family of requirements, with a state of its own that nobody else sees.

A monitor is shown the events that it observes and the view of the client, and yields what it finds: that a requirement
is kept, is broken, or stays open. It writes nothing but its own state, neither in the view nor in another monitor: so
each can be taken away, and all others say what they said before. A request is shown with the view before it, everything
else with the view after it.

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

    @property
    def name(self) -> str:
        """What monitors observe it by: its API, or what happened, and its kind."""
        return f"{self.event.api} {self.event.kind}"

    @property
    def request(self) -> Operation:
        """The operation of an event that has one."""
        assert self.operation is not None
        return self.operation


Reaction: TypeAlias = Callable[[View, Seen], Findings | None]


@dataclass(frozen=True, slots=True)
class Monitor(Generic[View]):
    """A family of requirements at work on one client: what it does at the events that it observes, by their names, and
    at the end of the trace. What it keeps between them is in the closures."""

    reactions: Mapping[str, Reaction[View]]
    finish: Callable[[View, int], Findings] = lambda view, time: iter(())


BeginMonitor: TypeAlias = Callable[[], Monitor[View]]
"""Begins to judge a client."""


@dataclass(slots=True)
class Monitors(Generic[View]):
    """Monitors at work on one client; what they find is evidence."""

    evidence: Evidence
    monitors: list[Monitor[View]] = field(default_factory=list)
    reactions: dict[str, list[Reaction[View]]] = field(default_factory=dict)

    def add(self, begin: Iterable[BeginMonitor[View]]) -> None:
        """Let these monitors begin."""
        for each in begin:
            monitor = each()
            self.monitors.append(monitor)
            for name, reaction in monitor.reactions.items():
                self.reactions.setdefault(name, []).append(reaction)

    def show(self, view: View, seen: Seen) -> None:
        """Show an event to the monitors that observe it."""
        for reaction in self.reactions.get(seen.name, ()):
            self.evidence.take(reaction(view, seen) or ())

    def finish(self, view: View, time: int) -> None:
        """The trace ends."""
        for monitor in self.monitors:
            self.evidence.take(monitor.finish(view, time))


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
