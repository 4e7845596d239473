"""Short ways to say things to the bundled coordinator: one `Cluster` for a test, one `Party` for each member."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fencepost.adapters.bundled.classic.log import Log
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Channel, Exchange, Recorder
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.model.settings import Settings

Reply = Mapping[str, Any]
P = (("p", b"mp"),)
PQ = (("p", b"mp"), ("q", b"mq"))
QP = (("q", b"mq"), ("p", b"mp"))
Q = (("q", b"mq"),)
D = 3000
LATEST = {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "LeaveGroup": 5, "OffsetCommit": 9, "OffsetFetch": 9}


class Cluster:
    """A target with an open channel, and the requests that belong to no member."""

    def __init__(self, target: InProcessTarget, channel: Channel, recorder: Recorder) -> None:
        self.target = target
        self.channel = channel
        self.recorder = recorder

    def send(self, api: str, version: int, **body: Any) -> Exchange:
        return self.channel.send(api, version, body)

    async def ask(self, api: str, version: int, **body: Any) -> Reply:
        """Send a request that is answered at once."""
        return answered(self.send(api, version, **body))

    def party(self, **settings: Any) -> "Party":
        return Party(self, **settings)

    async def state(self, group: str = "g") -> str:
        described = await self.ask("DescribeGroups", 5, groups=[group])
        return str(described["groups"][0]["group_state"])

    async def stable(self, *parties: "Party") -> None:
        """Bring the parties into one Stable group; the first one leads."""
        for party in parties:
            await party.get_id()
        joins = [party.join() for party in parties]
        for party, join in zip(parties, joins, strict=True):
            party.joined(await reply(join))
        syncs = [party.sync() for party in parties[1:]]
        syncs.append(parties[0].sync({party.id: f"for {n}".encode() for n, party in enumerate(parties)}))
        for sync in syncs:
            assert answered(sync)["error_code"] == 0

    async def rejoin(self, *parties: "Party") -> None:
        """All of them join again; a round must be on, or start with the first one."""
        joins = [party.join() for party in parties]
        for party, join in zip(parties, joins, strict=True):
            party.joined(answered(join))


class Party:
    """A member as the tests play it: what it sends, and what it was told."""

    def __init__(self, cluster: Cluster, **settings: Any) -> None:
        self.cluster = cluster
        self.group = settings.get("group", "g")
        self.instance: str | None = settings.get("instance")
        self.session = settings.get("session", 10_000)
        self.rebalance = settings.get("rebalance", 60_000)
        self.type = settings.get("type", "test")
        self.protocols = settings.get("protocols", P)
        self.id = ""
        self.generation = -1
        self.protocol: str | None = None

    async def get_id(self) -> None:
        """The detour of dynamic members: error 79 and an id."""
        if self.instance is None and not self.id:
            told = answered(self.join())
            assert told["error_code"] == 79
            self.id = told["member_id"]

    def join(self, version: int = 9, **other: Any) -> Exchange:
        body: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": self.session,
            "rebalance_timeout_ms": self.rebalance,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "protocol_type": self.type,
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in self.protocols],
        }
        return self.cluster.send("JoinGroup", version, **(body | other))

    def joined(self, told: Reply) -> None:
        assert told["error_code"] == 0
        self.id, self.generation, self.protocol = told["member_id"], told["generation_id"], told["protocol_name"]

    def sync(self, assignments: Mapping[str, bytes] | None = None, version: int = 5, **other: Any) -> Exchange:
        given = assignments or {}
        body = self._me(protocol_type=self.type, protocol_name=self.protocol) | {
            "assignments": [{"member_id": member_id, "assignment": data} for member_id, data in given.items()]
        }
        return self.cluster.send("SyncGroup", version, **(body | other))

    def beat(self, **other: Any) -> int:
        told = answered(self.cluster.send("Heartbeat", 4, **(self._me() | other)))
        return int(told["error_code"])

    def leave(self) -> int:
        entry = {"member_id": self.id, "group_instance_id": self.instance}
        told = answered(self.cluster.send("LeaveGroup", 5, group_id=self.group, members=[entry]))
        assert told["error_code"] == 0
        return int(told["members"][0]["error_code"])

    def commit(self, offset: int = 7, topic: str = "fencepost", version: int = 9, **other: Any) -> int:
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": None}
        body = self._me() | {"topics": [{"name": topic, "partitions": [partition]}]}
        body["generation_id_or_member_epoch"] = body.pop("generation_id")
        told = answered(self.cluster.send("OffsetCommit", version, **(body | other)))
        return int(told["topics"][0]["partitions"][0]["error_code"])

    def fetch(self, topic: str = "fencepost", stable: bool = False) -> Reply:
        entry = {"group_id": self.group, "topics": [{"name": topic, "partition_indexes": [0]}]}
        told = answered(self.cluster.send("OffsetFetch", 9, groups=[entry], require_stable=stable))
        found: Reply = told["groups"][0]["topics"][0]["partitions"][0]
        return found

    async def beat_until(self, end: int) -> list[int]:
        """Heartbeat every two seconds up to a time; the answers."""
        loop = asyncio.get_running_loop()
        told = []
        while round(loop.time() * 1000) < end:
            told.append(self.beat())
            await asyncio.sleep(2)
        return told

    def _me(self, **more: Any) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
        } | more


def answered(exchange: Exchange) -> Reply:
    """The answer of an exchange that must be there already."""
    assert exchange.answer.done(), "the request is parked"
    told = exchange.answer.result()
    assert told is not None, "the connection ended"
    return told


def parked(*exchanges: Exchange) -> bool:
    """Whether none of them is answered."""
    return not any(exchange.answer.done() for exchange in exchanges)


async def reply(exchange: Exchange) -> Reply:
    """Wait for an answer."""
    told = await exchange.answer
    assert told is not None, "the connection ended"
    return told


def now() -> int:
    """The virtual time in milliseconds."""
    return round(asyncio.get_running_loop().time() * 1000)


def run(
    test: Callable[[Cluster], Coroutine[Any, Any, None]],
    settings: Settings | None = None,
    log: Log | None = None,
    topics: Mapping[str, int] | None = None,
) -> None:
    """Run a test on a cluster of its own, on virtual time."""

    async def main() -> None:
        target = InProcessTarget(settings, log=log, topics=topics or {"fencepost": 4})
        await target.open()
        recorder = Recorder(now)
        await test(Cluster(target, target.channel(recorder), recorder))
        await target.close()

    run_virtual(main())
