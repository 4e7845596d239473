"""The proxy between raw peers and a broker with arbitrary responses: every byte passes, whichever side closes first."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.address import Bootstrap
from fencepost.adapters.record.recorder import Proxy, RecordingOptions, record_traffic
from fencepost.adapters.security.authentication import Security, load_security
from fencepost.adapters.security.settings import read_security
from fencepost.model.wire.codec import decode_response, encode_request, encode_response
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.frames import WireTrace
from tests.support.guarded_server import CERTIFICATES, Door, guarded_server
from tests.support.tcp_peer import RawClient

pytestmark = pytest.mark.real_time

TIMEOUT_S = 10
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class ProxySetup:
    """A broker, the proxy before it, and what it saw."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.notices: list[str] = []
        self.trace = WireTrace(self.events.append, lambda: 0)
        self.proxy = Proxy(self.trace, "127.0.0.1", self.notices.append)
        self.port = 0
        self.broker: tuple[str, int] = ("127.0.0.1", 0)
        self.clients: list[asyncio.StreamWriter] = []

    async def connect(self, port: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A client comes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port or self.port)
        self.clients.append(writer)
        return reader, writer

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        """Let the others go on until something is so."""
        async with asyncio.timeout(TIMEOUT_S):
            while not holds():
                await asyncio.sleep(0)


@asynccontextmanager
async def running_proxy(serve: Serve | None) -> AsyncIterator[ProxySetup]:
    """A scene; without `serve` there is no broker."""
    set_up = ProxySetup()
    answering: list[asyncio.Task[None]] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert serve is not None
        task = asyncio.current_task()
        assert task is not None
        answering.append(task)
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    set_up.broker = server.sockets[0].getsockname()[:2]
    if serve is None:
        server.close()
        await server.wait_closed()
    set_up.port = await set_up.proxy.listen(set_up.broker)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield set_up
    finally:
        await set_up.proxy.close()
        for client in set_up.clients:
            client.close()
        for task in answering:
            task.cancel()
        await asyncio.gather(*answering, return_exceptions=True)
        server.close()
        await asyncio.sleep(0)


def with_length(frame: bytes) -> bytes:
    return len(frame).to_bytes(4) + frame


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4)))


HEARTBEAT_FRAME = encode_request("Heartbeat", 0, 1, "me", {"group_id": "g", "generation_id": 1, "member_id": "m"})


async def test_bytes_that_make_no_sense_pass_as_they_are_both_ways() -> None:
    received = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\xff\xff\xff\xff<- odd")
        while data := await reader.read(1000):
            received.extend(data)

    async with running_proxy(serve) as on:
        reader, writer = await on.connect()
        writer.write(
            with_length(HEARTBEAT_FRAME)
            + with_length(b"?")
            + with_length(b"")
            + b"GET / HTTP/1.1\r\n\r\n"
            + with_length(HEARTBEAT_FRAME)
        )
        assert await reader.readexactly(10) == b"\xff\xff\xff\xff<- odd"
        writer.write_eof()
        assert await reader.read() == b""
        assert bytes(received).startswith(with_length(HEARTBEAT_FRAME)) and bytes(received).endswith(
            with_length(HEARTBEAT_FRAME)
        )
        assert b"GET / HTTP/1.1" in received
        assert any("does not speak Kafka" in line for line in on.notices)
        await on.wait_until(lambda: on.events[-1].api in ("drop", "lost", "unknown"))
        assert [event.api for event in on.events][:2].count("Heartbeat") <= 1


async def test_half_a_frame_passes_when_the_broker_goes() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write((100).to_bytes(4) + b"half of it")

    async with running_proxy(serve) as on:
        reader, writer = await on.connect()
        writer.write(with_length(HEARTBEAT_FRAME))
        assert await reader.read() == (100).to_bytes(4) + b"half of it"
        await on.wait_until(lambda: len(on.events) == 3)
        assert [event.api for event in on.events] == ["Heartbeat", "lost", "unknown"]


async def test_the_last_request_of_a_client_that_goes_reaches_the_broker() -> None:
    received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.set_result(await reader.read())

    async with running_proxy(serve) as on:
        _, writer = await on.connect()
        writer.write(with_length(HEARTBEAT_FRAME))
        writer.close()
        assert await received == with_length(HEARTBEAT_FRAME)
        await on.wait_until(lambda: len(on.events) == 2)
        assert [event.api for event in on.events] == ["Heartbeat", "drop"]


async def test_without_a_broker_clients_are_turned_away_and_the_proxy_stays() -> None:
    async with running_proxy(None) as on:
        for _ in range(2):
            reader, _ = await on.connect()
            assert await reader.read() == b""
        (line,) = on.notices
        assert "turned away" in line


async def test_brokers_that_are_named_are_reached_through_the_proxy() -> None:
    heard: list[bytes] = []

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await read_frame(reader))
        writer.close()

    second = await asyncio.start_server(other, "127.0.0.1", 0)
    port = second.sockets[0].getsockname()[1]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_frame(reader)
            named = {"node_id": 2, "host": "127.0.0.1", "port": port}
            writer.write(with_length(encode_response("FindCoordinator", 2, 1, named)))

    async with running_proxy(serve) as on:
        reader, writer = await on.connect()
        for _ in range(2):
            writer.write(with_length(encode_request("FindCoordinator", 2, 1, "me", {"key": "g"})))
            found = decode_response("FindCoordinator", 2, await read_frame(reader)).body
            assert found["port"] not in (port, on.port) and found["node_id"] == 2
        _, going = await on.connect(found["port"])
        going.write(with_length(HEARTBEAT_FRAME))
        await on.wait_until(lambda: bool(heard))
        # What the broker said stays on record.
        assert [event.body.get("port") for event in on.events if event.kind == "response"] == [port, port]
    assert heard == [HEARTBEAT_FRAME]
    second.close()


async def test_what_cannot_be_recorded_passes_all_the_same() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(with_length(await read_frame(reader)))

    async with running_proxy(serve) as on:

        def fail(event: Event) -> None:
            raise RuntimeError("no pen")

        on.trace.write = fail
        reader, writer = await on.connect()
        writer.write(with_length(HEARTBEAT_FRAME))
        assert await read_frame(reader) == HEARTBEAT_FRAME
        assert any("no pen" in line for line in on.notices)


async def test_a_broker_has_one_listener_however_often_it_is_named_at_once() -> None:
    async with running_proxy(None) as on:
        ports = await asyncio.gather(*(on.proxy.listen(("127.0.0.1", 9)) for _ in range(5)))
        assert len(set(ports)) == 1 and ports[0] != on.port


# --- The recorder between plaintext clients and a cluster that wants TLS and SASL.

SECURE_TIMEOUT_S = 30
SECRET = "open-sesame"
DOOR = Door("broker", mechanisms=("SCRAM-SHA-256",), users={"kit": SECRET})


def security_of(door: Door, folder: Path) -> Security:
    (folder / "password").write_text(SECRET)
    section: dict[str, object] = {"mechanism": door.mechanisms[0], "user": "kit", "password_file": "password"}
    if door.certificate:
        section |= {"tls": True, "ca_file": str(CERTIFICATES / "authority.pem")}
    return load_security(read_security(section, folder))


class Recording:
    """A recording in progress, with clients of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notices: list[str] = []
        self.address: tuple[str, int] = ("", 0)
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> RawClient:
        """A new client in plaintext."""
        reader, writer = await asyncio.open_connection(*self.address)
        self._writers.append(writer)
        return RawClient(reader, writer)

    def close(self) -> None:
        """Close all clients."""
        for writer in self._writers:
            writer.transport.abort()

    def read_trace(self) -> tuple[Header, list[Event]]:
        """The trace, which holds no secret."""
        assert SECRET.encode() not in self.path.read_bytes()
        header, events = open_trace(self.path)
        return header, list(events)


@asynccontextmanager
async def recording(door: Door, folder: Path, *dead: tuple[str, int]) -> AsyncIterator[Recording]:
    """Records a server behind `door`; `dead` addresses come before its own."""
    stop = asyncio.Event()
    scene = Recording(folder / "trace.jsonl")
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def announce(host: str, port: int) -> None:
        scene.address = (host, port)
        ready.set_result(None)

    async with guarded_server(door) as upstream, asyncio.timeout(SECURE_TIMEOUT_S):
        cluster = Bootstrap((*dead, upstream))
        job = RecordingOptions(("127.0.0.1", 0), cluster, scene.path, security=security_of(door, folder))
        task = asyncio.create_task(record_traffic(job, announce, scene.notices.append, stop))
        await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
        try:
            if task.done():
                task.result()
            yield scene
        finally:
            scene.close()
            stop.set()
            await task


HEARTBEAT: Mapping[str, Any] = {"group_id": "g", "generation_id": 1, "member_id": "m"}


@pytest.mark.parametrize("certificate", ["broker", None])
async def test_a_plaintext_client_of_a_guarded_cluster(certificate: str | None, tmp_path: Path) -> None:
    async with recording(replace(DOOR, certificate=certificate), tmp_path, ("127.0.0.1", 1)) as scene:
        client = await scene.connect()
        (broker,) = (await client.request("Metadata", 5, {"topics": []}))["brokers"]
        assert (broker["host"], broker["port"]) == scene.address
        assert (await client.request("Heartbeat", 3, HEARTBEAT))["error_code"] == 25
    header, events = scene.read_trace()
    assert header.source.startswith("kafka+ssl://" if certificate else "kafka://")
    assert {event.api for event in events if event.kind in (Kind.REQUEST, Kind.RESPONSE)} == {"Metadata", "Heartbeat"}
    assert scene.notices == []


async def test_sessions_are_renewed_between_the_requests_of_a_client(tmp_path: Path) -> None:
    door = replace(DOOR, lifetime_ms=1)
    async with recording(door, tmp_path) as scene:
        client = await scene.connect()
        while door.renewals < 3:
            assert (await client.request("Heartbeat", 3, HEARTBEAT))["error_code"] == 25
    _, events = scene.read_trace()
    assert {event.api for event in events if event.kind in (Kind.REQUEST, Kind.RESPONSE)} == {"Heartbeat"}
    assert [event.api for event in events if event.api == "unknown"] == ["unknown"]  # the recording begins
    assert scene.notices == []


async def test_a_session_that_cannot_be_renewed_ends_the_connection(tmp_path: Path) -> None:
    door = replace(DOOR, users=dict(DOOR.users), lifetime_ms=1)
    async with recording(door, tmp_path) as scene:
        client = await scene.connect()
        await client.request("Heartbeat", 3, HEARTBEAT)
        door.users = {}
        frame = b"?"
        while frame:
            client.write_frame(encode_request("Heartbeat", 3, 1, "me", HEARTBEAT))
            frame = await client.read_frame()
        (notice,) = scene.notices
    assert notice.startswith("a session could not be renewed: SCRAM-SHA-256 authentication failed: ")
    assert "its client is turned away" in notice and SECRET not in notice


async def test_a_client_that_is_turned_away_is_told_of(tmp_path: Path) -> None:
    door = replace(DOOR, users=dict(DOOR.users))
    async with recording(door, tmp_path) as scene:
        door.users = {}
        client = await scene.connect()
        assert await client.read_frame() == b""
        (notice,) = scene.notices
    assert "SCRAM-SHA-256 authentication failed" in notice and "its clients are turned away" in notice


async def test_a_client_that_leaves_ends_its_connection_to_the_broker(tmp_path: Path) -> None:
    """TLS cannot be closed in one direction only, and a broker would wait for minutes."""
    door = replace(DOOR)
    async with recording(door, tmp_path) as scene:
        client = await scene.connect()
        await client.request("Heartbeat", 3, HEARTBEAT)
        assert door.connections == 1
        await client.close()
        while door.connections:
            await asyncio.sleep(0)
