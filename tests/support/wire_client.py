"""The reference client over the wire codec, on virtual time: a client under test in this process.

An application in it polls, and returns at once what was fetched. `Tamper` replaces what the client sends, so that
a test has a client with one rule broken.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.assignor import AssignorError
from fencepost.adapters.client.application import CALLBACKS, Application
from fencepost.adapters.client.cluster import ScriptedCluster
from fencepost.adapters.client.program import ClientPlace
from fencepost.conformance.testing.streams import MemoryTransport
from fencepost.model.assignors.consumer_protocol import decode_subscription, encode_assignment
from fencepost.model.assignors.group import Assign, ClusterTopics, GroupMember
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.classic.member.client import (
    Callback,
    Client,
    ClientContext,
    ClientResponse,
    Closing,
    CommitPurpose,
    CommitReport,
    FindCoordinator,
    ListOffsets,
    assigned_partitions,
    is_returnable,
    new_client,
    position_of,
)
from fencepost.model.classic.member.dispatch import handle_input
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.classic.member.step import (
    AssignManually,
    CallListener,
    ClientInput,
    Close,
    CommitOffsets,
    CoordinatorDisconnected,
    EnforceRebalance,
    ListenerReturned,
    MetadataArrived,
    PausePartition,
    Poll,
    RaiseFailure,
    ReportCommit,
    ResponseArrived,
    ReturnRecords,
    Seek,
    SendRequest,
    Subscribe,
    TimePassed,
    Unsubscribe,
)
from fencepost.model.classic.messages.requests import (
    Partition,
)
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body, decode_response, encode_request
from fencepost.model.wire.records import decode_batches, records_of
from tests.support.wire_bodies import READERS, body_of, by_topic

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
LONG_POLL_MS = 2_000
"""A poll of that length returns as soon as there are records."""
AS_COORDINATOR = 100
"""Added to a node for the connection to it as the coordinator: a client has two, as requests of one wait."""
LIMIT = 30
"""The most records that a poll returns."""

Tamper = Callable[["WireClient", str, dict[str, Any]], "dict[str, Any] | None"]
"""Returns the request that is sent in the place of one, None to send none."""


Tell = Callable[["WireClient", dict[str, Any]], list[dict[str, Any]]]
"""Returns the messages that a driver writes in the place of one."""


def tell_as_it_is(client: "WireClient", message: dict[str, Any]) -> list[dict[str, Any]]:
    """The message, unchanged."""
    return [message]


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
    tell: Tell | None = None
    """Whether there is a driver, and what it says."""
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.is_silent = False
        self.links: dict[int, Link] = {}
        self.tasks: list[asyncio.Task[Any]] = []
        self.coordinator = AS_COORDINATOR
        self.correlation = 0
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.buffered: dict[Partition, list[int]] = {}
        """The offsets of buffered records, the oldest response first."""
        self.ends: dict[Partition, int] = {}
        """The offsets behind what was fetched."""
        self.has_returned = self.is_lazy = False
        self.polled_at = self.joined_at = self.rebalances = 0
        self.is_told = self.is_calling_back = False
        self.last_numbers: list[int] = []
        self.failure: str = ""
        self.late: list[dict[str, Any]] = []
        self.is_held = False
        self.assignors: dict[str, Assign] = {name: one.assign for name, one in ASSIGNORS.items()}
        self.group_topics: set[str] = set()
        self.manner: dict[str, Any] = {}
        """What the listener does, as the kit has asked for it."""
        self.pattern = ""
        self.known: dict[str, int] = {}
        """The partitions of topics, as Metadata told last."""
        self.leading: Sequence[Body] = ()
        """The members that the last response to JoinGroup told of."""
        self.held: tuple[int, ClientResponse] | None = None
        """The response to a JoinGroup that is kept back until the metadata of the group's topics come."""
        self.application: Application | None = None
        if self.tell is not None:
            self.application = Application(self.cluster, lambda command: self.start_task(self.obey(dict(command))))

    # -- what a scenario does with it -----------------------------------------------------------------------------

    async def start(self, place: ClientPlace) -> "WireClient":
        self.topic = place.topic
        self.client: Client = new_client(self.settings_for(place))
        self.topics = {place.topic}
        if self.application is None:
            self.give(Subscribe(frozenset({place.topic})))
            self.start_task(self.poll_forever())
        else:
            self.start_task(self.application.run(place.topic))
            self.say({"ready": self.describe()})
        for work in (self.tick_forever, self.refresh_forever, self.fetch_forever):
            self.start_task(work())
        return self

    def describe(self) -> dict[str, Any]:
        """What the driver says of the client at first."""
        settings = self.settings
        return {
            "callbacks": list(CALLBACKS),
            "max_poll_records": LIMIT,
            "auto_commit": True,
            "auto_commit_ms": settings.auto_commit_interval,
            "timeouts": {"session": settings.session_timeout, "rebalance": settings.rebalance_timeout},
        }

    def settings_for(self, place: ClientPlace) -> ClientSettings:
        return ClientSettings(
            **{name: getattr(self.settings, name) for name in ClientSettings.__slots__ if name != "group"},
            group=place.group,
        )

    async def wait(self) -> int:
        return await asyncio.shield(self.ended)

    def ask_to_end(self) -> None:
        if self.application is None:
            self.give(Close())
        else:
            self.application.close()

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
        while not self.has_closed():
            self.poll()
            await asyncio.sleep(CYCLE_S)
        self.end()

    def poll(self, timeout: int = 0) -> None:
        """A poll: what the model does in one, and the buffered records that it may return, `LIMIT` at most."""
        self.polled_at = self.cluster.now()
        self.give(Poll(timeout))
        if self.client.callback is not None:
            return
        left = LIMIT
        records: list[list[Any]] = []
        for partition, offsets in tuple(self.buffered.items()):
            position = position_of(self.client, partition)
            if position is None or (offsets and position.offset != offsets[0]):
                del self.buffered[partition]
            elif left and offsets and is_returnable(self.client, partition):
                returned, rest = offsets[:left], offsets[left:]
                self.buffered[partition] = rest
                if not rest:
                    del self.buffered[partition]
                left -= len(returned)
                records += ([*partition, offset] for offset in returned)
                self.give(ReturnRecords(partition, returned[0], rest[0] if rest else self.ends[partition]))
        if records:
            self.say({"records": records})
        self.has_returned = bool(records)

    def has_closed(self) -> bool:
        """Whether the client is closed, and LeaveGroup has its response."""
        waiting = (api for link in self.links.values() for api, _, _ in link.waiting.values())
        return self.client.closing is Closing.CLOSED and "LeaveGroup" not in waiting

    def end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(0)

    async def tick_forever(self) -> None:
        while True:
            self.give(TimePassed())
            await asyncio.sleep(CYCLE_S)

    # -- the driver -----------------------------------------------------------------------------------------------

    def say(self, message: dict[str, Any]) -> None:
        """Write a message of the driver, if there is one and it is not tampered with."""
        if self.application is not None and self.tell is not None:
            for each in self.tell(self, message):
                self.application.receive(each)

    async def obey(self, command: dict[str, Any]) -> None:
        """Carry out a command of the kit."""
        self.failure, extra = "", {}
        for partition in map(tuple, command.get("partitions", ())):
            is_paused = command["do"] == "pause"
            if command["do"] in ("pause", "resume"):
                self.give(PausePartition(partition, is_paused))
        match command["do"]:
            case "subscribe" if "pattern" in command:
                self.pattern = command["pattern"]
                self.give(Subscribe(frozenset(self.topics)))
            case "subscribe":
                self.topics = set(command["topics"])
                self.give(Subscribe(frozenset(self.topics)))
            case "rejoin":
                self.give(EnforceRebalance("asked for"))
            case "listener":
                self.manner = command
            case "position":
                extra["positions"] = [
                    [*each.partition, each.offset] for each in self.client.positions if each.offset is not None
                ]
            case "poll":
                self.has_returned = False
                self.poll(command["ms"])
                is_prompt = self.has_returned and not self.is_lazy and command["ms"] >= LONG_POLL_MS
                await asyncio.sleep(CYCLE_S if is_prompt else command["ms"] / 1000)
            case "seek":
                self.give(Seek((command["topic"], command["partition"]), command["offset"]))
            case "commit":
                self.committing = asyncio.get_running_loop().create_future()
                self.give(CommitOffsets())
                self.failure = self.failure or await self.committing
            case "assign":
                self.give(AssignManually(tuple(map(tuple, command["partitions"]))))
            case "unsubscribe":
                self.give(Unsubscribe())
                await asyncio.sleep(CYCLE_S)
            case "close":
                self.give(Close())
                while not self.has_closed():
                    await asyncio.sleep(CYCLE_S)
        number = command["id"]
        self.say({"error": self.failure, "of": number} if self.failure else {"done": number, **extra})
        if command["do"] == "close":
            self.end()

    async def refresh_forever(self) -> None:
        while True:
            self.refresh()
            await asyncio.sleep(METADATA_S)

    def refresh(self) -> None:
        rows = [{"name": topic} for topic in sorted(self.topics | self.group_topics)]
        self.send("Metadata", {"topics": None if self.pattern else rows, "allow_auto_topic_creation": False}, 0, 0)

    async def fetch_forever(self) -> None:
        while True:
            await asyncio.sleep(FETCH_S)
            turn = self.count("Fetch")
            wanted = [
                one
                for one in self.client.positions[turn % 4 :] + self.client.positions[: turn % 4]
                if one.offset is not None
                and is_returnable(self.client, one.partition)
                and not self.buffered.get(one.partition)
            ]
            if wanted and not any(api == "Fetch" for api, _, _ in self.link(0).waiting.values()):
                rows = [
                    {"partition": one.partition[1], "fetch_offset": one.offset, "partition_max_bytes": 1_000_000}
                    for one in wanted
                ]
                body = {"max_wait_ms": 100, "min_bytes": 1, "max_bytes": 1_000_000, "isolation_level": 0}
                topics = by_topic(zip((one.partition for one in wanted), rows, strict=True), "topic")
                self.send("Fetch", {**body, "topics": topics}, 0, 0)

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
            self.cluster.server.accept(
                requests, asyncio.StreamWriter(transport, protocol, requests, loop), node % AS_COORDINATOR
            )
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
        except (asyncio.IncompleteReadError, KeyError):  # the end, or a response to nothing
            link.requests.feed_eof()
            self.links.pop(node, None)
            if node == self.coordinator:
                self.give(CoordinatorDisconnected())

    # -- the model ------------------------------------------------------------------------------------------------

    def give(self, given: ClientInput) -> None:
        try:
            step = handle_input(self.client, given, ClientContext(self.cluster.now(), self.assignors))
        except AssignorError:  # the application is told, and polls again
            body = next(body for api, body in reversed(self.sent) if api == "JoinGroup")
            assert isinstance(given, ResponseArrived)
            self.transmit("JoinGroup", body, given.handle, self.coordinator)
            return
        self.client = step.client
        for output in step.outputs:
            if isinstance(output, CallListener):
                self.call_listener(output.callback)
            elif isinstance(output, RaiseFailure):
                self.failure = output.failure.name
            elif isinstance(output, ReportCommit):
                self.report_commit(output.report)
            elif isinstance(output, SendRequest):
                api, body = body_of(output)
                is_anywhere = isinstance(output.request, FindCoordinator | ListOffsets)
                self.send(api, body, output.handle, 0 if is_anywhere else self.coordinator)

    def call_listener(self, callback: Callback) -> None:
        assigned = [list(each) for each in assigned_partitions(self.client)]
        name = callback.kind.value
        if name == "lost" and not self.manner.get("lost", True):
            name = "revoked"
        raises, commits = (name in self.manner.get(each, ()) for each in ("raises", "commits"))
        self.say(
            {
                "event": name,
                "partitions": [list(each) for each in callback.partitions],
                "assignment": assigned,
                "raises": raises,
                "commits": commits,
            }
        )
        if commits:
            self.committing = asyncio.get_running_loop().create_future()
            self.is_calling_back = True
            self.give(CommitOffsets())
            self.is_calling_back = False
        asyncio.get_running_loop().call_soon(self.give, ListenerReturned(raises))

    def report_commit(self, report: CommitReport) -> None:
        if report.purpose is CommitPurpose.SYNC and not self.committing.done():
            self.committing.set_result(report.failure.name if report.failure is not None else "")

    def send(self, api: str, body: dict[str, Any], handle: int, node: int) -> None:
        if api == "SyncGroup" and self.group_topics and body["assignments"]:
            body = self.plan_alone(body)
        changed = self.tamper(self, api, body)
        if changed is not None:
            self.transmit(api, changed, handle, node)

    def plan_alone(self, body: dict[str, Any]) -> dict[str, Any]:
        """SyncGroup of an invented group: what the assignor says, of which the model holds more back."""
        members = [
            GroupMember(row["member_id"], decode_subscription(row["metadata"]), row.get("group_instance_id"))
            for row in self.leading
        ]
        plan = self.assignors[body["protocol_name"]](members, ClusterTopics(self.known))
        rows = [{"member_id": id, "assignment": encode_assignment(own)} for id, own in plan.items()]
        return {**body, "assignments": rows}

    def transmit(self, api: str, body: dict[str, Any], handle: int, node: int) -> None:
        self.correlation += 1
        self.sent.append((api, body))
        self.joined_at = self.cluster.now() if api == "JoinGroup" else self.joined_at
        link = self.link(node)
        link.waiting[self.correlation] = api, handle, body
        frame = encode_request(api, VERSIONS[api], self.correlation, "wire", body)
        link.requests.feed_data(len(frame).to_bytes(4) + frame)

    def receive(self, api: str, handle: int, request: Body, body: Body) -> None:
        if api == "Metadata":
            rows = [row for row in body["topics"] if not row["error_code"]]
            self.known = {row["name"]: len(row["partitions"]) for row in rows}
            matching = {name for name in self.known if self.pattern and re.fullmatch(self.pattern, name)}
            if matching - self.topics:
                self.topics = matching
                self.give(Subscribe(frozenset(matching)))
            self.give(MetadataArrived(tuple(self.known.items())))
            if self.held is not None and api == "Metadata":
                held, self.held = self.held, None
                self.give(ResponseArrived(*held))
        elif api == "Fetch":
            self.buffer_records(body)
        elif handle:
            if api == "FindCoordinator" and not body["error_code"]:
                self.coordinator = AS_COORDINATOR + body["node_id"]
            response = READERS[api](request, body)
            self.rebalances += api == "Heartbeat" and body["error_code"] == Error.REBALANCE_IN_PROGRESS
            self.leading = body["members"] if api == "JoinGroup" else self.leading
            if api == "JoinGroup" and self.misses_topics(body):
                self.held = handle, response
                self.refresh()
                return
            self.give(ResponseArrived(handle, response))
            if not self.settings.retry_backoff:  # an application that polls without a pause
                self.give(Poll())

    def misses_topics(self, body: Body) -> bool:
        """Whether a leader is told of topics that it does not know yet; it asks for them from now on."""
        found = {topic for row in body["members"] for topic in decode_subscription(row["metadata"]).topics}
        is_new = not found <= self.topics | self.group_topics
        self.group_topics = found - self.topics if found else self.group_topics
        return is_new

    def buffer_records(self, body: Body) -> None:
        for topic in body["responses"]:
            for row in topic["partitions"]:
                batches = decode_batches(row["records"] or b"").batches
                if batches:
                    first, last = batches[0], batches[-1]
                    partition = topic["topic"], row["partition_index"]
                    position = position_of(self.client, partition)
                    begin = position.offset if position is not None and position.offset else first.base_offset
                    offsets = [
                        record.offset for batch in batches if not batch.control for record in records_of(batch)[0]
                    ]
                    self.buffered[partition] = [offset for offset in offsets if offset >= begin]
                    self.ends[partition] = last.base_offset + last.last_offset_delta + 1
