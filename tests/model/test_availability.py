"""Responses of a coordinator at the gate: the tables of coordinator.md 2.0, and where the references differ."""

from dataclasses import replace
from typing import Any

import pytest

from fencepost.model.classic.coordinator.availability import Unavailable, refuse_unavailable
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.state import (
    Context,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    Protocol,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Heartbeat, JoinGroup, LeaveGroup, Request, Response, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.groups.messages import (
    CommitRequest,
    DeleteGroup,
    DescribeGroup,
    DescribeGroupResponse,
    ErrorResponse,
    ListGroups,
    ListGroupsResponse,
    Offset,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetFetchResponse,
    PartitionErrors,
    TxnOffsetCommit,
)
from fencepost.model.groups.protocol import Cluster
from fencepost.model.settings import Settings
from fencepost.traces.classic.matching import ObservedResponse, compare_responses
from tests.support.plain_values import build

NEWER = Dialect()
OLDER = Dialect(
    validity_comes_before_place=False,
    loading_refuses_sync=False,
    loading_lists_nothing=False,
    gate_hides_member_id=False,
)
HERE, ABSENT = ("t", 0), ("ghost", 0)
WORLD = GroupState(group=Group(), offsets={HERE: Offset(7)})
JOIN = build(JoinRequest, 1, "m", None, "x", (build(Protocol, "p", b""),), 10_000, 10_000, True, True)
MEMBER = build(CommitRequest, 1, "m", None, 1)
SYNC = build(SyncRequest, 1, "m", None, 1, "x", "p", ())
LOADING, ELSEWHERE, DOWN = Unavailable.LOADING, Unavailable.ELSEWHERE, Unavailable.NOT_RUNNING


def join(group: str = "g", **changes: Any) -> JoinGroup:
    return JoinGroup(group, replace(JOIN, **changes))


def commit(*partitions: tuple[str, int], version: int = 9) -> OffsetCommit:
    return OffsetCommit("g", MEMBER, version, tuple((where, Offset(8)) for where in partitions))


ALL: dict[str, Request] = {
    "join": join(),
    "sync": SyncGroup("g", SYNC, True),
    "heartbeat": Heartbeat("g", build(HeartbeatRequest, 1, "m", None, 1)),
    "leave": LeaveGroup("g", build(LeaveRequest, 1, (("m", None),))),
    "commit": commit(HERE),
    "transactional": TxnOffsetCommit("g", MEMBER, 7, ((HERE, Offset(8)),)),
    "fetch": OffsetFetch("g", 1, 8, None, False),
    "describe": DescribeGroup("g", 1, 5),
    "list": ListGroups("g", 1, frozenset(), frozenset()),
    "delete": DeleteGroup("g", 1),
    "delete-offsets": OffsetDelete("g", 1, (HERE,)),
}


def response_of(request: Request, reason: Unavailable, dialect: Dialect = NEWER) -> tuple[str, Response]:
    """The rule and the answer; the world is left alone."""
    cluster = Cluster(Settings(), {"t": 2})
    outcome: StepResult = refuse_unavailable(WORLD, request, reason, Context(0, dialect=dialect), cluster)
    (reply,) = outcome.replies
    assert reply.handle == 1
    assert outcome.state == WORLD and outcome.state.offsets == WORLD.offsets
    return outcome.rule, reply.response


def plain(error: Error, member: str | None) -> dict[str, Response]:
    """The answers that have nothing but this error."""
    return {
        "join": build(JoinResponse, error, member=member),
        "sync": SyncResponse(error),
        "heartbeat": HeartbeatResponse(error),
        "leave": LeaveResponse(error),
        "commit": PartitionErrors({HERE: error}),
        "transactional": PartitionErrors({HERE: error}),
        "fetch": OffsetFetchResponse(error=error),
        "describe": DescribeGroupResponse(error, ""),
        "list": ListGroupsResponse(False, error=error),
        "delete": ErrorResponse(error),
        "delete-offsets": PartitionErrors(error=error),
    }


NOT_LISTED = ("gate.elsewhere.list", ListGroupsResponse(False))
ALIVE = ("gate.loading.heartbeat", HeartbeatResponse(Error.NONE))
REJOIN = ("gate.loading.sync", SyncResponse(Error.REBALANCE_IN_PROGRESS))
SOME = ("gate.loading", ListGroupsResponse(True, "Empty", "", Error.COORDINATOR_LOAD_IN_PROGRESS))


@pytest.mark.parametrize("api", ALL)
@pytest.mark.parametrize(
    ("reason", "dialect", "error", "rule", "others"),
    [
        (LOADING, NEWER, 14, "gate.loading", {"heartbeat": ALIVE}),
        (LOADING, OLDER, 14, "gate.loading", {"heartbeat": ALIVE, "sync": REJOIN, "list": SOME}),
        (ELSEWHERE, NEWER, 16, "gate.elsewhere", {"list": NOT_LISTED}),
        (ELSEWHERE, OLDER, 16, "gate.elsewhere", {"list": NOT_LISTED}),
        (DOWN, NEWER, 15, "gate.not-running", {}),
        (DOWN, OLDER, 15, "gate.not-running", {}),
    ],
)
def test_unavailable_coordinator_responses(
    api: str, reason: Unavailable, dialect: Dialect, error: int, rule: str, others: dict[str, tuple[str, Response]]
) -> None:
    found_rule, response = response_of(ALL[api], reason, dialect)
    usual = plain(Error(error), None if dialect is NEWER else "m")[api]
    expected_rule, expected = others.get(api, (rule, usual))
    assert (found_rule, response) == (expected_rule, expected)
    if isinstance(response, PartitionErrors) and isinstance(expected, PartitionErrors):
        assert response.errors == expected.errors


TOO_SHORT = join(session_timeout=1)
NAMELESS = join("")


@pytest.mark.parametrize(
    ("request_", "reason", "newer", "older"),
    [
        (NAMELESS, DOWN, 15, 24),
        (NAMELESS, ELSEWHERE, 24, 24),
        (NAMELESS, LOADING, 24, 24),
        (TOO_SHORT, DOWN, 15, 15),
        (TOO_SHORT, ELSEWHERE, 26, 16),
        (TOO_SHORT, LOADING, 26, 14),
        (join("", session_timeout=1), LOADING, 24, 24),
        (Heartbeat("", build(HeartbeatRequest, 1, "m", None, 1)), DOWN, 15, 24),
        (Heartbeat("", build(HeartbeatRequest, 1, "m", None, 1)), LOADING, 24, 24),
        (SyncGroup("", SYNC, True), LOADING, 24, 24),
        (SyncGroup("", SYNC, False), DOWN, 23, 23),
        (SyncGroup("g", SYNC, False), LOADING, 23, 23),
        (LeaveGroup("", build(LeaveRequest, 1, ())), ELSEWHERE, 24, 24),
        (OffsetDelete("", 1, (HERE,)), DOWN, 15, 24),
        (DeleteGroup("", 1), LOADING, 14, 14),
        (DescribeGroup("", 1, 5), ELSEWHERE, 16, 16),
    ],
)
def test_invalid_requests_and_the_gate(request_: Request, reason: Unavailable, newer: int, older: int) -> None:
    for dialect, error in ((NEWER, newer), (OLDER, older)):
        response: Any = response_of(request_, reason, dialect)[1]
        assert response.error == error


@pytest.mark.parametrize("reason", Unavailable)
@pytest.mark.parametrize("version", [9, 10])
def test_absent_partitions_never_reach_the_gate(reason: Unavailable, version: int) -> None:
    absent = Error.UNKNOWN_TOPIC_OR_PARTITION if version < 10 else Error.UNKNOWN_TOPIC_ID
    _, response = response_of(commit(HERE, ABSENT, version=version), reason)
    assert isinstance(response, PartitionErrors) and response.errors == {HERE: reason.error, ABSENT: absent}
    rule, response = response_of(commit(ABSENT, version=version), reason)
    assert isinstance(response, PartitionErrors) and response.errors == {ABSENT: absent}
    assert rule == "commit.nothing-to-ask"
    elsewhere = Dialect(absent_partitions_come_first=False)
    _, response = response_of(commit(HERE, ABSENT, version=version), reason, elsewhere)
    assert isinstance(response, PartitionErrors) and response.errors == dict.fromkeys((HERE, ABSENT), reason.error)


# --- what may be seen of such answers


def allowed_errors(api: str, version: int, request: dict[str, Any], **body: Any) -> ObservedResponse:
    return ObservedResponse(api, version, {"group_id": "g", **request}, body, "g")


@pytest.mark.parametrize(
    ("response", "what", "hard", "soft"),
    [
        (
            DescribeGroupResponse(Error.NOT_COORDINATOR, ""),
            allowed_errors(
                "DescribeGroups",
                5,
                {"groups": ["g"]},
                groups=[{"group_id": "g", "error_code": Error.NOT_COORDINATOR, "group_state": ""}],
            ),
            set(),
            set(),
        ),
        (
            DescribeGroupResponse(Error.NOT_COORDINATOR, ""),
            allowed_errors(
                "DescribeGroups",
                5,
                {"groups": ["g"]},
                groups=[{"group_id": "g", "error_code": Error.NOT_COORDINATOR, "group_state": "Dead"}],
            ),
            set(),
            {"state"},
        ),
        (
            DescribeGroupResponse(Error.NOT_COORDINATOR, ""),
            allowed_errors(
                "DescribeGroups",
                5,
                {"groups": ["g"]},
                groups=[{"group_id": "g", "error_code": 0, "group_state": "Dead"}],
            ),
            {"error", "state"},
            set(),
        ),
        (
            ListGroupsResponse(False, error=Error.COORDINATOR_LOAD_IN_PROGRESS),
            allowed_errors("ListGroups", 4, {}, error_code=14),
            set(),
            set(),
        ),
        (
            ListGroupsResponse(False, error=Error.COORDINATOR_LOAD_IN_PROGRESS),
            allowed_errors("ListGroups", 4, {}, error_code=14, groups=[{"group_id": "g"}]),
            set(),
            {"listed"},
        ),
        (
            ListGroupsResponse(False, error=Error.COORDINATOR_LOAD_IN_PROGRESS),
            allowed_errors("ListGroups", 4, {}, error_code=0),
            {"error"},
            set(),
        ),
        (
            LeaveResponse(Error.NOT_COORDINATOR),
            allowed_errors(
                "LeaveGroup", 3, {"members": []}, error_code=16, members=[{"error_code": Error.NOT_COORDINATOR}]
            ),
            set(),
            {"entries"},
        ),
        (LeaveResponse(Error.NOT_COORDINATOR), allowed_errors("LeaveGroup", 0, {}, error_code=16), set(), set()),
        (LeaveResponse(Error.NOT_COORDINATOR), allowed_errors("LeaveGroup", 0, {}, error_code=25), {"error"}, set()),
    ],
)
def test_what_may_come_with_the_error(
    response: Response, what: ObservedResponse, hard: set[str], soft: set[str]
) -> None:
    (difference,) = compare_responses(response, what)
    assert (difference.required, difference.advisory) == (hard, soft)
