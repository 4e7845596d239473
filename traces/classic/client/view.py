"""The view of a client that is followed: what it may know, its open requests and its debts."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fencepost.model.assignors.group import Subscription, TopicPartition
from fencepost.traces.classic.client.application import Application
from fencepost.traces.classic.client.messages import NO_GENERATION, fetched_partitions, generation_in
from fencepost.traces.classic.client.standings import EXCHANGE_APIS, FENCED, Knowledge, Standing, Tidings
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import Finding, Seen, check
from fencepost.traces.events import Event, Operation

COOPERATIVE_ASSIGNORS = frozenset({"cooperative-sticky"})
"""The assignors with well-known names that let a member keep its partitions while it joins."""
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


RESETS = frozenset({"MEMBER-12", "MEMBER-13"})
"""The requirements that say that a generation is over."""
OVER = RESETS | {FENCED}
"""Those by which a response has told the client that its generation is over."""


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
    """A JoinGroup that succeeded, the sequence number and the time of its response and what that tells, and the
    SyncGroup that followed."""

    operation: Operation
    sequence: int
    time: int
    member_id: str
    generation: int
    leads: bool
    protocol: str
    skips: bool
    """The leader is told to skip the assignment."""
    has_metadata: bool
    """Metadata of the client's topics came after the response: a client may want to join again because of it."""
    sync: Operation | None = None
    is_dropped: bool = False
    """The response came when the client had certainly left, or lost its member id."""
    metadata: int = 0
    """How often Metadata came after the response."""
    told_first: frozenset[str] = frozenset()
    """The topics of the first of these."""

    def is_next_in(self, standing: Standing) -> bool:
        """Whether its SyncGroup comes next in a standing."""
        return standing.awaits_sync(self.member_id, self.generation)

    @property
    def has_failed(self) -> bool:
        """Whether SyncGroup has failed, or its response was lost."""
        return self.sync is not None and (self.sync.lost or bool((self.sync.response or {}).get("error_code")))


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
    return standing.generation == NO_GENERATION and standing.requirement in OVER | {"HBT-08"}


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
    lost_at: int | None = None
    """When it called its partitions lost, since the last JoinGroup."""
    reset_at: int | None = None
    """When an error last came after which a generation is over."""
    subscriptions: Mapping[str, Subscription] = field(default_factory=dict)
    """What it carried, by protocol, as far as it can be read."""
    protocols: frozenset[str] = frozenset()
    """The names of all its protocols."""
    has_unread_subscription: bool = False
    """Whether one of them could not be read: nobody knows what the client subscribes to."""
    exchange: Exchange | None = None
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
    """When the last Heartbeat of a stable member was seen, or it became stable."""
    has_newer_assignment: bool = False
    """It came in a version that no client knows (WIRE-02): whether the client has it shows only in what it fetches."""
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

    def is_kept_waiting(self, time: int) -> bool:
        """Whether the client may wait for a response, so that it does not join yet."""
        return self.exchange_outstanding() is not None or self.is_unheard(time, MIN_PATIENCE_MS)

    def owe(self, debt: Debt) -> None:
        """From now on the client owes something; what it owed of the same kind before is no longer asked for."""
        self.debts = self.debts_without(debt.api) | {debt.requirement: debt}

    def settle_debts(self, api: str, sequence: int) -> None:
        """A request pays what was owed with it."""
        self.debts = {id: each for id, each in self.debts.items() if each.api != api or each.sequence >= sequence}

    def debts_without(self, api: str) -> dict[str, Debt]:
        """What is owed with other requests than this one."""
        return {id: each for id, each in self.debts.items() if each.api != api}

    def tell(self, news: Tidings) -> None:
        """The client may know of this news from now on; it owes a JoinGroup if that asks for one."""
        self.knowledge, event = self.knowledge.tell(news), news.event
        latest, told = self.knowledge.latest, [each for each in self.knowledge.standings if not each.unread]
        if latest.sequence != event.sequence or not latest.requirement:
            return
        if latest.requirement in OVER:
            self.reset_at, self.last_sign = event.time, None
        is_asked = news.operation.api in EXCHANGE_APIS or latest.requirement != "MEMBER-14"
        if latest.requirement != FENCED and is_asked and all(each.sequence == event.sequence for each in told):
            self.owe(Debt(latest.requirement, "JoinGroup", event.time, event.sequence, latest.news))

    def leave(self, requirement: str, told: str, event: Event) -> None:
        """The client is in no group from now on."""
        self.last_sign, self.debts = None, self.debts_without("JoinGroup")
        self.knowledge = self.knowledge.become(lambda each: each.lose(requirement, told, event.sequence, event.time))

    def may_leave(self, told: str, event: Event) -> None:
        """The client may be in no group from now on: it needs no request for that."""
        self.knowledge = self.knowledge.also(lambda each: each.lose("", told, event.sequence, event.time))

    def may_close(self, connection: int) -> None:
        """The client may close a connection from now on."""
        self.knowledge = self.knowledge.also(lambda each: replace(each, closed=each.closed | {connection}))

    @property
    def installed(self) -> frozenset[TopicPartition] | None:
        """The assignment that the client was told last, None without one since it lost its membership, or where it is
        not known which it has."""
        return self.knowledge.latest.assignment if not self.is_installed_doubtful else None

    @property
    def is_installed_doubtful(self) -> bool:
        """Whether a client that has read everything may have one assignment or another."""
        told = {(each.assignment, each.assigned_in) for each in self.knowledge.standings if not each.unread}
        return len(told) > 1

    def owes_sync(self, standings: Iterable[Standing]) -> bool:
        """Whether SyncGroup comes next in all of these standings."""
        exchange = self.exchange
        return exchange is not None and exchange.sync is None and all(map(exchange.is_next_in, standings))

    @property
    def is_unapplied(self) -> bool:
        """Whether SyncGroup has succeeded, and its response came when the client was certainly reset or had left."""
        exchange = self.exchange
        if exchange is None or exchange.sync is None or exchange.sync.response is None or exchange.has_failed:
            return False
        has_left_it = any(each.requirement == "MEMBER-20" for each in self.knowledge.standings)
        return not has_left_it and all(each.assigned_in != exchange.generation for each in self.knowledge.standings)

    @property
    def may_be_out(self) -> bool:
        """Whether the client may have no generation."""
        return any(each.generation == NO_GENERATION for each in self.knowledge.standings)

    def may_have_closed(self, connection: int) -> bool:
        """Whether the client may have closed a connection, so that what comes on it is lost."""
        return any(connection in each.closed for each in self.knowledge.standings)

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


def standings_at_join(view: ClientView, join: Operation) -> tuple[Standing, ...]:
    """The standings in which the client may send this JoinGroup, the latest last. A stable member that was told of
    nothing, and wants nothing, does not join, nor one that waits for a response: whoever joins has read more."""
    found = view.knowledge.standings
    is_free = view.is_recorded or has_own_reason_to_join(view)
    is_lost = view.lost_at is not None and (view.is_virtual or join.sent_at - view.lost_at >= OVERTAKING_MS)
    for is_fit in (
        lambda each: not each.member.waiting > 0,
        lambda each: not is_lost or each.generation == NO_GENERATION,
        lambda each: is_free or each.member.rejoins,
    ):
        found = tuple(filter(is_fit, found)) or found
    return found


def has_own_reason_to_join(view: ClientView) -> bool:
    """Whether a stable member may join though no response has told it to: its topics have grown, it gave something up,
    its application has asked for it or has not polled, it has left, or it has lost its connection or a response."""
    application = view.application
    wants = (
        application.has_asked
        or application.has_ended
        or application.wanted is not None
        or bool(application.pattern)
        or application.unpolled_time(view.now) > view.earliest_timeout
    )
    has_grown = view.growth is not None or view.has_outgrown or bool(view.former_topics)
    is_disturbed = bool(view.given_up) or bool(view.hung_up) or view.coordinator_lost is not None or view.has_doubled
    is_out = view.has_left or view.is_ending or view.has_expired(view.now)
    return wants or has_grown or is_disturbed or is_out
