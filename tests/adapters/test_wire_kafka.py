"""The wire adapter against real implementations: opening, a group's whole life, restarts."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from fencepost.adapters.target import Description, Recorder
from fencepost.adapters.wire.channel import WireChannel
from fencepost.adapters.wire.process_control import Lifecycle
from fencepost.adapters.wire.target import KafkaTarget, parse_target
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Header, Kind, Order
from fencepost.traces.files.trace_files import open_trace, write_trace
from tests.targets.running import Running, prepare

LIMIT = 120.0
MEMBER_ID_REQUIRED = 79
REFERENCES = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("kafka4", "kafka3")]
TARGETS = [*REFERENCES, pytest.param("mock", marks=pytest.mark.mock)]


def wire(running: Running) -> KafkaTarget:
    profile = running.profile
    lifecycle = Lifecycle(profile.start, profile.kill, profile.folder)
    return KafkaTarget(parse_target(f"kafka://{running.bootstrap}"), overrides=profile.settings, lifecycle=lifecycle)


def stopwatch() -> Recorder:
    begin = time.monotonic()
    return Recorder(lambda: int((time.monotonic() - begin) * 1000))


async def ask(channel: WireChannel, api: str, version: int, body: Body) -> Body:
    answer = await channel.send(api, version, body, member="A").answer
    assert answer is not None, f"{api} v{version} was not answered"
    return answer


async def joined(channel: WireChannel, group: str, version: int = 5) -> Body:
    """Bring one member into a group of its own."""
    join: dict[str, object] = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\0\1"}],
    }
    answer = await ask(channel, "JoinGroup", version, join)
    if answer["error_code"] == MEMBER_ID_REQUIRED:
        answer = await ask(channel, "JoinGroup", version, join | {"member_id": answer["member_id"]})
    assert answer["error_code"] == 0
    return answer


async def live_once(channel: WireChannel, description: Description, group: str) -> None:
    """Join, sync, heartbeat, commit, fetch and leave."""
    member = await joined(channel, group)
    me = {"group_id": group, "generation_id": member["generation_id"], "member_id": member["member_id"]}
    shares = [{"member_id": member["member_id"], "assignment": b"mine"}]
    assert (await ask(channel, "SyncGroup", 3, me | {"assignments": shares}))["assignment"] == b"mine"
    assert (await ask(channel, "Heartbeat", 3, me))["error_code"] == 0
    partition = {"partition_index": 1, "committed_offset": 42, "committed_metadata": "note"}
    commit = {"group_id": group, "generation_id_or_member_epoch": me["generation_id"], "member_id": me["member_id"]}
    topics = [{"name": description.topic, "partitions": [partition]}]
    done = await ask(channel, "OffsetCommit", 6, commit | {"topics": topics})
    assert [part["error_code"] for topic in done["topics"] for part in topic["partitions"]] == [0]
    wanted = [{"name": description.topic, "partition_indexes": [1]}]
    found = await ask(channel, "OffsetFetch", 5, {"group_id": group, "topics": wanted})
    assert [part["committed_offset"] for topic in found["topics"] for part in topic["partitions"]] == [42]
    assert (await ask(channel, "LeaveGroup", 2, {"group_id": group, "member_id": me["member_id"]}))["error_code"] == 0


@pytest.mark.parametrize("name", TARGETS)
def test_a_group_lives_and_its_trace_is_good(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    async def run(running: Running) -> None:
        target, recorder = wire(running), stopwatch()
        async with asyncio.timeout(LIMIT):
            try:
                description = await target.open()
                assert await target.alive()
                await live_once(target.channel(recorder), description, "reach-life")
            finally:
                await target.close()
        assert not [event for event in recorder.events if event.kind is Kind.FAULT or "_findings" in event.body]
        header = Header(description.name, description.order, description.clock, description.settings, 2_000)
        write_trace(tmp_path / "trace.jsonl.gz", header, recorder.events)
        assert tuple(open_trace(tmp_path / "trace.jsonl.gz")[1]) == recorder.events

    asyncio.run(run(request.getfixturevalue(name)))


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_broker_tells_its_settings(name: str, request: pytest.FixtureRequest) -> None:
    async def run(running: Running) -> None:
        target = wire(running)
        async with asyncio.timeout(LIMIT):
            description = await target.open()
            await target.close()
        assert description.order is Order.INTERVALS
        assert description.settings == Settings(500, 60_000, 600, 6, 4_096, 60_000, 20_000, 5)
        assert {"JoinGroup", "OffsetDelete", "DeleteGroups", "TxnOffsetCommit"} <= description.versions.keys()

    asyncio.run(run(request.getfixturevalue(name)))


@pytest.mark.parametrize("name", REFERENCES)
def test_transactional_requests_find_their_coordinators(name: str, request: pytest.FixtureRequest) -> None:
    async def run(running: Running) -> None:
        target = wire(running)
        async with asyncio.timeout(LIMIT):
            try:
                await target.open()
                channel = target.channel(stopwatch())
                who: dict[str, object] = {"transactional_id": "reach-transaction"}
                started = await ask(channel, "InitProducerId", 2, who | {"transaction_timeout_ms": 10_000})
                while started["error_code"] in (14, 15, 16):
                    started = await ask(channel, "InitProducerId", 2, who | {"transaction_timeout_ms": 10_000})
                assert started["error_code"] == 0
                who |= {"producer_id": started["producer_id"], "producer_epoch": started["producer_epoch"]}
                group = {"group_id": "reach-transaction"}
                assert (await ask(channel, "AddOffsetsToTxn", 2, who | group))["error_code"] == 0
                topics = [{"name": "fencepost", "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
                done = await ask(channel, "TxnOffsetCommit", 2, who | group | {"topics": topics})
                assert [part["error_code"] for topic in done["topics"] for part in topic["partitions"]] == [0]
                assert (await ask(channel, "EndTxn", 2, who | {"committed": False}))["error_code"] == 0
            finally:
                await target.close()

    asyncio.run(run(request.getfixturevalue(name)))


@pytest.mark.parametrize("name", TARGETS)
def test_a_restart_is_survived(
    name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = prepare(name, tmp_path_factory.mktemp("restart"))
    monkeypatch.setenv("FENCEPOST_RUN", str(running.folder))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    running.start()

    async def run() -> None:
        target, recorder = wire(running), stopwatch()
        async with asyncio.timeout(LIMIT):
            try:
                assert (await target.open()).can_restart
                channel = target.channel(recorder)
                member = await joined(channel, "reach-restart")
                beat = {"group_id": "reach-restart", "member_id": member["member_id"]}
                beat["generation_id"] = member["generation_id"]
                await target.restart()
                assert await target.alive()
                # The sync phase was not over, so nothing of the generation was stored.
                assert (await ask(channel, "Heartbeat", 3, beat))["error_code"] != 0
            finally:
                await target.close()
        assert "restart" in [event.api for event in recorder.events]

    try:
        asyncio.run(run())
    finally:
        running.kill()
