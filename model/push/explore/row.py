"""The columns of the system, and what is checked of them: faults left, ZooKeeper, brokers, consumers with channels."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from fencepost.model.explore.rows import ActionMaker, Place, RowView
from fencepost.model.explore.transition_system import Action, Check, PropertyKind
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.logic import Token
from fencepost.model.push.consumer import ConsumerPhase, PushConsumer, new_consumer
from fencepost.model.push.coordinator import PushCoordinator, Role, apply_step
from fencepost.model.push.dialect import REPAIRED, PushDialect
from fencepost.model.push.group import (
    ConsumerResponse,
    CoordinatorRequest,
    GroupStep,
    Interest,
    PushGroup,
    RegisterRequest,
    RegisterResponse,
    StartResponse,
    StopRequest,
    assign_ranges,
)

TOPIC = "t"
INTEREST = Interest(((TOPIC, 1),))
FAULTS, ZOOKEEPER = 0, 1
"""Columns of the row; brokers and then consumers follow."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Faults:
    """How often each fault may still happen."""

    consumer_crashes: int = 0
    """Each with restarts under the same id."""
    suspicions: int = 0
    """A live consumer is taken for dead; where removal waits for the lease, it stalls until that is over."""
    timeouts: int = 0
    """A wait times out although the responses are under way."""
    partitions: int = 0
    """A partition is added."""
    broker_crashes: int = 0
    expiries: int = 0
    """The elected broker's session expires while its process lives."""
    half_starts: int = 0
    """A consumer's fetchers fail to start after the first one."""
    pings: int = 0


@fast_frozen
@dataclass(frozen=True, slots=True)
class Zookeeper:
    """The paths that matter: who coordinates, how many partitions the topic has, who owns them by group."""

    leader: int | None = None
    partitions: int = 1
    owners: tuple[tuple[Token, ...] | None, ...] = (None,)
    unheard: frozenset[int] = frozenset()
    """Brokers whose listener has yet to hear of a new partition."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Link:
    """A consumer, and the messages under way on its channel in both directions, in order."""

    consumer: PushConsumer
    requests: tuple[CoordinatorRequest | RegisterResponse, ...] = ()
    responses: tuple[RegisterRequest | ConsumerResponse, ...] = ()
    is_closed: bool = False
    """The coordinator has closed the channel: the consumer may read what is under way, and will give it up."""

    def is_at(self, broker: int) -> bool:
        """Whether the channel goes to this broker, and is open."""
        return self.consumer.is_attached and self.consumer.broker == broker and not self.is_closed

    @property
    def is_silent(self) -> bool:
        """Whether nothing is under way."""
        return not self.requests and not self.responses


@dataclass(frozen=True, slots=True)
class PushBounds:
    """What is explored: how many of each, the retries, the messages that a channel holds,
    the registrations of each consumer, the faults, the dialect."""

    consumers: int = 2
    partitions: int = 2
    brokers: int = 1
    retries: int = 1
    capacity: int = 4
    registrations: int = 6
    faults: Faults = Faults()
    dialect: PushDialect = REPAIRED
    groups: int = 1
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(f"c{number}" for number in range(self.consumers)))

    def broker_column(self, broker: int) -> int:
        """The column of a broker."""
        return ZOOKEEPER + 1 + broker

    def link_column(self, consumer: int) -> int:
        """The column of a consumer and its channel."""
        return ZOOKEEPER + 1 + self.brokers + consumer

    @property
    def links(self) -> tuple[int, ...]:
        """The columns of all consumers."""
        return tuple(map(self.link_column, range(self.consumers)))

    def group_of(self, consumer: int) -> int:
        """The number of a consumer's group."""
        return consumer % self.groups

    def members(self, group: int) -> list[int]:
        """The consumers that want to be members of a group."""
        return [one for one in range(self.consumers) if self.group_of(one) == group]

    def initial(self) -> tuple[object, ...]:
        """Nobody is elected, every consumer looks for a coordinator."""
        brokers = [PushCoordinator(groups=(None,) * self.groups) for _ in range(self.brokers)]
        links = [Link(new_consumer(self.dialect)) for _ in range(self.consumers)]
        zookeeper = Zookeeper(None, self.partitions, (None,) * self.groups)
        return (self.faults, zookeeper, *brokers, *links)


def topics_in(zookeeper: Zookeeper) -> dict[str, range]:
    """The partitions of the only topic."""
    return {TOPIC: range(zookeeper.partitions)}


def recorded_owners(zookeeper: Zookeeper, group: int) -> tuple[Token, ...] | None:
    """The owners of a group's partitions as recorded: None for one that was added since."""
    owners = zookeeper.owners[group]
    return None if owners is None else owners + (None,) * (zookeeper.partitions - len(owners))


def record(zookeeper: Zookeeper, group: int, owners: tuple[Token, ...]) -> Zookeeper:
    """ZooKeeper with these owners of a group's partitions."""
    every = zookeeper.owners
    return evolve(zookeeper, owners=(*every[:group], owners, *every[group + 1 :]))


def send_all(bounds: PushBounds, broker: int, step: GroupStep, links: Iterable[Link]) -> tuple[Link, ...] | None:
    """The channels with what a step sends, None if one is full.

    As drafted a request goes to whatever channel its consumer has by now; with numbers, to that registration's alone.
    """
    after = list(links)
    for sending in step.sendings:
        place = bounds.names.index(sending.consumer)
        link = after[place]
        numbered = not bounds.dialect.numbers_registrations or link.consumer.number == sending.number
        if not link.is_at(broker) or not numbered:
            continue
        if len(link.requests) >= bounds.capacity:
            return None
        after[place] = evolve(link, requests=(*link.requests, sending.message))
    return tuple(after)


CURRENT, STALE = 1, 0
"""Numbers of attempts: they are only compared with that of the attempt under way, so that one number is enough for all
before it."""


def age_messages(broker: int, links: Iterable[Link]) -> tuple[Link, ...]:
    """The channels once a new attempt of the broker begins: what is under way belongs to an earlier one."""

    def aged(message: Any) -> Any:
        return evolve(message, attempt=STALE) if getattr(message, "attempt", STALE) == CURRENT else message

    return tuple(
        evolve(link, requests=tuple(map(aged, link.requests)), responses=tuple(map(aged, link.responses)))
        if link.is_at(broker) and not link.is_silent
        else link
        for link in links
    )


def is_live(link: Link) -> bool:
    """Whether the consumer's process runs."""
    return link.consumer.phase is not ConsumerPhase.DOWN


# What an action sees of the row.


class PushView(RowView):
    """The columns of the row by name: `own` is that of the broker that an action is about, `link` of the consumer."""

    bounds: PushBounds
    broker: int
    consumer: int
    faults: Faults
    zookeeper: Zookeeper
    own: PushCoordinator
    link: Link
    brokers: tuple[PushCoordinator, ...]
    links: tuple[Link, ...]

    @property
    def name(self) -> str:
        """The consumer's id."""
        return self.bounds.names[self.consumer]

    @property
    def number(self) -> int:
        """The number of the consumer's group."""
        return self.bounds.group_of(self.consumer)

    @property
    def group(self) -> PushGroup | None:
        """The consumer's group at the broker."""
        return self.own.groups[self.number]

    def after(self, step: GroupStep) -> PushCoordinator:
        """The broker after a step of the consumer's group."""
        return apply_step(self.own, self.number, step)

    def unless_leader(self, property: str) -> str:
        """The property that a step of the broker breaks unless it holds the coordinator path."""
        return "" if self.zookeeper.leader == self.broker else property

    def without_leader(self) -> Zookeeper:
        """ZooKeeper once the node of the broker is gone."""
        return evolve(self.zookeeper, leader=None, unheard=self.zookeeper.unheard - {self.broker})


def actions_about(bounds: PushBounds, broker: int = 0, consumer: int = 0) -> ActionMaker[PushView]:
    """The maker of actions about one broker, one consumer, or both."""
    places: dict[str, Place] = {
        "faults": FAULTS,
        "zookeeper": ZOOKEEPER,
        "own": bounds.broker_column(broker),
        "link": bounds.link_column(consumer),
        "brokers": tuple(map(bounds.broker_column, range(bounds.brokers))),
        "links": bounds.links,
    }
    return ActionMaker(PushView, places, {"bounds": bounds, "broker": broker, "consumer": consumer})


# --- What is checked of a row.


SENTENCES = {
    "S1": "Only the broker that holds the coordinator path accepts, sends, removes.",
    "S2": "A partition is fetched by at most one consumer of a group.",
    "S3": "No consumer starts in an attempt before the others have handled their Stop of it.",
    "S4": "Once owners are recorded, the members fetch what is recorded.",
    "S5": "At most one rebalance of a group is in flight over all brokers.",
    "S6": "The rebalance bit is set exactly while one request of the group is queued or running.",
    "S7": "Only the broker that holds the coordinator path records owners.",
    "S8": "No consumer gets a Start while it fetches something else.",
    "S10": "A response completes only the attempt, and only the registration, that it belongs to.",
    "S12": "A consumer that fetches is a member at the coordinator whose channel it obeys.",
    "S13": "A consumer whose flag says stopped runs no fetcher.",
    "L1": "Once nothing moves, each partition is fetched, if a consumer of the group lives.",
    "L2": "Once nothing moves, the members fetch what the assignment of the present members and partitions says.",
    "L3": "The handler thread lives.",
    "L3-bit": "Once nothing moves, no rebalance bit is set.",
    "L4": "A consumer that registers is not turned away by a request of the coordinator.",
    "L6": "Once nothing moves, a live broker holds the coordinator path.",
    "L7": "Once nothing moves, a group whose consumers all live and stay is fetched, whatever becomes of another.",
}
"""The properties by their names in the specification of the draft."""


def push_checks(bounds: PushBounds, actions: tuple[Action, ...]) -> tuple[Check, ...]:
    """The checks of states. `actions` are those that must happen if they can: nothing moves where none of them can."""
    brokers = tuple(map(bounds.broker_column, range(bounds.brokers)))
    everything = (FAULTS, ZOOKEEPER, *brokers, *bounds.links)
    checks = [Check("S2", bounds.links, lambda *links: not overlap(bounds, links))]
    checks.append(Check("S3", bounds.links, lambda *links: not starts_early(bounds, links)))
    checks += [
        Check("S12", (column, *bounds.links), partial(obeys_member, bounds, broker))
        for broker, column in enumerate(brokers)
    ]
    checks += [Check("S6", (column,), is_bit_right) for column in brokers]
    checks += [Check("L3", (column,), lambda own: own.is_thread_alive) for column in brokers]
    checks += [
        Check("S13", (column,), lambda link: not (link.consumer.is_stopped and link.consumer.fetchers))
        for column in bounds.links
    ]
    if len(brokers) > 1:
        checks.append(Check("S5", brokers, runs_once))
    broken = quiet_faults(bounds, actions)

    def lasting(name: str) -> Callable[..., bool]:
        return lambda *row: name not in broken(row)

    checks += [Check(name, everything, lasting(name)) for name in ("L1", "L2", "L3-bit", "S4", "L6", "L7")]
    checks.append(
        Check("settled", everything, lambda *row: is_settled(bounds, row), PropertyKind.SOMETIMES),
    )
    return tuple(checks)


def overlap(bounds: PushBounds, links: tuple[Link, ...]) -> bool:
    """Whether two consumers of a group fetch the same partition."""
    for group in range(bounds.groups):
        seen: set[Any] = set()
        for consumer in bounds.members(group):
            for partition in links[consumer].consumer.fetchers:
                if partition in seen:
                    return True
                seen.add(partition)
    return False


def starts_early(bounds: PushBounds, links: tuple[Link, ...]) -> bool:
    """Whether a consumer has started in the present attempt while another one fetches, its Stop unread."""
    for group in range(bounds.groups):
        members = bounds.members(group)
        started = any(
            isinstance(message, StartResponse) and message.attempt == CURRENT and not message.error
            for one in members
            for message in links[one].responses
        )
        unread = any(
            isinstance(message, StopRequest) and message.attempt == CURRENT
            for one in members
            if links[one].consumer.fetchers
            for message in links[one].requests
        )
        if started and unread:
            return True
    return False


def obeys_member(bounds: PushBounds, broker: int, own: PushCoordinator, *links: Link) -> bool:
    """Whether every consumer that fetches on an open channel to this coordinator is a member there."""
    if own.role is not Role.ELECTED:
        return True
    return all(
        own.holds(bounds.group_of(one), bounds.names[one], link.consumer.number)
        for one, link in enumerate(links)
        if link.is_at(broker) and link.consumer.fetchers
    )


def is_bit_right(own: PushCoordinator) -> bool:
    """Whether the bit of each group says what its queue and its thread do."""
    for number, group in enumerate(own.groups):
        if group is None:
            continue
        work = own.queue.count(number) + (group.run is not None)
        if work > 1 or group.rebalancing != bool(work):
            return False
    return True


def runs_once(*brokers: PushCoordinator) -> bool:
    """Whether no group is rebalanced by two brokers."""
    for number in range(len(brokers[0].groups)):
        held = [broker.groups[number] for broker in brokers]
        if sum(group is not None and group.run is not None for group in held) > 1:
            return False
    return True


def quiet_faults(bounds: PushBounds, actions: tuple[Action, ...]) -> Callable[[tuple[Any, ...]], frozenset[str]]:
    """The function that names what is broken in a row in which nothing moves; nothing elsewhere."""

    @lru_cache(maxsize=1 << 16)
    def broken(row: tuple[Any, ...]) -> frozenset[str]:
        zookeeper: Zookeeper = row[ZOOKEEPER]
        links: tuple[Link, ...] = row[-bounds.consumers :]
        brokers: tuple[PushCoordinator, ...] = row[ZOOKEEPER + 1 : ZOOKEEPER + 1 + bounds.brokers]
        if any(link.requests or link.responses for link in links) or zookeeper.unheard:
            return frozenset()
        if any(action.transitions(*(row[column] for column in action.columns)) for action in actions):
            return frozenset()
        found: set[str] = set()
        if any(one.role is Role.ELECTED and any(held and held.rebalancing for held in one.groups) for one in brokers):
            found.add("L3-bit")
        if zookeeper.leader is None and any(one.role is not Role.DOWN for one in brokers):
            found.add("L6")
        for group in range(bounds.groups):
            of_group = broken_group(bounds, group, zookeeper, links)
            found |= of_group
            untouched = all(is_live(links[one]) and links[one].consumer.number == 1 for one in bounds.members(group))
            if bounds.groups > 1 and "L1" in of_group and untouched:
                found.add("L7")
        return frozenset(found)

    return broken


def broken_group(bounds: PushBounds, group: int, zookeeper: Zookeeper, links: tuple[Link, ...]) -> set[str]:
    """What is broken of a group for ever."""
    found: set[str] = set()
    live = [one for one in bounds.members(group) if is_live(links[one])]
    if not live or zookeeper.leader is None:
        return found
    partitions = topics_in(zookeeper)["t"]
    fetched = {each for one in live for each in links[one].consumer.fetchers}
    if fetched != set(partitions):
        found.add("L1")
    names = [bounds.names[one] for one in live]
    ideal = assign_ranges(partitions, dict.fromkeys(names, 1))
    if any(links[one].consumer.fetchers != ideal[bounds.names[one]] for one in live):
        found.add("L2")
    owners = zookeeper.owners[group] or ()
    told = {partition: owner for partition, owner in enumerate(owners) if owner is not None}
    real = {each: bounds.names[one] for one in live for each in links[one].consumer.fetchers}
    if told != real:
        found.add("S4")
    return found


def is_settled(bounds: PushBounds, row: tuple[Any, ...]) -> bool:
    """Whether all consumers are registered, and their groups fetch what is recorded, with nothing under way."""
    zookeeper: Zookeeper = row[ZOOKEEPER]
    links: tuple[Link, ...] = row[-bounds.consumers :]
    brokers: tuple[PushCoordinator, ...] = row[ZOOKEEPER + 1 : ZOOKEEPER + 1 + bounds.brokers]
    if any(not link.is_silent or link.consumer.phase is not ConsumerPhase.REGISTERED for link in links):
        return False
    if zookeeper.leader is None or any(one.queue or any(g and g.run for g in one.groups) for one in brokers):
        return False
    return not any(broken_group(bounds, group, zookeeper, links) for group in range(bounds.groups))
