"""What only the bundled coordinator does: its log, failing writes, metadata that cannot be read, random requests."""

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.classic import records
from fencepost.adapters.classic.coordinator import VERSIONS, Coordinator
from fencepost.adapters.classic.log import FileLog, LogWriteError, MemoryLog
from fencepost.adapters.classic.messages import UnreadableSubscription, read_topics
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
from fencepost.adapters.classic.timers import Timers
from fencepost.adapters.serve.coordination import CorruptLogError, FixedTopics, Request, Response, topic_id_of
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from tests.support.group_driver import BundledGroup, GroupMember, open_group, response_of, wait_for_response

# --- The persistence of the bundled coordinator: restarts on the same log, failing writes, damaged files.

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


# --- Offsets of the bundled coordinator: commit, fetch, delete, transactions; and the questions from outside.


def subscription(*topics: str) -> bytes:
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 1, len(topics)) + names + b"\xff\xff\xff\xff"


async def test_absurd_metadata_does_not_hang_a_round(bundled: BundledGroup) -> None:
    for number, metadata in enumerate([b"", b"\x00\x00\x7f\xff\xff\xff", b"\x00\x00\x00\x00\x00\x01\x00\x02\xff\xfe"]):
        a = bundled.member(group=f"g{number}", type="consumer", protocols=(("range", metadata),))
        await a.obtain_id()
        assert (await wait_for_response(a.join()))["members"][0]["metadata"] == metadata


def test_reading_subscriptions() -> None:
    assert read_topics(subscription("one", "two")) == {"one", "two"}
    for bad in (
        b"",
        b"\x00\x01",
        b"\x00\x01\xff\xff\xff\xff",
        b"\x00\x01\x00\x00\x00\x01\xff\xff",
        b"\0\1\0\0\0\1\0\x09a",
    ):
        with pytest.raises(UnreadableSubscription):
            read_topics(bad)


# --- Random requests against the bundled coordinator: its responses are consistent with each other.

SETTINGS = Settings(min_session_timeout=0, initial_rebalance_delay=5, max_group_size=4, retention_check_interval=500)
FREQUENT_APIS = ("JoinGroup", "JoinGroup", "SyncGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch")
METADATA = (b"", b"\x00", b"\x00\x01\x00\x00\x00\x01\x00\x01t", b"\x00\x00\x7f\xff\xff\xff")


class FlakyLog(MemoryLog):
    """A log that fails now and then."""

    def __init__(self, source: random.Random) -> None:
        super().__init__()
        self.source = source

    def append(self, batch: Sequence[Record]) -> None:
        if self.source.random() < 0.05:
            raise LogWriteError("out of order")
        super().append(batch)


@dataclass
class RandomRequester:
    """Sends what it makes up, with ids and generations it has seen, and checks every answer."""

    random: random.Random
    now: int = 0
    handles: int = 0
    issued_ids: list[str] = field(default_factory=list)
    member_ids: list[str] = field(default_factory=list)
    pending: dict[int, Request] = field(default_factory=dict)
    generation: int = 0
    answered: int = 0
    synced: int = 0

    def __post_init__(self) -> None:
        self.log = FlakyLog(self.random)
        self.coordinator = self.start_coordinator()

    def start_coordinator(self) -> Coordinator:
        self.pending.clear()
        return Coordinator(SETTINGS, self.log, self.new_id, FixedTopics({"t": 2}), now=self.now)

    def new_id(self, prefix: str) -> str:
        member_id = f"{prefix}-{len(self.issued_ids)}"
        self.issued_ids.append(member_id)
        return member_id

    def step(self) -> None:
        choice = self.random.random()
        if choice < 0.005:
            self.coordinator = self.start_coordinator()
        elif choice < 0.25:
            self.now += self.random.choice((0, 1, 5, 20))
            self.check(self.coordinator.advance(self.now))
        else:
            self.check(self.coordinator.advance(self.now))
            self.handles += 1
            api = self.random.choice(FREQUENT_APIS if self.random.random() < 0.9 else tuple(VERSIONS))
            request = Request(self.handles, api, self.random.randint(*VERSIONS[api]), "c", "/h", self.body())
            self.pending[request.handle] = request
            self.check(self.coordinator.handle(request, self.now))

    def body(self) -> dict[str, Any]:
        """One body for every API: each takes from it what it knows."""
        pick = self.random.choice
        member = pick(["", "x", *self.issued_ids[-3:], *self.member_ids * 3])
        instance = pick([None] * 9 + ["i", "j"])
        generation = pick([-1, *[self.generation] * 8, self.generation + 1])
        partition = {
            "partition_index": pick([0, 1, 2]),
            "committed_offset": self.random.randint(-5, 99),
            "committed_metadata": pick([None, "", "note"]),
        }
        metadata = pick([*METADATA, *METADATA[:1] * 20])
        names = pick([*[["p"]] * 12, ["p", "q"], ["q", "p"], ["q", "p", "p"], ["r"], []])
        name = pick(["t", "t", "ghost"])
        topic = {"name": name, "topic_id": topic_id_of(name), "partitions": [partition], "partition_indexes": [0]}
        return {
            "group_id": pick(["g"] * 9 + [""]),
            "member_id": member,
            "group_instance_id": instance,
            "generation_id": generation,
            "generation_id_or_member_epoch": generation,
            "session_timeout_ms": pick([1000] * 12 + [0, 50]),
            "rebalance_timeout_ms": pick([1000] * 12 + [-1, 0, 50]),
            "protocol_type": pick(["consumer"] * 20 + ["other", ""]),
            "protocol_name": pick(["p"] * 5 + ["q", None]),
            "protocols": [{"name": name, "metadata": metadata} for name in names],
            "assignments": [{"member_id": m, "assignment": m.encode()} for m in self.issued_ids],
            "members": [{"member_id": member, "group_instance_id": instance}],
            "topics": pick([[topic], []]),
            "groups_names": [pick(["g", "h"])],
            "retention_time_ms": pick([-1, 0, 100]),
            "producer_id": pick([1, 2]),
            "transactional_id": pick(["t", None, "u"]),
            "committed": pick([True, False]),
            "require_stable": pick([True, False]),
        }

    def check(self, responses: list[Response]) -> None:
        for response in responses:
            request = self.pending.pop(response.handle)  # answered once, and only if it was asked
            self.answered += 1
            if request.api == "JoinGroup" and response.body["error_code"] == Error.NONE:
                self.check_join(response.body)
            if request.api == "SyncGroup" and response.body["error_code"] == Error.NONE:
                self.synced += bool(response.body["assignment"])
                assert response.body["assignment"] in (b"", *(m.encode() for m in self.issued_ids))

    def check_join(self, body: dict[str, Any]) -> None:
        self.generation = body["generation_id"]
        assert body["generation_id"] >= 1 and body["member_id"] in self.issued_ids
        if body["members"]:
            self.member_ids = ids = [member["member_id"] for member in body["members"]]
            assert body["leader"] == body["member_id"] and body["member_id"] in ids
            assert len(set(ids)) == len(ids) <= SETTINGS.max_group_size


@pytest.mark.parametrize("seed", range(40))
def test_random_requests_get_consistent_responses(seed: int) -> None:
    chaos = RandomRequester(random.Random(seed))
    for _ in range(600):
        chaos.step()
    assert chaos.answered > 100
    chaos.check(chaos.coordinator.advance(chaos.now + 3_000_000))
    unanswered = {request.api for request in chaos.pending.values()}
    assert unanswered <= {"JoinGroup", "SyncGroup"}
    before = chaos.coordinator.advance(chaos.now + 3_000_001)
    assert before == []


def test_random_requests_get_as_far_as_assignments() -> None:
    chaos = RandomRequester(random.Random(0))
    for _ in range(3000):
        chaos.step()
    assert chaos.generation > 5 and chaos.synced > 10


def test_a_request_that_nobody_handles_is_refused() -> None:
    coordinator = RandomRequester(random.Random(0)).coordinator
    for api, version in (("JoinGroup", 10), ("OffsetFetch", 0), ("Fetch", 4)):
        with pytest.raises(ValueError, match=f"{api} version {version} is not handled here"):
            coordinator.handle(Request(1, api, version, None, "/h", {}), 0)


def test_timers_fire_by_deadline_then_in_the_order_of_arming() -> None:
    timers, fired = Timers(), list[str]()
    for key, deadline in (("late", 9), ("first", 5), ("second", 5), ("gone", 1), ("moved", 2)):
        timers.arm(key, deadline, partial(fired.append, key))
    timers.arm("moved", 7, partial(fired.append, "moved"))
    timers.cancel("gone")
    timers.cancel("never armed")
    while timers.next_deadline() is not None:
        timers.take()()
    assert fired == ["first", "second", "moved", "late"]
    with pytest.raises(IndexError):
        timers.take()
