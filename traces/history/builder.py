"""Builds the history of one group from its changes, in bounded memory."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from fencepost.traces.history.kept import LongestKept
from fencepost.traces.history.timeline import (
    CauseKind,
    ChangeCause,
    GroupTimeline,
    HoldKind,
    MemberSpan,
    PhaseHold,
    PhaseSpan,
    TimelineRebalance,
)

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


class TimelineBuilder:
    """The history of one group while it is built. Times never fall: an earlier one counts as the latest one told."""

    def __init__(self, group: str, first: int) -> None:
        self.group = group
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

    def mark_back(self, time: int, member: str) -> None:
        """A member has joined, or joined again, in the present rebalance."""
        now = self.touch(time)
        if self.open is not None and self.open.joined is None:
            self.open.back[member] = now

    def remove_member(self, time: int, member: str, cause: ChangeCause) -> None:
        """A member is gone."""
        now = self.touch(time)
        known = self.members.pop(member, None)
        self.departures[cause.kind] += 1
        if known is not None:
            self.past_members.append(replace(known, until=now, end=cause))
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

    def end_join_phase(self, time: int, generation: int, hold: PhaseHold | None = None) -> None:
        """The join phase ends. Without a `hold` the one who was back last held it up."""
        now = self.touch(time)
        if self.open is None or self.open.joined is not None:
            self.begin_rebalance(now, NOT_SHOWN)
        assert self.open is not None
        self.open.joined, self.open.members = now, len(self.members) or None
        self.open.join_hold = hold or self.last_back(self.open)
        self.generation = generation
        self.change_phase(now, COMPLETING)

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
            count, total = count + 1, total + now - self.open.began
        elif now > self.since:
            self.spans.add(now - self.since, PhaseSpan(self.phase, self.generation, self.since, now))
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
