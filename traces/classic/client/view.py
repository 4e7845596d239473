"""The view of a client that is followed: what it may know, its open requests and its debts."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fencepost.model.assignors.group import Subscription, TopicPartition
from fencepost.traces.classic.client.application import Application
from fencepost.traces.classic.client.messages import NO_GENERATION, fetched_partitions, generation_in
from fencepost.traces.classic.client.standings import Knowledge, Standing
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import Finding, Seen, check
from fencepost.traces.events import Event, Operation

COOPERATIVE_ASSIGNORS = frozenset({"cooperative-sticky"})
"""The assignors with well-known names that let a member keep its partitions while it joins."""
EXCHANGE_APIS = ("JoinGroup", "SyncGroup")
MIN_PATIENCE_MS = 5_000
"""How long a client may take at least for what it owes."""
POSITION_APIS = frozenset({"OffsetFetch", "ListOffsets"})
"""The requests by which a client learns where to begin."""
POSITION_BACKOFF_MS = 6_000
"""How long a client may take to send another OffsetFetch after one that failed: franz-go waits for up to 5 s."""


LEAVING_MS = 3_000
"""How late a client that is not polled may leave, or stop its heartbeats."""
SLOW_MS = 3_000
"""How long an application has to do nothing to be slow."""
PARKED_MS = 2_000
"""A JoinGroup that takes longer is one in whose time there might have been heartbeats, or records."""
OVERTAKING_MS = 50
"""A driver's message may arrive so long before a request that was sent first: they come by different ways."""


def is_cooperative(protocols: frozenset[str]) -> bool:
    """Whether these protocols are known to be cooperative."""
    return bool(protocols) and protocols <= COOPERATIVE_ASSIGNORS


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
    is_virtual: bool = False
    """Its clock is virtual: what it writes to its driver and to its connections arrives in that order."""
    is_recorded: bool = False
    """Only its requests to the coordinator are known: nothing of its application, of Metadata and of Fetch."""
    has_found: bool = False
    sent_at: deque[int] = field(default_factory=deque)
    """When the client sent requests, from the last on that says by when it has certainly read something."""
    now: int = 0
    """When the event under way happened."""
    awake_until: int = 0
    """The latest moment by which the client has certainly read what was on its way."""
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
    last_exchange_news: int = 0
    """The sequence number of the last response to JoinGroup or SyncGroup, which whoever joins again has read."""
    offsets_failed: int | None = None
    """When OffsetFetch failed last, or its response was lost, if none has succeeded since."""
    debts: dict[str, Debt] = field(default_factory=dict)
    """By requirement."""
    instance: str | None = None
    topics: dict[str, int] = field(default_factory=dict)
    """Partitions by topic, as the client was told with Metadata."""
    former_topics: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    """The same before Metadata told something else since the last JoinGroup, and when it did."""
    told_at: tuple[int, int] = (-1, 0)
    """The sequence number and the time of the last response to Metadata of subscribed topics."""
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
    ended: int | None = None
    left: Operation | None = None
    """The last LeaveGroup."""
    has_left_silently: bool = False
    """A static member has unsubscribed since the last JoinGroup, of which no request tells."""
    may_have_left: bool = False
    """The application has not polled for about its poll interval since the last JoinGroup: the client may have left,
    and needs no request for that if it is static or knows no coordinator."""

    assigned_at: int | None = None
    """When the last assignment came, None while the client joins."""
    written_at: int = 0
    """When records were written last."""
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    """The offsets behind the last records of partitions."""
    application: Application = field(default_factory=Application)
    lost_since: int | None = None
    """When the first lookup of the coordinator failed, if none has succeeded since."""
    found_at: int | None = None
    """When a lookup succeeded after one that had failed."""
    slow_callback: tuple[int, int] | None = None
    """When a slow callback began, if it is under way, and how long it takes."""
    markers: set[tuple[TopicPartition, int]] = field(default_factory=set)
    """Offsets that no record has."""
    has_doubled: bool = False
    """A response came twice, which no broker does."""
    hung_up: set[int] = field(default_factory=set)
    """The connections that the cluster has closed."""
    coordinator_connection: int = -1
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
        return is_cooperative(self.protocols)

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
        self.debts = self.debts_without(debt.api) | {debt.requirement: debt}

    def settle_debts(self, api: str, sequence: int) -> None:
        """A request pays what was owed with it."""
        self.debts = {id: each for id, each in self.debts.items() if each.api != api or each.sequence >= sequence}

    def debts_without(self, api: str) -> dict[str, Debt]:
        """What is owed with other requests than this one."""
        return {id: each for id, each in self.debts.items() if each.api != api}

    def leave_silently(self, standing: Standing) -> None:
        """The client is in no group from now on, and has sent no LeaveGroup."""
        self.installed, self.is_installed_doubtful, self.last_sign = None, False, None
        if self.exchange is not None:
            self.exchange.is_excused = True
        self.debts = self.debts_without("JoinGroup")
        self.knowledge = self.knowledge.learn(standing).show(standing.sequence)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be expected of the client."""
        return self.is_ending or self.left is not None

    @property
    def is_no_member(self) -> bool:
        """Whether its application has no subscription."""
        return self.join is None or self.application.has_ended

    @property
    def is_at_rest(self) -> bool:
        """Whether the client is stable, and no rebalance is under way."""
        is_stable = self.knowledge.latest.is_stable and self.rebalance_told is None
        return is_stable and self.exchange_outstanding() is None

    @property
    def is_looking_up(self) -> bool:
        """Whether the client knows no coordinator as far as it has said: it has asked for one and was told none."""
        is_asking = any(each.api == "FindCoordinator" for each in self.outstanding.values())
        return self.lost_since is not None or is_asking

    def has_no_coordinator(self, time: int) -> bool:
        """Whether the coordinator cannot be found, or does not respond: the client cannot ask it for offsets."""
        return self.lost_since is not None or self.is_unheard(time, self.knowledge.grace)

    @property
    def join_sequence(self) -> int:
        """The sequence number of the last JoinGroup, 0 without one."""
        return self.join.handle - 1 if self.join is not None else 0

    def patience_for(self, api: str) -> int:
        """How long the client may take for a request: for JoinGroup, as long as its application may take for a poll."""
        own = max(self.rebalance_timeout, self.session_timeout) if api == "JoinGroup" else 0
        return max(own, MIN_PATIENCE_MS) + self.knowledge.grace

    def has_expired(self, time: int) -> bool:
        """Whether the client's own clock of its session may have run out: it has not heard from the coordinator for so
        long."""
        return time - self.heard > self.session_timeout - self.knowledge.grace

    def standing_of(self, operation: Operation) -> Standing | None:
        """The latest standing by which the client may have sent a Heartbeat or OffsetCommit."""
        return self.knowledge.find(operation.body["member_id"], generation_in(operation))

    def is_joining(self, operation: Operation) -> bool:
        """Whether a request was certainly sent after a JoinGroup that has no response."""
        open_one = self.exchange_outstanding()
        if open_one is None or open_one.api != "JoinGroup":
            return False
        is_late = open_one.sent_at + self.knowledge.grace < operation.sent_at
        return open_one.connection == operation.connection or is_late

    def stops_silently(self, time: int) -> bool:
        """Whether a static member has not been polled for so long that it is one no more, and sends no LeaveGroup."""
        application, limit = self.application, self.rebalance_timeout + LEAVING_MS
        is_idle = application.idle_since is not None and time - application.idle_since > limit
        return self.instance is not None and application.has_interval and is_idle and self.is_at_rest

    def ending_time(self, seen: Seen) -> int | None:
        """When the client was asked to end, if an event shows that and it had to do what was due: its program is asked
        to, or it leaves since its application is. None if it is no member, or something has held it up."""
        application = self.application
        time = seen.event.time if seen.operation is None else application.began
        is_asked = application.is_ending if seen.operation is not None else seen.event.body["state"] == "asked to end"
        is_held_up = max(application.idle_time(time), application.overdue_time(time)) > MIN_PATIENCE_MS / 2
        is_held_up |= application.has_failed_poll or application.held_up is not None
        is_held_up |= self.is_looking_up or self.coordinator_lost is not None
        return time if is_asked and self.join is not None and not self.is_over and not is_held_up else None


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


def read_at_join(view: ClientView, join: Operation) -> tuple[int, Knowledge]:
    """What the client has certainly read when it sends this JoinGroup, as the number of the last news; and what it
    knows then."""
    knowledge = view.knowledge if view.join is None else view.knowledge.show(view.last_exchange_news)
    read, told_at = view.loss
    is_sent_after = view.is_virtual or join.sent_at - told_at >= OVERTAKING_MS
    return max(read if is_sent_after else 0, knowledge.standings[0].sequence), knowledge


def standings_at_join(view: ClientView, join: Operation) -> tuple[Knowledge, tuple[Standing, ...]]:
    """What the client knows when it sends this JoinGroup, and the standings that it may have had. A stable member that
    was told of nothing, and wants nothing, does not join: whoever joins has read more."""
    read, knowledge = read_at_join(view, join)
    found = tuple(each for each in knowledge.standings if each.sequence >= read)
    if view.is_recorded or has_own_reason_to_join(view):
        return knowledge, found
    return knowledge, tuple(each for each in found if not each.is_stable or each.requirement) or found


def has_own_reason_to_join(view: ClientView) -> bool:
    """Whether a stable member may join though no response has told it to: its topics have grown, it gave something up,
    its application has asked for it or has not polled, it has left, or it has lost its connection or a response."""
    application, exchange = view.application, view.exchange
    if exchange is None or exchange.has_failed or exchange.is_unapplied or view.join is not exchange.operation:
        return True
    wants = (
        application.has_asked
        or application.has_ended
        or application.wanted is not None
        or bool(application.pattern)
        or application.unpolled_time(view.now) > view.earliest_timeout
    )
    has_grown = view.growth is not None or view.has_outgrown or bool(view.former_topics)
    is_disturbed = view.is_installed_doubtful or bool(view.given_up) or bool(view.hung_up) or bool(view.doubtful)
    is_disturbed |= view.rebalance_told is not None or view.coordinator_lost is not None or view.has_doubled
    is_out = view.may_have_left or view.has_left or view.is_ending or view.has_expired(view.now)
    return wants or has_grown or is_disturbed or is_out or view.exchange_outstanding() is not None
