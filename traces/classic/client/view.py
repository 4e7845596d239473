"""The state of a client that is followed: its knowledge, its open requests and its debts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from fencepost.model.assignors.group import Subscription, TopicPartition
from fencepost.traces.classic.client.application import Application
from fencepost.traces.classic.client.messages import NO_GENERATION, fetched_partitions
from fencepost.traces.client_judge.judge import Evidence, build_violation
from fencepost.traces.client_judge.monitors import Finding, check
from fencepost.traces.events import Event, Operation
from fencepost.traces.verdict import Violation

# --- The knowledge of a client of its membership: a standing after each piece of news, and those that it may have by
# now.
#
# News is a response that has left the cluster. It may be on its way for as long as the grace of the trace: until then,
# the client may act by it or by what it knew before. A request that only fits later news shows that it has arrived.
# For all requests but JoinGroup, which a client sends because of some news, it takes a sign besides that the client
# was not held up meanwhile.


class Phase(Enum):
    """How far a client is with its membership."""

    OUT = auto()
    """In no group, or thrown out."""
    JOINED = auto()
    """Told a generation, not yet an assignment."""
    STABLE = auto()
    """Told an assignment."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A membership as a client knows it after some news.

    The next JoinGroup carries `member_id`, whatever it likes if that is None; `requirement` says so, "" if none does.
    `sequence` and `time` are those of the news, and `news` tells it in words.
    """

    member_id: str | None
    generation: int = NO_GENERATION
    phase: Phase = Phase.OUT
    assignment: frozenset[TopicPartition] = frozenset()
    requirement: str = ""
    news: str = "it has just started"
    sequence: int = 0
    time: int = 0


@dataclass(slots=True)
class Knowledge:
    """The standings of a client in the order of the news, as far as they still matter. `grace` in milliseconds."""

    grace: int
    standings: list[Standing] = field(default_factory=lambda: [Standing("", requirement="MEMBER-02")])
    former: list[Standing] = field(default_factory=list)
    """Standings that the client has certainly left behind, with a generation."""

    @property
    def latest(self) -> Standing:
        """The standing after the latest news."""
        return self.standings[-1]

    def learn(self, standing: Standing) -> None:
        """There is news."""
        self.standings.append(standing)

    def settle(self, time: int) -> None:
        """Everything that is older than the grace has arrived."""
        arrived = sum(standing.time + self.grace <= time for standing in self.standings[1:])
        self._leave_behind(arrived)

    def show(self, sequence: int) -> None:
        """A request shows that the news with this sequence number, and all before it, has arrived."""
        arrived = sum(standing.sequence <= sequence for standing in self.standings[1:])
        self._leave_behind(arrived)

    def find(self, member_id: str, generation: int) -> Standing | None:
        """The latest standing with this membership that the client may have, None if there is none."""
        fitting = (each for each in reversed(self.standings) if has_membership(each, member_id, generation))
        return next(fitting, None)

    def had(self, member_id: str, generation: int) -> Standing | None:
        """The former standing with this membership, None if the client was never told of it."""
        return next((each for each in reversed(self.former) if has_membership(each, member_id, generation)), None)

    def allowed_partitions(self) -> frozenset[TopicPartition]:
        """All partitions that the client may hold to be its own."""
        return frozenset[TopicPartition]().union(*(standing.assignment for standing in self.standings))

    def _leave_behind(self, count: int) -> None:
        self.former += (each for each in self.standings[:count] if each.generation != NO_GENERATION)
        del self.standings[:count]


def has_membership(standing: Standing, member_id: str, generation: int) -> bool:
    """Whether a standing has this member id and this generation."""
    return standing.member_id in (None, member_id) and standing.generation == generation != NO_GENERATION


# --- The times of a client's heartbeats and of its lookups that failed.

STEADY = 3
"""So many heartbeats show a rhythm, and a silence of so many is one."""


@dataclass(slots=True)
class Rhythm:
    """When heartbeats came, and when the coordinator could not be found. Times in milliseconds."""

    last: int = 0
    gaps: list[int] = field(default_factory=list)
    """The times between heartbeats while the application polled."""
    failed: int | None = None
    """When a heartbeat got an error that may pass, if none came since."""
    lost_since: int | None = None
    """When the first lookup failed, if none has succeeded since."""
    callback: tuple[int, int] | None = None
    """When a slow callback began, if it is under way, and how long it takes."""
    found_at: int | None = None
    """When a lookup succeeded after one that had failed."""
    outage: int = 0
    """How long the coordinator could not be found, the last time."""

    @property
    def usual(self) -> int:
        """The longest time between heartbeats so far, 0 if there were too few."""
        return max(self.gaps) if len(self.gaps) >= STEADY else 0


COOPERATIVE_ASSIGNORS = frozenset({"cooperative-sticky"})
"""The assignors with well-known names that let a member keep its partitions while it joins."""
EXCHANGE_APIS = ("JoinGroup", "SyncGroup")
MIN_PATIENCE_MS = 5_000
"""How long a client may take at least for what it owes."""
POSITION_APIS = frozenset({"OffsetFetch", "ListOffsets"})
"""The requests by which a client learns where to begin."""
POSITION_BACKOFF_MS = 6_000
"""How long a client may take to send another OffsetFetch after one that failed: franz-go waits for up to 5 s."""


@dataclass(frozen=True, slots=True)
class Debt:
    """Something that the client owes since some news, such as a JoinGroup; `api` is the request that pays it."""

    requirement: str
    api: str
    since: int
    sequence: int
    news: str


@dataclass(slots=True)
class Exchange:
    """A JoinGroup that succeeded, with its response, and whether SyncGroup followed."""

    operation: Operation
    sequence: int
    """Of the response."""
    member_id: str
    generation: int
    leads: bool
    protocol: str
    time: int
    is_synced: bool = False
    has_failed: bool = False
    """SyncGroup failed, or its response was lost."""
    is_excused: bool = False
    """Something happened after which another JoinGroup may come in the place of SyncGroup."""
    is_late: bool = False
    """The response came when the client had left."""
    is_reset: bool = False
    """The response came when the client had read that the coordinator does not know it."""
    is_unapplied: bool = False
    """The response to SyncGroup came when the client had left."""
    skips: bool = False
    """The leader is told to skip the assignment."""
    has_metadata: bool = False
    """Metadata of the client's topics came after the response: a client may want to join again because of it."""
    metadata: int = 0
    """How often Metadata came after the response."""
    told_first: frozenset[str] = frozenset()
    """The topics of the first of these."""


def is_reset(view: "ClientView") -> bool:
    """Whether the generation of the client is over, and nothing else made it give up its partitions."""
    if view.application.has_asked:
        return all(map(has_no_generation, view.knowledge.standings))
    return has_no_generation(view.knowledge.latest) and view.rebalance_told is None and view.growth is None


def may_have_outgrown(view: "ClientView") -> bool:
    """Whether topics have grown since the client, as the leader, may have planned."""
    leads = view.exchange is not None and view.exchange.leads
    return view.has_outgrown or (leads and bool(view.former_topics))


def has_no_generation(standing: Standing) -> bool:
    """Whether a standing is one of a client that had a generation and was told that it is over."""
    return standing.generation == NO_GENERATION and standing.requirement in ("MEMBER-12", "MEMBER-13", "HBT-08")


def is_of_exchange(sync: Operation, exchange: Exchange) -> bool:
    """Whether a SyncGroup has the membership that JoinGroup brought."""
    return (sync.body["generation_id"], sync.body["member_id"]) == (exchange.generation, exchange.member_id)


@dataclass(slots=True)
class ClientView:
    """A client under way. Times in milliseconds."""

    knowledge: Knowledge
    evidence: Evidence
    now: int = 0
    """When the event under way happened."""
    awake_until: int = 0
    """The latest moment by which the client has certainly read what was on its way."""
    is_virtual: bool = False
    """Its clock is virtual: what it writes to its driver and to its connections arrives in that order."""
    is_recorded: bool = False
    """Only its requests to the coordinator are known: nothing of its application, of Metadata and of Fetch."""
    outstanding: dict[int, Operation] = field(default_factory=dict)
    """The requests without a response, by handle."""
    join: Operation | None = None
    """The last JoinGroup."""
    told_as_nobody: int = -1
    """The sequence number of the last error of a Heartbeat or commit without a generation."""
    reset_at: int | None = None
    """When an error last came after which a generation is over."""
    read_until: int = 0
    """The latest moment by which the client had certainly read what came, when it sent that."""
    read_before_join: int = 0
    """The sequence number of the last news that the client had certainly read when it sent that."""
    loss: tuple[int, int] = (0, 0)
    """The same when it called its partitions lost last, and when that was."""
    subscriptions: Mapping[str, Subscription] = field(default_factory=dict)
    """What it carried, by protocol, as far as it can be read."""
    protocols: frozenset[str] = frozenset()
    """The names of all its protocols."""
    has_unread_subscription: bool = False
    """Whether one of them could not be read: nobody knows what the client subscribes to."""
    exchange: Exchange | None = None
    overlaps: bool = False
    """Two exchanges have been under way at once (MEMBER-06), since the last one that began by itself."""
    has_skipped_sync: bool = False
    """The last JoinGroup came in the place of SyncGroup."""
    unsynced: Violation | None = None
    """That it did, unless it shows to be a second exchange at once."""
    last_exchange_news: int = 0
    """The sequence number of the last response to JoinGroup or SyncGroup, which whoever joins again has read."""
    offsets_failed: int | None = None
    """When OffsetFetch failed last, or its response was lost, if none has succeeded since."""
    debts: dict[str, Debt] = field(default_factory=dict)
    """By requirement."""
    has_found: bool = False
    instance: str | None = None
    topics: dict[str, int] = field(default_factory=dict)
    """Partitions by topic, as the client was told with Metadata."""
    former_topics: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    """The same before Metadata told something else since the last JoinGroup, and when it did."""
    told_at: tuple[int, int] = (-1, 0)
    """The sequence number and the time of the last response to Metadata of subscribed topics."""
    told_topics: frozenset[str] = frozenset()
    """Those of the last response to Metadata."""
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    """The nodes that lead partitions, as Metadata told them."""
    topic_names: dict[str, str] = field(default_factory=dict)
    """The names of topics by their ids, as Metadata told them."""
    planned: dict[str, int] = field(default_factory=dict)
    """The same of its topics when it became stable."""
    has_planned: bool = False
    """The numbers are those of the plan that it made as a leader, since when it has not been stable as a follower."""
    has_outgrown: bool = False
    """It has become stable as a follower, and other numbers than in its own last plan were told meanwhile. A client may
    join again at once: some compare with their last plan until they have applied another member's."""
    growth: Event | None = None
    """The Metadata response that first told other numbers, since the last JoinGroup."""
    foreign_topics: set[str] = field(default_factory=set)
    """The topics of assignments that are not subscribed."""
    session_timeout: int = 0
    rebalance_timeout: int = 0
    heard: int = 0
    """When the coordinator last responded to JoinGroup, SyncGroup or Heartbeat, but for saying that it is elsewhere."""
    last_sign: int | None = None
    """When the last heartbeat of a stable member was seen, or it became stable."""
    has_sign_while_waiting: bool = False
    """Whether a heartbeat came since the last SyncGroup."""
    installed: frozenset[TopicPartition] | None = None
    """The assignment that the client was told last, None without one since it lost its membership."""
    installed_generation: int = -1
    is_installed_doubtful: bool = False
    """The response with the last assignment came on a connection that the client may have closed before."""
    has_newer_assignment: bool = False
    """It came in a version that no client knows (WIRE-02): whether the client has it shows only in what it fetches."""
    installed_protocol: str = ""
    rounds: int = 0
    """How often SyncGroup has succeeded."""
    given_up: frozenset[TopicPartition] = frozenset()
    """What a cooperative member had before and was not assigned again."""
    rebalance_told: int | None = None
    """When a stable member was told of a rebalance, if it has not joined since."""
    asked_to_end: int | None = None
    standing_at_end: Standing | None = None
    ends_without_coordinator: bool = False
    """It was asked to when the client knew no coordinator."""
    ended: int | None = None
    exit_code: int | None = None
    left: Operation | None = None
    """The last LeaveGroup."""
    has_left_silently: bool = False
    """A static member has unsubscribed since the last JoinGroup, of which no request tells."""
    may_have_left: bool = False
    """The application has not polled for about its poll interval since the last JoinGroup: the client may have left,
    and needs no request for that if it is static or knows no coordinator."""

    ends: dict[TopicPartition, int] = field(default_factory=dict)
    """The offsets behind the last records of partitions."""
    application: Application = field(default_factory=Application)
    rhythm: Rhythm = field(default_factory=Rhythm)
    markers: set[tuple[TopicPartition, int]] = field(default_factory=set)
    """Offsets that no record has."""
    has_doubled: bool = False
    """A response came twice, which no broker does."""
    hung_up: set[int] = field(default_factory=set)
    """The connections that the cluster has closed."""
    coordinator_connection: int = 0
    """The connection of the last request to the coordinator: what waits on another one is given up."""
    coordinator_lost: int | None = None
    """When that connection ended, if the client has sent nothing to the coordinator since."""
    refused_on: int = -1
    """The connection on which JoinGroup or SyncGroup was told last that the coordinator is elsewhere, -1 for none."""
    doubtful: dict[int, int] = field(default_factory=dict)
    """The connections that the client may have closed already, so that what comes on them is lost, and since when: a
    response came twice, or said that the coordinator is elsewhere, or its own clock of its session has run out."""

    @property
    def earliest_timeout(self) -> int:
        """The rebalance timeout, which is the poll interval too, less the grace: after that it may be over. In
        milliseconds."""
        return self.rebalance_timeout - self.knowledge.grace

    @property
    def is_ending(self) -> bool:
        """Whether the client has ended, or was asked to."""
        return self.asked_to_end is not None or self.ended is not None

    @property
    def has_left(self) -> bool:
        """Whether the client has left since its last JoinGroup."""
        return self.left is not None or self.has_left_silently

    @property
    def is_cooperative(self) -> bool:
        """Whether all protocols of the last JoinGroup are known to be cooperative."""
        return bool(self.protocols) and self.protocols <= COOPERATIVE_ASSIGNORS

    def skip_markers(self, partition: TopicPartition, offset: int) -> int:
        """The first offset from this one on that a record may have."""
        while (partition, offset) in self.markers:
            offset += 1
        return offset

    def left_records(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of these partitions of which records are there that were not returned."""
        return frozenset(each for each in partitions if self.ends.get(each, 0) > self.application.next_of(each))

    def is_by_hand(self, time: int) -> bool:
        """Whether the client has certainly been no member for a while: its application has assigned its partitions."""
        since = self.application.manual_since
        return since is not None and since + self.knowledge.grace < time

    def owes(self, api: str) -> bool:
        """Whether the client owes something with this request."""
        return any(each.api == api for each in self.debts.values())

    def exchange_outstanding(self) -> Operation | None:
        """A JoinGroup or SyncGroup without a response, None if there is none."""
        return next((each for each in self.outstanding.values() if each.api in EXCHANGE_APIS), None)

    def fetches_outstanding(self) -> frozenset[TopicPartition]:
        """The partitions that a Fetch without a response asks for."""
        fetches = (each for each in self.outstanding.values() if each.api == "Fetch")
        return frozenset(each for fetch in fetches for each in fetched_partitions(fetch, self.topic_names))

    def is_backing_off(self, time: int) -> bool:
        """Whether the client need not have asked again where to begin, since OffsetFetch has failed."""
        return self.offsets_failed is not None and time - self.offsets_failed <= POSITION_BACKOFF_MS

    def is_unheard(self, time: int, milliseconds: int) -> bool:
        """Whether a request to the coordinator has had no response for so long: what the client has sent on the same
        connection since then may not have been read."""
        waiting = (
            each for each in self.outstanding.values() if each.api in ("Heartbeat", "OffsetCommit", "OffsetFetch")
        )
        return any(time - each.sent_at > milliseconds for each in waiting)

    def owe(self, debt: Debt) -> None:
        """From now on the client owes something; what it owed of the same kind before is no longer asked for."""
        self.debts = {id: each for id, each in self.debts.items() if each.api != debt.api}
        self.debts[debt.requirement] = debt

    def pay(self, api: str, sequence: int) -> None:
        """A request pays what was owed with it."""
        for requirement, debt in tuple(self.debts.items()):
            if debt.api == api and debt.sequence < sequence:
                self.evidence.hold(requirement, sequence)
                del self.debts[requirement]

    def leave_silently(self, standing: Standing) -> None:
        """The client is in no group from now on, and has sent no LeaveGroup."""
        self.installed, self.is_installed_doubtful, self.last_sign = None, False, None
        if self.exchange is not None:
            self.exchange.is_excused = True
        self.forgive("JoinGroup")
        self.knowledge.learn(standing)
        self.knowledge.show(standing.sequence)

    def forgive(self, api: str) -> None:
        """What is owed with this request is no longer asked for."""
        self.debts = {id: each for id, each in self.debts.items() if each.api != api}

    def violate(
        self, requirement: str, operation: Operation, title: str, expected: str, observed: str, told: str = ""
    ) -> None:
        """A request breaks a requirement."""
        self.evidence.violate(build_violation(requirement, operation.handle - 1, title, expected, observed, told))

    def check(
        self, holds: bool, requirement: str, operation: Operation, title: str, expected: str, observed: str
    ) -> None:
        """A request keeps a requirement, or else breaks it in this way."""
        if holds:
            self.evidence.hold(requirement, operation.handle - 1)
        else:
            self.violate(requirement, operation, title, expected, observed, self.knowledge.latest.news)


def check_request(
    view: ClientView, holds: bool, requirement: str, operation: Operation, title: str, expected: str, observed: str
) -> Finding:
    """A request keeps a requirement, or else breaks it in this way, whatever the client was told last."""
    told = view.knowledge.latest.news
    return check(holds, requirement, operation.handle - 1, title, expected, observed, told)


def blame_request(
    requirement: str, operation: Operation, title: str, expected: str, observed: str, told: str = ""
) -> Finding:
    """A request breaks a requirement."""
    return build_violation(requirement, operation.handle - 1, title, expected, observed, told)
