"""A real cluster in the place of the bundled server: a proxy before its brokers, with the script between.

Requests of the client go to the broker that they are for, each connection of the client with one of its own. Responses
are changed in two places: brokers have the proxy's addresses, and ApiVersions offers no more than the bundled server
does, so that everything can be read. Topics, records and members of the script are made by requests of the kit.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from fencepost.adapters.address import Address, format_address
from fencepost.adapters.record.address_rewriting import REWRITTEN_APIS, read_addresses, rewrite_addresses
from fencepost.adapters.serve.server import ServeConnection
from fencepost.adapters.serve.versions import OFFERED_VERSIONS
from fencepost.adapters.target import TargetError
from fencepost.adapters.wire.admin_client import AdminClient, error_codes
from fencepost.adapters.wire.cluster import RETRY_DELAY_S, Cluster, coordinator_key_of
from fencepost.adapters.wire.connection import Connection, ConnectionLossError
from fencepost.adapters.wire.discovery import learn_brokers, learn_versions, remove_topic
from fencepost.adapters.wire.group_requests import GroupRequests
from fencepost.adapters.wire.pool import ConnectionPool, connection_limit
from fencepost.model.errors import COORDINATOR_NOT_READY, Error, FencepostError
from fencepost.model.wire.codec import API_NAMES, Body, decode_request, decode_response, encode_response, fit_body
from fencepost.model.wire.records import Batch

CONNECT_S = 10.0
RESPONSE_S = 90.0
"""How long a broker may take for a response to the kit; JoinGroup waits for other members."""
READY_S = 20.0
"""How long the leaders of a topic and the coordinator of a group may take to appear."""


class NotInjectableError(FencepostError):
    """A script asks for what a real cluster does not do at the kit's word; the message says what."""


class UpstreamServer:
    """A real cluster, as `ScriptedCluster` asks a server for things. `serve` serves each connection of the client.

    Orders of the script, such as to create a topic, are carried out one after the other, before the next request of the
    client is passed on. What was made is removed when it closes.
    """

    def __init__(self, upstream: Address, serve: ServeConnection) -> None:
        self._upstream = upstream
        self._serve = serve
        self._client = AdminClient(ConnectionPool(connection_limit(), CONNECT_S), RESPONSE_S)
        self._cluster = Cluster(self._client, READY_S)
        self._host = ""
        self._ports: dict[Address, int] = {}
        self._listeners: list[asyncio.Server] = []
        self._opening = asyncio.Lock()
        self._connections: set[asyncio.Task[None]] = set()
        self._last_order: asyncio.Task[None] | None = None
        self._leaders: dict[tuple[str, int], Address] = {}
        self._topics: list[str] = []

    @property
    def address(self) -> tuple[str, int]:
        """Where the client finds the first broker."""
        return self._host, self._ports[self._upstream]

    async def listen(self, host: str, port: int) -> None:
        """Begin to take connections for the cluster. Raises `TargetError` if it cannot be used, `OSError` if the
        address is taken."""
        self._client.versions = await learn_versions(self._client, self._upstream)
        brokers, _ = await learn_brokers(self._client, self._upstream)
        self._cluster.replace_brokers(brokers)
        self._host = host
        await self._listen_for(self._upstream, port)

    async def close(self) -> None:
        """Close every connection, and remove the topics and groups that were made. Raises `TargetError` if an order
        could not be carried out."""
        for listener in self._listeners:
            listener.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        order = self._last_order
        try:
            if order is not None:
                await order
        finally:
            await self._remove_everything()
            await self._client.pool.close()

    async def _remove_everything(self) -> None:
        try:
            for topic in self._topics:
                await remove_topic(self._client, self._cluster, topic)
            await GroupRequests(self._client, self._cluster).remove_groups(self._cluster.groups)
        except ConnectionLossError as error:
            raise TargetError(f"{format_address(*self._upstream)}: {error}") from None

    # -- what the script orders -----------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic."""
        self._topics.append(name)
        self._order(partial(self._create_topic, name, partitions))

    def produce(self, body: Body) -> None:
        """Append the records of a Produce request with one partition."""
        self._order(partial(self._produce, body))

    def grow_topic(self, name: str, partitions: int) -> None:
        """Raises `NotInjectableError`."""
        raise NotInjectableError("the kit adds no partitions to a topic of a real cluster")

    def write_transaction(self, topic: str, index: int, batch: Batch) -> None:
        """Raises `NotInjectableError`."""
        raise NotInjectableError("the kit writes no transactions to a real cluster")

    def move(self) -> None:
        """Raises `NotInjectableError`."""
        raise NotInjectableError("a real cluster does not move a group at the kit's word")

    async def ask(self, api: str, version: int, body: Body) -> Body:
        """Have the coordinator handle a request of the kit, on a connection of its own. Raises `TargetError`."""
        await self._carry_out_orders()
        key = coordinator_key_of(api, body)
        if key is not None:
            self._cluster.groups.add(key[1])
        deadline = asyncio.get_running_loop().time() + READY_S
        while True:
            try:
                address = await self._cluster.locate(key, None)
            except ConnectionLossError as error:
                raise TargetError(f"{format_address(*self._upstream)}: {error}") from None
            response = await self._send(address, api, version, body, alone=True)
            is_late = asyncio.get_running_loop().time() > deadline
            if is_late or response.get("error_code", 0) not in COORDINATOR_NOT_READY:
                return response
            self._cluster.forget_coordinator(key)
            await asyncio.sleep(RETRY_DELAY_S)

    def _order(self, work: Callable[[], Awaitable[None]]) -> None:
        before = self._last_order

        async def follow() -> None:
            if before is not None:
                await before
            await work()

        self._last_order = asyncio.ensure_future(follow())

    async def _carry_out_orders(self) -> None:
        if self._last_order is not None:
            await asyncio.shield(self._last_order)

    async def _create_topic(self, name: str, partitions: int) -> None:
        address = next(iter(self._cluster.brokers.values()))
        version = self._client.nearest_version("CreateTopics", 4)
        wanted = {"name": name, "num_partitions": partitions, "replication_factor": -1 if version >= 4 else 1}
        await self._request(address, "CreateTopics", version, {"topics": [wanted], "timeout_ms": 10_000})
        version = self._client.nearest_version("Metadata", 5)
        question = fit_body(
            "MetadataRequest", version, {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        )
        deadline = asyncio.get_running_loop().time() + READY_S
        while True:
            body = await self._send(address, "Metadata", version, question)
            rows = [row for topic in body["topics"] for row in topic["partitions"]]
            leaders = [self._cluster.brokers.get(row["leader_id"]) for row in rows]
            if len(rows) == partitions and all(leaders):
                break
            if asyncio.get_running_loop().time() > deadline:
                raise TargetError(f"{format_address(*address)}: topic {name!r} has no leaders after {READY_S:g} s")
            await asyncio.sleep(RETRY_DELAY_S)
        found = {row["partition_index"]: leader for row, leader in zip(rows, leaders, strict=True)}
        self._leaders |= {(name, index): leader for index, leader in found.items() if leader is not None}

    async def _produce(self, body: Body) -> None:
        topic = body["topic_data"][0]
        address = self._leaders[topic["name"], topic["partition_data"][0]["index"]]
        version = self._client.nearest_version("Produce", OFFERED_VERSIONS["Produce"][1])
        await self._request(address, "Produce", version, {"transactional_id": None, "timeout_ms": 10_000, **body})

    async def _send(self, address: Address, api: str, version: int, body: Body, *, alone: bool = False) -> Body:
        """Send a request of the kit; the body of the response. Raises `TargetError`."""
        try:
            return (await self._client.request(address, api, version, body, alone=alone)).body
        except ConnectionLossError as error:
            raise TargetError(f"{format_address(*address)}: {error}") from None

    async def _request(self, address: Address, api: str, version: int, body: Body) -> None:
        """Send a request of the kit that must succeed. Raises `TargetError`."""
        response = await self._send(address, api, version, fit_body(f"{api}Request", version, body))
        failed = next((code for code in error_codes(response) if code), 0)
        if failed:
            raise TargetError(f"{format_address(*address)}: {api} failed with error {Error(failed).name}")

    # -- connections of the client --------------------------------------------------------------------------------

    async def _listen_for(self, broker: Address, port: int = 0) -> int:
        """Listen for the client's connections to a broker; the port."""
        async with self._opening:  # two responses may name a broker at the same time
            if broker not in self._ports:
                listener = await asyncio.start_server(partial(self._accept, broker), self._host, port)
                self._listeners.append(listener)
                self._ports[broker] = listener.sockets[0].getsockname()[1]
        return self._ports[broker]

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node_id: int = 0) -> None:
        """Serve a connection to the first broker, in a task of its own."""
        self._accept(self._upstream, reader, writer)

    def _accept(self, broker: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._relay(broker, reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _relay(self, broker: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection of the client with one to the broker, which is made when it is needed."""
        made: list[Connection] = []

        async def respond(frame: bytes) -> bytes | None:
            try:
                await self._carry_out_orders()
                if not made:
                    made.append(await self._client.pool.open_connection(broker))
                return await self._rewrite(frame, await made[0].exchange(frame))
            except (ConnectionLossError, TargetError):
                raise ConnectionAbortedError from None

        try:
            await self._serve(reader, writer, 0, respond)
        finally:
            for connection in made:
                connection.abort()

    async def _rewrite(self, asked: bytes, response: bytes) -> bytes:
        """A response as the client gets it."""
        request = decode_request(asked)
        api, version = request.api or "", request.version
        key = coordinator_key_of(api, request.body)
        if key is not None:
            self._cluster.groups.add(key[1])
        if api == "ApiVersions":
            return limit_versions(version, response)
        if api not in REWRITTEN_APIS:
            return response
        known = read_addresses(api, version, response)
        places = {each: (self._host, await self._listen_for(each)) for each in known}
        return rewrite_addresses(api, version, response, places)


def limit_versions(version: int, response: bytes) -> bytes:
    """A response to ApiVersions that offers what the bundled server offers too; one with an error stays as it is."""
    if response[4:6] != bytes(2):
        return response
    decoded = decode_response("ApiVersions", version, response)
    rows = []
    for row in decoded.body["api_keys"]:
        low, high = OFFERED_VERSIONS.get(API_NAMES.get(row["api_key"], ""), (0, -1))
        low, high = max(low, row["min_version"]), min(high, row["max_version"])
        if low <= high:
            rows.append({**row, "min_version": low, "max_version": high})
    return encode_response("ApiVersions", version, decoded.correlation_id, {**decoded.body, "api_keys": rows})
