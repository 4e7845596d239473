"""The line protocol over loopback: jobs, errors, and what no line can do."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fencepost.adapters.address import TargetError
from fencepost.adapters.region.line_program import MAX_LINE, LineProgram
from fencepost.adapters.region.line_target import LineTarget, connect_over_tcp

pytestmark = pytest.mark.real_time
OPEN = {"id": 1, "do": "open", "operators": ["A", "B"], "max_poll_records": 5}


class Peer:
    """A connection to the program."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def say(self, line: bytes) -> Any:
        self._writer.write(line + b"\n")
        async with asyncio.timeout(10):
            answer = await self._reader.readline()
        return json.loads(answer) if answer else None

    async def ask(self, **request: object) -> Any:
        return await self.say(json.dumps(request).encode())


@asynccontextmanager
async def running_program() -> AsyncIterator[tuple[str, int]]:
    program = LineProgram()
    try:
        yield await program.start("127.0.0.1", 0)
    finally:
        await program.close()


@asynccontextmanager
async def open_peer() -> AsyncIterator[Peer]:
    async with running_program() as address:
        peer = await connect(address)
        try:
            yield peer
        finally:
            await peer.close()


async def connect(address: tuple[str, int]) -> Peer:
    return Peer(*await asyncio.open_connection(*address, limit=2 * MAX_LINE))


async def test_a_job_is_that_of_its_connection() -> None:
    async with running_program() as address:
        one, other = await connect(address), await connect(address)
        assert await one.ask(**OPEN) == {"of": 1}
        launched = await one.ask(id=2, do="launch", operator="A", region=0)
        assert (launched["of"], launched["state"], launched["offsets"]) == (2, "SUBSCRIBED", {})
        assert await other.ask(id=7, do="revoke", operator="A") == {"of": 7, "error": "no job is open"}
        await one.close()
        await other.close()


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"{", "the line is not JSON"),
        (b"[1]", "the line is not a JSON object"),
        (b"[" * 100_000, "the line is not JSON"),
        (b'{"do": "dance"}', "there is no request 'dance'"),
        (b'{"do": 5}', "'do' is not a text"),
        (b'{"do": "revoke", "operator": "A"}', "operator 'A' is not up"),
        (b'{"do": "launch", "operator": "Z", "region": 0}', "'Z' is no operator of the job"),
        (b'{"do": "launch", "operator": "A", "region": -1}', "'region' is not a number"),
        (b'{"do": "poll", "operator": "B", "records": [[0]]}', "'records' is not a list of pairs of numbers"),
        (
            b'{"do": "assign", "operator": "B", "starts": {}, "partitions": [null]}',
            "'partitions' is not a list of numbers",
        ),
        (b'{"do": "assign", "operator": "B", "starts": {"x": 1}}', "'starts' is not a map of offsets"),
        (b'{"do": "reset", "operator": "B", "number": 1}', "'part' is not what a checkpoint returned"),
    ],
)
async def test_a_request_that_says_nothing_sensible_gets_an_error(line: bytes, error: str) -> None:
    async with open_peer() as peer:
        await peer.ask(**OPEN)
        await peer.ask(id=2, do="launch", operator="B", region=0)
        assert (await peer.say(line))["error"] == error
        assert (await peer.ask(id=3, do="revoke", operator="B"))["of"] == 3


async def test_a_line_without_end_ends_the_connection() -> None:
    async with open_peer() as peer:
        assert (await peer.say(b"x" * (MAX_LINE + 2)))["error"] == f"the line is longer than {MAX_LINE} bytes"
        assert await peer.say(b"{}") is None


async def test_nothing_there_is_no_target() -> None:
    async with running_program() as address:
        target = LineTarget("here", connect_over_tcp(*address))
        assert (await target.open()).name == "here"
    with pytest.raises(TargetError, match="nothing there speaks"):
        await target.open()
