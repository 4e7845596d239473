"""Monitors: each judges a family of requirements, with a state that nobody else sees.

A monitor is a frozen value. It is shown the events that it observes and the view of the client, and gives back itself
after the event, with what it has found. It writes nothing, neither in the view nor in another monitor: so a monitor can
be taken away, and all others say what they said before. A request is shown with the view before it, everything else
with the view after it.

After P's `spec ... observes`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeAlias, TypeVar

from fencepost.traces.client_judge.judge import Evidence
from fencepost.traces.events import Event, Operation
from fencepost.traces.verdict import CheckResult, CheckStatus, Violation

Finding: TypeAlias = Violation | CheckResult
Findings: TypeAlias = tuple[Finding, ...]
View = TypeVar("View")
ViewIn = TypeVar("ViewIn", contravariant=True)


@dataclass(frozen=True, slots=True)
class Seen:
    """An event that a monitor is shown, with the operation of the client that it belongs to, if there is one."""

    event: Event
    operation: Operation | None = None

    @property
    def name(self) -> str:
        """What monitors observe it by: its API, or what happened, and its kind."""
        return f"{self.event.api} {self.event.kind}"


class Monitor(Protocol[ViewIn]):
    """Judges a family of requirements."""

    @property
    def requirements(self) -> frozenset[str]:
        """The requirements of which it speaks."""

    @property
    def observes(self) -> frozenset[str]:
        """The names of the events that it is shown."""

    def step(self, view: ViewIn, seen: Seen) -> tuple[Self, Findings]:
        """The monitor after an event, and what it has found."""

    def finish(self, view: ViewIn, time: int) -> Findings:
        """What it finds when the trace ends."""


class Monitors(Generic[View]):
    """Monitors at work on one client; what they find is evidence."""

    def __init__(self, monitors: Iterable[Monitor[View]], evidence: Evidence) -> None:
        self._monitors = list(monitors)
        self._evidence = evidence

    def show(self, view: View, seen: Seen) -> None:
        """Show an event to the monitors that observe it."""
        for place, monitor in enumerate(self._monitors):
            if seen.name in monitor.observes:
                self._monitors[place], findings = monitor.step(view, seen)
                self._evidence.take(findings)

    def finish(self, view: View, time: int) -> None:
        """The trace ends."""
        for monitor in self._monitors:
            self._evidence.take(monitor.finish(view, time))


def build_pass(requirement: str, sequence: int) -> Finding:
    """A requirement is kept by the event with this sequence number."""
    return CheckResult(requirement, sequence, CheckStatus.PASS)
