"""The persistence of the bundled coordinator: restarts on the same log, failing writes, damaged files."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from fencepost.adapters.classic import records
from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.log import CorruptLogError, FileLog, Log, LogWriteError, MemoryLog
from fencepost.adapters.classic.records import (
    GroupRecord,
    GroupTombstone,
    MemberRecord,
    OffsetRecord,
    OffsetTombstone,
    ProducerRecord,
    Record,
    TransactionEnd,
)
from fencepost.adapters.classic.topics import FixedTopics
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from tests.support.group_driver import (
    P_THEN_Q,
    BundledGroup,
    GroupMember,
    are_parked,
    open_group,
    response_of,
    wait_for_response,
)

MEMBER = MemberRecord("a-1", None, "a", "/127.0.0.1", 6_000, 60_000, b"\x00\xff", b"mine")
BATCHES: list[list[Record]] = [
    [GroupRecord("g", "consumer", 3, "range", "a-1", 17, (MEMBER,)), GroupTombstone("h")],
    [OffsetRecord("g", "t", 0, 5, -1, "é", 20, None, 1), OffsetTombstone("g", "t", 1)],
    [TransactionEnd(1, True), ProducerRecord(None, 2, 0)],
]


class FullDiskLog(MemoryLog):
    """A log that raises `LogWriteError` on each append while `full` is set."""

    full = False

    def append(self, batch: Sequence[Record]) -> None:
        if self.full:
            raise LogWriteError("no space left on device")
        super().append(batch)


@pytest.fixture(params=["memory", "file"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    if request.param == "memory":
        return MemoryLog()
    file = FileLog(tmp_path / "log")
    request.addfinalizer(file.close)
    return file


async def test_a_synced_group_comes_back_as_it_was(log: Log) -> None:
    async with open_group(log=log) as bundled:
        a, b, c = bundled.member(session=6_000), bundled.member(instance="i"), bundled.member(group="gone")
        await bundled.form_stable_group(a, b)
        assert a.commit(offset=9) == Error.NONE
        await c.obtain_id()
        d = bundled.member()
        await d.obtain_id()
        await bundled.request("DeleteGroups", 2, groups_names=["gone"])
        await asyncio.sleep(5)
        await bundled.target.restart()
        assert await bundled.group_state() == "Stable"
        assert await bundled.group_state("gone") == "Dead"
        await asyncio.sleep(5.999)
        assert [a.heartbeat(), b.heartbeat()] == [Error.NONE, Error.NONE]
        assert response_of(b.sync())["assignment"] == b"for 1"
        assert a.fetch()["committed_offset"] == 9
        assert response_of(d.join())["error_code"] == Error.UNKNOWN_MEMBER_ID
        again = response_of(b.join())
        assert (again["generation_id"], again["leader"]) == (1, a.id)
        new = GroupMember(bundled, instance="i")
        new.accept_join(response_of(new.join()))
        assert (new.generation, a.heartbeat(), b.heartbeat()) == (1, Error.NONE, Error.FENCED_INSTANCE_ID)
        await bundled.target.restart()
        assert [new.heartbeat(), b.heartbeat(), response_of(new.sync())["assignment"]] == [
            Error.NONE,
            Error.FENCED_INSTANCE_ID,
            b"for 1",
        ]


async def test_a_round_that_was_not_synced_is_lost(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member()
    await bundled.form_stable_group(a)
    await b.obtain_id()
    joins = [b.join(), a.join()]
    for party, join in zip((b, a), joins, strict=True):
        party.accept_join(await wait_for_response(join))
    sync = b.sync()
    await bundled.target.restart()
    assert sync.response.done() and sync.response.result() is None
    assert [response_of(a.sync())["error_code"], response_of(b.sync())["error_code"]] == [
        Error.ILLEGAL_GENERATION,
        Error.UNKNOWN_MEMBER_ID,
    ]
    assert response_of(b.join())["error_code"] == Error.UNKNOWN_MEMBER_ID
    a.accept_join(response_of(a.join()))
    assert a.generation == 2


async def test_only_the_selected_protocol_is_remembered(bundled: BundledGroup) -> None:
    a, b = bundled.member(protocols=P_THEN_Q), bundled.member(protocols=P_THEN_Q)
    await bundled.form_stable_group(a, b)
    await bundled.target.restart()
    assert are_parked(b.join()) and a.heartbeat() == Error.REBALANCE_IN_PROGRESS


async def test_an_empty_group_keeps_its_generation_and_offsets(bundled: BundledGroup) -> None:
    a, simple = bundled.member(), bundled.member(group="simple")
    await bundled.form_stable_group(a)
    assert [a.commit(), simple.commit(), a.leave()] == [Error.NONE, Error.NONE, Error.NONE]
    partition = {"partition_index": 0, "committed_offset": 50, "committed_metadata": ""}
    topics = [{"name": "fencepost", "partitions": [partition]}]
    await bundled.request("TxnOffsetCommit", 2, group_id="g", producer_id=4, topics=topics)
    await bundled.target.restart()
    assert [await bundled.group_state(), await bundled.group_state("simple")] == ["Empty", "Empty"]
    assert [a.fetch()["committed_offset"], a.fetch(stable=True)["error_code"]] == [7, Error.UNSTABLE_OFFSET_COMMIT]
    assert [party.fetch()["committed_offset"] for party in (a, simple)] == [7, 7]
    await bundled.form_stable_group(newcomer := bundled.member())
    assert newcomer.generation == 3


async def test_a_group_above_a_lowered_limit_rebalances_on_loading() -> None:
    log = MemoryLog()
    async with open_group(log=log) as bundled:
        members = [bundled.member(rebalance=10_000) for _ in range(3)]
        await bundled.form_stable_group(*members)
    async with open_group(Settings(max_group_size=2), log) as bundled:
        assert await bundled.group_state() == "PreparingRebalance"


async def test_failed_writes_return_coordinator_not_available() -> None:
    log = FullDiskLog()

    async with open_group(log=log) as bundled:
        a, b = bundled.member(), bundled.member(instance="i")
        await bundled.form_stable_group(a, b)
        log.full = True
        assert a.commit() == Error.COORDINATOR_NOT_AVAILABLE and a.fetch()["committed_offset"] == -1
        told = response_of(GroupMember(bundled, instance="i").join())
        assert (told["error_code"], told["member_id"], told["generation_id"]) == (
            Error.COORDINATOR_NOT_AVAILABLE,
            "",
            1,
        )
        assert (told["leader"], told["protocol_name"], told["members"]) == (a.id, "p", [])
        assert [b.heartbeat(), response_of(b.sync())["assignment"]] == [Error.NONE, b"for 1"]
        fresh = bundled.member(group="fresh")
        assert (
            response_of(fresh.join())["error_code"] == Error.COORDINATOR_NOT_AVAILABLE
            and await bundled.group_state("fresh") == "Dead"
        )
        join = b.join(protocols=[{"name": "p", "metadata": b"x"}])
        a.accept_join(response_of(a.join()))
        b.accept_join(response_of(join))
        syncs = [b.sync(), a.sync({b.id: b"x"})]
        assert [response_of(sync)["error_code"] for sync in syncs] == [
            Error.COORDINATOR_NOT_AVAILABLE,
            Error.COORDINATOR_NOT_AVAILABLE,
        ]
        assert [a.heartbeat(), b.heartbeat()] == [Error.REBALANCE_IN_PROGRESS, Error.REBALANCE_IN_PROGRESS]
        log.full = False
        join = a.join()
        b.accept_join(response_of(b.join()))
        a.accept_join(response_of(join))
        assert response_of(a.sync())["assignment"] == b""
        log.full = True
        assert [a.leave(), b.leave()] == [Error.NONE, Error.NONE]
        assert await bundled.group_state() == "Empty"
        assert (await bundled.request("DeleteGroups", 2, groups_names=["g"]))["results"][0][
            "error_code"
        ] == Error.COORDINATOR_NOT_AVAILABLE
        log.full = False
        assert (await bundled.request("DeleteGroups", 2, groups_names=["g"]))["results"][0]["error_code"] == Error.NONE


def test_records_survive_the_disk(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "log")
    for batch in BATCHES:
        log.append(batch)
    log.close()
    log = FileLog(tmp_path / "log")
    assert list(log.read()) == [record for batch in BATCHES for record in batch]
    log.close()
    with pytest.raises(LogWriteError):
        log.append(BATCHES[0])


def test_a_torn_last_frame_is_cut_off_wherever_it_tore(tmp_path: Path) -> None:
    path = tmp_path / "log"
    ends = [0]
    log = FileLog(path)
    for batch in BATCHES:
        log.append(batch)
        ends.append(path.stat().st_size)
    log.close()
    whole = path.read_bytes()
    for tail in (*(whole[ends[2] : end] for end in range(ends[2], ends[3])), whole[ends[2] : -1] + b"?", bytes(40)):
        path.write_bytes(whole[: ends[2]] + tail)
        log = FileLog(path)
        log.append(BATCHES[2])
        assert len(list(log.read())) == 6
        log.close()


def test_damage_before_the_end_refuses_to_load(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = FileLog(path)
    for batch in BATCHES:
        log.append(batch)
    log.close()
    whole = path.read_bytes()
    for position in (0, 5, 9, 20):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(CorruptLogError, match=r"log: .*\(byte 0\); restore"):
            FileLog(path)
    assert path.stat().st_size == len(whole)


def test_frames_that_hold_no_records_refuse_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    log = FileLog(path)
    monkeypatch.setattr(records, "encode", lambda batch: b'[{"kind": "riddle"}]')
    log.append([])
    with pytest.raises(CorruptLogError, match="not a batch of records"):
        Coordinator(Settings(), log, str, FixedTopics({}))
    log.close()
