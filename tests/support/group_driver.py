"""Drivers of the bundled coordinator in process: `BundledGroup` for a test, `GroupMember` for each of its members."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fencepost.adapters.classic.log import Log
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Channel, Exchange, TraceBuilder
from fencepost.model.errors import Error
from fencepost.model.settings import Settings

ResponseBody = Mapping[str, Any]
ONLY_P = (("p", b"mp"),)
INITIAL_DELAY_MS = 3000


class BundledGroup:
    """A target with an open channel; sends the requests that belong to no member."""

    def __init__(self, target: InProcessTarget, channel: Channel, recorder: TraceBuilder) -> None:
        self.target = target
        self.channel = channel
        self.recorder = recorder

    def send(self, api: str, version: int, **body: Any) -> Exchange:
        return self.channel.send(api, version, body)

    async def request(self, api: str, version: int, **body: Any) -> ResponseBody:
        """Send a request and return its response, which must be there at once."""
        return response_of(self.send(api, version, **body))

    def member(self, **settings: Any) -> "GroupMember":
        return GroupMember(self, **settings)

    async def group_state(self, group: str = "g") -> str:
        described = await self.request("DescribeGroups", 5, groups=[group])
        return str(described["groups"][0]["group_state"])

    async def form_stable_group(self, *members: "GroupMember") -> None:
        """Bring the members into one Stable group, led by the first."""
        for member in members:
            await member.obtain_id()
        joins = [member.join() for member in members]
        for member, join in zip(members, joins, strict=True):
            member.accept_join(await wait_for_response(join))
        syncs = [member.sync() for member in members[1:]]
        syncs.append(members[0].sync({member.id: f"for {n}".encode() for n, member in enumerate(members)}))
        for sync in syncs:
            assert response_of(sync)["error_code"] == Error.NONE


class GroupMember:
    """A member: its settings, its requests, and the id and generation of its last join."""

    def __init__(self, bundled: BundledGroup, **settings: Any) -> None:
        self.bundled = bundled
        self.group = settings.get("group", "g")
        self.instance: str | None = settings.get("instance")
        self.session = settings.get("session", 10_000)
        self.rebalance = settings.get("rebalance", 60_000)
        self.type = settings.get("type", "test")
        self.protocols = settings.get("protocols", ONLY_P)
        self.id = ""
        self.generation = -1
        self.protocol: str | None = None

    async def obtain_id(self) -> None:
        """Have a dynamic member refused with MEMBER_ID_REQUIRED, which gives it an id."""
        if self.instance is None and not self.id:
            response = response_of(self.join())
            assert response["error_code"] == Error.MEMBER_ID_REQUIRED
            self.id = response["member_id"]

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
        return self.bundled.send("JoinGroup", version, **(body | other))

    def accept_join(self, body: ResponseBody) -> None:
        assert body["error_code"] == Error.NONE
        self.id, self.generation, self.protocol = body["member_id"], body["generation_id"], body["protocol_name"]

    def sync(self, assignments: Mapping[str, bytes] | None = None, version: int = 5, **other: Any) -> Exchange:
        given = assignments or {}
        body = self._identity(protocol_type=self.type, protocol_name=self.protocol) | {
            "assignments": [{"member_id": member_id, "assignment": data} for member_id, data in given.items()]
        }
        return self.bundled.send("SyncGroup", version, **(body | other))

    def heartbeat(self, **other: Any) -> int:
        response = response_of(self.bundled.send("Heartbeat", 4, **(self._identity() | other)))
        return int(response["error_code"])

    def leave(self) -> int:
        entry = {"member_id": self.id, "group_instance_id": self.instance}
        response = response_of(self.bundled.send("LeaveGroup", 5, group_id=self.group, members=[entry]))
        assert response["error_code"] == Error.NONE
        return int(response["members"][0]["error_code"])

    def commit(self, offset: int = 7, topic: str = "fencepost", version: int = 9, **other: Any) -> int:
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": None}
        body = self._identity() | {"topics": [{"name": topic, "partitions": [partition]}]}
        body["generation_id_or_member_epoch"] = body.pop("generation_id")
        response = response_of(self.bundled.send("OffsetCommit", version, **(body | other)))
        return int(response["topics"][0]["partitions"][0]["error_code"])

    def fetch(self, topic: str = "fencepost", stable: bool = False) -> ResponseBody:
        entry = {"group_id": self.group, "topics": [{"name": topic, "partition_indexes": [0]}]}
        response = response_of(self.bundled.send("OffsetFetch", 9, groups=[entry], require_stable=stable))
        found: ResponseBody = response["groups"][0]["topics"][0]["partitions"][0]
        return found

    def _identity(self, **more: Any) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
        } | more


def response_of(exchange: Exchange) -> ResponseBody:
    """The response of an exchange, which must be there already."""
    assert exchange.response.done(), "the request is parked"
    response = exchange.response.result()
    assert response is not None, "the connection ended"
    return response


def are_parked(*exchanges: Exchange) -> bool:
    """Whether none of the exchanges has a response yet."""
    return not any(exchange.response.done() for exchange in exchanges)


async def wait_for_response(exchange: Exchange) -> ResponseBody:
    """Wait for the response of an exchange."""
    response = await exchange.response
    assert response is not None, "the connection ended"
    return response


def now_ms() -> int:
    """The virtual time in milliseconds."""
    return round(asyncio.get_running_loop().time() * 1000)


@asynccontextmanager
async def open_group(settings: Settings | None = None, log: Log | None = None) -> AsyncIterator[BundledGroup]:
    """A bundled coordinator of its own with a topic of four partitions, on the running virtual clock."""
    target = InProcessTarget(settings, log=log, topics={"fencepost": 4})
    await target.open()
    recorder = TraceBuilder(now_ms)
    yield BundledGroup(target, target.channel(recorder), recorder)
    await target.close()
