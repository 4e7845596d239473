"""The bundled coordinator as a broker in a thread of the test, for applications with real clients."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from fencepost.adapters.serve.server import Server
from fencepost.adapters.target import format_address
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import DecodedRequest
from fencepost.traces.events import Body

T = TypeVar("T")
QUICK_SETTINGS = Settings(min_session_timeout=100, initial_rebalance_delay=50)
"""Settings with which a group forms at once."""
TIMEOUT_S = 10.0
"""How long the server may take for anything."""
_DESCRIBE_VERSION, _LIST_VERSION, _FETCH_VERSION = 5, 4, 8


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """A request that the coordinator answered, with its response."""

    api: str
    version: int
    client_id: str | None
    body: Body
    response: Body


@dataclass(frozen=True, slots=True)
class ServedGroup:
    """A group: its state as DescribeGroups names it, its protocol, the client ids of its members, and its committed
    offsets by topic and partition."""

    state: str
    protocol: str
    clients: tuple[str, ...]
    offsets: dict[tuple[str, int], int]


class ServedCoordinator:
    """A running broker, as `fencepost_coordinator` gives it: one node that coordinates all groups and keeps all topics
    in memory. Clients reach it at `bootstrap`, which is host:port. A topic that is asked for is made, with four
    partitions."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, requests: list[ServedRequest]) -> None:
        self.bootstrap = format_address(*server.address)
        self._server = server
        self._loop = loop
        self._requests = requests

    def requests(self, api: str = "") -> tuple[ServedRequest, ...]:
        """The requests to the coordinator that were answered so far, or those of one API, in the order of the
        responses."""
        return tuple(each for each in tuple(self._requests) if api in ("", each.api))

    @property
    def groups(self) -> dict[str, ServedGroup]:
        """The groups that exist now."""
        return self._call(self._describe_groups())

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic. Raises `ValueError` if it exists or cannot be."""

        async def create() -> Error:
            return self._server.create_topic(name, partitions)

        error = self._call(create())
        if error is not Error.NONE:
            raise ValueError(f"topic {name!r} with {partitions} partitions: {error.name}")

    async def _describe_groups(self) -> dict[str, ServedGroup]:
        listed = await self._server.ask("ListGroups", _LIST_VERSION, {"states_filter": []})
        names = [row["group_id"] for row in listed["groups"]]
        described = await self._server.ask("DescribeGroups", _DESCRIBE_VERSION, {"groups": names})
        return {row["group_id"]: await self._view(row) for row in described["groups"]}

    async def _view(self, row: Body) -> ServedGroup:
        asked = {"groups": [{"group_id": row["group_id"], "topics": None}], "require_stable": False}
        fetched = await self._server.ask("OffsetFetch", _FETCH_VERSION, asked)
        offsets = {
            (topic["name"], partition["partition_index"]): partition["committed_offset"]
            for topic in fetched["groups"][0]["topics"]
            for partition in topic["partitions"]
        }
        clients = tuple(member["client_id"] for member in row["members"])
        return ServedGroup(row["group_state"], row["protocol_data"], clients, offsets)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work in the thread of the server."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)


@contextmanager
def serve_in_thread(settings: Settings = QUICK_SETTINGS) -> Iterator[ServedCoordinator]:
    """A coordinator that serves on a free port of this machine until the block ends. Raises `OSError` if there is no
    port."""
    started: Future[ServedCoordinator] = Future()
    ends: Future[None] = Future()

    async def live() -> None:
        requests: list[ServedRequest] = []

        def observe(request: DecodedRequest, response: Body) -> None:
            requests.append(
                ServedRequest(request.api or "", request.version, request.client_id, request.body, response)
            )

        server = Server(settings, None, observe=observe)
        try:
            await server.listen("127.0.0.1", 0)
            started.set_result(ServedCoordinator(server, asyncio.get_running_loop(), requests))
            await asyncio.wrap_future(ends)
        except Exception as error:
            started.set_exception(error)
        finally:
            await server.close()

    thread = threading.Thread(target=asyncio.run, args=(live(),), name="fencepost coordinator", daemon=True)
    thread.start()
    try:
        yield started.result(TIMEOUT_S)
    finally:
        with suppress(RuntimeError):
            ends.set_result(None)
        thread.join(TIMEOUT_S)
