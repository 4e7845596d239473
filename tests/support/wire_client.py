"""The reference client over the wire codec, on virtual time: a client under test in this process.

An application in it polls, and returns at once what was fetched. `Tamper` replaces what the client sends, so that
a test has a client with one rule broken.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.client.cluster import ScriptedCluster
from fencepost.adapters.client.program import ClientPlace
from fencepost.conformance.testing.streams import MemoryTransport
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.classic.core.sorts import AssignmentBytes
from fencepost.model.classic.core.state import (
    HeartbeatResponse,
    JoinResponse,
    LeaveResponse,
    MemberView,
    SyncResponse,
)
from fencepost.model.classic.member.client import (
    Client,
    ClientContext,
    ClientResponse,
    Closing,
    FindCoordinator,
    FindCoordinatorResponse,
    ListOffsets,
    ListOffsetsResponse,
    is_returnable,
    new_client,
)
from fencepost.model.classic.member.dispatch import handle_input
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.classic.member.step import (
    CallListener,
    ClientInput,
    Close,
    CoordinatorDisconnected,
    ListenerReturned,
    MetadataArrived,
    Poll,
    ResponseArrived,
    ReturnRecords,
    SendRequest,
    Subscribe,
    TimePassed,
)
from fencepost.model.classic.messages.parsing import id_token
from fencepost.model.classic.messages.requests import (
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    Offset,
    OffsetCommit,
    OffsetFetch,
    SyncGroup,
)
from fencepost.model.classic.messages.responses import OffsetFetchResponse, PartitionErrors
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body, decode_response, encode_request
from fencepost.model.wire.records import decode_batches
from tests.support.plain_values import build

VERSIONS = {
    "JoinGroup": 9,
    "SyncGroup": 5,
    "Heartbeat": 4,
    "LeaveGroup": 5,
    "OffsetCommit": 8,
    "OffsetFetch": 7,
    "FindCoordinator": 3,
    "ListOffsets": 5,
    "Metadata": 9,
    "Fetch": 11,
}
CYCLE_S, METADATA_S, FETCH_S = 0.05, 1.0, 0.3

Tamper = Callable[["WireClient", str, dict[str, Any]], "dict[str, Any] | None"]
"""Returns the request that is sent in the place of one, None to send none."""


def send_as_it_is(client: "WireClient", api: str, body: dict[str, Any]) -> dict[str, Any]:
    """The request, unchanged."""
    return body


@dataclass
class Link:
    """A connection to a node, and the requests on it that wait for their responses by correlation id."""

    requests: asyncio.StreamReader
    responses: asyncio.StreamReader
    transport: MemoryTransport
    waiting: dict[int, tuple[str, int, Body]] = field(default_factory=dict)


@dataclass
class WireClient:
    """A client that runs in this process: its own subject, and its own running client."""

    cluster: ScriptedCluster
    settings: ClientSettings
    tamper: Tamper = send_as_it_is
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.is_silent = False
        self.links: dict[int, Link] = {}
        self.tasks: list[asyncio.Task[Any]] = []
        self.coordinator = 0
        self.correlation = 0
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    # -- what a scenario does with it -----------------------------------------------------------------------------

    async def start(self, place: ClientPlace) -> "WireClient":
        self.topic = place.topic
        self.client: Client = new_client(self.settings_for(place))
        self.give(Subscribe(frozenset({place.topic})))
        for work in (self.poll_forever, self.refresh_forever, self.fetch_forever):
            self.start_task(work())
        return self

    def settings_for(self, place: ClientPlace) -> ClientSettings:
        return ClientSettings(
            **{name: getattr(self.settings, name) for name in ClientSettings.__slots__ if name != "group"},
            group=place.group,
        )

    async def wait(self) -> int:
        return await asyncio.shield(self.ended)

    def ask_to_end(self) -> None:
        self.give(Close())

    def last_words(self) -> str:
        return ""

    async def kill(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for link in self.links.values():
            link.requests.feed_eof()

    def count(self, api: str) -> int:
        """How many requests to an API were sent."""
        return sum(each == api for each, _ in self.sent)

    # -- the application and the network --------------------------------------------------------------------------

    def start_task(self, work: Any) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    async def poll_forever(self) -> None:
        while True:
            self.give(TimePassed())
            self.give(Poll())
            is_left = not any(
                api == "LeaveGroup" for link in self.links.values() for api, _, _ in link.waiting.values()
            )
            if self.client.closing is Closing.CLOSED and is_left and not self.ended.done():
                self.ended.set_result(0)
                return
            await asyncio.sleep(CYCLE_S)

    async def refresh_forever(self) -> None:
        while True:
            self.send("Metadata", {"topics": [{"name": self.topic}], "allow_auto_topic_creation": False}, 0, 0)
            await asyncio.sleep(METADATA_S)

    async def fetch_forever(self) -> None:
        while True:
            await asyncio.sleep(FETCH_S)
            wanted = [
                one
                for one in self.client.positions
                if one.offset is not None and is_returnable(self.client, one.partition)
            ]
            if wanted and not any(api == "Fetch" for api, _, _ in self.link(0).waiting.values()):
                rows = [
                    {"partition": one.partition[1], "fetch_offset": one.offset, "partition_max_bytes": 1_000_000}
                    for one in wanted
                ]
                body = {"max_wait_ms": 100, "min_bytes": 1, "max_bytes": 1_000_000, "isolation_level": 0}
                self.send("Fetch", {**body, "topics": [{"topic": self.topic, "partitions": rows}]}, 0, 0)

    def link(self, node: int) -> Link:
        """The connection to a node, made if there is none."""
        found = self.links.get(node)
        if found is None or found.transport.is_closing():
            loop = asyncio.get_running_loop()
            requests, responses = asyncio.StreamReader(loop=loop), asyncio.StreamReader(loop=loop)
            protocol = asyncio.StreamReaderProtocol(requests, loop=loop)
            transport = MemoryTransport(protocol, responses)
            protocol.connection_made(transport)
            found = self.links[node] = Link(requests, responses, transport)
            self.cluster.server.accept(requests, asyncio.StreamWriter(transport, protocol, requests, loop), node)
            self.start_task(self.read_forever(node, found))
        return found

    async def read_forever(self, node: int, link: Link) -> None:
        try:
            while True:
                size = int.from_bytes(await link.responses.readexactly(4))
                frame = await link.responses.readexactly(size)
                correlation = int.from_bytes(frame[:4])
                api, handle, request = link.waiting.pop(correlation)
                self.receive(api, handle, request, decode_response(api, VERSIONS[api], frame).body)
        except asyncio.IncompleteReadError:
            self.links.pop(node, None)
            if node == self.coordinator:
                self.give(CoordinatorDisconnected())

    # -- the model ------------------------------------------------------------------------------------------------

    def give(self, given: ClientInput) -> None:
        context = ClientContext(self.cluster.now(), {name: one.assign for name, one in ASSIGNORS.items()})
        step = handle_input(self.client, given, context)
        self.client = step.client
        for output in step.outputs:
            if isinstance(output, CallListener):
                asyncio.get_running_loop().call_soon(self.give, ListenerReturned())
            elif isinstance(output, SendRequest):
                api, body = body_of(output)
                is_anywhere = isinstance(output.request, FindCoordinator | ListOffsets)
                self.send(api, body, output.handle, 0 if is_anywhere else self.coordinator)

    def send(self, api: str, body: dict[str, Any], handle: int, node: int) -> None:
        changed = self.tamper(self, api, body)
        if changed is not None:
            self.transmit(api, changed, handle, node)

    def transmit(self, api: str, body: dict[str, Any], handle: int, node: int) -> None:
        self.correlation += 1
        self.sent.append((api, body))
        link = self.link(node)
        link.waiting[self.correlation] = api, handle, body
        frame = encode_request(api, VERSIONS[api], self.correlation, "wire", body)
        link.requests.feed_data(len(frame).to_bytes(4) + frame)

    def receive(self, api: str, handle: int, request: Body, body: Body) -> None:
        if api == "Metadata":
            rows = [row for row in body["topics"] if not row["error_code"]]
            self.give(MetadataArrived(tuple((row["name"], len(row["partitions"])) for row in rows)))
        elif api == "Fetch":
            self.return_records(body)
        elif handle:
            if api == "FindCoordinator" and not body["error_code"]:
                self.coordinator = body["node_id"]
            self.give(ResponseArrived(handle, READERS[api](request, body)))
            if not self.settings.retry_backoff:  # an application that polls without a pause
                self.give(Poll())

    def return_records(self, body: Body) -> None:
        for topic in body["responses"]:
            for row in topic["partitions"]:
                batches = decode_batches(row["records"] or b"").batches
                if batches:
                    first, last = batches[0], batches[-1]
                    partition = topic["topic"], row["partition_index"]
                    following = last.base_offset + last.last_offset_delta + 1
                    self.give(ReturnRecords(partition, first.base_offset, following))


# -- requests and responses ---------------------------------------------------------------------------------------


def body_of(output: SendRequest) -> tuple[str, dict[str, Any]]:
    """The API and the body of a request of the model."""
    match output.request:
        case FindCoordinator(group=group):
            return "FindCoordinator", {"key": group, "key_type": 0}
        case JoinGroup(group=group, core=core):
            protocols: list[Any] = [{"name": one.name, "metadata": one.metadata} for one in core.protocols]
            timeouts = {"session_timeout_ms": core.session_timeout, "rebalance_timeout_ms": core.rebalance_timeout}
            named: dict[str, Any] = {"protocol_type": "consumer", "protocols": protocols}
            named["reason"] = output.reason or None
            return "JoinGroup", {**identity(group, core.member, core.instance), **timeouts, **named}
        case SyncGroup(group=group, core=core):
            assignments = [{"member_id": id, "assignment": given} for id, given in core.assignments]
            member = {**identity(group, core.member, core.instance), "generation_id": core.generation}
            named = {"protocol_type": core.protocol_type, "protocol_name": core.protocol, "assignments": assignments}
            return "SyncGroup", {**member, **named}
        case Heartbeat(group=group, core=core):
            return "Heartbeat", {**identity(group, core.member, core.instance), "generation_id": core.generation}
        case LeaveGroup(group=group, core=core):
            rows = [
                {"member_id": id, "group_instance_id": one, "reason": output.reason or None} for id, one in core.entries
            ]
            return "LeaveGroup", {"group_id": group, "members": rows}
        case OffsetCommit(group=group, core=core):
            topics = by_topic(
                (partition, {"partition_index": partition[1], "committed_offset": offset.offset})
                for partition, offset in output.request.offsets
            )
            generation = {"generation_id_or_member_epoch": core.generation}
            return "OffsetCommit", {**identity(group, core.member, core.instance), **generation, "topics": topics}
        case OffsetFetch(group=group, partitions=partitions):
            found: dict[str, list[int]] = {}
            for topic, number in partitions or ():
                found.setdefault(topic, []).append(number)
            asked = [{"name": name, "partition_indexes": numbers} for name, numbers in found.items()]
            return "OffsetFetch", {"group_id": group, "topics": asked, "require_stable": True}
        case ListOffsets(partitions=wanted, policy=policy):
            timestamp = -2 if policy == "earliest" else -1
            rows = by_topic((one, {"partition_index": one[1], "timestamp": timestamp}) for one in wanted)
            return "ListOffsets", {"replica_id": -1, "isolation_level": 0, "topics": rows}
    raise TypeError(type(output.request).__name__)


def identity(group: str, member: Any, instance: Any) -> dict[str, Any]:
    """The fields that name a member."""
    return {"group_id": group, "member_id": member or "", "group_instance_id": instance}


def by_topic(rows: Any) -> list[dict[str, Any]]:
    """Rows of partitions, grouped by topic."""
    found: dict[str, list[Any]] = {}
    for (topic, _), row in rows:
        found.setdefault(topic, []).append(row)
    return [{"name": topic, "partitions": each} for topic, each in found.items()]


def read_join(request: Body, body: Body) -> ClientResponse:
    members = tuple(
        build(MemberView, row["member_id"], row.get("group_instance_id"), row["metadata"]) for row in body["members"]
    )
    return build(
        JoinResponse,
        Error(body["error_code"]),
        body["generation_id"],
        body["protocol_type"],
        body["protocol_name"],
        id_token(body["leader"]),
        id_token(body["member_id"]),
        members,
        body.get("skip_assignment", False),
    )


def read_sync(request: Body, body: Body) -> ClientResponse:
    named = body["protocol_type"], body["protocol_name"]
    return SyncResponse(Error(body["error_code"]), *named, assignment=AssignmentBytes(body["assignment"]))


def read_errors(request: Body, body: Body) -> ClientResponse:
    errors = {
        (topic["name"], row["partition_index"]): Error(row["error_code"])
        for topic in body["topics"]
        for row in topic["partitions"]
    }
    return PartitionErrors(errors)


def read_offsets(request: Body, body: Body) -> ClientResponse:
    offsets = {
        (topic["name"], row["partition_index"]): None
        if row["error_code"] == Error.UNSTABLE_OFFSET_COMMIT
        else Offset(row["committed_offset"])
        for topic in body["topics"]
        for row in topic["partitions"]
    }
    return OffsetFetchResponse(offsets, Error(body["error_code"]))


def read_starts(request: Body, body: Body) -> ClientResponse:
    rows = ((topic["name"], row) for topic in body["topics"] for row in topic["partitions"])
    return ListOffsetsResponse(tuple(((name, row["partition_index"]), row["offset"]) for name, row in rows))


READERS: Mapping[str, Callable[[Body, Body], ClientResponse]] = {
    "JoinGroup": read_join,
    "SyncGroup": read_sync,
    "Heartbeat": lambda request, body: HeartbeatResponse(Error(body["error_code"])),
    "LeaveGroup": lambda request, body: LeaveResponse(Error(body["error_code"])),
    "OffsetCommit": read_errors,
    "OffsetFetch": read_offsets,
    "FindCoordinator": lambda request, body: FindCoordinatorResponse(Error(body["error_code"]), body["node_id"]),
    "ListOffsets": read_starts,
}
