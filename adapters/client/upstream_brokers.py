"""The brokers of a real cluster behind the script: each has a listener here, which hands on what no fault is for."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from fencepost.adapters.address import Address, Bootstrap, TargetError
from fencepost.adapters.client.cluster import NotOffered, produce_body
from fencepost.adapters.record.recorder import (
    MAX_FRAME_BYTES,
    REWRITTEN_APIS,
    Upstream,
    UpstreamError,
    connect_upstream,
    read_addresses,
    rewrite_addresses,
)
from fencepost.adapters.security.authentication import PLAINTEXT, Security
from fencepost.adapters.serve.record_apis import OFFERED_VERSIONS
from fencepost.adapters.serve.server import ServeConnection
from fencepost.adapters.wire import discovery
from fencepost.adapters.wire.cluster import (
    GROUP_KEY,
    RETRY_DELAY_S,
    AdminClient,
    Cluster,
    coordinator_key_of,
    error_codes,
)
from fencepost.adapters.wire.connection import ConnectionLossError, ConnectionPool
from fencepost.adapters.wire.group_requests import GroupRequests
from fencepost.model.errors import Error
from fencepost.model.wire.codec import (
    API_KEYS,
    API_NAMES,
    Body,
    decode_request,
    decode_response,
    encode_response,
    fit_body,
)
from fencepost.model.wire.records import Record

RESPONSE_TIMEOUT_S = 30.0
READY_TIMEOUT_S = 20.0
MAX_CONNECTING = 4
METADATA_VERSION, CREATE_VERSION, GROW_VERSION, PRODUCE_VERSION = 5, 4, 1, 8
TIMEOUT_MS = 10_000
NOT_LEADER_OR_FOLLOWER = 6
LEADER_NOT_READY = {Error.UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER}
"""Errors of a leader that does not know yet that it is one."""
COMMON_VERSIONS = {**OFFERED_VERSIONS, "Fetch": (4, 6)}
"""Above that version a Fetch of a session (KIP-227) leaves out partitions which it fetches all the same."""

_log = logging.getLogger(__name__)


class UpstreamBrokers:
    """The brokers of a cluster at one of some addresses, which are connected to as `security` says."""

    def __init__(self, upstream: Bootstrap, serve: ServeConnection, security: Security = PLAINTEXT) -> None:
        self._upstream = upstream
        self._serve = serve
        self._security = security
        self._client = AdminClient(ConnectionPool(MAX_CONNECTING, RESPONSE_TIMEOUT_S, security), RESPONSE_TIMEOUT_S)
        self._cluster = Cluster(self._client, READY_TIMEOUT_S)
        self._places: dict[Address, Address] = {}
        """Where each broker is reached through this process."""
        self._opening = asyncio.Lock()
        self._listeners: list[asyncio.Server] = []
        self._conversations: set[asyncio.Task[None]] = set()
        self._topics: list[str] = []

    # -- connections ----------------------------------------------------------------------------------------------

    @property
    def address(self) -> Address:
        """As `Brokers.address`."""
        return next(iter(self._places.values()))

    async def listen(self) -> None:
        """As `Brokers.listen`. Raises `TargetError` if the cluster is not there."""
        address, self._client.versions = await discovery.learn_first(self._client, self._upstream.addresses)
        brokers, _ = await discovery.learn_brokers(self._client, address)
        self._cluster.replace_brokers(brokers)
        for broker in brokers.values():
            await self._listen_for(broker)

    async def _listen_for(self, broker: Address) -> Address:
        """Where a broker is reached through this process."""
        async with self._opening:  # two responses may name a new broker at the same time
            if broker not in self._places:
                accept = partial(self._accept, broker=broker)
                listener = await asyncio.start_server(accept, "127.0.0.1", 0)
                self._listeners.append(listener)
                self._places[broker] = listener.sockets[0].getsockname()[:2]
        return self._places[broker]

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node_id: int) -> None:
        """As `Brokers.accept`."""
        self._accept(reader, writer, self._cluster.brokers[node_id])

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, broker: Address) -> None:
        conversation = asyncio.create_task(self._relay_connection(reader, writer, broker))
        self._conversations.add(conversation)
        conversation.add_done_callback(self._conversations.discard)

    async def _relay_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, broker: Address
    ) -> None:
        """Serve a connection with one of its own to the broker."""
        link = UpstreamLink(broker, self._security)
        node_id = next((node for node, each in self._cluster.brokers.items() if each == broker), -1)
        try:
            await self._serve(reader, writer, node_id, lambda frame: self._respond(frame, link))
        finally:
            link.close()

    async def _respond(self, frame: bytes, link: "UpstreamLink") -> bytes | None:
        """The response of the broker to a request, with the addresses of this process. Raises
        `ConnectionAbortedError` without one."""
        request = decode_request(frame)
        if (key := coordinator_key_of(request.api or "", request.body)) is not None and key[0] == GROUP_KEY:
            self._cluster.groups.add(key[1])
        if request.api == "Produce" and request.body.get("acks") == 0:
            await link.send(frame)
            return None
        if request.api == "ApiVersions" and request.version > OFFERED_VERSIONS["ApiVersions"][1]:
            return refuse_version(request.correlation_id)
        response = await link.exchange(frame)
        if request.api == "ApiVersions":
            return offer_common_versions(request.version, response)
        if request.api not in REWRITTEN_APIS:
            return response
        named = read_addresses(request.api, request.version, response)
        places = {broker: await self._listen_for(broker) for broker in named}
        return rewrite_addresses(request.api, request.version, response, places)

    async def close(self) -> None:
        """As `Brokers.close`."""
        for listener in self._listeners:
            listener.close()
        for conversation in tuple(self._conversations):
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)
        with suppress(ConnectionLossError, TargetError):
            await GroupRequests(self._client, self._cluster).remove_groups(sorted(self._cluster.groups))
            for topic in self._topics:
                await discovery.remove_topic(self._client, self._cluster, topic)
        await self._client.pool.close()

    # -- what the script does -------------------------------------------------------------------------------------

    async def create_topic(self, name: str, partitions: int) -> None:
        """As `Brokers.create_topic`; returns once every partition has a leader."""
        replicas = -1 if self._client.nearest_version("CreateTopics", CREATE_VERSION) >= CREATE_VERSION else 1
        topic = {"name": name, "num_partitions": partitions, "replication_factor": replicas}
        body = await self._administer("CreateTopics", CREATE_VERSION, {"topics": [topic], "timeout_ms": TIMEOUT_MS})
        check_errors(f"cannot create topic {name}", body, but={Error.TOPIC_ALREADY_EXISTS})
        self._topics.append(name)
        await self._leaders(name, partitions)

    async def grow_topic(self, name: str, partitions: int) -> None:
        """As `Brokers.grow_topic`; returns once every partition has a leader."""
        if "CreatePartitions" not in self._client.versions:
            raise NotOffered("the cluster adds no partitions to a topic")
        topic = {"name": name, "count": partitions, "assignments": None}
        body = await self._administer("CreatePartitions", GROW_VERSION, {"topics": [topic], "timeout_ms": TIMEOUT_MS})
        check_errors(f"cannot add partitions to topic {name}", body)
        await self._leaders(name, partitions)

    async def write(self, topic: str, index: int, records: Sequence[Record], *, is_transaction: bool) -> None:
        """As `Brokers.write`."""
        if is_transaction:
            raise NotOffered("the kit writes no transactions to a real cluster")
        request = {**produce_body(topic, index, records), "timeout_ms": TIMEOUT_MS}
        deadline = asyncio.get_running_loop().time() + READY_TIMEOUT_S
        while True:
            leader = (await self._leaders(topic, index + 1))[index]
            body = await self._request(self._cluster.brokers[leader], "Produce", PRODUCE_VERSION, request)
            if not LEADER_NOT_READY & set(error_codes(body)) or asyncio.get_running_loop().time() >= deadline:
                break
            await asyncio.sleep(RETRY_DELAY_S)
        check_errors(f"cannot write to {topic}/{index}", body)

    async def move(self) -> None:
        """As `Brokers.move`."""
        raise NotOffered("the kit moves no groups on a real cluster")

    async def ask(self, api: str, version: int, body: Body) -> Body:
        """As `Brokers.ask`, in the version nearest to `version`."""
        try:
            return await GroupRequests(self._client, self._cluster).send(api, str(body["group_id"]), body, version)
        except ConnectionLossError as error:
            raise TargetError(f"no response to {api}: {error}") from None

    async def _leaders(self, topic: str, partitions: int) -> dict[int, int]:
        """The leader of each partition of a topic, once `partitions` have one. Raises `TargetError`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + READY_TIMEOUT_S
        question = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
        while True:
            body = await self._administer("Metadata", METADATA_VERSION, question)
            rows = [row for found in body.get("topics") or () for row in found.get("partitions") or ()]
            leaders = {row["partition_index"]: row["leader_id"] for row in rows if row["leader_id"] >= 0}
            if len(leaders) >= partitions:
                return leaders
            if loop.time() >= deadline:
                raise TargetError(f"topic {topic} has {len(leaders)} leaders after {READY_TIMEOUT_S:g} s")
            await asyncio.sleep(RETRY_DELAY_S)

    async def _administer(self, api: str, preferred: int, body: Body) -> Body:
        """The response of the first broker, which hands on what is the controller's."""
        return await self._request(next(iter(self._cluster.brokers.values())), api, preferred, body)

    async def _request(self, broker: Address, api: str, preferred: int, body: Body) -> Body:
        version = self._client.nearest_version(api, preferred)
        try:
            return (await self._client.request(broker, api, version, fit_body(f"{api}Request", version, body))).body
        except ConnectionLossError as error:
            raise TargetError(f"no response to {api}: {error}") from None


class UpstreamLink:
    """A connection to a broker for one of a client, made with its first request."""

    def __init__(self, broker: Address, security: Security) -> None:
        self._broker = broker
        self._security = security
        self._upstream: Upstream | None = None

    async def send(self, frame: bytes) -> Upstream:
        """Send a request on the connection, which is returned. Raises `ConnectionAbortedError`."""
        if self._upstream is not None and self._upstream.must_renew:
            self.close()
        try:
            if self._upstream is None:
                self._upstream = await connect_upstream(self._broker, self._security, MAX_FRAME_BYTES)
        except UpstreamError as error:
            _log.warning("%s; its client is turned away", error)
            raise ConnectionAbortedError from None
        self._upstream.writer.write(len(frame).to_bytes(4) + frame)
        await self._upstream.writer.drain()
        return self._upstream

    async def exchange(self, frame: bytes) -> bytes:
        """Send a request and return the response. Raises `ConnectionAbortedError` if none comes."""
        upstream = await self.send(frame)
        try:
            size = int.from_bytes(await upstream.reader.readexactly(4), signed=True)
            if not 0 < size <= MAX_FRAME_BYTES:
                raise ConnectionAbortedError
            return await upstream.reader.readexactly(size)
        except asyncio.IncompleteReadError:
            raise ConnectionAbortedError from None

    def close(self) -> None:
        """Close the connection, whatever the broker still does for it."""
        if self._upstream is not None:
            self._upstream.writer.transport.abort()
            self._upstream = None


def offer_common_versions(version: int, response: bytes) -> bytes:
    """A response to ApiVersions without what the bundled server does not offer: scenarios and their judge know that."""
    decoded = decode_response("ApiVersions", version, response)
    rows: list[Body] = []
    for row in decoded.body["api_keys"]:
        low, high = COMMON_VERSIONS.get(API_NAMES.get(row["api_key"], ""), (0, -1))
        common = max(low, row["min_version"]), min(high, row["max_version"])
        if common[0] <= common[1]:
            rows.append({**row, "min_version": common[0], "max_version": common[1]})
    return encode_response("ApiVersions", version, decoded.correlation_id, {**decoded.body, "api_keys": rows})


def refuse_version(correlation_id: int) -> bytes:
    """The response to ApiVersions of a later version than the kit knows, as brokers respond to those (KIP-511)."""
    low, high = OFFERED_VERSIONS["ApiVersions"]
    own = {"api_key": API_KEYS["ApiVersions"], "min_version": low, "max_version": high}
    return encode_response(
        "ApiVersions", 0, correlation_id, {"error_code": Error.UNSUPPORTED_VERSION, "api_keys": [own]}
    )


def check_errors(what: str, body: Body, *, but: frozenset[Error] | set[Error] = frozenset()) -> None:
    """Raise `TargetError` if a response has an error, but for those."""
    found = [code for code in error_codes(body) if code and code not in but]
    if found:
        raise TargetError(f"{what}: error {found[0]}")
