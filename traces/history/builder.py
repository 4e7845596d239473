"""Builds the history of one group from its changes, in bounded memory."""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import Generic, Protocol, TypeAlias, TypeVar

from fencepost.traces.events import CLASSIC, Header, PairedEvent
from fencepost.traces.judge.judge import Judge
from fencepost.traces.judge.search.configuration import Path

# --- The history of a group as plain data. Times are in milliseconds since the trace began.


class CauseKind(StrEnum):
    """What began a rebalance, or ended a membership."""

    CAME = "came"
    """A member that the group did not have."""
    REJOINED = "rejoined"
    """A member of the group asked to join again."""
    LEFT = "left"
    """It sent LeaveGroup, or somebody did for it."""
    SESSION = "session"
    """It was silent for its session timeout."""
    NOT_BACK = "not back"
    """It did not join again within the rebalance timeout."""
    NO_SYNC = "no sync"
    """It sent no SyncGroup within the rebalance timeout."""
    REPLACED = "replaced"
    """A static member came back and has another member id now."""
    UNKNOWN_TO_COORDINATOR = "unknown to coordinator"
    """The coordinator told it that it does not know its id."""
    MISSING = "missing"
    """It is not among the members of the next generation; the trace does not show why."""
    CLOSED = "closed"
    """Its connection to the coordinator ended."""
    CRASHED = "crashed"
    """Its process died."""
    OTHER = "other"
    """As the detail says."""
    NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True)
class ChangeCause:
    """A cause: the members concerned, the timeout that ran out, and the reason in the words of the source."""

    kind: CauseKind
    members: tuple[str, ...] = ()
    timeout: int | None = None
    detail: str = ""


class HoldKind(StrEnum):
    """What a phase of a rebalance waited for."""

    LAST_TO_JOIN = "last to join"
    GONE = "gone"
    """Members that did not come: it went on when they were removed."""
    INITIAL_DELAY = "initial delay"
    """The initial rebalance delay of the broker."""
    LEADER = "leader"
    """The assignment of the leader."""
    NO_SYNC = "no sync"
    """Members without a SyncGroup."""
    AWAITED = "awaited"
    """Members that had not come when the trace ended."""
    NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True)
class PhaseHold:
    """Who or what held a phase of a rebalance up; `waited` is for how long."""

    kind: HoldKind
    members: tuple[str, ...] = ()
    waited: int = 0


@dataclass(frozen=True, slots=True)
class TimelineRebalance:
    """A rebalance. `joined` is the end of its join phase; `ended` is None if it was not over when the trace ended.

    `old_generation` and `generation` are None where the trace does not show them, `members` where it does not tell how
    many there are; `phase` is the phase afterwards.
    """

    began: int
    cause: ChangeCause
    old_generation: int | None
    joined: int | None = None
    ended: int | None = None
    generation: int | None = None
    members: int | None = None
    phase: str = ""
    came: tuple[str, ...] = ()
    gone: tuple[tuple[str, ChangeCause], ...] = ()
    back: tuple[tuple[str, int], ...] = ()
    """When members joined, or joined again."""
    join_hold: PhaseHold | None = None
    sync_hold: PhaseHold | None = None

    def duration(self, end: int) -> int:
        """How long it took, up to `end` if it was not over."""
        return (end if self.ended is None else self.ended) - self.began


@dataclass(frozen=True, slots=True)
class MemberSpan:
    """A member from its coming to its going. `since` is None if it came before the trace shows the group; `until` is
    None if it was a member at the end."""

    member: str
    instance: str | None
    client: str | None
    since: int | None
    until: int | None = None
    end: ChangeCause | None = None


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A time in which a group was in one phase other than a rebalance; the phase is "" where it is not known."""

    phase: str
    generation: int | None
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """A partition that a group has committed to, or that is assigned; None for what the trace does not show."""

    topic: str
    partition: int
    committed: int | None
    log_end: int | None
    owner: str | None

    @property
    def lag(self) -> int | None:
        """How many records the group is behind."""
        if self.committed is None or self.log_end is None:
            return None
        return max(0, self.log_end - self.committed)


@dataclass(frozen=True, slots=True)
class GroupTimeline:
    """The history of one group.

    `rebalances`, `spans` and `past_members` are the longest or the latest ones in the order of time; the counts are of
    all. `limits` says since when the trace does not show what of this group.
    """

    group: str
    first: int
    last: int
    phase: str
    generation: int | None
    protocol: str | None
    rebalances: tuple[TimelineRebalance, ...]
    rebalance_count: int
    rebalance_time: int
    spans: tuple[PhaseSpan, ...]
    members: tuple[MemberSpan, ...]
    past_members: tuple[MemberSpan, ...]
    departures: tuple[tuple[CauseKind, int], ...]
    partitions: tuple[PartitionLag, ...] = ()
    partition_count: int = 0
    limits: tuple[tuple[int, str], ...] = ()

    @property
    def open_rebalance(self) -> TimelineRebalance | None:
        """The rebalance that was not over at the end."""
        return next((each for each in self.rebalances if each.ended is None), None)

    @property
    def longest(self) -> int:
        """How long the longest rebalance took."""
        return max((each.duration(self.last) for each in self.rebalances), default=0)


@dataclass(frozen=True, slots=True)
class TraceHistory:
    """The histories of the groups of one trace.

    `source` names where it was seen and `kind` how: "log", "offsets topic", "client log", "clients" or "coordinator".
    `began` is the wall-clock time of time 0 (ISO 8601), "" if unknown. `groups` are those with the longest rebalances;
    `other_groups` is how many more there are. `limits` says what such a trace does not show.
    """

    path: str
    source: str
    kind: str
    began: str
    events: int
    duration: int
    groups: tuple[GroupTimeline, ...]
    other_groups: int
    limits: tuple[str, ...]
    protocol: str = CLASSIC


# --- Bounded collections: of many things that happened, those that took longest.

Value = TypeVar("Value")


class LongestKept(Generic[Value]):
    """Keeps the `limit` longest of the values added; of equally long ones the first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.heap: list[tuple[int, int, Value]] = []
        self.count = 0
        self.total = 0
        """Of all values ever added: how many, and how long together."""

    def add(self, length: int, value: Value) -> None:
        """Add a value that took so long."""
        self.count += 1
        self.total += length
        entry = (length, -self.count, value)
        if len(self.heap) < self.limit:
            heapq.heappush(self.heap, entry)
        else:
            heapq.heappushpop(self.heap, entry)

    def values(self) -> list[Value]:
        """The values kept, in the order in which they were added."""
        return [value for _, _, value in sorted(self.heap, key=lambda entry: -entry[1])]


MAX_REBALANCES = 100
MAX_SPANS = 100
MAX_PAST_MEMBERS = 100
"""How many of each are kept for one group; all are counted."""
MAX_NAMES = 50
"""How many members are named as coming or going in one rebalance."""
MAX_LIMITS = 5
UNKNOWN, EMPTY, PREPARING, COMPLETING, STABLE, DEAD = "", "Empty", "Preparing", "Completing", "Stable", "Dead"
NOT_SHOWN = ChangeCause(CauseKind.NOT_SHOWN)


@dataclass(slots=True)
class OpenRebalance:
    """A rebalance that is under way: when it began, and who came, came back and went."""

    began: int
    cause: ChangeCause
    old_generation: int | None
    joined: int | None = None
    back: dict[str, int] = field(default_factory=dict)
    """When each member joined, or joined again."""
    came: list[str] = field(default_factory=list)
    gone: list[tuple[str, ChangeCause]] = field(default_factory=list)
    gone_count: int = 0
    join_hold: PhaseHold | None = None
    members: int | None = None


TakeStory: TypeAlias = Callable[[str, TimelineRebalance | MemberSpan], None]
"""Gets each rebalance and each membership of a group: when it is over, else when the trace is."""


class TimelineBuilder:
    """The history of one group while it is built. Times never fall: an earlier one counts as the latest one told.

    A history keeps what took longest. `take` gets everything, as soon as it is known.
    """

    def __init__(self, group: str, first: int, take: TakeStory | None = None) -> None:
        self.group = group
        self.take = take or (lambda group, told: None)
        self.first = self.now = self.since = first
        self.phase = UNKNOWN
        self.generation: int | None = None
        self.protocol: str | None = None
        self.members: dict[str, MemberSpan] = {}
        self.open: OpenRebalance | None = None
        self.rebalances: LongestKept[TimelineRebalance] = LongestKept(MAX_REBALANCES)
        self.spans: LongestKept[PhaseSpan] = LongestKept(MAX_SPANS)
        self.past_members: deque[MemberSpan] = deque(maxlen=MAX_PAST_MEMBERS)
        self.departures: Counter[CauseKind] = Counter()
        self.limits: dict[str, int] = {}
        """What the trace does not show, and since when."""
        self.reasons: dict[str, str] = {}
        """Why members may go, as their clients said."""

    def touch(self, time: int) -> int:
        """Take note of a time; returns the latest one."""
        self.now = max(self.now, time)
        return self.now

    # --- members ------------------------------------------------------------------------------------------------

    def add_member(
        self, time: int, member: str, instance: str | None = None, client: str | None = None, *, is_new: bool = True
    ) -> None:
        """A member joins, or is seen for the first time and may have been one before."""
        now = self.touch(time)
        if member in self.members:
            return
        came = self.open.back.get(member, now) if self.open is not None else now
        self.members[member] = MemberSpan(member, instance, client, came if is_new else None)
        if is_new and self.open is not None and len(self.open.came) < MAX_NAMES:
            self.open.came.append(member)

    def name_client(self, member: str, client: str | None) -> None:
        """A member has this client id."""
        known = self.members.get(member)
        if known is not None and known.client is None:
            self.members[member] = replace(known, client=client)

    def mark_back(self, time: int, member: str) -> None:
        """A member has joined, or joined again, in the present rebalance."""
        now = self.touch(time)
        if self.open is not None and self.open.joined is None:
            self.open.back[member] = now

    def remove_member(self, time: int, member: str, cause: ChangeCause) -> None:
        """A member is gone."""
        now = self.touch(time)
        known, reason = self.members.pop(member, None), self.reasons.pop(member, "")
        if cause.kind is CauseKind.LEFT and not cause.detail:
            cause = replace(cause, detail=reason)
        self.departures[cause.kind] += 1
        if known is not None:
            self.past_members.append(replace(known, until=now, end=cause))
            self.take(self.group, self.past_members[-1])
        if self.open is not None:
            self.open.gone_count += 1
            if len(self.open.gone) < MAX_NAMES:
                self.open.gone.append((member, cause))

    # --- phases -------------------------------------------------------------------------------------------------

    def begin_rebalance(self, time: int, cause: ChangeCause) -> None:
        """The join phase of a rebalance begins; one that is under way is interrupted by that."""
        now = self.touch(time)
        joined = self.open.joined if self.open is not None else None
        hold = None
        if joined is not None and cause.kind is CauseKind.NO_SYNC:
            hold = PhaseHold(HoldKind.NO_SYNC, cause.members, now - joined)
        self.close_rebalance(now, PREPARING, hold)
        self.change_phase(now, PREPARING)
        self.open = OpenRebalance(now, cause, self.generation)

    def end_join_phase(self, time: int, generation: int | None, hold: PhaseHold | None = None) -> None:
        """The join phase ends. Without a `hold` the one who was back last held it up."""
        now = self.touch(time)
        if self.open is None or self.open.joined is not None:
            self.begin_rebalance(now, NOT_SHOWN)
        assert self.open is not None
        self.open.joined, self.open.members = now, len(self.members) or None
        self.open.join_hold = hold or self.last_back(self.open)
        self.generation = generation
        self.change_phase(now, COMPLETING)

    def cancel_rebalance(self, time: int, phase: str) -> None:
        """What looked like the beginning of a rebalance was none: the group has been in this phase all the time."""
        self.open, self.phase, self.since = None, phase, self.touch(time)

    def last_back(self, rebalance: OpenRebalance) -> PhaseHold:
        """The hold of the member that was back last."""
        if not rebalance.back:
            return PhaseHold(HoldKind.NOT_SHOWN, waited=self.now - rebalance.began)
        last = max(rebalance.back, key=lambda member: rebalance.back[member])
        return PhaseHold(HoldKind.LAST_TO_JOIN, (last,), rebalance.back[last] - rebalance.began)

    def end_rebalance(self, time: int, phase: str, hold: PhaseHold | None = None) -> None:
        """The rebalance is over, and the group is in this phase."""
        now = self.touch(time)
        self.close_rebalance(now, phase, hold)
        self.change_phase(now, phase)

    def close_rebalance(self, now: int, phase: str, hold: PhaseHold | None = None) -> None:
        """Put the rebalance that is under way on record as ended."""
        if self.open is None:
            return
        told = self.record_of(self.open, now, phase, hold)
        self.rebalances.add(now - told.began, told)
        self.take(self.group, told)
        self.open = None

    def record_of(
        self, rebalance: OpenRebalance, ended: int | None, phase: str, sync_hold: PhaseHold | None
    ) -> TimelineRebalance:
        """A rebalance as data."""
        if rebalance.joined is None and ended is not None and rebalance.join_hold is None:
            rebalance.join_hold = missed_to_the_end(rebalance, ended)
        return TimelineRebalance(
            rebalance.began,
            rebalance.cause,
            rebalance.old_generation,
            rebalance.joined,
            ended,
            self.generation if rebalance.joined is not None or ended is not None else None,
            (len(self.members) if rebalance.members is None else rebalance.members) or None,
            phase,
            tuple(rebalance.came),
            tuple(rebalance.gone),
            tuple(islice(rebalance.back.items(), MAX_NAMES)),
            rebalance.join_hold,
            sync_hold,
        )

    def change_phase(self, now: int, phase: str) -> None:
        """The group is in this phase from now on."""
        if self.phase not in (PREPARING, COMPLETING) and now > self.since:
            self.spans.add(now - self.since, PhaseSpan(self.phase, self.generation, self.since, now))
        self.phase, self.since = phase, now

    def set_phase(self, time: int, phase: str, generation: int | None) -> None:
        """The group is found in this phase and generation, however it came there."""
        now = self.touch(time)
        if (phase, generation) == (self.phase, self.generation):
            return
        if phase in (PREPARING, COMPLETING):
            if self.open is None:
                self.change_phase(now, phase)
                self.open = OpenRebalance(now, NOT_SHOWN, None)
            if phase == COMPLETING and self.open.joined is None:
                self.open.joined = now
        else:
            self.close_rebalance(now, phase)
        self.change_phase(now, phase)
        self.generation = generation

    def forget_group(self, time: int) -> None:
        """The group is no more."""
        now = self.touch(time)
        for member in list(self.members):
            self.remove_member(now, member, NOT_SHOWN)
        self.end_rebalance(now, DEAD)

    def lose_track(self, time: int, reason: str) -> None:
        """From now on nothing is known of the group."""
        now = self.touch(time)
        self.add_limit(now, reason)
        if self.open is not None:
            self.open = None  # whether and when it ended is not known
        for member in self.members.values():
            self.take(self.group, replace(member, until=now, end=NOT_SHOWN))
        self.members.clear()
        self.change_phase(now, UNKNOWN)
        self.generation = None

    def set_members(self, time: int, members: Mapping[str, tuple[str | None, str | None]]) -> None:
        """These are the members; who came or went is not known."""
        for gone in [member for member in self.members if member not in members]:
            self.remove_member(time, gone, NOT_SHOWN)
        for member, (instance, client) in members.items():
            self.add_member(time, member, instance, client, is_new=False)

    def add_limit(self, time: int, reason: str) -> None:
        """Say what the trace does not show of the group from `time` on."""
        if len(self.limits) < MAX_LIMITS:
            self.limits.setdefault(reason, time)

    # --- the end ------------------------------------------------------------------------------------------------

    def build(self, time: int, awaited: Iterable[str] = ()) -> GroupTimeline:
        """The history, once the trace is over at `time`; an open rebalance waits for the members `awaited`."""
        now = self.touch(time)
        count, total = self.rebalances.count, self.rebalances.total
        rebalances = self.rebalances.values()
        if self.open is not None:
            rebalances.append(self.record_open(now, tuple(awaited)))
            self.take(self.group, rebalances[-1])
            count, total = count + 1, total + now - self.open.began
        elif now > self.since:
            self.spans.add(now - self.since, PhaseSpan(self.phase, self.generation, self.since, now))
        for member in self.members.values():
            self.take(self.group, member)
        return GroupTimeline(
            self.group,
            self.first,
            now,
            self.phase,
            self.generation,
            self.protocol,
            tuple(rebalances),
            count,
            total,
            tuple(self.spans.values()),
            tuple(self.members.values()),
            tuple(self.past_members),
            tuple(sorted(self.departures.items())),
            limits=tuple((time, reason) for reason, time in self.limits.items()),
        )

    def record_open(self, now: int, awaited: tuple[str, ...]) -> TimelineRebalance:
        """The rebalance that is not over, with the members that it waits for."""
        assert self.open is not None
        begun = self.open.began if self.open.joined is None else self.open.joined
        kind = HoldKind.AWAITED if awaited else HoldKind.NOT_SHOWN
        hold = PhaseHold(kind, awaited[:MAX_NAMES], now - begun)
        told = self.record_of(self.open, None, self.phase, hold if self.open.joined is not None else None)
        return replace(told, join_hold=hold) if self.open.joined is None else told


def missed_to_the_end(rebalance: OpenRebalance, ended: int) -> PhaseHold | None:
    """The hold of members that were removed without having joined, in a rebalance that nobody joined."""
    told = set(rebalance.cause.members).union(rebalance.back)
    missed = tuple(member for member, _ in rebalance.gone if member not in told)
    return PhaseHold(HoldKind.GONE, missed, ended - rebalance.began) if missed else None


# --- The interface of observers of a trace while it is judged.


class TraceObserver(Protocol):
    """Is told of the events of one trace, and of the steps that explain them."""

    def before_event(self, moment: PairedEvent, judge: Judge) -> None:
        """An event that the judge is about to get."""

    def on_step(self, group: str, step: Path) -> None:
        """A step of the model that is settled."""

    def after_event(self, moment: PairedEvent, judge: Judge) -> None:
        """An event that the judge has judged."""

    def finish(self) -> None:
        """The trace is over, or was given up; the judge has finished."""


MakeObserver: TypeAlias = Callable[[str, Header], TraceObserver]
"""Makes the observer of a trace by its path and its header."""
