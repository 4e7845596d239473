"""Restarts of a target by the commands of its profile."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import SendOptions, TraceBuilder
from fencepost.adapters.wire.process_control import MoveCommand, ProcessControl
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.model.wire.codec import DecodedRequest
from fencepost.traces.events import Kind
from tests.support.fake_broker import FakeBroker, ScriptedResponse, serve_brokers

pytestmark = pytest.mark.real_time

TIMEOUT_S = 20.0
TWO_PARTITIONS = {"offsets_partitions": 2}


def python_command(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


@asynccontextmanager
async def restartable(
    broker: FakeBroker, start: str, kill: str = ""
) -> AsyncIterator[tuple[KafkaTarget, TraceBuilder]]:
    async with asyncio.timeout(TIMEOUT_S), serve_brokers(broker):
        lifecycle = ProcessControl(python_command(start.replace("PORT", str(broker.port))), python_command(kill))
        target = KafkaTarget(
            ("127.0.0.1", broker.port), overrides=TWO_PARTITIONS, process_control=lifecycle, ready_timeout=1.0
        )
        try:
            assert (await target.open()).can_restart
            yield target, TraceBuilder(lambda: 0)
        finally:
            await target.close()


async def test_a_restart_ends_what_is_in_flight_and_is_recorded() -> None:
    async with restartable(FakeBroker(), "print('127.0.0.1:PORT')") as (target, recorder):
        channel, closed = target.channel(recorder), TraceBuilder(lambda: 0)
        await target.channel(closed).close()
        exchange = channel.send("JoinGroup", 5, {"group_id": "g"})
        await target.restart()
        assert await exchange.response is None
        assert await channel.send("Heartbeat", 3, {"group_id": "g"}).response is not None
        seen = [(event.kind, event.api, event.of) for event in recorder.events]
        assert seen == [
            (Kind.REQUEST, "JoinGroup", None),
            (Kind.FAULT, "drop", 0),
            (Kind.FAULT, "restart", None),
            (Kind.REQUEST, "Heartbeat", None),
            (Kind.RESPONSE, "Heartbeat", 3),
        ]
        assert recorder.events[1].body == {"reason": "the target was killed"}
        assert closed.events == ()


async def test_a_target_may_come_back_at_another_address() -> None:
    second = FakeBroker()
    async with (
        serve_brokers(second),
        restartable(FakeBroker(), f"print('127.0.0.1:{second.port}')") as (target, recorder),
    ):
        await target.restart()
        assert await target.channel(recorder).send("Heartbeat", 3, {"group_id": "g"}).response is not None
        assert second.requests[-1].api == "Heartbeat"


async def test_the_commands_run_in_their_folder(tmp_path: Path) -> None:
    (tmp_path / "address").write_text("host:1\n")
    lifecycle = ProcessControl(
        python_command("print(open('address').read(), end='')"), python_command("open('killed', 'w')"), tmp_path
    )
    assert await lifecycle.start() == ("host", 1)
    (tmp_path / "address").write_text("kafka://[::1]:1\n")
    assert await lifecycle.start() == ("::1", 1)
    await lifecycle.kill()
    assert (tmp_path / "killed").exists()


@pytest.mark.parametrize(
    ("start", "kill", "complaint"),
    [
        (
            python_command("print('up')"),
            python_command(""),
            r"^start command .*: printed 'up\\n', not one line with the bootstrap",
        ),
        (
            python_command("print('a:1'); print('b:2')"),
            python_command(""),
            r"^start command .*: printed 'a:1\\nb:2\\n', not one line",
        ),
        (
            python_command("print('me:geheim@a:1')"),
            python_command(""),
            r"^start command ((?!geheim').)*: an address holds no user and no password: ",
        ),
        (python_command("exit('no java')"), python_command(""), r"^start command .*: exit code 1: no java$"),
        (
            python_command("print('a:1')"),
            python_command("exit(3)"),
            r"^kill command .*: exit code 3: nothing on stderr$",
        ),
        (
            python_command("print('a:1')"),
            ("no-such-command",),
            r"^kill command 'no-such-command': cannot be run: No such file",
        ),
    ],
)
async def test_a_command_that_fails(start: tuple[str, ...], kill: tuple[str, ...], complaint: str) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        target = KafkaTarget(("127.0.0.1", 1), process_control=ProcessControl(start, kill))
        with pytest.raises(TargetError, match=complaint):
            await target.restart()
        await target.close()


async def test_a_command_that_does_not_end_is_killed() -> None:
    lifecycle = ProcessControl(python_command("import time; time.sleep(600)"), python_command(""), timeout=0.05)
    with pytest.raises(TargetError, match=r"^start command .*: not finished after 0\.05 s$"):
        await lifecycle.start()


async def test_a_target_without_commands_is_not_restarted() -> None:
    with pytest.raises(TargetError, match="its profile has no start command"):
        await KafkaTarget(("127.0.0.1", 1)).restart()


# --- Moves of groups from node to node by the command of a profile.

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
