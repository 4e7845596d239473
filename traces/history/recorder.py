"""The recorders of histories by the names that headers have for protocols, and the base of those of messages alone."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from fencepost.model.protocols import find_protocol, load_part
from fencepost.traces.events import Event, Header, Operation, Order, PairedEvent
from fencepost.traces.history.builder import GroupTimeline, TakeStory, TimelineBuilder, TraceHistory, TraceObserver
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.search.configuration import Path

MAX_GROUPS = 200
"""How many groups of a trace are told in full."""
LOG, STORED, CLIENT_LOG = "log", "offsets topic", "client log"
CLIENTS, COORDINATOR = "clients", "coordinator"
"""Where a trace was seen."""


class NoHistory(ValueError):
    """There is no history to tell of a protocol; the message is one clear line."""


def make_recorder(
    path: str, header: Header, histories: list[TraceHistory], take: TakeStory | None = None
) -> TraceObserver:
    """The recorder of a trace, which adds its history to `histories`; `take` gets all that was ever told. Raises
    `NoHistory`."""
    entry = find_protocol(header.protocol)
    if entry is None or not entry.history:
        raise NoHistory(f"no history is told of the protocol {header.protocol}: use fencepost judge")
    make: Callable[[str, Header, list[TraceHistory], TakeStory | None], TraceObserver] = load_part(entry.history)
    return make(path, header, histories, take)


def severity(timeline: GroupTimeline) -> tuple[bool, int, int]:
    """How much there is to say of a group: one with a rebalance that is not over comes first."""
    return timeline.open_rebalance is not None, timeline.longest, timeline.rebalance_count


def has_story(timeline: GroupTimeline) -> bool:
    """Whether a group was more than named."""
    was_seen = timeline.phase or any(span.phase for span in timeline.spans)
    return bool(was_seen or timeline.rebalance_count or timeline.partitions or timeline.members)


# --- The base class of recorders that tell the histories of a trace by its messages alone.


@dataclass(slots=True)
class MessageRecorder:
    """An observer of one trace."""

    path: str
    header: Header
    histories: list[TraceHistory]
    """Gets the history of the trace when it is over."""
    take: TakeStory | None = None
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
            self.builders[group] = TimelineBuilder(group, self.now, self.take)
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
