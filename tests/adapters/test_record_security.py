"""The recorder between plaintext clients and a cluster that wants TLS and SASL."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.address import Bootstrap
from fencepost.adapters.record.recorder import RecordingOptions, record_traffic
from fencepost.adapters.security.authentication import Security, load_security
from fencepost.adapters.security.settings import read_security
from fencepost.model.wire.codec import encode_request
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.files.trace_files import open_trace
from tests.support.guarded_server import CERTIFICATES, Door, guarded_server
from tests.support.tcp_peer import RawClient

pytestmark = pytest.mark.real_time

TIMEOUT_S = 30
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

    async with guarded_server(door) as upstream, asyncio.timeout(TIMEOUT_S):
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
