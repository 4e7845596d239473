"""The history of a group as plain data. Times are in milliseconds since the trace began."""

from dataclasses import dataclass
from enum import StrEnum

from fencepost.traces.events import CLASSIC


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

    `source` names where it was seen and `kind` how: "log", "clients" or "coordinator". `began` is the wall-clock time
    of time 0 (ISO 8601), "" if unknown. `groups` are those with the longest rebalances; `other_groups` is how many more
    there are. `limits` says what such a trace does not show.
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
