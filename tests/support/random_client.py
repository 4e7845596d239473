"""Random schedules for the bundled coordinator: members that mostly mean well, and all else that comes in."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.bundled.classic.coordinator import VERSIONS
from fencepost.adapters.bundled.classic.topics import make_id
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Exchange, Recorder
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order

Body = dict[str, Any]
TOPICS = {"t": 2, "u": 1}
IDS = {name: make_id(name) for name in (*TOPICS, "ghost")}
METADATA = (
    b"",
    b"\0",
    b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff",
    b"\0\0\0\0\0\1\0\1u\xff\xff\xff\xff",
    b"\0\1\0\0\0\2\0\1t\0\1u\xff\xff\xff\xff",
)
INSTANCE_SINCE = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "OffsetCommit": 7, "TxnOffsetCommit": 3}
WEIGHTS = {
    "join": 24,
    "sync": 24,
    "heartbeat": 14,
    "commit": 7,
    "leave": 4,
    "fetch": 4,
    "describe": 4,
    "gather": 5,
    "wait": 14,
    "wait_long": 2,
    "list_groups": 1,
    "delete_group": 1,
    "delete_offsets": 2,
    "transaction": 2,
    "end": 1,
    "restart": 1,
    "drop": 1,
}
SETTINGS = (
    Settings(100, 5_000, 0, 3, 10, 4_000, 700, new_member_timeout=2_000),
    Settings(100, 5_000, 200, 4, 10, 4_000, 1_300, new_member_timeout=1_500),
    Settings(50, 50_000, 150, 100, 10, 100_000, 50_000),
)


@dataclass(slots=True)
class Actor:
    """A member as it knows itself; what it offers may change at any time."""

    label: str
    instance: str | None
    protocols: tuple[tuple[str, bytes], ...]
    id: str = ""
    generation: int = -1
    protocol: str | None = None
    leader: str = ""
    members: tuple[str, ...] = ()


class Chaos:
    """Draws one schedule from a source of randomness and sends it."""

    def __init__(self, source: random.Random, target: InProcessTarget, recorder: Recorder, pause: int) -> None:
        self.source = source
        self.pause = pause
        self.target = target
        self.recorder = recorder
        self.channel = target.channel(recorder)
        self.clock = 0.0
        self.open: list[tuple[Exchange, Actor | None]] = []
        self.ids = ["", "nobody"]
        self.instances = ("i", "j")
        self.producers: list[tuple[str, int, int]] = []
        lone = source.random() < 0.2
        metadata = METADATA[2:] if source.random() < 0.7 else METADATA
        self.metadata = metadata
        self.actors = [
            Actor(label, source.choice((None, None, None, "i", "j")), self.offer(label == "A"))
            for label in ("A" if lone else "ABCDE")
        ]
        recorder.record(Kind.INTERNAL, "topics", 0, {"topics": TOPICS, "ids": {name: IDS[name] for name in TOPICS}})

    def offer(self, plain: bool = False) -> tuple[tuple[str, bytes], ...]:
        """A protocol list: most share `p`."""
        names = "p" if plain else self.source.choice(("p", "p", "p", "pq", "qp", "pq", "qpr", "q", "ppq", ""))
        return tuple((name, self.source.choice(self.metadata)) for name in names)

    def likely(self, probability: float) -> bool:
        """True that often."""
        return self.source.random() < probability

    async def run(self, steps: int) -> None:
        """Send so many requests, or let time pass."""
        actions: list[Callable[[], Any]] = [getattr(self, name) for name in WEIGHTS]
        weights = list(WEIGHTS.values())
        for _ in range(steps):
            result = self.source.choices(actions, weights)[0]()
            if asyncio.iscoroutine(result):
                await result
            self.learn()
            if self.pause:
                await asyncio.sleep(self.source.randint(0, self.pause) / 1000)
        await asyncio.sleep(self.source.choice((0, 1, 10)))
        self.learn()

    # --- what members learn -------------------------------------------------------------------------------------

    def send(self, api: str, version: int, body: Body, actor: Actor | None = None) -> Exchange:
        """Send a request in the name of an actor."""
        if actor is not None and actor.instance is not None and version >= INSTANCE_SINCE.get(api, 99):
            body = {"group_instance_id": actor.instance, **body}
        exchange = self.channel.send(api, version, body, member=actor.label if actor else "")
        self.open.append((exchange, actor))
        return exchange

    def learn(self) -> None:
        """Take in the answers that have come."""
        for exchange, actor in self.open:
            answer = exchange.answer.result() if exchange.answer.done() else None
            if answer is not None and actor is not None and exchange.request is not None:
                self.told(actor, exchange.request.api, answer)
        self.open = [(exchange, actor) for exchange, actor in self.open if not exchange.answer.done()]

    def told(self, actor: Actor, api: str, answer: Mapping[str, Any]) -> None:
        """What an answer means to the actor."""
        error = answer.get("error_code", 0)
        if api == "JoinGroup" and error in (0, 79):
            actor.id = answer["member_id"]
            self.ids.append(actor.id)
            if error == 0:
                actor.generation, actor.protocol = answer["generation_id"], answer["protocol_name"]
                actor.leader = answer["leader"]
                actor.members = tuple(row["member_id"] for row in answer["members"])
        elif error in (25, 82) and self.likely(0.8):
            actor.id, actor.generation = "", -1

    # --- what they send -----------------------------------------------------------------------------------------

    def actor(self) -> Actor:
        """Somebody."""
        return self.source.choice(self.actors)

    def group(self) -> str:
        """A group id, mostly the same."""
        return "g" if self.likely(0.95) else self.source.choice(("h", ""))

    def version(self, api: str) -> int:
        """A version, mostly a new one."""
        lowest, highest = VERSIONS[api]
        return highest if self.likely(0.6) else self.source.randint(lowest, highest)

    def whose(self, actor: Actor) -> str:
        """A member id, mostly the actor's own."""
        return actor.id if self.likely(0.9) else self.source.choice(self.ids[-8:] + self.ids[:2])

    def claimed(self, actor: Actor) -> int:
        """A generation, mostly the actor's own."""
        if self.likely(0.9):
            return actor.generation
        return self.source.choice((-1, 0, actor.generation + 1, actor.generation - 1))

    def borrowed(self) -> Body:
        """Now and then somebody else's instance id, or none."""
        return {} if self.likely(0.93) else {"group_instance_id": self.source.choice((None, "i", "j", "k"))}

    def join(self) -> None:
        actor, version = self.actor(), self.version("JoinGroup")
        if self.likely(0.15):
            actor.protocols = self.offer()
        borrowed = self.borrowed() if version >= 5 else {}
        body = {
            "group_id": self.group(),
            "session_timeout_ms": self.source.choice((100, 400, 400, 1_000, 3_000, 3_000)) if self.likely(0.97) else 1,
            "rebalance_timeout_ms": self.source.choice((0, 60, 300, 500, 500, 2_000)),
            "member_id": self.whose(actor) if self.likely(0.9) else "",
            "protocol_type": "consumer" if self.likely(0.93) else self.source.choice(("other", "")),
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in actor.protocols],
        }
        self.send("JoinGroup", version, body | borrowed, actor)

    def sync(self) -> None:
        leaders = [actor for actor in self.actors if actor.id and actor.id == actor.leader]
        actor = self.source.choice(leaders) if leaders and self.likely(0.4) else self.actor()
        version = self.version("SyncGroup")
        given = [(member, self.source.randbytes(2)) for member in actor.members if self.likely(0.9)]
        if self.likely(0.1):
            given.append((self.source.choice(self.ids), b"extra"))
        body: Body = {
            "group_id": self.group(),
            "generation_id": self.claimed(actor),
            "member_id": self.whose(actor),
            "assignments": [{"member_id": member, "assignment": assignment} for member, assignment in given],
        }
        if version >= 5:
            body["protocol_type"] = "consumer" if self.likely(0.96) else self.source.choice(("other", None))
            body["protocol_name"] = actor.protocol if self.likely(0.96) else self.source.choice(("p", "q", None))
        self.send("SyncGroup", version, body | (self.borrowed() if version >= 3 else {}), actor)

    async def gather(self) -> None:
        """Several members do everything right, so that schedules get somewhere."""
        together = self.source.sample(self.actors, self.source.randint(1, len(self.actors)))
        for _ in range(2):
            for actor in together:
                if not self.is_waiting(actor):
                    self.enter(actor)
            self.learn()
        await asyncio.sleep(self.source.choice((0, 0, 150, 400)) / 1000)
        self.learn()
        for actor in sorted(together, key=lambda each: self.source.random()):
            if actor.generation > 0 and self.likely(0.9):
                given = [{"member_id": member, "assignment": member.encode()} for member in actor.members]
                names = {"protocol_type": "consumer", "protocol_name": actor.protocol}
                body = {"group_id": "g", "generation_id": actor.generation, "member_id": actor.id, "assignments": given}
                self.send("SyncGroup", 5, body | names, actor)

    def is_waiting(self, actor: Actor) -> bool:
        """The actor has a JoinGroup in flight."""
        return any(
            owner is actor and exchange.request is not None and exchange.request.api == "JoinGroup"
            for exchange, owner in self.open
        )

    def enter(self, actor: Actor) -> None:
        """The actor joins with its own id."""
        body = {
            "group_id": "g",
            "session_timeout_ms": 3_000,
            "rebalance_timeout_ms": 500,
            "member_id": actor.id,
            "protocol_type": "consumer",
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in actor.protocols],
        }
        self.send("JoinGroup", 9, body, actor)

    def heartbeat(self) -> None:
        actor, version = self.actor(), self.version("Heartbeat")
        body = {"group_id": self.group(), "generation_id": self.claimed(actor), "member_id": self.whose(actor)}
        self.send("Heartbeat", version, body | (self.borrowed() if version >= 3 else {}), actor)

    def leave(self) -> None:
        version = self.version("LeaveGroup")
        leavers = [self.actor() for _ in range(self.source.choice((1, 1, 1, 2, 3, 0)))]
        if version < 3:
            self.send("LeaveGroup", version, {"group_id": self.group(), "member_id": self.whose(self.actor())})
            return
        entries = [
            {
                "member_id": self.whose(leaver) if self.likely(0.8) else "",
                "group_instance_id": leaver.instance if self.likely(0.8) else None,
            }
            for leaver in leavers
        ]
        self.send("LeaveGroup", version, {"group_id": self.group(), "members": entries})

    def named(self, name: str, version: int) -> Body:
        """A topic as this version names it."""
        return {"topic_id": IDS[name]} if version >= 10 else {"name": name}

    def offsets(self, epoch: bool, version: int = 0) -> list[Body]:
        """Topics with offsets to commit; some do not exist, some notes are too long."""
        rows = []
        for name in self.source.sample(("t", "u", "ghost"), self.source.choice((1, 1, 1, 2, 0))):
            partition = {
                "partition_index": self.source.choice((0, 0, 1)),
                "committed_offset": self.source.randint(-5, 99),
                "committed_metadata": self.source.choice((None, "", "note", "far too long a note")),
            }
            row = partition | ({"committed_leader_epoch": 3} if epoch else {})
            rows.append({**self.named(name, version), "partitions": [row]})
        return rows

    def commit(self) -> None:
        actor, version = self.actor(), self.version("OffsetCommit")
        body: Body = {"group_id": self.group(), "topics": self.offsets(version >= 6, version)}
        if version >= 1:
            body["generation_id_or_member_epoch"] = self.claimed(actor)
            body["member_id"] = self.whose(actor)
        if self.likely(0.15):
            body |= {"generation_id_or_member_epoch": -1, "member_id": ""}
        if 2 <= version <= 4:
            body["retention_time_ms"] = self.source.choice((-1, 300, 1_000))
        self.send("OffsetCommit", version, body | (self.borrowed() if version >= 7 else {}), actor)

    def fetch(self) -> None:
        version = self.version("OffsetFetch")
        topics = [
            {**self.named("t", version), "partition_indexes": [0, 1]},
            {**self.named(self.source.choice(("u", "ghost")), version), "partition_indexes": [0]},
        ]
        asked = None if self.likely(0.4) and version >= 2 else topics
        stable = {"require_stable": self.likely(0.5)} if version >= 7 else {}
        if version >= 8:
            groups = self.source.sample(("g", "h", ""), self.source.choice((1, 2)))
            self.send(
                "OffsetFetch", version, {"groups": [{"group_id": name, "topics": asked} for name in groups]} | stable
            )
        else:
            self.send("OffsetFetch", version, {"group_id": self.group(), "topics": asked} | stable)

    def transaction(self) -> None:
        actor, version = self.actor(), self.version("TxnOffsetCommit")
        if not self.producers or self.likely(0.2):
            name = f"producer {len(self.producers)}"
            answer = self.send("InitProducerId", 4, {"transactional_id": name}).answer.result()
            assert answer is not None
            self.producers.append((name, answer["producer_id"], answer["producer_epoch"]))
        name, producer, epoch = self.source.choice(self.producers)
        body: Body = {
            "transactional_id": name,
            "group_id": self.group() if self.likely(0.8) else "h",
            "producer_id": producer,
            "producer_epoch": epoch,
            "topics": self.offsets(version >= 2),
        }
        if version >= 3 and self.likely(0.6):
            body |= {"generation_id": self.claimed(actor), "member_id": self.whose(actor)}
            self.send("TxnOffsetCommit", version, body | self.borrowed(), actor)
        else:
            self.send("TxnOffsetCommit", version, body)

    def end(self) -> None:
        if self.producers:
            name, producer, epoch = self.source.choice(self.producers)
            body = {"transactional_id": name, "producer_id": producer, "producer_epoch": epoch}
            self.send("EndTxn", self.version("EndTxn"), body | {"committed": self.likely(0.6)})

    # --- what others send ---------------------------------------------------------------------------------------

    def describe(self) -> None:
        groups = self.source.sample(("g", "h", "nothing"), self.source.choice((1, 1, 2)))
        self.send("DescribeGroups", self.version("DescribeGroups"), {"groups": groups})

    def list_groups(self) -> None:
        version, body = self.version("ListGroups"), Body()
        if version >= 4:
            body["states_filter"] = self.source.choice(([], [], ["stable", "EMPTY"], ["nonsense"]))
        if version >= 5:
            body["types_filter"] = self.source.choice(([], [], ["Classic"], ["consumer"]))
        self.send("ListGroups", version, body)

    def delete_group(self) -> None:
        names = self.source.choice((["g"], ["g", "h"], ["nothing"], [""]))
        self.send("DeleteGroups", self.version("DeleteGroups"), {"groups_names": names})

    def delete_offsets(self) -> None:
        topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in ("t", "u", "ghost")]
        self.send("OffsetDelete", 0, {"group_id": self.group(), "topics": self.source.sample(topics, 2)})

    # --- what happens -------------------------------------------------------------------------------------------

    async def wait(self) -> None:
        await asyncio.sleep(self.source.choice((1, 7, 50, 50, 100, 150, 200)) / 1000)

    async def wait_long(self) -> None:
        await asyncio.sleep(self.source.choice((300, 500, 1_000, 5_000)) / 1000)

    async def restart(self) -> None:
        await self.target.restart()

    def drop(self) -> None:
        if self.open:
            self.source.choice(self.open)[0].drop()


def random_trace(source: random.Random, steps: int, pause: int = 0) -> tuple[Header, tuple[Event, ...]]:
    """A schedule and what came of it, seen at the coordinator. After each step up to `pause` milliseconds pass."""
    settings = source.choice(SETTINGS)

    async def main() -> tuple[Event, ...]:
        target = InProcessTarget(settings, topics=TOPICS)
        await target.open()
        loop = asyncio.get_running_loop()
        recorder = Recorder(lambda: round(loop.time() * 1000))
        chaos = Chaos(source, target, recorder, pause)
        await chaos.run(steps)
        events = recorder.events
        await target.close()
        return events

    return Header("chaos", Order.TOTAL, "virtual", settings, 0), run_virtual(main())
