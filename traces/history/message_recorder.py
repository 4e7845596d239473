"""The base class of recorders that tell the histories of a trace by its messages alone."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from fencepost.traces.events import Event, Header, Order
from fencepost.traces.history.builder import TimelineBuilder
from fencepost.traces.history.timeline import TraceHistory
from fencepost.traces.history.trace_history import CLIENTS, COORDINATOR, MAX_GROUPS, has_story, severity
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.search.configuration import Path
from fencepost.traces.operations import Operation, PairedEvent


@dataclass(slots=True)
class MessageRecorder:
    """An observer of one trace."""

    path: str
    header: Header
    histories: list[TraceHistory]
    """Gets the history of the trace when it is over."""
    builders: dict[str, TimelineBuilder] = field(default_factory=dict)
    now: int = 0
    events: int = 0
    limits: ClassVar[tuple[str, ...]] = ()
    """What such a trace does not show."""

    def before_event(self, moment: PairedEvent, judge: Judge) -> None:
        """Count the event."""
        self.now = max(self.now, moment.event.time)
        self.events += 1

    def on_step(self, group: str, step: Path) -> None:
        """Nothing: messages tell it."""

    def after_event(self, moment: PairedEvent, judge: Judge) -> None:
        """Tell the event."""
        self.tell(moment.event, moment.operation)

    def tell(self, event: Event, operation: Operation | None) -> None:
        """Tell an event; `operation` is the one that it begins or ends."""
        raise NotImplementedError

    def awaited_members(self, group: str) -> Iterable[str]:
        """The members that the present change of a group waits for."""
        return ()

    def builder_of(self, group: str) -> TimelineBuilder:
        """The history of a group while it is built."""
        if group not in self.builders:
            self.builders[group] = TimelineBuilder(group, self.now)
        return self.builders[group]

    def finish(self) -> None:
        """Hand on the history."""
        built = (each.build(self.now, self.awaited_members(name)) for name, each in self.builders.items())
        timelines = sorted(filter(has_story, built), key=severity, reverse=True)
        self.histories.append(
            TraceHistory(
                self.path,
                self.header.source,
                CLIENTS if self.header.order is Order.INTERVALS else COORDINATOR,
                self.header.implementation.get("began", ""),
                self.events,
                self.now,
                tuple(timelines[:MAX_GROUPS]),
                max(0, len(timelines) - MAX_GROUPS),
                self.limits,
                self.header.protocol,
            )
        )
