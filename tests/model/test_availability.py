"""What a coordinator answers at the gate: the tables of coordinator.md 2.0, and where the reference ones differ."""

from dataclasses import replace
from typing import Any

import pytest

from fencepost.model.classic.coordinator.availability import Gate, turn_away
from fencepost.model.classic.coordinator.state import Cluster, Outcome, World
from fencepost.model.classic.core.state import (
    CommitRequest,
    Context,
    Dialect,
    Group,
    HeartbeatAnswer,
    HeartbeatRequest,
    JoinAnswer,
    JoinRequest,
    LeaveAnswer,
    LeaveRequest,
    Protocol,
    SyncAnswer,
    SyncRequest,
)
from fencepost.model.classic.messages.requests import (
    Commit,
    Delete,
    DeleteOffsets,
    Describe,
    Fetch,
    Heartbeat,
    Join,
    Leave,
    List,
    Offset,
    Request,
    Sync,
    TransactionalCommit,
)
from fencepost.model.classic.messages.responses import Answer, Described, Fetched, Listed, PartitionErrors, Single
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.judge.classic.matching import Seen, compare

NEWER = Dialect()
OLDER = Dialect(
    validity_comes_before_place=False,
    loading_refuses_sync=False,
    loading_lists_nothing=False,
    gate_hides_member_id=False,
)
HERE, ABSENT = ("t", 0), ("ghost", 0)
WORLD = World(group=Group(), offsets={HERE: Offset(7)})
JOIN = JoinRequest(1, "m", None, "x", (Protocol("p", b""),), 10_000, 10_000, True, True)
MEMBER = CommitRequest(1, "m", None, 1)
SYNC = SyncRequest(1, "m", None, 1, "x", "p", ())
LOADING, ELSEWHERE, DOWN = Gate.LOADING, Gate.ELSEWHERE, Gate.NOT_RUNNING


def join(group: str = "g", **changes: Any) -> Join:
    return Join(group, replace(JOIN, **changes))


def commit(*partitions: tuple[str, int], version: int = 9) -> Commit:
    return Commit("g", MEMBER, version, tuple((where, Offset(8)) for where in partitions))


ALL: dict[str, Request] = {
    "join": join(),
    "sync": Sync("g", SYNC, True),
    "heartbeat": Heartbeat("g", HeartbeatRequest(1, "m", None, 1)),
    "leave": Leave("g", LeaveRequest(1, (("m", None),))),
    "commit": commit(HERE),
    "transactional": TransactionalCommit("g", MEMBER, 7, ((HERE, Offset(8)),)),
    "fetch": Fetch("g", 1, 8, None, False),
    "describe": Describe("g", 1, 5),
    "list": List("g", 1, frozenset(), frozenset()),
    "delete": Delete("g", 1),
    "delete-offsets": DeleteOffsets("g", 1, (HERE,)),
}


def told(request: Request, gate: Gate, dialect: Dialect = NEWER) -> tuple[str, Answer]:
    """The rule and the answer; the world is left alone."""
    cluster = Cluster(Settings(), {"t": 2})
    outcome: Outcome = turn_away(WORLD, request, gate, Context(0, dialect=dialect), cluster)
    (reply,) = outcome.replies
    assert reply.handle == 1
    assert outcome.world == WORLD and outcome.world.offsets == WORLD.offsets
    return outcome.rule, reply.answer


def plain(error: Error, member: str | None) -> dict[str, Answer]:
    """The answers that have nothing but this error."""
    return {
        "join": JoinAnswer(error, member=member),
        "sync": SyncAnswer(error),
        "heartbeat": HeartbeatAnswer(error),
        "leave": LeaveAnswer(error),
        "commit": PartitionErrors({HERE: error}),
        "transactional": PartitionErrors({HERE: error}),
        "fetch": Fetched(error=error),
        "describe": Described(error, ""),
        "list": Listed(False, error=error),
        "delete": Single(error),
        "delete-offsets": PartitionErrors(error=error),
    }


NOT_LISTED = ("gate.elsewhere.list", Listed(False))
ALIVE = ("gate.loading.heartbeat", HeartbeatAnswer(Error.NONE))
REJOIN = ("gate.loading.sync", SyncAnswer(Error.REBALANCE_IN_PROGRESS))
SOME = ("gate.loading", Listed(True, "Empty", "", Error.COORDINATOR_LOAD_IN_PROGRESS))


@pytest.mark.parametrize("api", ALL)
@pytest.mark.parametrize(
    ("gate", "dialect", "error", "rule", "others"),
    [
        (LOADING, NEWER, 14, "gate.loading", {"heartbeat": ALIVE}),
        (LOADING, OLDER, 14, "gate.loading", {"heartbeat": ALIVE, "sync": REJOIN, "list": SOME}),
        (ELSEWHERE, NEWER, 16, "gate.elsewhere", {"list": NOT_LISTED}),
        (ELSEWHERE, OLDER, 16, "gate.elsewhere", {"list": NOT_LISTED}),
        (DOWN, NEWER, 15, "gate.not-running", {}),
        (DOWN, OLDER, 15, "gate.not-running", {}),
    ],
)
def test_the_table(
    api: str, gate: Gate, dialect: Dialect, error: int, rule: str, others: dict[str, tuple[str, Answer]]
) -> None:
    found_rule, answer = told(ALL[api], gate, dialect)
    usual = plain(Error(error), None if dialect is NEWER else "m")[api]
    expected_rule, expected = others.get(api, (rule, usual))
    assert (found_rule, answer) == (expected_rule, expected)
    if isinstance(answer, PartitionErrors) and isinstance(expected, PartitionErrors):
        assert answer.errors == expected.errors


TOO_SHORT = join(session_timeout=1)
NAMELESS = join("")


@pytest.mark.parametrize(
    ("request_", "gate", "newer", "older"),
    [
        (NAMELESS, DOWN, 15, 24),
        (NAMELESS, ELSEWHERE, 24, 24),
        (NAMELESS, LOADING, 24, 24),
        (TOO_SHORT, DOWN, 15, 15),
        (TOO_SHORT, ELSEWHERE, 26, 16),
        (TOO_SHORT, LOADING, 26, 14),
        (join("", session_timeout=1), LOADING, 24, 24),
        (Heartbeat("", HeartbeatRequest(1, "m", None, 1)), DOWN, 15, 24),
        (Heartbeat("", HeartbeatRequest(1, "m", None, 1)), LOADING, 24, 24),
        (Sync("", SYNC, True), LOADING, 24, 24),
        (Sync("", SYNC, False), DOWN, 23, 23),
        (Sync("g", SYNC, False), LOADING, 23, 23),
        (Leave("", LeaveRequest(1, ())), ELSEWHERE, 24, 24),
        (DeleteOffsets("", 1, (HERE,)), DOWN, 15, 24),
        (Delete("", 1), LOADING, 14, 14),
        (Describe("", 1, 5), ELSEWHERE, 16, 16),
    ],
)
def test_invalid_requests_and_the_gate(request_: Request, gate: Gate, newer: int, older: int) -> None:
    for dialect, error in ((NEWER, newer), (OLDER, older)):
        answer: Any = told(request_, gate, dialect)[1]
        assert answer.error == error


@pytest.mark.parametrize("gate", Gate)
@pytest.mark.parametrize("version", [9, 10])
def test_absent_partitions_never_reach_the_gate(gate: Gate, version: int) -> None:
    absent = Error.UNKNOWN_TOPIC_OR_PARTITION if version < 10 else Error.UNKNOWN_TOPIC_ID
    _, answer = told(commit(HERE, ABSENT, version=version), gate)
    assert isinstance(answer, PartitionErrors) and answer.errors == {HERE: gate.error, ABSENT: absent}
    rule, answer = told(commit(ABSENT, version=version), gate)
    assert isinstance(answer, PartitionErrors) and answer.errors == {ABSENT: absent}
    assert rule == "commit.nothing-to-ask"
    elsewhere = Dialect(absent_partitions_come_first=False)
    _, answer = told(commit(HERE, ABSENT, version=version), gate, elsewhere)
    assert isinstance(answer, PartitionErrors) and answer.errors == dict.fromkeys((HERE, ABSENT), gate.error)


# --- what may be seen of such answers


def seen(api: str, version: int, request: dict[str, Any], **body: Any) -> Seen:
    return Seen(api, version, {"group_id": "g", **request}, body, "g")


@pytest.mark.parametrize(
    ("answer", "what", "hard", "soft"),
    [
        (
            Described(Error.NOT_COORDINATOR, ""),
            seen(
                "DescribeGroups", 5, {"groups": ["g"]}, groups=[{"group_id": "g", "error_code": 16, "group_state": ""}]
            ),
            set(),
            set(),
        ),
        (
            Described(Error.NOT_COORDINATOR, ""),
            seen(
                "DescribeGroups",
                5,
                {"groups": ["g"]},
                groups=[{"group_id": "g", "error_code": 16, "group_state": "Dead"}],
            ),
            set(),
            {"state"},
        ),
        (
            Described(Error.NOT_COORDINATOR, ""),
            seen(
                "DescribeGroups",
                5,
                {"groups": ["g"]},
                groups=[{"group_id": "g", "error_code": 0, "group_state": "Dead"}],
            ),
            {"error", "state"},
            set(),
        ),
        (
            Listed(False, error=Error.COORDINATOR_LOAD_IN_PROGRESS),
            seen("ListGroups", 4, {}, error_code=14),
            set(),
            set(),
        ),
        (
            Listed(False, error=Error.COORDINATOR_LOAD_IN_PROGRESS),
            seen("ListGroups", 4, {}, error_code=14, groups=[{"group_id": "g"}]),
            set(),
            {"listed"},
        ),
        (
            Listed(False, error=Error.COORDINATOR_LOAD_IN_PROGRESS),
            seen("ListGroups", 4, {}, error_code=0),
            {"error"},
            set(),
        ),
        (
            LeaveAnswer(Error.NOT_COORDINATOR),
            seen("LeaveGroup", 3, {"members": []}, error_code=16, members=[{"error_code": 16}]),
            set(),
            {"entries"},
        ),
        (LeaveAnswer(Error.NOT_COORDINATOR), seen("LeaveGroup", 0, {}, error_code=16), set(), set()),
        (LeaveAnswer(Error.NOT_COORDINATOR), seen("LeaveGroup", 0, {}, error_code=25), {"error"}, set()),
    ],
)
def test_what_may_come_with_the_error(answer: Answer, what: Seen, hard: set[str], soft: set[str]) -> None:
    (difference,) = compare(answer, what)
    assert (difference.hard, difference.soft) == (hard, soft)
