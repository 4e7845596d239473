"""Servers of connections in this process: their bytes are judged, on virtual time."""

import asyncio
from typing import Any

import pytest

from fencepost.adapters.serve.coordination import Topics
from fencepost.conformance.results import Verdict
from fencepost.conformance.testing.in_memory import MakeServe, Serve, Storage
from fencepost.conformance.testing.runs import RunChoices, SessionRun
from fencepost.conformance.testing.targets import SessionPlan, make_session_run
from fencepost.model.settings import Settings
from fencepost.testing import in_memory_stream
from tests.support.stream_servers import make_server

ASKED = ("JOIN-04", "HB-04", "HB-05", "SYNC-04")


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
