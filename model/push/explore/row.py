"""The columns of the system: faults left, ZooKeeper, brokers, and each consumer with its channel."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.explore.rows import ActionMaker, Place, RowView
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.logic import Token
from fencepost.model.push.consumer import ConsumerPhase, PushConsumer, new_consumer
from fencepost.model.push.coordinator import PushCoordinator, apply_step
from fencepost.model.push.dialect import REPAIRED, PushDialect
from fencepost.model.push.group import (
    ConsumerResponse,
    CoordinatorRequest,
    GroupStep,
    Interest,
    PushGroup,
    RegisterRequest,
    RegisterResponse,
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
