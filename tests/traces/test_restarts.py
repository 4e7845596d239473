"""The judge on restarts: state that comes back, and state that may be lost."""

from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios.takeovers import takeovers
from fencepost.conformance.run.play import play_scenario
from fencepost.conformance.subject import ScenarioRun
from fencepost.model.errors import Error
from fencepost.traces.events import Header, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckStatus
from tests.support.trace_builder import (
    GRACE,
    SESSION,
    SETTINGS,
    OneMemberTrace,
    commit_offset,
    fetch_offset,
    sync_error,
    sync_response,
)

ORDERS = pytest.mark.parametrize("order", list(Order))


@ORDERS
@pytest.mark.parametrize(("error", "faults"), [(0, 0), (25, 1), (27, 1)])
def test_a_stable_group_comes_back(order: Order, error: int, faults: int) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(1_000)
    tape.heartbeat(2_000, error)
    assert len(tape.verdict().violations) == faults


@ORDERS
@pytest.mark.parametrize(("error", "faults"), [(25, 0), (22, 1)])
def test_a_session_that_ran_out_before_the_kill_is_not_restored(order: Order, error: int, faults: int) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(SESSION + 1_000)
    fetch_offset(tape, SESSION + 1_500, -1)
    tape.heartbeat(SESSION + 2_000, error)
    assert len(tape.verdict().violations) == faults


@ORDERS
@pytest.mark.parametrize(
    ("time", "error", "faults"),
    [
        (5_000 + SESSION - 50, 0, 0),
        (5_000 + SESSION - 50, 25, 1),
        (9_000 + SESSION + 2 * GRACE, 25, 0),
        (9_000 + SESSION + 2 * GRACE, 0, 1),
    ],
)
def test_sessions_are_full_from_the_loading_which_the_first_answer_shows(
    order: Order, time: int, error: int, faults: int
) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(5_000)
    fetch_offset(tape, 9_000, -1)
    tape.heartbeat(time, error)
    assert len(tape.verdict().violations) == faults


@ORDERS
@pytest.mark.parametrize(("error", "faults"), [(0, 0), (25, 1)])
def test_while_a_group_loads_its_sessions_wait(order: Order, error: int, faults: int) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(1_000)
    fetch_offset(tape, 8_000, -1, error=Error.COORDINATOR_LOAD_IN_PROGRESS)
    tape.heartbeat(1_000 + SESSION - 50, error)
    assert len(tape.verdict().violations) == faults


@ORDERS
@pytest.mark.parametrize(
    ("response", "faults"),
    [(sync_error(Error.ILLEGAL_GENERATION), 0), (sync_response(b"new"), 0), (sync_response(b"plan"), 1)],
)
def test_a_sync_without_an_answer_may_have_been_stored(order: Order, response: dict[str, Any], faults: int) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.join(100, 2, "a")
    if order is Order.INTERVALS:
        tape.sync(200, 2, None, b"new")
    else:
        faults = 1 - faults if response == sync_response(b"new") else faults
    tape.restart(1_000)
    fetch_offset(tape, 1_500, -1)
    tape.sync(2_000, 2, response)
    assert len(tape.verdict().violations) == faults


@pytest.mark.parametrize(
    ("answered", "offset", "faults"), [(True, 7, 0), (True, -1, 1), (False, 7, 0), (False, -1, 0), (False, 8, 1)]
)
def test_a_commit_without_an_answer_may_have_been_stored(answered: bool, offset: int, faults: int) -> None:
    tape = OneMemberTrace(Order.INTERVALS)
    commit_offset(tape, 10, 7, answered)
    tape.restart(1_000)
    fetch_offset(tape, 2_000, offset)
    assert len(tape.verdict().violations) == faults


@pytest.mark.parametrize("state", ["Empty", "Dead"])
def test_the_record_of_a_group_without_a_generation_is_up_to_the_target(state: str) -> None:
    tape = OneMemberTrace(Order.INTERVALS)
    body = {
        "session_timeout_ms": SESSION,
        "rebalance_timeout_ms": SESSION,
        "member_id": "",
        "protocol_type": "x",
        "protocols": [{"name": "p", "metadata": b"m"}],
    }
    response = {
        "error_code": Error.MEMBER_ID_REQUIRED,
        "member_id": "a",
        "generation_id": -1,
        "leader": "",
        "protocol_name": "",
        "members": [],
    }
    tape.exchange(10, "JoinGroup", body, response, 4)
    tape.restart(1_000)
    row = {"error_code": 0, "group_id": "g", "group_state": state, "protocol_type": "", "protocol_data": ""}
    tape.exchange(2_000, "DescribeGroups", {"groups": ["g"]}, {"groups": [{**row, "members": []}]}, 0)
    verdict = tape.verdict()
    assert not verdict.violations
    assert verdict.decisions.get("new_group_is_stored", state == "Empty") is (state == "Empty")


@ORDERS
def test_a_group_first_seen_after_a_restart_need_not_be_ready(order: Order) -> None:
    tape = OneMemberTrace(order)
    tape.restart(1_000)
    fetch_offset(tape, 1_100, -1, error=Error.NOT_COORDINATOR)
    fetch_offset(tape, 1_200, -1)
    assert not tape.verdict().violations


@ORDERS
def test_not_being_ready_is_evidence_of_nothing_else(order: Order) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(1_000)
    request = fetch_offset(tape, 1_100, -1, error=Error.COORDINATOR_LOAD_IN_PROGRESS)
    tape.add_check("FETCH-01", request)
    tape.add_check("FAILOVER-01", request)
    verdict = tape.verdict()
    assert [each.status for each in verdict.check_results] == [CheckStatus.INCONCLUSIVE, CheckStatus.PASS]
    assert not verdict.violations


def test_before_any_restart_being_ready_is_owed() -> None:
    tape = OneMemberTrace(Order.TOTAL).form_stable_group()
    tape.heartbeat(100, Error.COORDINATOR_LOAD_IN_PROGRESS)
    verdict = judge(Header("test", Order.TOTAL, "virtual", SETTINGS, GRACE), tape.events)
    assert len(verdict.violations) == 1


def test_a_restart_may_come_with_another_size_limit() -> None:
    async def run() -> ScenarioRun:
        target = InProcessTarget()
        (scenario,) = (one for one in takeovers.scenarios if one.name == "group-above-the-limit")
        return await play_scenario(scenario, target, await target.open(), "g", grace=0, restart=target.restart)

    seen = run_virtual(run())
    assert {mark.status for mark in seen.verdict.check_results} == {CheckStatus.PASS}
    untold = [replace(event, body={}) if event.api == "restart" else event for event in seen.events]
    assert judge(seen.header, untold).violations
