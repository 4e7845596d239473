"""Servers of connections in this process: their bytes are judged, on virtual time."""

import asyncio
from typing import Any

import pytest

from fencepost.adapters.bundled.classic.topics import Topics
from fencepost.conformance.results import Verdict
from fencepost.conformance.testing.coordinators import Storage
from fencepost.conformance.testing.runs import RunChoices, SessionRun
from fencepost.conformance.testing.streams import MakeServe, Serve
from fencepost.conformance.testing.targets import SessionPlan, make_session_run
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import decode_request, encode_response
from fencepost.testing import in_memory_stream
from tests.support.wrapped_coordinators import WrappedAsyncCoordinator

ASKED = ("JOIN-04", "HB-04", "HB-05", "SYNC-04")


def make_server(settings: Settings, topics: Topics, storage: Storage, *, cut: int = 0, shift: int = 0) -> Serve:
    """The bundled coordinator behind a codec: `cut` bytes of each Heartbeat response are missing, and `shift` is added
    to its correlation id."""
    coordinator = WrappedAsyncCoordinator(settings, topics, storage)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while size := await read_size(reader):
            request = decode_request(await reader.readexactly(size))
            assert request.api is not None
            body = await coordinator.handle(request.api, request.version, request.body, request.client_id)
            is_odd = request.api == "Heartbeat"
            sent = request.correlation_id + (shift if is_odd else 0)
            frame = encode_response(request.api, request.version, sent, body)
            frame = frame[: len(frame) - cut] if is_odd else frame
            writer.write(len(frame).to_bytes(4) + frame)
            await writer.drain()
        writer.close()

    return serve


async def read_size(reader: asyncio.StreamReader) -> int:
    """The length of the next request, 0 at the end."""
    return int.from_bytes(await reader.read(4))


def make_closing(settings: Settings, topics: Topics, storage: Storage) -> Serve:
    """A server that closes each connection at its first request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.close()
        await writer.wait_closed()

    return serve


def make_raising(settings: Settings, topics: Topics, storage: Storage) -> Serve:
    """A server that raises an exception at the first request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        raise LookupError("no such group")

    return serve


def run_on(factory: MakeServe, **options: Any) -> SessionRun:
    """A run on a server of connections."""
    return make_session_run(in_memory_stream(factory, **options), RunChoices(), SessionPlan(ASKED, frozenset(ASKED)))


def verdicts_on(run: SessionRun) -> dict[str, Verdict]:
    """The verdicts on what is asked for."""
    return {id: run.result(id).verdict for id in ASKED}


def test_a_right_server_passes() -> None:
    assert set(verdicts_on(run_on(make_server)).values()) == {Verdict.PASS}


@pytest.mark.parametrize(
    ("odd", "verdict", "told"),
    [({"cut": 1}, Verdict.PASS, "wire"), ({"shift": 1}, Verdict.PASS, "wire"), ({"cut": 6}, Verdict.FAIL, "")],
)
def test_bytes_are_judged_as_over_a_network(odd: dict[str, int], verdict: Verdict, told: str) -> None:
    def make(settings: Settings, topics: Topics, storage: Storage) -> Serve:
        return make_server(settings, topics, storage, **odd)

    run = run_on(make)
    assert run.result("HB-04").verdict is verdict and told in run.result("HB-04").comment
    assert run.result("JOIN-04").verdict is Verdict.PASS and not run.result("JOIN-04").comment


def test_a_connection_that_is_closed_is_the_end() -> None:
    run = run_on(make_closing)
    assert Verdict.PASS not in verdicts_on(run).values()
    assert any("the connection was closed without a response" in each for each in run.exceptions())


def test_an_exception_is_told() -> None:
    run = run_on(make_raising)
    assert Verdict.PASS not in verdicts_on(run).values()
    assert any("LookupError: no such group" in each for each in run.exceptions())
