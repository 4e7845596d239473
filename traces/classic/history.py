"""The history of groups by the steps of the model that explain a trace, recorded while it is judged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Group, Holder, Phase, Slot
from fencepost.model.classic.messages import JoinGroup, LeaveGroup
from fencepost.traces.classic.client_steps import HANDLERS as CLIENT_STEPS
from fencepost.traces.classic.client_steps import ClientSteps
from fencepost.traces.classic.told_history import RESPONSE_HANDLERS, LogSteps, MessageSteps, OffsetTable
from fencepost.traces.events import Event, Header, Kind, Operation, Order, PairedEvent
from fencepost.traces.history.builder import (
    NOT_SHOWN,
    CauseKind,
    ChangeCause,
    GroupTimeline,
    HoldKind,
    PhaseHold,
    TakeStory,
    TimelineBuilder,
    TraceHistory,
)
from fencepost.traces.history.recorder import (
    CLIENT_LOG,
    CLIENTS,
    COORDINATOR,
    LOG,
    MAX_GROUPS,
    STORED,
    has_story,
    severity,
)
from fencepost.traces.history.recordings import StateChange
from fencepost.traces.judge.groups.group_judge import GroupJudge
from fencepost.traces.judge.groups.judged_protocol import PartialGroup
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.search.configuration import Path, low
from fencepost.traces.message_fields import named_groups

# --- The states that groups are seen in while a trace is judged.


class StateHistory:
    """The states that groups were seen in, as far as all explanations agree."""

    def __init__(self) -> None:
        self.states: dict[str, tuple[Phase | None, int]] = {}
        """The last recorded phase and generation of each group."""
        self.state_changes: list[StateChange] = []

    def record_state(self, judge: GroupJudge, operation: Operation, time: int) -> None:
        """Record the state of a group after an operation, if all explanations agree on one and it is new."""
        group, configurations = judge.group, judge.search.configurations
        first = configurations[0].world.group
        now, known = phase_and_generation(first), self.states.get(group)
        if now == known or (known is None and first is None):
            return
        if any(phase_and_generation(one.world.group) != now for one in configurations):
            return
        self.states[group] = now
        who = operation.body.get("member_id") or operation.member
        by = f"{operation.api} of {who}" if who else operation.api
        name = "Dead" if first is None else phase_name(first)
        self.state_changes.append(StateChange(time, operation.handle - 1, group, name, now[1], member_count(first), by))


def phase_and_generation(group: Group | None) -> tuple[Phase | None, int]:
    """The phase and the generation of a group; (None, 0) if there is no group."""
    return (None, 0) if group is None else (group.phase, group.generation)


def member_count(group: Group | None) -> int:
    """The number of members of a group."""
    return 0 if group is None else sum(slot.holder is Holder.MEMBER for slot in group.slots)


def awaited_members(group: Group) -> Iterator[str]:
    """The members that a rebalance waits for: those that have not rejoined, or have not sent SyncGroup (only the leader
    if it has not)."""
    members = [slot for slot in group.slots if slot.holder is Holder.MEMBER]
    if group.phase is Phase.PREPARING:
        yield from (str(slot.id) for slot in members if not slot.join)
        yield from (f"{slot.id} (not yet back)" for slot in group.slots if slot.holder is Holder.PENDING)
        return
    silent = [str(slot.id) for slot in members if not slot.sync]
    yield from [each for each in silent if each == group.leader] or silent


REMOVAL_KINDS = {
    "timer.session": CauseKind.SESSION,
    "timer.parked": CauseKind.SESSION,
    "timer.rebalance": CauseKind.NOT_BACK,
    "timer.sync": CauseKind.NO_SYNC,
}
"""Why members are gone after a timer."""
REBALANCING = (Phase.PREPARING, Phase.COMPLETING)


class ModelSteps:
    """Tells the history of one group by the steps that the judge has settled."""

    def __init__(self, builder: TimelineBuilder) -> None:
        self.builder = builder
        self.last: Group | None = None
        self.is_following = False
        """Whether the state before the next step is known."""

    def add_step(self, path: Path, sent: int | None, told_until: int) -> None:
        """Add a step, unless messages have shown its changes; `sent` is the time of its request, None for a timer's.

        Steps are settled late: the time of a timer's step is that at which it was due.
        """
        if path.start is None or path.outcome is None:
            self.is_following = False
            return
        before, after = group_of(path.start), group_of(path.outcome.state)
        time = sent if sent is not None else timer_deadline(before, after, path.rule)
        if time is None:
            time = self.builder.now
        if time <= told_until:
            self.is_following = False
            return
        if not self.is_following or (before is not self.last and not is_alike(before, self.last)):
            self.adopt_state(before, time)
        self.last, self.is_following = after, True
        if before is after or is_alike(before, after):
            return
        self.tell_change(before, after, path, time)

    def adopt_state(self, group: Group | None, time: int) -> None:
        """Take over the state of a group that was not followed until now."""
        if group is None:
            if self.builder.phase:
                self.builder.forget_group(time)
            return
        self.builder.set_members(
            time, {name_of(slot): (text(slot.instance), text(slot.client)) for slot in members_of(group)}
        )
        self.builder.set_phase(time, phase_name(group), group.generation)
        self.builder.protocol = text(group.protocol)

    def tell_change(self, before: Group | None, after: Group | None, path: Path, time: int) -> None:
        """Add the changes of a step: a rebalance begins, members come and go, a phase ends."""
        builder = self.builder
        removed = removal_causes(before, after, path)
        if begins_rebalance(before, after):
            builder.begin_rebalance(time, rebalance_cause(before, after, path, removed))
        missed = [name for name in removed if builder.open is not None and name not in builder.open.back]
        for name, cause in removed.items():
            builder.remove_member(time, name, cause)
        if after is None:
            builder.forget_group(time)
            return
        self.tell_arrivals(before, after, time)
        if isinstance(path.request, JoinGroup) and path.request.core.member in {slot.id for slot in members_of(after)}:
            builder.mark_back(time, str(path.request.core.member))  # it may end the join phase at once
        builder.protocol = text(after.protocol)
        old_phase = before.phase if before is not None else None
        if after.generation != (before.generation if before is not None else 0):
            if after.phase is Phase.EMPTY:
                builder.generation = after.generation
            else:
                builder.end_join_phase(time, after.generation, join_hold(path.rule, missed, time, builder))
        if after.phase in (Phase.STABLE, Phase.EMPTY) and after.phase is not old_phase:
            hold = sync_hold(path, builder, time) if after.phase is Phase.STABLE else None
            builder.end_rebalance(time, phase_name(after), hold)
            builder.generation = after.generation

    def tell_arrivals(self, before: Group | None, after: Group, time: int) -> None:
        """Tell which members are new, and which have joined again."""
        old = {name_of(slot): slot for slot in members_of(before)}
        for slot in members_of(after):
            name = name_of(slot)
            known = old.get(name)
            if known is None:
                self.builder.add_member(time, name, text(slot.instance), text(slot.client))
            if slot.join and (known is None or not known.join):
                self.builder.mark_back(time, name)

    def awaited_members(self) -> tuple[str, ...]:
        """The members that the present rebalance waits for."""
        group = self.last if self.is_following else None
        return tuple(awaited_members(group)) if group is not None and group.phase in REBALANCING else ()


def group_of(state: GroupState) -> Group | None:
    """The group in a state of the world."""
    return state.group


def members_of(group: Group | None) -> list[Slot]:
    """The slots of the members of a group."""
    return [] if group is None else [slot for slot in group.slots if slot.holder is Holder.MEMBER]


def name_of(slot: Slot) -> str:
    """The member id in a slot."""
    return str(slot.id)


def text(value: Any) -> str | None:
    """The value as text; None stays None."""
    return None if value is None else str(value)


def phase_name(group: Group) -> str:
    """The phase as it is called in reports."""
    return Phase(group.phase).name.capitalize()


def is_alike(one: Group | None, other: Group | None) -> bool:
    """Whether two states differ in nothing that a history tells."""
    if one is None or other is None:
        return one is other
    if (one.phase, one.generation, len(one.slots)) != (other.phase, other.generation, len(other.slots)):
        return False
    return all(
        (a.id, a.holder, bool(a.join)) == (b.id, b.holder, bool(b.join))
        for a, b in zip(one.slots, other.slots, strict=True)
    )


def begins_rebalance(before: Group | None, after: Group | None) -> bool:
    """Whether a rebalance begins in a step: a new join phase, which the same step may also end."""
    if after is None:
        return False
    old_phase = before.phase if before is not None else Phase.EMPTY
    if after.phase is Phase.PREPARING:
        return old_phase is not Phase.PREPARING
    counted = after.generation != (before.generation if before is not None else 0)
    return counted and old_phase is not Phase.PREPARING


def removal_causes(before: Group | None, after: Group | None, path: Path) -> dict[str, ChangeCause]:
    """The members that a step removed, each with the reason."""
    left = {name_of(slot) for slot in members_of(after)}
    gone = [slot for slot in members_of(before) if name_of(slot) not in left]
    return {name_of(slot): removal_cause(slot, path) for slot in gone}


def removal_cause(slot: Slot, path: Path) -> ChangeCause:
    """Why a step removed the member in a slot."""
    member = (name_of(slot),)
    if isinstance(path.request, LeaveGroup):
        return ChangeCause(CauseKind.LEFT, member)
    if isinstance(path.request, JoinGroup):
        return ChangeCause(CauseKind.REPLACED, member)
    kind = REMOVAL_KINDS.get(path.rule)
    if kind is not None:
        timeout = slot.session_timeout if kind is CauseKind.SESSION else slot.rebalance_timeout
        return ChangeCause(kind, member, timeout)
    return ChangeCause(CauseKind.OTHER, member, detail=guard_of(path.rule))


def guard_of(rule: str) -> str:
    """The guard of a rule, in words."""
    return RULES[rule].guard if rule in RULES else rule


def rebalance_cause(
    before: Group | None, after: Group | None, path: Path, removed: dict[str, ChangeCause]
) -> ChangeCause:
    """Why a step began a rebalance."""
    if isinstance(path.request, JoinGroup):
        known = {name_of(slot) for slot in members_of(before)}
        new = tuple(name_of(slot) for slot in members_of(after) if name_of(slot) not in known)
        if removed:
            return ChangeCause(CauseKind.REPLACED, (*removed, *new))
        if new:
            return ChangeCause(CauseKind.CAME, new)
        return ChangeCause(CauseKind.REJOINED, (str(path.request.core.member),))
    if removed:
        first = next(iter(removed.values()))
        return ChangeCause(first.kind, tuple(removed), first.timeout, first.detail)
    return ChangeCause(CauseKind.OTHER, detail=guard_of(path.rule)) if path.rule else NOT_SHOWN


def join_hold(rule: str, missed: list[str], time: int, builder: TimelineBuilder) -> PhaseHold | None:
    """What held a join phase up that ends in a step; None if it was the one who joined last."""
    waited = time - builder.open.began if builder.open is not None else 0
    if missed:
        return PhaseHold(HoldKind.GONE, tuple(missed), waited)
    if rule == "timer.initial-delay":
        return PhaseHold(HoldKind.INITIAL_DELAY, (), waited)
    return None


def sync_hold(path: Path, builder: TimelineBuilder, time: int) -> PhaseHold | None:
    """What held a sync phase up: the leader, whose assignment ends it."""
    joined = builder.open.joined if builder.open is not None else None
    core = getattr(path.request, "core", None)
    if joined is None or core is None:
        return None
    return PhaseHold(HoldKind.LEADER, (str(core.member),), time - joined)


def timer_deadline(before: Group | None, after: Group | None, rule: str) -> int | None:
    """When the timer of a step was due, in milliseconds; None if that is not known."""
    if before is None:
        return None
    if rule in ("timer.rebalance", "timer.initial-delay", "timer.initial-delay-grows"):
        return low(before.join_deadline)
    if rule.startswith("timer.sync"):
        return low(before.sync_deadline)
    left = {name_of(slot) for slot in members_of(after)}
    due = [low(slot.deadline) for slot in members_of(before) if name_of(slot) not in left and slot.armed]
    return min(due, default=None)


# --- Records the histories of all groups of one trace while it is judged.

MAX_LAG_ROWS = 200
"""How many partitions of a group are told, those that are furthest behind."""
STORED_STEPS = frozenset({"stored", "committed"})
"""Steps that records tell."""
MAX_SENT = 100_000
"""Of how many of the last requests the times are remembered."""
LIMITS: Mapping[str, tuple[str, ...]] = {
    LOG: (
        "It has the lines of the coordinator alone: no heartbeats, no offsets and no assignments.",
        "It does not show who joined last, so it names who held a join phase up only if they were removed for it.",
        "A member that joined a group before the log begins, or while it joined anyway, may not be named.",
    ),
    STORED: (
        "It has what coordinators stored: each generation when its assignment was there, and each committed offset.",
        "A rebalance is told from the end of its join phase on, if the record has it; why it began does not show.",
        "Of what the topic has been compacted only the last generation of each group may be left.",
    ),
    CLIENT_LOG: (
        "It has the lines of clients alone. Members whose logs are not here show only in what a leader sees.",
        "Times are those at which clients logged what they were told; what the coordinator did was earlier.",
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
    clients: ClientSteps
    is_logged: bool = False
    """Whether lines of its coordinator tell it."""
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
    take: TakeStory | None = None
    groups: dict[str, GroupHistory] = field(default_factory=dict)
    offsets: OffsetTable = field(default_factory=OffsetTable)
    sent: dict[int, int] = field(default_factory=dict)
    """By handle, when a request was sent."""
    now: int = 0
    events: int = 0
    skipped: int = 0
    """How many numbers no event has, before the last one."""
    logs: set[str] = field(default_factory=set)
    """The kinds of logs that tell it; none for a trace of messages."""
    begins_late: bool = False

    # --- the judge's observer -----------------------------------------------------------------------------------

    def before_event(self, moment: PairedEvent, judge: Judge) -> None:
        """Take note of an event that the judge is about to get."""
        event, operation = moment.event, moment.operation
        self.now = max(self.now, event.time)
        self.events += 1
        self.skipped = event.sequence + 1 - self.events
        if event.kind is Kind.REQUEST and operation is not None:
            self.sent[operation.handle] = event.time
            if len(self.sent) > MAX_SENT:
                del self.sent[next(iter(self.sent))]
        if operation is not None and operation.api in RESPONSE_HANDLERS:
            for name in judged_groups(operation, judge):
                self.note_following(name, judge)

    def on_step(self, group: str, step: Path) -> None:
        """Tell a step of the model that the judge has settled."""
        history = self.history_of(group)
        history.model.add_step(step, self.sent.get(step.handle), history.told_until)

    def after_event(self, moment: PairedEvent, judge: Judge) -> None:
        """Add changes that the model does not show: messages of groups that it does not follow, and log lines."""
        event, operation = moment.event, moment.operation
        if event.kind is Kind.INTERNAL:
            self.on_internal(event, judge)
        elif operation is not None and event.kind in (Kind.REQUEST, Kind.RESPONSE):
            if event.kind is Kind.RESPONSE:
                self.offsets.on_response(operation)
            if operation.api in RESPONSE_HANDLERS:
                for name in judged_groups(operation, judge):
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

    def on_internal(self, event: Event, judge: Judge) -> None:
        """Tell a line of a log, or that the trace has a gap."""
        if event.api == "step":
            step, group = event.body.get("step"), event.body.get("group")
            if isinstance(step, str) and isinstance(group, str) and (judge.only is None or judge.only(group)):
                self.on_logged_step(self.history_of(group), step, event)
            elif step == "delete":
                for name in str(event.body.get("groups")).split(", "):
                    if name in self.groups:
                        self.groups[name].builder.forget_group(event.time)
        elif event.api == "unknown":
            self.begins_late |= not self.groups
            for history in self.groups.values():
                history.builder.lose_track(event.time, str(event.body.get("reason") or "the trace has a gap"))
                history.model.is_following = False

    def on_logged_step(self, history: GroupHistory, step: str, event: Event) -> None:
        """Tell a line of a client, or of the coordinator."""
        kind = CLIENT_LOG if step in CLIENT_STEPS else STORED if step in STORED_STEPS else LOG
        self.logs.add(kind)
        if kind == STORED:
            self.offsets.on_stored(step, event.body)
        if kind == CLIENT_LOG:
            history.clients.add_step(step, event.body, event.time, is_told=history.is_logged or "beside" in event.body)
        else:
            history.is_logged = True
            history.log.add_step(step, event.body, event.time)

    # --- groups -------------------------------------------------------------------------------------------------

    def history_of(self, name: str) -> GroupHistory:
        """The history of a group."""
        history = self.groups.get(name)
        if history is None:
            builder = TimelineBuilder(name, self.now, self.take)
            messages = MessageSteps(builder)
            history = GroupHistory(builder, ModelSteps(builder), messages, LogSteps(builder), ClientSteps(messages))
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
        messages = CLIENTS if self.header.order is Order.INTERVALS else COORDINATOR
        kind = next((each for each in (STORED, LOG, CLIENT_LOG) if each in self.logs), messages)
        told_of = filter(has_story, (self.timeline_of(history) for history in self.groups.values()))
        timelines = sorted(told_of, key=severity, reverse=True)
        late = [LATE_LIMIT] if self.begins_late and not self.logs else []
        own = [f"{told[name][0].upper()}{told[name][1:]}." for name in ("unread", "times") if told.get(name)]
        lost = [f"{self.skipped} numbers of events are skipped: lines may be missing."] if self.skipped else []
        limits = (*LIMITS[kind], *late, *own, *lost)
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
        steps = history.log if history.is_logged else history.model if history.model.is_following else history.messages
        timeline = history.builder.build(self.now, steps.awaited_members())
        members = {member.member for member in timeline.members}
        partitions = list(self.offsets.partitions_of(timeline.group, members))
        behind = sorted(partitions, key=lambda each: -1 if each.lag is None else each.lag, reverse=True)[:MAX_LAG_ROWS]
        shown = sorted(behind, key=lambda each: (each.topic, each.partition))
        return replace(timeline, partitions=tuple(shown), partition_count=len(partitions))


def judged_groups(operation: Operation, judge: Judge) -> list[str]:
    """The groups that a request names, of those that are judged."""
    return [name for name in named_groups(operation.body) if judge.only is None or judge.only(name)]


def why_unfollowed(name: str, judge: Judge) -> str | None:
    """Why the model does not know the state of a group; None if it does."""
    group = judge.groups.get(name)
    if group is None:
        return None if judge.gap is None else ""
    followed = group.judge if isinstance(group, PartialGroup) else group
    return "" if followed is None else followed.stop_reason or followed.guess_reason or None
