"""The interface of protocols that follow a whole trace by themselves, where the search for linearizations does not fit:
those in which a coordinator speaks first."""

from collections.abc import Iterable
from typing import Protocol

from fencepost.traces.events import Event
from fencepost.traces.judge.groups.records import GroupFindings
from fencepost.traces.verdict import Violation


class TraceFollower(Protocol):
    """Follows one trace, event by event."""

    findings: GroupFindings
    """Counts of the rules that explain what was seen, and open questions; violations are yielded instead."""

    def on_event(self, event: Event) -> Iterable[Violation]:
        """The violations that an event shows."""
        ...

    def finish(self) -> Iterable[Violation]:
        """The violations that show at the end: what is overdue by then."""
        ...
