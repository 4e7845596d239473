"""Random requests against the bundled coordinator: whatever comes in, what it says holds together."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from fencepost.adapters.bundled.coordinator import VERSIONS, Coordinator
from fencepost.adapters.bundled.log import MemoryLog
from fencepost.adapters.bundled.messages import Answer, Request
from fencepost.model.settings import Settings

SETTINGS = Settings(min_session_timeout=0, initial_rebalance_delay=5, max_group_size=4, retention_check_interval=500)
METADATA = (b"", b"\x00", b"\x00\x01\x00\x00\x00\x01\x00\x01t", b"\x00\x00\x7f\xff\xff\xff")


@dataclass
class Chaos:
    """Sends what it makes up, with ids and generations it has seen, and checks every answer."""

    random: random.Random
    log: MemoryLog = field(default_factory=MemoryLog)
    now: int = 0
    handles: int = 0
    made: set[str] = field(default_factory=set)
    open: dict[int, Request] = field(default_factory=dict)
    generation: int = 0
    answered: int = 0

    def __post_init__(self) -> None:
        self.coordinator = self.start()

    def start(self) -> Coordinator:
        self.open.clear()
        return Coordinator(SETTINGS, self.log, self.new_id, {"t": 2}.get, now=self.now)

    def new_id(self, prefix: str) -> str:
        member_id = f"{prefix}-{len(self.made)}"
        self.made.add(member_id)
        return member_id

    def step(self) -> None:
        choice = self.random.random()
        if choice < 0.02:
            self.coordinator = self.start()
        elif choice < 0.3:
            self.now += self.random.choice((0, 1, 5, 20, 200))
            self.check(self.coordinator.advance(self.now))
        else:
            self.check(self.coordinator.advance(self.now))
            self.handles += 1
            api = self.random.choice(("JoinGroup", "JoinGroup", "JoinGroup", "SyncGroup", "SyncGroup", *VERSIONS))
            request = Request(self.handles, api, self.random.randint(*VERSIONS[api]), "c", "/h", self.body())
            self.open[request.handle] = request
            self.check(self.coordinator.handle(request, self.now))

    def body(self) -> dict[str, Any]:
        """One body for every API: each takes from it what it knows."""
        pick = self.random.choice
        member = pick(["", "x", *sorted(self.made)[-6:]])
        instance = pick([None, None, None, "i", "j"])
        generation = pick([-1, self.generation, self.generation, self.generation, self.generation + 1])
        partition = {
            "partition_index": pick([0, 1, 2]),
            "committed_offset": self.random.randint(-5, 99),
            "committed_metadata": pick([None, "", "note"]),
        }
        names = self.random.sample(["p", "q", "r", "p"], self.random.randint(0, 3))
        topic = {"name": pick(["t", "ghost"]), "partitions": [partition], "partition_indexes": [0]}
        return {
            "group_id": pick(["g"] * 9 + [""]),
            "member_id": member,
            "group_instance_id": instance,
            "generation_id": generation,
            "generation_id_or_member_epoch": generation,
            "session_timeout_ms": pick([0, 10, 50, 1000]),
            "rebalance_timeout_ms": pick([-1, 0, 10, 50, 1000]),
            "protocol_type": pick(["consumer"] * 5 + ["other", ""]),
            "protocol_name": pick(["p", "p", "q", None]),
            "protocols": [{"name": name, "metadata": pick(METADATA)} for name in names],
            "assignments": [{"member_id": m, "assignment": m.encode()} for m in sorted(self.made)],
            "members": [{"member_id": member, "group_instance_id": instance}],
            "topics": pick([[topic], []]),
            "groups_names": [pick(["g", "h"])],
            "retention_time_ms": pick([-1, 0, 100]),
            "producer_id": pick([1, 2]),
            "transactional_id": pick(["t", None, "u"]),
            "committed": pick([True, False]),
            "require_stable": pick([True, False]),
        }

    def check(self, answers: list[Answer]) -> None:
        for answer in answers:
            request = self.open.pop(answer.handle)  # answered once, and only if it was asked
            self.answered += 1
            if request.api == "JoinGroup" and answer.body["error_code"] == 0:
                self.check_join(answer.body)
            if request.api == "SyncGroup" and answer.body["error_code"] == 0:
                assert answer.body["assignment"] in (b"", *(m.encode() for m in self.made))

    def check_join(self, body: dict[str, Any]) -> None:
        self.generation = body["generation_id"]
        assert body["generation_id"] >= 1 and body["member_id"] in self.made
        if body["members"]:
            ids = [member["member_id"] for member in body["members"]]
            assert body["leader"] == body["member_id"] and body["member_id"] in ids
            assert len(set(ids)) == len(ids) <= SETTINGS.max_group_size


@pytest.mark.parametrize("seed", range(40))
def test_whatever_comes_in_the_answers_hold_together(seed: int) -> None:
    chaos = Chaos(random.Random(seed))
    for _ in range(400):
        chaos.step()
    assert chaos.answered > 100
    chaos.check(chaos.coordinator.advance(chaos.now + 3_000_000))
    unanswered = {request.api for request in chaos.open.values()}
    assert unanswered <= {"JoinGroup", "SyncGroup"}
    before = chaos.coordinator.advance(chaos.now + 3_000_001)
    assert before == []
