"""The bundled coordinator and the model in the proposal's dialect: the same requests get the same responses."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.log import LogWriteError, MemoryLog
from fencepost.adapters.classic.records import Record
from fencepost.adapters.proposal.coordinator import ProposedCoordinator
from fencepost.adapters.serve.coordination import FixedTopics, Request, Response
from fencepost.model.classic.core.state import HeartbeatResponse, JoinResponse, SyncResponse
from fencepost.model.classic.messages import read_requests
from fencepost.model.errors import Error
from fencepost.model.proposal import coordinator as proposal
from fencepost.model.settings import Settings
from tests.support.model_driver import ModelCoordinatorDriver

SETTINGS = Settings(min_session_timeout=100, initial_rebalance_delay=30)
SESSION_MS, STEPS = 1_000, 300
Comparable = tuple[object, ...]


@dataclass
class Pair:
    """A bundled coordinator and a model of it, which get the same requests at the same moments."""

    is_proposed: bool = True
    log: MemoryLog = field(default_factory=MemoryLog)
    now: int = 0
    ids: list[str] = field(default_factory=list)
    generation: int = 0
    apis: dict[int, str] = field(default_factory=dict)
    seen: list[tuple[int, Comparable]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rules = (proposal.PROPOSED, proposal.handle_request, proposal.restart_coordinator) if self.is_proposed else ()
        self.model = ModelCoordinatorDriver(SETTINGS, *rules)
        self.bundled = self.start()

    def start(self) -> Coordinator:
        make = ProposedCoordinator if self.is_proposed else Coordinator
        return make(SETTINGS, self.log, self.new_id, FixedTopics({"t": 2}), now=self.now)

    def new_id(self, _: str) -> str:
        self.ids.append(f"m{len(self.ids) + 1}")
        return self.ids[-1]

    def restart(self) -> None:
        """Both are lost, and others go on with what was stored."""
        self.bundled = self.start()
        self.model.restart()

    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds
        told = self.bundled.advance(self.now)
        self.compare(told, lambda: self.model.wait(milliseconds))

    def ask(self, api: str, **body: Any) -> None:
        """Send a request to both."""
        handle = self.model.next_handle()
        self.apis[handle] = api
        whole = {"group_id": "g", **body}
        told = self.bundled.handle(Request(handle, api, 0, "c", "/h", whole), self.now)
        (request,) = read_requests(api, 0, whole, handle, ())
        self.compare(told, lambda: self.model.send(request))

    def compare(self, told: Iterable[Response], run: Any) -> None:
        """Run the model, and hold its responses against what the bundled coordinator told."""
        known = set(self.model.responses)
        run()
        expected = {
            handle: told_by_model(response)
            for handle, response in self.model.responses.items()
            if handle not in known and isinstance(response, JoinResponse | SyncResponse | HeartbeatResponse)
        }
        found = {one.handle: told_by_server(self.apis[one.handle], one.body) for one in told}
        assert found == expected, self.model.rules[-3:]
        self.seen += found.items()
        told_of: list[Any] = [one[1] for one in found.values() if one[0] == "JoinGroup"]
        self.generation = max([self.generation, *told_of])


def told_by_model(response: JoinResponse | SyncResponse | HeartbeatResponse) -> Comparable:
    match response:
        case JoinResponse(error=Error.NONE):
            views = sorted(str(view.id) for view in response.members if view.id is not None)
            return "JoinGroup", response.generation, response.leader, response.member, tuple(views)
        case JoinResponse():
            return "JoinGroup", -1, int(response.error)
        case SyncResponse():
            return "SyncGroup", int(response.error), response.assignment or b""
        case HeartbeatResponse():
            return "Heartbeat", int(response.error)


def told_by_server(api: str, body: dict[str, Any]) -> Comparable:
    match api:
        case "JoinGroup" if not body["error_code"]:
            views = sorted(member["member_id"] for member in body["members"])
            return api, body["generation_id"], body["leader"], body["member_id"], tuple(views)
        case "JoinGroup":
            return api, -1, int(body["error_code"])
        case "SyncGroup":
            return api, int(body["error_code"]), bytes(body["assignment"])
        case _:
            return api, int(body["error_code"])


def play(pair: Pair, random: Random) -> None:
    """A random step: mostly a request of a member that the group has."""
    pick = random.choice
    leader = next((one[2] for _, one in reversed(pair.seen) if one[0] == "JoinGroup" and len(one) > 3), "x")
    member = pick(["", "x", *pair.ids[-3:] * 3, leader, leader])
    generation = pick([pair.generation] * 9 + [pair.generation + 1])
    match pick(["join", "join", "sync", "sync", "sync", "heartbeat", "heartbeat", "wait", "wait", "restart"]):
        case "join":
            member = "" if len(pair.ids) < 3 else member or pick(pair.ids[-3:])
            protocols = [{"name": "p", "metadata": pick([b"1"] * 9 + [b"2"])}]
            pair.ask(
                "JoinGroup",
                session_timeout_ms=SESSION_MS,
                member_id=member,
                protocol_type="other",
                protocols=protocols,
            )
        case "sync":
            plan = pick([[], [{"member_id": one, "assignment": pick([b"a", b"b"])} for one in pair.ids[-4:]]])
            failure = pick([0] * 6 + [int(Error.INCONSISTENT_GROUP_PROTOCOL)])
            pair.ask("SyncGroup", generation_id=generation, member_id=member, assignments=plan, sync_error_code=failure)
        case "heartbeat":
            pair.ask("Heartbeat", generation_id=generation, member_id=member)
        case "wait":
            pair.wait(pick([1, 20, 40, 40, 40, 400]))
        case "restart":
            if not random.randrange(3):
                pair.restart()


def test_bundled_and_model_agree_and_come_by_every_rule_of_the_proposal() -> None:
    rules: Counter[str] = Counter()
    for seed in range(12):
        pair, random = Pair(), Random(seed)
        for _ in range(STEPS):
            play(pair, random)
        rules += Counter(pair.model.rules)
    assert all(rules[name] for name in (proposal.ABORTED, proposal.FAILED, proposal.REASSIGNED, proposal.TOLD))
    assert rules["load.group"]


def test_kafkas_dialect_has_none_of_the_proposals_rules() -> None:
    pair, random = Pair(is_proposed=False), Random(0)
    for _ in range(STEPS):
        play(pair, random)
    assert not any(rule.startswith("proposal.") for rule in pair.model.rules)


class FullDisk(MemoryLog):
    """A log that takes nothing once it is full."""

    is_full = False

    def append(self, batch: Sequence[Record]) -> None:
        if self.is_full:
            raise LogWriteError("no space left on device")
        super().append(batch)


def test_a_generation_that_is_not_stored_is_not_told_of() -> None:
    log = FullDisk()
    pair = Pair(log=log)
    body = {
        "group_id": "g",
        "member_id": "",
        "session_timeout_ms": SESSION_MS,
        "protocol_type": "other",
        "protocols": [{"name": "p", "metadata": b"1"}],
    }
    assert pair.bundled.handle(Request(1, "JoinGroup", 0, "c", "/h", body), 0) == []
    log.is_full = True
    (told,) = pair.bundled.advance(SETTINGS.initial_rebalance_delay)
    assert told.body["error_code"] == Error.COORDINATOR_NOT_AVAILABLE
    log.is_full = False
    again = {**body, "member_id": told.body["member_id"]}
    (told,) = pair.bundled.handle(Request(2, "JoinGroup", 0, "c", "/h", again), SETTINGS.initial_rebalance_delay)
    assert (told.body["error_code"], told.body["generation_id"]) == (Error.NONE, 2)
    log.is_full = True
    sync = {"group_id": "g", "generation_id": 2, "member_id": told.body["member_id"], "assignments": []}
    (told,) = pair.bundled.handle(Request(3, "SyncGroup", 0, "c", "/h", sync), SETTINGS.initial_rebalance_delay)
    assert told.body["error_code"] == Error.COORDINATOR_NOT_AVAILABLE
