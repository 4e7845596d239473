"""The wire adapter against real implementations: opening, a group's whole life, restarts."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.adapters.address import parse_target
from fencepost.adapters.target import Description, SendOptions, TraceBuilder
from fencepost.adapters.wire.channel import WireChannel
from fencepost.adapters.wire.process_control import ProcessControl
from fencepost.adapters.wire.target import KafkaTarget
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Header, Kind, Order
from fencepost.traces.files.trace_files import open_trace, write_trace
from tests.targets.running import RunningTarget, load_target

pytestmark = pytest.mark.real_time

TIMEOUT_S = 120.0
REFERENCES = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("kafka4", "kafka3")]
NOT_READY = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
TARGETS = [*REFERENCES, pytest.param("mock", marks=pytest.mark.mock)]


@pytest.fixture
def running(request: pytest.FixtureRequest) -> RunningTarget:
    """The running target that the test's parameter names."""
    target: RunningTarget = request.getfixturevalue(request.param)
    return target


def kafka_target(running: RunningTarget) -> KafkaTarget:
    profile = running.profile
    lifecycle = ProcessControl(profile.start, profile.kill, profile.folder)
    return KafkaTarget(
        parse_target(f"kafka://{running.bootstrap}"), overrides=profile.settings, process_control=lifecycle
    )


def real_time_recorder() -> TraceBuilder:
    begin = time.monotonic()
    return TraceBuilder(lambda: int((time.monotonic() - begin) * 1000))


async def send_request(channel: WireChannel, api: str, version: int, body: Body) -> Body:
    response = await channel.send(api, version, body, SendOptions("A")).response
    assert response is not None, f"{api} v{version} was not answered"
    return response


async def join_group(channel: WireChannel, group: str, version: int = 5) -> Body:
    """Bring one member into a group of its own."""
    join: dict[str, object] = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\0\1"}],
    }
    response = await send_request(channel, "JoinGroup", version, join)
    if response["error_code"] == Error.MEMBER_ID_REQUIRED:
        response = await send_request(channel, "JoinGroup", version, join | {"member_id": response["member_id"]})
    assert response["error_code"] == Error.NONE
    return response


async def run_member(channel: WireChannel, description: Description, group: str) -> None:
    """Join, sync, heartbeat, commit, fetch and leave."""
    member = await join_group(channel, group)
    me = {"group_id": group, "generation_id": member["generation_id"], "member_id": member["member_id"]}
    shares = [{"member_id": member["member_id"], "assignment": b"mine"}]
    assert (await send_request(channel, "SyncGroup", 3, me | {"assignments": shares}))["assignment"] == b"mine"
    assert (await send_request(channel, "Heartbeat", 3, me))["error_code"] == Error.NONE
    partition = {"partition_index": 1, "committed_offset": 42, "committed_metadata": "note"}
    commit = {"group_id": group, "generation_id_or_member_epoch": me["generation_id"], "member_id": me["member_id"]}
    topics = [{"name": description.topic, "partitions": [partition]}]
    done = await send_request(channel, "OffsetCommit", 6, commit | {"topics": topics})
    assert [part["error_code"] for topic in done["topics"] for part in topic["partitions"]] == [Error.NONE]
    wanted = [{"name": description.topic, "partition_indexes": [1]}]
    found = await send_request(channel, "OffsetFetch", 5, {"group_id": group, "topics": wanted})
    assert [part["committed_offset"] for topic in found["topics"] for part in topic["partitions"]] == [42]
    assert (await send_request(channel, "LeaveGroup", 2, {"group_id": group, "member_id": me["member_id"]}))[
        "error_code"
    ] == Error.NONE


@pytest.mark.parametrize("running", TARGETS, indirect=True)
async def test_a_group_lives_and_its_trace_is_good(running: RunningTarget, tmp_path: Path) -> None:
    target, recorder = kafka_target(running), real_time_recorder()
    async with asyncio.timeout(TIMEOUT_S):
        try:
            description = await target.open()
            assert await target.is_alive()
            await run_member(target.channel(recorder), description, "reach-life")
        finally:
            await target.close()
    assert not [event for event in recorder.events if event.kind is Kind.FAULT or "_findings" in event.body]
    header = Header(description.name, description.order, description.clock, description.settings, 2_000)
    write_trace(tmp_path / "trace.jsonl.gz", header, recorder.events)
    assert tuple(open_trace(tmp_path / "trace.jsonl.gz")[1]) == recorder.events


@pytest.mark.parametrize("running", REFERENCES, indirect=True)
async def test_a_reference_broker_tells_its_settings(running: RunningTarget) -> None:
    target = kafka_target(running)
    async with asyncio.timeout(TIMEOUT_S):
        description = await target.open()
        await target.close()
    assert description.order is Order.INTERVALS
    assert description.settings == Settings(500, 60_000, 600, 6, 4_096, 60_000, 20_000, 5)
    assert {"JoinGroup", "OffsetDelete", "DeleteGroups", "TxnOffsetCommit"} <= description.versions.keys()


@pytest.mark.parametrize("running", REFERENCES, indirect=True)
async def test_transactional_requests_find_their_coordinators(running: RunningTarget) -> None:
    target = kafka_target(running)
    async with asyncio.timeout(TIMEOUT_S):
        try:
            await target.open()
            channel = target.channel(real_time_recorder())
            who: dict[str, object] = {"transactional_id": "reach-transaction"}
            started = await send_request(channel, "InitProducerId", 2, who | {"transaction_timeout_ms": 10_000})
            while started["error_code"] in NOT_READY:
                started = await send_request(channel, "InitProducerId", 2, who | {"transaction_timeout_ms": 10_000})
            assert started["error_code"] == Error.NONE
            who |= {"producer_id": started["producer_id"], "producer_epoch": started["producer_epoch"]}
            group = {"group_id": "reach-transaction"}
            assert (await send_request(channel, "AddOffsetsToTxn", 2, who | group))["error_code"] == Error.NONE
            topics = [{"name": "fencepost", "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
            done = await send_request(channel, "TxnOffsetCommit", 2, who | group | {"topics": topics})
            assert [part["error_code"] for topic in done["topics"] for part in topic["partitions"]] == [Error.NONE]
            assert (await send_request(channel, "EndTxn", 2, who | {"committed": False}))["error_code"] == Error.NONE
        finally:
            await target.close()


@pytest.fixture
def restartable(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningTarget]:
    """A target of the test's own, which its profile's commands find."""
    running = load_target(request.param, tmp_path)
    monkeypatch.setenv("FENCEPOST_RUN", str(running.folder))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    running.start()
    yield running
    running.kill()


@pytest.mark.slow
@pytest.mark.parametrize("restartable", TARGETS, indirect=True)
async def test_a_restart_is_survived(restartable: RunningTarget) -> None:
    target, recorder = kafka_target(restartable), real_time_recorder()
    async with asyncio.timeout(TIMEOUT_S):
        try:
            assert (await target.open()).can_restart
            channel = target.channel(recorder)
            member = await join_group(channel, "reach-restart")
            beat = {"group_id": "reach-restart", "member_id": member["member_id"]}
            beat["generation_id"] = member["generation_id"]
            await target.restart()
            assert await target.is_alive()
            # The sync phase was not over, so nothing of the generation was stored.
            assert (await send_request(channel, "Heartbeat", 3, beat))["error_code"] != Error.NONE
        finally:
            await target.close()
    assert "restart" in [event.api for event in recorder.events]
