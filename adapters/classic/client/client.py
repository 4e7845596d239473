"""The reference client with connections: requests of the model as frames, responses as its inputs.

An application in it polls. Without commands it subscribes to a topic and polls by itself; with an `Application` it is a
driver, which does what the kit asks for and tells of callbacks and records.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from fencepost.adapters.classic.client.bodies import READERS, Fetcher, ReturnedRecords, body_of, by_topic
from fencepost.adapters.classic.client.links import AwaitedResponse, Link, Network
from fencepost.model.assignors.consumer_protocol import decode_subscription
from fencepost.model.assignors.group import Assign
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.classic.member.client import (
    Callback,
    Client,
    ClientContext,
    Closing,
    CommitReport,
    FindCoordinator,
    FindCoordinatorResponse,
    ListOffsets,
    ListOffsetsResponse,
    Position,
    new_client,
)
from fencepost.model.classic.member.dispatch import handle_input
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.model.classic.member.step import (
    CallListener,
    ClientInput,
    ClientStep,
    Close,
    CoordinatorDisconnected,
    ListenerReturned,
    MetadataArrived,
    Poll,
    RaiseFailure,
    ReportCommit,
    ResponseArrived,
    ReturnRecords,
    SendRequest,
    Subscribe,
    TimePassed,
)
from fencepost.model.errors import Error
from fencepost.model.groups.messages import Partition
from fencepost.model.wire.codec import Body, decode_response, encode_request

VERSIONS: Mapping[str, int] = MappingProxyType(
    {
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
)
"""The versions of the requests that the client sends."""
CYCLE_S = 0.05
"""How often a client polls and looks at its clocks, in a test."""
FETCH_BYTES, FETCH_WAIT_MS = 1_000_000, 100
ANY_NODE = 0
AS_COORDINATOR = 1_000_000
"""Added to a node for the connection to it as the coordinator: a client has two, as requests of one wait."""
CLIENT_ID = "wire"
SESSION_EXPIRED = "client.worker.session-expired"
"""The rule by which a coordinator is given up that sends no responses."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a client does what goes on by itself, in seconds."""

    cycle: float = CYCLE_S
    metadata: float = 1.0
    fetch: float = 0.3


class ReferenceClient:
    """A client that runs in this process, over a network; `now` is the time in milliseconds."""

    def __init__(self, settings: ClientSettings, network: Network, now: Callable[[], int], pace: Pace = Pace()) -> None:
        self.client: Client = new_client(settings)
        self.topics: set[str] = set()
        self.pattern = ""
        """The pattern of topics that it subscribes to; empty if it names them."""
        self.fetcher = Fetcher()
        self.links: dict[int, Link] = {}
        self.tasks: list[asyncio.Task[Any]] = []
        self.coordinator = AS_COORDINATOR
        self.leaders: dict[Partition, int] = {}
        self.assignors: dict[str, Assign] = {name: one.assign for name, one in ASSIGNORS.items()}
        self.has_metadata = asyncio.Event()
        self.known: dict[str, int] = {}
        """The partitions of topics, as Metadata told last."""
        self.group_topics: set[str] = set()
        self.described: set[str] = set()
        """The topics that Metadata told of last, if only that they are not there."""
        self._held: list[tuple[AwaitedResponse, Body]] = []
        """Responses to the JoinGroup of a leader that waits for metadata."""
        self.failure = ""
        """What the client raised last."""
        self.may_fetch = True
        """It has polled since its last fetches: without polls it does not know what it is assigned by now."""
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.pace = pace
        self._network = network
        self._now = now
        self._correlation_id = 0

    # -- its life -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin to do what goes on by itself: clocks, metadata, fetches."""
        for work in (self._tick_forever, self._refresh_forever, self._fetch_forever):
            self.start_task(work())

    def start_task(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something until the client is killed."""
        self.tasks.append(asyncio.ensure_future(work))

    async def poll_forever(self, topics: Iterable[str]) -> None:
        """Be an application that subscribes to topics and polls until the client is closed."""
        self.subscribe(topics)
        while not self.has_closed():
            self.poll()
            await asyncio.sleep(self.pace.cycle)
        self.end()

    async def wait(self) -> int:
        """Wait until it has ended; its exit code."""
        return await asyncio.shield(self.ended)

    def close(self) -> None:
        """Have it close cleanly."""
        self.give(Close())

    def has_closed(self) -> bool:
        """Whether the client is closed, and LeaveGroup has its response."""
        waiting = (one.api for link in self.links.values() for one in link.waiting.values())
        return self.client.closing is Closing.CLOSED and "LeaveGroup" not in waiting

    def end(self) -> None:
        """The client has ended."""
        if not self.ended.done():
            self.ended.set_result(0)

    async def kill(self) -> None:
        """End it at once."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for link in self.links.values():
            link.hang_up()

    # -- the application ------------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to topics."""
        self.topics, self.pattern = set(topics), ""
        self.give(Subscribe(frozenset(self.topics)))

    def subscribe_to_pattern(self, pattern: str) -> None:
        """Subscribe to the topics that match a regular expression: those of now, and new ones as they are seen."""
        self.pattern = pattern
        self.give(Subscribe(pattern=pattern))

    def poll(self, timeout_ms: int = 0) -> bool:
        """A poll: what the model does in one, and the records that it returns; whether there are any."""
        self.may_fetch = True
        self.give(Poll(timeout_ms))
        if self.client.callback is not None:
            return False
        returned: list[ReturnedRecords] = []
        for taken in self.fetcher.drain(self.client):
            self.give(ReturnRecords(taken.partition, taken.first, taken.following))
            returned.append(taken)
        has_records = any(taken.offsets for taken in returned)
        if has_records:
            self.on_records(returned)
        return has_records

    def on_records(self, returned: list[ReturnedRecords]) -> None:
        """A poll has returned records."""

    def on_callback(self, callback: Callback) -> None:
        """The rebalance listener is called; it returns in the loop's next turn."""
        asyncio.get_running_loop().call_soon(self.give, ListenerReturned())

    def on_commit(self, report: CommitReport) -> None:
        """A commit of the application is over."""

    # -- what goes on by itself -----------------------------------------------------------------------------------

    async def _tick_forever(self) -> None:
        while True:
            self.give(TimePassed())
            self.leave_silent_nodes()
            await asyncio.sleep(self.pace.cycle)

    async def _refresh_forever(self) -> None:
        while True:
            self.refresh()
            await asyncio.sleep(self.pace.metadata)

    async def _fetch_forever(self) -> None:
        while True:
            await asyncio.sleep(self.pace.fetch)
            if self.may_fetch:
                self.may_fetch = not self.fetch()

    def fetch(self) -> bool:
        """Ask each leader for the records of what may be fetched, unless it owes a response already (PREFETCH-05).
        Whether every one of them was asked."""
        wanted: dict[int, list[Position]] = {}
        waiting = (one for link in self.links.values() for one in link.waiting.values() if one.api == "Fetch")
        in_flight = {partition for one in waiting for partition in asked_offsets(one.request)}
        for one in self.fetcher.positions_to_fetch(self.client, in_flight):
            wanted.setdefault(self.leaders.get(one.partition, ANY_NODE), []).append(one)
        asked = 0
        for node, positions in wanted.items():
            if not self.is_fetching(node):
                self.send("Fetch", fetch_body(positions), 0, node)
                asked += 1
        return asked == len(wanted)

    def is_fetching(self, node: int) -> bool:
        """Whether a Fetch waits for its response on the connection to a node."""
        link = self.links.get(node)
        return link is not None and any(one.api == "Fetch" for one in link.waiting.values())

    # -- the model ------------------------------------------------------------------------------------------------

    def give(self, given: ClientInput) -> None:
        """The model takes an input, and its outputs are carried out."""
        step = self.take_step(given)
        self.client = step.client
        if SESSION_EXPIRED in step.rules and not self.owes_exchange():  # which it waits for as long as for others
            self.close_link(self.coordinator)
        for output in step.outputs:
            match output:
                case CallListener(callback):
                    self.on_callback(callback)
                case RaiseFailure(failure):
                    self.failure = failure.name
                case ReportCommit(report):
                    self.on_commit(report)
                case SendRequest():
                    api, body = body_of(output)
                    is_anywhere = isinstance(output.request, FindCoordinator | ListOffsets)
                    self.send(api, body, output.handle, ANY_NODE if is_anywhere else self.coordinator)

    def take_step(self, given: ClientInput) -> ClientStep:
        """The model's step on an input."""
        return handle_input(self.client, given, ClientContext(self._now(), self.assignors))

    # -- the network ----------------------------------------------------------------------------------------------

    def send(self, api: str, body: Body, handle: int, node: int) -> None:
        """Send a request of the model, or one of the client's own with handle 0."""
        if api == "JoinGroup":
            self.leave_silent_coordinator()
        self.transmit(api, body, handle, node)

    def transmit(self, api: str, body: Body, handle: int, node: int) -> None:
        """Send a frame on the connection to a node."""
        self._correlation_id += 1
        link = self.link(node)
        link.waiting[self._correlation_id] = AwaitedResponse(api, handle, body, self._now())
        link.send(encode_request(api, VERSIONS[api], self._correlation_id, CLIENT_ID, body))

    def link(self, node: int) -> Link:
        """The connection to a node, made if there is none."""
        found = self.links.get(node)
        if found is None or found.is_over:
            found = self.links[node] = self._network.connect(node % AS_COORDINATOR)
            self.start_task(self._read_forever(node, found))
        return found

    async def _read_forever(self, node: int, link: Link) -> None:
        try:
            while True:
                frame = await link.receive()
                sent = link.waiting.pop(int.from_bytes(frame[:4]))
                self.receive(sent, decode_response(sent.api, VERSIONS[sent.api], frame).body)
        except (ConnectionError, KeyError):  # the end, or a response to nothing
            link.hang_up()
            is_present = self.links.get(node) is link  # else there is another one by now
            if is_present:
                del self.links[node]
            if node == self.coordinator and (is_present or link.waiting):
                self.give(CoordinatorDisconnected())
            self.fail_lost(tuple(link.waiting.values()))

    def fail_lost(self, waiting: Iterable[AwaitedResponse]) -> None:
        """What was asked of any node on a connection that is lost has failed, and may be asked again."""
        for one in waiting:
            if one.api == "FindCoordinator":
                failed = FindCoordinatorResponse(Error.COORDINATOR_NOT_AVAILABLE)
                self.give(ResponseArrived(one.handle, failed))
            elif one.api == "ListOffsets":
                self.give(ResponseArrived(one.handle, ListOffsetsResponse(())))

    def receive(self, sent: AwaitedResponse, body: Body) -> None:
        """A response has come."""
        if sent.api == "Metadata":
            self.learn_metadata(body)
            self._release_held(sent.request["topics"])
        elif sent.api == "JoinGroup" and not self.topics_of_group(body) <= self.asked_topics() & self.described:
            self.group_topics = self.topics_of_group(body)
            self._held.append((sent, body))
            self.refresh()
        else:
            self.take_response(sent, body)

    def _release_held(self, asked: list[Body] | None) -> None:
        """Take the responses to JoinGroup that wait for Metadata, if these topics, or all, cover their groups."""
        names = None if asked is None else {row["name"] for row in asked}
        held, self._held = self._held, []
        for sent, body in held:
            if names is None or self.topics_of_group(body) <= names:
                self.take_response(sent, body)
            else:
                self._held.append((sent, body))

    def topics_of_group(self, body: Body) -> set[str]:
        """The topics of all members, as the response to a leader's JoinGroup has them. A leader asks for those that it
        has not asked for before it makes its plan."""
        return {topic for row in body["members"] for topic in decode_subscription(row["metadata"]).topics}

    def asked_topics(self) -> set[str]:
        """The topics that the client asks for in Metadata: its own, and those of the group that it leads."""
        return self.topics | self.group_topics

    def refresh(self) -> None:
        """Ask for metadata."""
        rows = [{"name": topic} for topic in sorted(self.asked_topics())]
        topics = None if self.pattern else rows
        self.send("Metadata", {"topics": topics, "allow_auto_topic_creation": False}, 0, ANY_NODE)

    def take_response(self, sent: AwaitedResponse, body: Body) -> None:
        """A response is handled."""
        if sent.api == "JoinGroup" and body["member_id"] != body["leader"]:
            self.group_topics = set()
        if sent.api == "Fetch":
            self.fetcher.add_response(self.client, asked_offsets(sent.request), body)
        elif sent.handle:
            if sent.api == "FindCoordinator" and not body["error_code"]:
                self._network.learn(body["node_id"], body["host"], body["port"])
                self.coordinator = AS_COORDINATOR + body["node_id"]
            self.give(ResponseArrived(sent.handle, READERS[sent.api](sent.request, body)))
            if not self.client.settings.retry_backoff:  # an application that polls without a pause
                self.give(Poll())

    def leave_silent_coordinator(self) -> None:
        """Close the connection to a coordinator that owes the response to a JoinGroup or SyncGroup (MEMBER-06)."""
        if self.owes_exchange():
            self.close_link(self.coordinator)

    def owes_exchange(self) -> bool:
        """Whether the coordinator owes the response to a JoinGroup or SyncGroup."""
        link = self.links.get(self.coordinator)
        return link is not None and any(one.api in ("JoinGroup", "SyncGroup") for one in link.waiting.values())

    def leave_silent_nodes(self) -> None:
        """Close the connections on which a response is overdue: all that waits on them has failed."""
        settings = self.client.settings
        patience = {"JoinGroup": settings.join_timeout}
        for node, link in tuple(self.links.items()):
            waits = ((one.api, self._now() - one.sent_at) for one in link.waiting.values())
            if any(waited >= patience.get(api, settings.request_timeout) for api, waited in waits):
                lost = self.close_link(node)
                if node == self.coordinator and self.client.coordinator is not None:
                    self.give(CoordinatorDisconnected())
                self.fail_lost(lost)

    def close_link(self, node: int) -> tuple[AwaitedResponse, ...]:
        """Close the connection to a node, if there is one; what was waiting on it."""
        link = self.links.pop(node, None)
        if link is None:
            return ()
        lost = tuple(link.waiting.values())
        link.waiting.clear()
        link.hang_up()
        return lost

    def learn_metadata(self, body: Body) -> None:
        """The nodes of the cluster, the topics and the leaders of their partitions."""
        for broker in body["brokers"]:
            self._network.learn(broker["node_id"], broker["host"], broker["port"])
        self.described = {row["name"] for row in body["topics"]}
        rows = [row for row in body["topics"] if not row["error_code"]]
        for row in rows:
            for one in row["partitions"]:
                self.leaders[row["name"], one["partition_index"]] = one["leader_id"]
        self.known = {row["name"]: len(row["partitions"]) for row in rows}
        self.has_metadata.set()
        matching = {name for name in self.known if self.pattern and re.fullmatch(self.pattern, name)}
        if self.pattern:
            self.topics = matching
        self.give(MetadataArrived(tuple(self.known.items())))


def fetch_body(positions: Iterable[Position]) -> Body:
    """The body of a Fetch at these positions."""
    rows = [
        (
            one.partition,
            {"partition": one.partition[1], "fetch_offset": one.offset, "partition_max_bytes": FETCH_BYTES},
        )
        for one in positions
    ]
    body = {"max_wait_ms": FETCH_WAIT_MS, "min_bytes": 1, "max_bytes": FETCH_BYTES, "isolation_level": 0}
    return {**body, "topics": by_topic(rows, "topic")}


def asked_offsets(body: Body) -> dict[Partition, int]:
    """The offsets that a Fetch asks for, by partition."""
    return {
        (topic["topic"], row["partition"]): row["fetch_offset"]
        for topic in body["topics"]
        for row in topic["partitions"]
    }
