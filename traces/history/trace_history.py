"""Records the histories of all groups of one trace while it is judged."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from fencepost.traces.events import Event, Header, Kind, Operation, Order, PairedEvent
from fencepost.traces.history.builder import GroupTimeline, TimelineBuilder, TraceHistory
from fencepost.traces.history.log_steps import LogSteps
from fencepost.traces.history.messages import RESPONSE_HANDLERS, MessageSteps, OffsetTable
from fencepost.traces.history.model_steps import ModelSteps
from fencepost.traces.judge.groups.judged_protocol import PartialGroup
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.search.configuration import Path
from fencepost.traces.message_fields import named_groups

MAX_GROUPS = 200
"""How many groups of a trace are told in full."""
MAX_LAG_ROWS = 200
"""How many partitions of a group are told, those that are furthest behind."""
MAX_SENT = 100_000
"""Of how many of the last requests the times are remembered."""
LOG, CLIENTS, COORDINATOR = "log", "clients", "coordinator"
LIMITS: Mapping[str, tuple[str, ...]] = {
    LOG: (
        "It has the lines of the coordinator alone: no heartbeats, no offsets and no assignments.",
        "It does not show who joined last, so it names who held a join phase up only if they were removed for it.",
        "A member that joined a group before the log begins, or while it joined anyway, may not be named.",
    ),
    CLIENTS: (
        "It has the messages of the connections that were recorded; members on other connections show only in what "
        "the leader sees.",
        "Times are those of the messages. What the coordinator did lies between a request and its response.",
    ),
    COORDINATOR: (),
}
"""What a trace does not show, by where it was seen."""
LATE_LIMIT = "It begins in the middle: what was before the first rebalance that it shows in whole is told by messages."


@dataclass(slots=True)
class GroupHistory:
    """The history of one group while it is built, and its source."""

    builder: TimelineBuilder
    model: ModelSteps
    messages: MessageSteps
    log: LogSteps
    told_until: int = -1
    """The latest moment that messages have told."""
    is_followed: bool = False
    """Whether the model knows the state of the group."""


@dataclass(slots=True)
class HistoryRecorder:
    """Records the history of one trace. It is told of each event before and after the judge is."""

    path: str
    header: Header
    histories: list[TraceHistory] = field(default_factory=list)
    """Gets the history of the trace when it is over."""
    groups: dict[str, GroupHistory] = field(default_factory=dict)
    offsets: OffsetTable = field(default_factory=OffsetTable)
    sent: dict[int, int] = field(default_factory=dict)
    """By handle, when a request was sent."""
    now: int = 0
    events: int = 0
    is_log: bool = False
    begins_late: bool = False

    # --- the judge's observer -----------------------------------------------------------------------------------

    def before_event(self, moment: PairedEvent, judge: Judge) -> None:
        """Take note of an event that the judge is about to get."""
        event, operation = moment.event, moment.operation
        self.now = max(self.now, event.time)
        self.events += 1
        if event.kind is Kind.REQUEST and operation is not None:
            self.sent[operation.handle] = event.time
            if len(self.sent) > MAX_SENT:
                del self.sent[next(iter(self.sent))]
        if operation is not None and operation.api in RESPONSE_HANDLERS:
            for name in named_groups(operation.body):
                self.note_following(name, judge)

    def on_step(self, group: str, step: Path) -> None:
        """Tell a step of the model that the judge has settled."""
        history = self.history_of(group)
        history.model.add_step(step, self.sent.get(step.handle), history.told_until)

    def after_event(self, moment: PairedEvent, judge: Judge) -> None:
        """Add changes that the model does not show: messages of groups that it does not follow, and log lines."""
        event, operation = moment.event, moment.operation
        if event.kind is Kind.INTERNAL:
            self.on_internal(event)
        elif operation is not None and event.kind in (Kind.REQUEST, Kind.RESPONSE):
            if event.kind is Kind.RESPONSE:
                self.offsets.on_response(operation)
            if operation.api in RESPONSE_HANDLERS:
                for name in named_groups(operation.body):
                    self.on_message(name, event, operation)

    def on_message(self, name: str, event: Event, operation: Operation) -> None:
        """Tell a message of a group that the model did not follow when it came."""
        history = self.history_of(name)
        if history.is_followed:
            return
        history.told_until = event.time
        if event.kind is Kind.REQUEST:
            history.messages.on_request(operation)
        else:
            history.messages.on_response(operation, event.time)

    def on_internal(self, event: Event) -> None:
        """Tell a line of a log, or that the trace has a gap."""
        if event.api == "step":
            self.is_log = True
            step, group = event.body.get("step"), event.body.get("group")
            if isinstance(step, str) and isinstance(group, str):
                self.history_of(group).log.add_step(step, event.body, event.time)
            elif step == "delete":
                for name in str(event.body.get("groups")).split(", "):
                    if name in self.groups:
                        self.groups[name].builder.forget_group(event.time)
        elif event.api == "unknown":
            self.begins_late |= not self.groups
            for history in self.groups.values():
                history.builder.lose_track(event.time, str(event.body.get("reason") or "the trace has a gap"))
                history.model.is_following = False

    # --- groups -------------------------------------------------------------------------------------------------

    def history_of(self, name: str) -> GroupHistory:
        """The history of a group."""
        history = self.groups.get(name)
        if history is None:
            builder = TimelineBuilder(name, self.now)
            history = GroupHistory(builder, ModelSteps(builder), MessageSteps(builder), LogSteps(builder))
            self.groups[name] = history
        return history

    def note_following(self, name: str, judge: Judge) -> None:
        """Take note whether the model knows the state of a group."""
        history = self.history_of(name)
        reason = why_unfollowed(name, judge)
        if history.is_followed and reason is not None:
            history.model.is_following = False
            told = reason or "its state is not certain"
            history.builder.add_limit(self.now, f"told by its messages alone: {told}")
        history.is_followed = reason is None

    # --- the end ------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Hand on the histories."""
        self.histories.append(self.build())

    def build(self) -> TraceHistory:
        """The histories, once the judge has finished."""
        told = self.header.implementation
        kind = LOG if self.is_log else CLIENTS if self.header.order is Order.INTERVALS else COORDINATOR
        told_of = filter(has_story, (self.timeline_of(history) for history in self.groups.values()))
        timelines = sorted(told_of, key=severity, reverse=True)
        limits = (*LIMITS[kind], *([LATE_LIMIT] if self.begins_late and kind != LOG else []))
        return TraceHistory(
            self.path,
            self.header.source,
            kind,
            told.get("began", ""),
            self.events,
            self.now,
            tuple(timelines[:MAX_GROUPS]),
            max(0, len(timelines) - MAX_GROUPS),
            limits,
        )

    def timeline_of(self, history: GroupHistory) -> GroupTimeline:
        """The timeline of one group, with its partitions."""
        steps = history.log if self.is_log else history.model if history.model.is_following else history.messages
        timeline = history.builder.build(self.now, steps.awaited_members())
        members = {member.member for member in timeline.members}
        partitions = list(self.offsets.partitions_of(timeline.group, members))
        behind = sorted(partitions, key=lambda each: -1 if each.lag is None else each.lag, reverse=True)[:MAX_LAG_ROWS]
        shown = sorted(behind, key=lambda each: (each.topic, each.partition))
        return replace(timeline, partitions=tuple(shown), partition_count=len(partitions))


def severity(timeline: GroupTimeline) -> tuple[bool, int, int]:
    """How much there is to say of a group: one with a rebalance that is not over comes first."""
    return timeline.open_rebalance is not None, timeline.longest, timeline.rebalance_count


def has_story(timeline: GroupTimeline) -> bool:
    """Whether a group was more than named."""
    was_seen = timeline.phase or any(span.phase for span in timeline.spans)
    return bool(was_seen or timeline.rebalance_count or timeline.partitions or timeline.members)


def why_unfollowed(name: str, judge: Judge) -> str | None:
    """Why the model does not know the state of a group; None if it does."""
    group = judge.groups.get(name)
    if group is None:
        return None if judge.gap is None else ""
    followed = group.judge if isinstance(group, PartialGroup) else group
    return "" if followed is None else followed.stop_reason or None


# --- The base class of recorders that tell the histories of a trace by its messages alone.


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
