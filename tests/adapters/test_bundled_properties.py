"""Random requests against the bundled coordinator: its responses are consistent with each other."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from fencepost.adapters.classic.coordinator import VERSIONS, Coordinator
from fencepost.adapters.classic.log import LogWriteError, MemoryLog
from fencepost.adapters.classic.messages import Request, Response
from fencepost.adapters.classic.records import Record
from fencepost.adapters.classic.timers import Timers
from fencepost.adapters.classic.topics import FixedTopics, topic_id_of
from fencepost.model.errors import Error
from fencepost.model.settings import Settings

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
