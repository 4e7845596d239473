"""The play of a witness: requests, pauses and restarts against the bundled coordinator, on virtual time.

Nothing is asserted on the way, and what is not answered as expected is left out: the same witness is played on the
shipped and on the faulty coordinator, and then their traces are compared.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Channel, Exchange, SendOptions, TraceBuilder
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.traces.events import Event, Header, Order

TOPIC = "fencepost"
INITIAL_DELAY_MS = BUNDLED_SETTINGS.initial_rebalance_delay
RETENTION_MS = BUNDLED_SETTINGS.offsets_retention
CLEANUP_MS = BUNDLED_SETTINGS.retention_check_interval
MAX_SIZE = BUNDLED_SETTINGS.max_group_size

ANY = (("range", b"any"),)
"""Protocols of a member that need not differ from anybody's."""


def subscription(*topics: str) -> tuple[tuple[str, bytes], ...]:
    """The protocols of a consumer that subscribes to these topics."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return (("range", struct.pack(">hi", 1, len(topics)) + names + b"\xff\xff\xff\xff"),)


@dataclass(slots=True)
class Actor:
    """A member, with the id and generation of its last successful JoinGroup. Timeouts in milliseconds."""

    play: "Play"
    label: str
    group: str = "g"
    instance: str | None = None
    session: int = 30_000
    rebalance: int = 5_000
    protocol_type: str = "consumer"
    protocols: tuple[tuple[str, bytes], ...] = ANY
    id: str = ""
    generation: int = -1
    leader: str = ""
    protocol: str | None = None

    @property
    def leads(self) -> bool:
        """Whether the member was told that it is the leader."""
        return bool(self.id) and self.leader == self.id

    def join(self, version: int = 9) -> Exchange:
        """Send a JoinGroup, and take an id that it hands out at once."""
        protocols = [{"name": name, "metadata": metadata} for name, metadata in self.protocols]
        exchange = self.play.send(
            "JoinGroup",
            version,
            self.label,
            group_id=self.group,
            session_timeout_ms=self.session,
            rebalance_timeout_ms=self.rebalance,
            member_id=self.id,
            group_instance_id=self.instance,
            protocol_type=self.protocol_type,
            protocols=protocols,
        )
        self.take(exchange)
        return exchange

    def take(self, exchange: Exchange) -> None:
        """Go by the response to a JoinGroup, if it is there and gives an id."""
        body = response_of(exchange)
        if body.get("error_code") in (0, 79):
            self.id, self.generation = body["member_id"], body["generation_id"]
            self.leader, self.protocol = body["leader"], body["protocol_name"]

    def sync(self, plan: Mapping[str, bytes] | None = None, version: int = 5) -> Exchange:
        """Send a SyncGroup, of the leader with a plan: the bytes of each member id."""
        assignments = [{"member_id": member, "assignment": data} for member, data in (plan or {}).items()]
        more = {"protocol_type": self.protocol_type, "protocol_name": self.protocol, "assignments": assignments}
        return self.play.send("SyncGroup", version, self.label, **self.identity(), **more)

    def heartbeat(self) -> Exchange:
        """Send a Heartbeat."""
        return self.play.send("Heartbeat", 4, self.label, **self.identity())

    def leave(self, version: int = 5) -> Exchange:
        """Send a LeaveGroup, from version 3 on with a list of one member."""
        one: dict[str, Any] = {"member_id": self.id}
        if version >= 3:
            one = {"members": [one | {"group_instance_id": self.instance}]}
        return self.play.send("LeaveGroup", version, self.label, group_id=self.group, **one)

    def commit(self, offset: int, partition: int = 0) -> Exchange:
        """Commit an offset as a member."""
        identity = self.identity()
        identity["generation_id_or_member_epoch"] = identity.pop("generation_id")
        return self.play.send("OffsetCommit", 9, self.label, **identity, topics=committed_topics(partition, offset))

    def identity(self) -> dict[str, Any]:
        """The fields that most requests have in common."""
        return {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
        }


@dataclass(slots=True)
class Producer:
    """A transactional producer, with the id and epoch that it was given."""

    play: "Play"
    name: str
    id: int = 0
    epoch: int = 0

    def init(self) -> Exchange:
        """Send an InitProducerId and take the id and epoch."""
        exchange = self.play.send(
            "InitProducerId", 4, self.name, transactional_id=self.name, transaction_timeout_ms=60_000
        )
        body = response_of(exchange)
        self.id, self.epoch = body.get("producer_id", 0), body.get("producer_epoch", 0)
        return exchange

    def commit(self, offset: int, partition: int = 0, group: str = "g") -> Exchange:
        """Add a group to the transaction, and commit an offset of it."""
        self.play.send("AddOffsetsToTxn", 3, self.name, **self.identity(), group_id=group)
        return self.play.send(
            "TxnOffsetCommit",
            3,
            self.name,
            **self.identity(),
            group_id=group,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=committed_topics(partition, offset),
        )

    def end(self, committed: bool) -> Exchange:
        """Commit or abort the transaction."""
        return self.play.send("EndTxn", 3, self.name, **self.identity(), committed=committed)

    def identity(self) -> dict[str, Any]:
        """The fields that say who it is."""
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}


@dataclass(slots=True)
class Play:
    """A coordinator and everything that is sent to it."""

    target: InProcessTarget
    channel: Channel
    actors: list[Actor] = field(default_factory=list)

    # -- who takes part -----------------------------------------------------------------------------------------

    def member(self, label: str, **settings: Any) -> Actor:
        """A new member, not joined yet; `settings` are fields of `Actor`."""
        actor = Actor(self, label, **settings)
        self.actors.append(actor)
        return actor

    def producer(self, name: str = "P") -> Producer:
        """A producer that was given its id."""
        producer = Producer(self, name)
        producer.init()
        return producer

    # -- requests of nobody in particular -----------------------------------------------------------------------

    def send(self, api: str, version: int, label: str = "", **body: Any) -> Exchange:
        """Send a request."""
        return self.channel.send(api, version, body, SendOptions(member=label, client_id=label or "admin"))

    def commit(self, offset: int, partition: int = 0, group: str = "g") -> Exchange:
        """Commit an offset without being a member."""
        simple: dict[str, Any] = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
        return self.send("OffsetCommit", 9, group_id=group, **simple, topics=committed_topics(partition, offset))

    def fetch(self, *groups: str, stable: bool = False, partitions: Sequence[int] = (0,)) -> Exchange:
        """Fetch offsets of some groups in one request, by default of the group "g"."""
        topics = [{"name": TOPIC, "partition_indexes": list(partitions)}]
        entries = [{"group_id": group, "topics": topics} for group in groups or ("g",)]
        return self.send("OffsetFetch", 9, groups=entries, require_stable=stable)

    def delete_offset(self, partition: int = 0, topic: str = TOPIC, group: str = "g") -> Exchange:
        """Delete the offset of a partition."""
        topics = [{"name": topic, "partitions": [{"partition_index": partition}]}]
        return self.send("OffsetDelete", 0, group_id=group, topics=topics)

    def describe(self, group: str = "g") -> Exchange:
        """Describe a group."""
        return self.send("DescribeGroups", 5, groups=[group])

    # -- what happens besides -----------------------------------------------------------------------------------

    async def wait(self, milliseconds: int, *alive: Actor) -> None:
        """Let time pass; members that are alive send a Heartbeat every three seconds."""
        while alive and milliseconds > 3_000:
            await asyncio.sleep(3)
            milliseconds -= 3_000
            for actor in alive:
                actor.heartbeat()
        await asyncio.sleep(milliseconds / 1000)

    async def wait_until(self, milliseconds: int, *alive: Actor) -> None:
        """Let time pass until so long after the start."""
        await self.wait(milliseconds - round(asyncio.get_running_loop().time() * 1000), *alive)

    async def restart(self) -> None:
        """Restart the coordinator from its log."""
        await self.target.restart()

    # -- whole rebalances ---------------------------------------------------------------------------------------

    async def form(self, *actors: Actor, plan: Mapping[str, bytes] | None = None) -> None:
        """Bring the members into a Stable group that was Empty; the first one leads."""
        for actor in actors:
            if actor.instance is None:
                actor.join()
        joins = [actor.join() for actor in actors]
        await self.wait(2 * INITIAL_DELAY_MS + 100)
        self.complete(actors, joins, plan)

    def rejoin(self, *actors: Actor, plan: Mapping[str, bytes] | None = None) -> None:
        """Have all members join again, and sync. A plan by label replaces that in which each member has a share."""
        self.complete(actors, [actor.join() for actor in actors], plan)

    def complete(self, actors: Sequence[Actor], joins: Sequence[Exchange], plan: Mapping[str, bytes] | None) -> None:
        """Take the responses to the JoinGroups, and sync."""
        for actor, join in zip(actors, joins, strict=True):
            actor.take(join)
        shares = plan if plan is not None else {actor.label: f"share of {actor.label}".encode() for actor in actors}
        given = {actor.id: shares[actor.label] for actor in actors if actor.label in shares}
        for actor in actors:
            actor.sync(given if actor.leads else None)


def committed_topics(partition: int, offset: int) -> list[dict[str, Any]]:
    """The topics of a commit of one offset."""
    entry = {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_leader_epoch": -1,
        "committed_metadata": "",
    }
    return [{"name": TOPIC, "partitions": [entry]}]


def response_of(exchange: Exchange) -> Mapping[str, Any]:
    """The body of a response; empty if there is none yet."""
    done = exchange.response.done() and not exchange.response.cancelled()
    return (exchange.response.result() if done else None) or {}


def record_play(witness: Callable[[Play], Awaitable[None]]) -> tuple[Header, tuple[Event, ...]]:
    """Play a witness on the bundled coordinator as it is now, and return the trace."""
    return Header("witness", Order.TOTAL, "virtual", BUNDLED_SETTINGS, 0), run_virtual(_record(witness))


async def _record(witness: Callable[[Play], Awaitable[None]]) -> tuple[Event, ...]:
    loop = asyncio.get_running_loop()
    recorder = TraceBuilder(lambda: round(loop.time() * 1000))
    target = InProcessTarget(BUNDLED_SETTINGS)
    await target.open()
    try:
        await witness(Play(target, target.channel(recorder)))
    finally:
        await target.close()
    return recorder.events
