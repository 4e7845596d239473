"""Moves of groups from node to node by the command of a profile."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import SendOptions, TraceBuilder
from fencepost.adapters.wire.process_control import MoveCommand
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.model.wire.codec import DecodedRequest
from fencepost.traces.events import Kind
from tests.support.fake_broker import FakeBroker, ScriptedResponse, serve_brokers

pytestmark = pytest.mark.real_time

TIMEOUT_S = 20.0
MOVE = "import sys; open(sys.argv[1], 'w')"
"""Makes a file with the name of the group."""


@asynccontextmanager
async def movable_target(folder: Path, program: str, **options: float) -> AsyncIterator[KafkaTarget]:
    """A target of two nodes: the second coordinates group g once there is a file of that name in `folder`."""
    first, second = brokers = FakeBroker(0), FakeBroker(1)

    def find_coordinator(request: DecodedRequest) -> ScriptedResponse:
        return first.coordinator_response(second if (folder / "g").exists() else first)

    for broker in brokers:
        broker.responses["FindCoordinator"] = find_coordinator
    command = MoveCommand((sys.executable, "-c", program, "{group}"), folder, **options)
    async with asyncio.timeout(TIMEOUT_S), serve_brokers(*brokers):
        address = ("127.0.0.1", first.port)
        target = KafkaTarget(address, overrides={"offsets_partitions": 2}, move_command=command, ready_timeout=0.5)
        try:
            assert (await target.open()).can_move
            yield target
        finally:
            await target.close()


async def test_a_move_is_recorded_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    async with movable_target(tmp_path, MOVE) as target:
        recorder = TraceBuilder(lambda: 0)
        channel = target.channel(recorder)
        assert await channel.send("Heartbeat", 3, {"group_id": "g"}).response is not None
        await target.move("g")
        await channel.send("Heartbeat", 3, {"group_id": "g"}).response
        await channel.send("Heartbeat", 3, {"group_id": "g"}, SendOptions(broker=0)).response
        faults = [(event.api, event.body) for event in recorder.events if event.kind is Kind.FAULT]
        assert faults == [("move", {"group": "g"}), ("moved", {"group": "g", "old": 0, "new": 1})]
        ports = [request.api for request in recorder.events if request.kind is Kind.INTERNAL]
        assert ports == ["routed"]


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ("pass", r"^after 0\.5 s node 0 still coordinates group 'g'; it cannot be moved$"),
        ("exit('no leader')", r"^move command .* g.: exit code 1: no leader$"),
        ("import time; time.sleep(600)", r"^move command .* g.: not finished after 0\.2 s$"),
    ],
)
async def test_a_move_that_fails(program: str, complaint: str, tmp_path: Path) -> None:
    timeout = {"timeout": 0.2} if "sleep" in program else {}
    async with movable_target(tmp_path, program, **timeout) as target:
        recorder = TraceBuilder(lambda: 0)
        target.channel(recorder)
        with pytest.raises(TargetError, match=complaint):
            await target.move("g")
        assert [event.api for event in recorder.events] == ["move"]
        with pytest.raises(TargetError, match=complaint):
            await target.move("g")
        assert len(recorder.events) == 1  # it is not tried again


async def test_a_lone_node_has_nowhere_to_move_a_group_to() -> None:
    broker = FakeBroker()
    async with asyncio.timeout(TIMEOUT_S), serve_brokers(broker):
        command = MoveCommand(("true",))
        target = KafkaTarget(
            ("127.0.0.1", broker.port), overrides={"offsets_partitions": 2}, move_command=command, ready_timeout=0.5
        )
        assert not (await target.open()).can_move
        await target.close()


async def test_without_a_command_nothing_moves() -> None:
    with pytest.raises(TargetError, match="its profile has no move command"):
        await KafkaTarget(("127.0.0.1", 1)).move("g")
