"""Random schedules for the bundled coordinator: members that mostly mean well, and all else that comes in."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.classic.coordinator import VERSIONS
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve.coordination import topic_id_of
from fencepost.adapters.target import Exchange, SendOptions, TraceBuilder
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import fit_body
from fencepost.traces.events import Event, Header, Kind, Order

Body = dict[str, Any]
TOPICS = {"t": 2, "u": 1}
IDS = {name: topic_id_of(name) for name in (*TOPICS, "ghost")}
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
class RandomMember:
    """A member as it knows itself; what it offers may change at any time."""

    label: str
    instance: str | None
    protocols: tuple[tuple[str, bytes], ...]
    id: str = ""
    generation: int = -1
    protocol: str | None = None
    leader: str = ""
    members: tuple[str, ...] = ()


class RandomClient:
    """Draws one schedule from a source of randomness and sends it."""

    def __init__(self, source: random.Random, target: InProcessTarget, recorder: TraceBuilder, pause: int) -> None:
        self.source = source
        self.pause = pause
        self.target = target
        self.recorder = recorder
        self.channel = target.channel(recorder)
        self.clock = 0.0
        self.open: list[tuple[Exchange, RandomMember | None]] = []
        self.ids = ["", "nobody"]
        self.instances = ("i", "j")
        self.producers: list[tuple[str, int, int]] = []
        lone = source.random() < 0.2
        metadata = METADATA[2:] if source.random() < 0.7 else METADATA
        self.metadata = metadata
        self.actors = [
            RandomMember(label, source.choice((None, None, None, "i", "j")), self.pick_protocols(label == "A"))
            for label in ("A" if lone else "ABCDE")
        ]
        recorder.record(Kind.INTERNAL, "topics", 0, {"topics": TOPICS, "ids": {name: IDS[name] for name in TOPICS}})

    def pick_protocols(self, plain: bool = False) -> tuple[tuple[str, bytes], ...]:
        """A protocol list: most share `p`."""
        names = "p" if plain else self.source.choice(("p", "p", "p", "pq", "qp", "pq", "qpr", "q", "ppq", ""))
        return tuple((name, self.source.choice(self.metadata)) for name in names)

    def is_likely(self, probability: float) -> bool:
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
            self.process_responses()
            if self.pause:
                await asyncio.sleep(self.source.randint(0, self.pause) / 1000)
        await asyncio.sleep(self.source.choice((0, 1, 10)))
        self.process_responses()

    # --- what members learn -------------------------------------------------------------------------------------

    def send(self, api: str, version: int, body: Body, actor: RandomMember | None = None) -> Exchange:
        """Send a request in the name of an actor."""
        if actor is not None and actor.instance is not None and version >= INSTANCE_SINCE.get(api, 99):
            body = {"group_instance_id": actor.instance, **body}
        body = dict(fit_body(f"{api}Request", version, body))
        exchange = self.channel.send(api, version, body, SendOptions(actor.label if actor else ""))
        self.open.append((exchange, actor))
        return exchange

    def process_responses(self) -> None:
        """Take in the answers that have come."""
        for exchange, actor in self.open:
            response = exchange.response.result() if exchange.response.done() else None
            if response is not None and actor is not None and exchange.request is not None:
                self.on_response(actor, exchange.request.api, response)
        self.open = [(exchange, actor) for exchange, actor in self.open if not exchange.response.done()]

    def on_response(self, actor: RandomMember, api: str, response: Mapping[str, Any]) -> None:
        """What an answer means to the actor."""
        error = response.get("error_code", 0)
        if api == "JoinGroup" and error in (Error.NONE, Error.MEMBER_ID_REQUIRED):
            actor.id = response["member_id"]
            self.ids.append(actor.id)
            if error == Error.NONE:
                actor.generation, actor.protocol = response["generation_id"], response["protocol_name"]
                actor.leader = response["leader"]
                actor.members = tuple(row["member_id"] for row in response["members"])
        elif error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID) and self.is_likely(0.8):
            actor.id, actor.generation = "", -1

    # --- what they send -----------------------------------------------------------------------------------------

    def pick_member(self) -> RandomMember:
        """Somebody."""
        return self.source.choice(self.actors)

    def pick_group(self) -> str:
        """A group id, mostly the same."""
        return "g" if self.is_likely(0.95) else self.source.choice(("h", ""))

    def pick_version(self, api: str) -> int:
        """A version, mostly a new one."""
        lowest, highest = VERSIONS[api]
        return highest if self.is_likely(0.6) else self.source.randint(lowest, highest)

    def pick_member_id(self, actor: RandomMember) -> str:
        """A member id, mostly the actor's own."""
        return actor.id if self.is_likely(0.9) else self.source.choice(self.ids[-8:] + self.ids[:2])

    def pick_generation(self, actor: RandomMember) -> int:
        """A generation, mostly the actor's own."""
        if self.is_likely(0.9):
            return actor.generation
        return self.source.choice((-1, 0, actor.generation + 1, actor.generation - 1))

    def pick_instance(self) -> Body:
        """Now and then somebody else's instance id, or none."""
        return {} if self.is_likely(0.93) else {"group_instance_id": self.source.choice((None, "i", "j", "k"))}

    def join(self) -> None:
        actor, version = self.pick_member(), self.pick_version("JoinGroup")
        if self.is_likely(0.15):
            actor.protocols = self.pick_protocols()
        borrowed = self.pick_instance() if version >= 5 else {}
        body = {
            "group_id": self.pick_group(),
            "session_timeout_ms": self.source.choice((100, 400, 400, 1_000, 3_000, 3_000))
            if self.is_likely(0.97)
            else 1,
            "rebalance_timeout_ms": self.source.choice((0, 60, 300, 500, 500, 2_000)),
            "member_id": self.pick_member_id(actor) if self.is_likely(0.9) else "",
            "protocol_type": "consumer" if self.is_likely(0.93) else self.source.choice(("other", "")),
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in actor.protocols],
        }
        self.send("JoinGroup", version, body | borrowed, actor)

    def sync(self) -> None:
        leaders = [actor for actor in self.actors if actor.id and actor.id == actor.leader]
        actor = self.source.choice(leaders) if leaders and self.is_likely(0.4) else self.pick_member()
        version = self.pick_version("SyncGroup")
        given = [(member, self.source.randbytes(2)) for member in actor.members if self.is_likely(0.9)]
        if self.is_likely(0.1):
            given.append((self.source.choice(self.ids), b"extra"))
        body: Body = {
            "group_id": self.pick_group(),
            "generation_id": self.pick_generation(actor),
            "member_id": self.pick_member_id(actor),
            "assignments": [{"member_id": member, "assignment": assignment} for member, assignment in given],
        }
        if version >= 5:
            body["protocol_type"] = "consumer" if self.is_likely(0.96) else self.source.choice(("other", None))
            body["protocol_name"] = actor.protocol if self.is_likely(0.96) else self.source.choice(("p", "q", None))
        self.send("SyncGroup", version, body | (self.pick_instance() if version >= 3 else {}), actor)

    async def gather(self) -> None:
        """Several members do everything right, so that schedules get somewhere."""
        together = self.source.sample(self.actors, self.source.randint(1, len(self.actors)))
        for _ in range(2):
            for actor in together:
                if not self.is_waiting(actor):
                    self.join_with_own_id(actor)
            self.process_responses()
        await asyncio.sleep(self.source.choice((0, 0, 150, 400)) / 1000)
        self.process_responses()
        for actor in sorted(together, key=lambda each: self.source.random()):
            if actor.generation > 0 and self.is_likely(0.9):
                given = [{"member_id": member, "assignment": member.encode()} for member in actor.members]
                names = {"protocol_type": "consumer", "protocol_name": actor.protocol}
                body = {"group_id": "g", "generation_id": actor.generation, "member_id": actor.id, "assignments": given}
                self.send("SyncGroup", 5, body | names, actor)

    def is_waiting(self, actor: RandomMember) -> bool:
        """The actor has a JoinGroup in flight."""
        return any(
            owner is actor and exchange.request is not None and exchange.request.api == "JoinGroup"
            for exchange, owner in self.open
        )

    def join_with_own_id(self, actor: RandomMember) -> None:
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
        actor, version = self.pick_member(), self.pick_version("Heartbeat")
        body = {
            "group_id": self.pick_group(),
            "generation_id": self.pick_generation(actor),
            "member_id": self.pick_member_id(actor),
        }
        self.send("Heartbeat", version, body | (self.pick_instance() if version >= 3 else {}), actor)

    def leave(self) -> None:
        version = self.pick_version("LeaveGroup")
        leavers = [self.pick_member() for _ in range(self.source.choice((1, 1, 1, 2, 3, 0)))]
        if version < 3:
            self.send(
                "LeaveGroup",
                version,
                {"group_id": self.pick_group(), "member_id": self.pick_member_id(self.pick_member())},
            )
            return
        entries = [
            {
                "member_id": self.pick_member_id(leaver) if self.is_likely(0.8) else "",
                "group_instance_id": leaver.instance if self.is_likely(0.8) else None,
            }
            for leaver in leavers
        ]
        self.send("LeaveGroup", version, {"group_id": self.pick_group(), "members": entries})

    def topic_key(self, name: str, version: int) -> Body:
        """A topic as this version names it."""
        return {"topic_id": IDS[name]} if version >= 10 else {"name": name}

    def pick_offsets(self, epoch: bool, version: int = 0) -> list[Body]:
        """Topics with offsets to commit; some do not exist, some notes are too long."""
        rows = []
        for name in self.source.sample(("t", "u", "ghost"), self.source.choice((1, 1, 1, 2, 0))):
            partition = {
                "partition_index": self.source.choice((0, 0, 1)),
                "committed_offset": self.source.randint(-5, 99),
                "committed_metadata": self.source.choice((None, "", "note", "far too long a note")),
            }
            row = partition | ({"committed_leader_epoch": 3} if epoch else {})
            rows.append({**self.topic_key(name, version), "partitions": [row]})
        return rows

    def commit(self) -> None:
        actor, version = self.pick_member(), self.pick_version("OffsetCommit")
        body: Body = {"group_id": self.pick_group(), "topics": self.pick_offsets(version >= 6, version)}
        if version >= 1:
            body["generation_id_or_member_epoch"] = self.pick_generation(actor)
            body["member_id"] = self.pick_member_id(actor)
        if self.is_likely(0.15):
            body |= {"generation_id_or_member_epoch": -1, "member_id": ""}
        if 2 <= version <= 4:
            body["retention_time_ms"] = self.source.choice((-1, 300, 1_000))
        self.send("OffsetCommit", version, body | (self.pick_instance() if version >= 7 else {}), actor)

    def fetch(self) -> None:
        version = self.pick_version("OffsetFetch")
        topics = [
            {**self.topic_key("t", version), "partition_indexes": [0, 1]},
            {**self.topic_key(self.source.choice(("u", "ghost")), version), "partition_indexes": [0]},
        ]
        asked = None if self.is_likely(0.4) and version >= 2 else topics
        stable = {"require_stable": self.is_likely(0.5)} if version >= 7 else {}
        if version >= 8:
            groups = self.source.sample(("g", "h", ""), self.source.choice((1, 2)))
            self.send(
                "OffsetFetch", version, {"groups": [{"group_id": name, "topics": asked} for name in groups]} | stable
            )
        else:
            self.send("OffsetFetch", version, {"group_id": self.pick_group(), "topics": asked} | stable)

    def transaction(self) -> None:
        actor, version = self.pick_member(), self.pick_version("TxnOffsetCommit")
        if not self.producers or self.is_likely(0.2):
            name = f"producer {len(self.producers)}"
            started: Body = {"transactional_id": name, "transaction_timeout_ms": 60_000}
            response = self.send("InitProducerId", 4, started).response.result()
            assert response is not None
            self.producers.append((name, response["producer_id"], response["producer_epoch"]))
        name, producer, epoch = self.source.choice(self.producers)
        body: Body = {
            "transactional_id": name,
            "group_id": self.pick_group() if self.is_likely(0.8) else "h",
            "producer_id": producer,
            "producer_epoch": epoch,
            "topics": self.pick_offsets(version >= 2),
        }
        if version >= 3 and self.is_likely(0.6):
            body |= {"generation_id": self.pick_generation(actor), "member_id": self.pick_member_id(actor)}
            self.send("TxnOffsetCommit", version, body | self.pick_instance(), actor)
        elif version >= 3:
            nobody: Body = {"generation_id": -1, "member_id": "", "group_instance_id": None}
            self.send("TxnOffsetCommit", version, body | nobody)
        else:
            self.send("TxnOffsetCommit", version, body)

    def end(self) -> None:
        if self.producers:
            name, producer, epoch = self.source.choice(self.producers)
            body = {"transactional_id": name, "producer_id": producer, "producer_epoch": epoch}
            self.send("EndTxn", self.pick_version("EndTxn"), body | {"committed": self.is_likely(0.6)})

    # --- what others send ---------------------------------------------------------------------------------------

    def describe(self) -> None:
        groups = self.source.sample(("g", "h", "nothing"), self.source.choice((1, 1, 2)))
        version = self.pick_version("DescribeGroups")
        body: Body = {"groups": groups}
        if version >= 3:
            body["include_authorized_operations"] = False
        self.send("DescribeGroups", version, body)

    def list_groups(self) -> None:
        version, body = self.pick_version("ListGroups"), Body()
        if version >= 4:
            body["states_filter"] = self.source.choice(([], [], ["stable", "EMPTY"], ["nonsense"]))
        if version >= 5:
            body["types_filter"] = self.source.choice(([], [], ["Classic"], ["consumer"]))
        self.send("ListGroups", version, body)

    def delete_group(self) -> None:
        names = self.source.choice((["g"], ["g", "h"], ["nothing"], [""]))
        self.send("DeleteGroups", self.pick_version("DeleteGroups"), {"groups_names": names})

    def delete_offsets(self) -> None:
        topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in ("t", "u", "ghost")]
        self.send("OffsetDelete", 0, {"group_id": self.pick_group(), "topics": self.source.sample(topics, 2)})

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
        recorder = TraceBuilder(lambda: round(loop.time() * 1000))
        chaos = RandomClient(source, target, recorder, pause)
        await chaos.run(steps)
        events = recorder.events
        await target.close()
        return events

    return Header("chaos", Order.TOTAL, "virtual", settings, 0), run_virtual(main())
