"""The judge excuses a failover's errors only: not being ready, failing to write, moving elsewhere."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.classic.log import LogWriteError, MemoryLog
from fencepost.adapters.classic.records import Record
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import TraceBuilder
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios.failovers import failovers
from fencepost.conformance.run.play import play_scenario
from fencepost.conformance.subject import ScenarioRun
from fencepost.model.errors import Error
from fencepost.traces.events import Event, Header, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckStatus, TraceVerdict
from tests.support.trace_builder import (
    GRACE,
    SESSION,
    SETTINGS,
    OneMemberTrace,
    commit_offset,
    fetch_offset,
    join_body,
    sync_error,
    sync_response,
)

ORDERS = pytest.mark.parametrize("order", list(Order))


def count_violations(order: Order, tape: OneMemberTrace) -> int:
    """How many faults there are on a target whose silence about being ready is not taken for an excuse."""
    return len(judge(Header("test", order, "virtual", SETTINGS, GRACE), tape.events).violations)


# --- not ready


@ORDERS
@pytest.mark.parametrize(("member", "faults"), [("a", 0), ("stranger", 0)])
def test_a_heartbeat_is_not_looked_at_while_loading(order: Order, member: str, faults: int) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(1_000)
    tape.heartbeat(1_100, 0, 7, member)
    fetch_offset(tape, 1_200, -1, error=Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert count_violations(order, tape) == faults
    fetch_offset(tape, 1_300, -1)
    tape.heartbeat(1_400, 0, 7, member)
    assert count_violations(order, tape) == 1


@ORDERS
def test_a_sync_while_loading_shows_which_reference_a_target_follows(order: Order) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(1_000)
    tape.sync(1_100, 1, sync_error(Error.REBALANCE_IN_PROGRESS))
    assert tape.verdict().decisions["loading_refuses_sync"] is False
    newer = OneMemberTrace(order).form_stable_group()
    newer.restart(1_000)
    newer.sync(1_100, 1, sync_error(Error.COORDINATOR_LOAD_IN_PROGRESS))
    assert newer.verdict().decisions["loading_refuses_sync"] is True
    newer.sync(1_200, 1, sync_error(Error.REBALANCE_IN_PROGRESS))
    assert count_violations(order, newer) == 1


@ORDERS
def test_a_join_while_loading_shows_whether_it_echoes_the_id(order: Order) -> None:
    for shown, hides in (("", True), ("a", False)):
        tape = OneMemberTrace(order).form_stable_group()
        tape.restart(1_000)
        response = {
            "error_code": Error.COORDINATOR_LOAD_IN_PROGRESS,
            "member_id": shown,
            "generation_id": -1,
            "protocol_name": "",
            "leader": "",
        }
        tape.exchange(1_100, "JoinGroup", join_body("a"), response, 2)
        verdict = tape.verdict()
        assert not verdict.violations
        assert verdict.decisions["gate_hides_member_id"] is hides


@ORDERS
def test_an_invalid_request_does_not_show_that_loading_is_over(order: Order) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(1_000)
    response = {
        "error_code": Error.INVALID_SESSION_TIMEOUT,
        "member_id": "a",
        "generation_id": -1,
        "protocol_name": "",
        "leader": "",
    }
    tape.exchange(1_100, "JoinGroup", join_body("a", 1), response, 2)
    tape.heartbeat(1_200, 0, 7, "stranger")
    assert count_violations(order, tape) == 0
    early = OneMemberTrace(order).form_stable_group()
    early.restart(1_000)
    early.exchange(
        1_100, "JoinGroup", join_body("a", 1), response | {"error_code": Error.COORDINATOR_LOAD_IN_PROGRESS}, 2
    )
    verdict = early.verdict()
    assert not verdict.violations and verdict.decisions["validity_comes_before_place"] is False


@ORDERS
@pytest.mark.parametrize(("ready", "faults"), [(False, 0), (True, 1)])
def test_a_group_that_is_still_elsewhere_is_not_listed(order: Order, ready: bool, faults: int) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(1_000)
    if ready:
        fetch_offset(tape, 1_100, -1)
    tape.exchange(1_200, "ListGroups", {}, {"error_code": 0, "groups": []}, 0)
    assert count_violations(order, tape) == faults


@ORDERS
def test_any_answer_may_be_that_it_is_not_ready_even_where_the_references_say_otherwise(order: Order) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(1_000)
    tape.heartbeat(1_100, Error.COORDINATOR_LOAD_IN_PROGRESS)
    tape.sync(1_200, 1, sync_error(Error.REBALANCE_IN_PROGRESS))
    tape.sync(1_300, 1, sync_error(Error.COORDINATOR_LOAD_IN_PROGRESS))
    verdict = tape.verdict()
    assert not verdict.violations
    assert verdict.rules["gate.not-ready"] == 2 and verdict.rules["gate.loading.sync"] == 1


@ORDERS
@pytest.mark.parametrize("error", [-1, 3, 22, 28, 42])
def test_other_errors_are_no_excuse(order: Order, error: int) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(1_000)
    tape.heartbeat(1_100, error)
    assert count_violations(order, tape) == 1


@ORDERS
def test_an_error_with_an_assignment_is_no_excuse(order: Order) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(1_000)
    tape.sync(1_100, 1, sync_response(b"plan") | {"error_code": Error.NOT_COORDINATOR})
    assert count_violations(order, tape) == 1


# --- writes that fail


@ORDERS
@pytest.mark.parametrize("error", [15, 16, -1])
@pytest.mark.parametrize(("offset", "faults"), [(7, 0), (9, 0), (8, 1), (-1, 1)])
def test_a_commit_that_failed_may_have_been_stored(order: Order, error: int, offset: int, faults: int) -> None:
    tape = OneMemberTrace(order)
    commit_offset(tape, 10, 7, True)
    tape.restart(1_000)
    fetch_offset(tape, 1_100, 7)
    commit_offset(tape, 1_200, 9, True, error)
    fetch_offset(tape, 1_300, offset)
    assert count_violations(order, tape) == faults


@ORDERS
@pytest.mark.parametrize("error", [15, 16, -1])
def test_without_a_failover_no_write_may_fail(order: Order, error: int) -> None:
    tape = OneMemberTrace(order)
    commit_offset(tape, 10, 7, True, error)
    assert count_violations(order, tape) == 1


@ORDERS
@pytest.mark.parametrize(("error", "faults"), [(27, 0), (22, 1), (0, 1)])
def test_an_assignment_that_was_not_stored_begins_another_round(order: Order, error: int, faults: int) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    tape.restart(1_000)
    tape.join(1_100, 2, "a")
    tape.sync(1_200, 2, sync_error(Error.UNKNOWN_SERVER_ERROR), b"new")
    tape.heartbeat(1_300, error, 2)
    assert count_violations(order, tape) == faults


class FailingLog(MemoryLog):
    """A log that does not take one record."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False

    def append(self, batch: Sequence[Record]) -> None:
        if self.broken:
            self.broken = False
            raise LogWriteError
        super().append(batch)


@pytest.mark.parametrize("what", ["commit", "assignment", "replacement", "creation", "deletion", "offset-deletion"])
@pytest.mark.parametrize("restarts", [True, False])
def test_the_bundled_coordinator_fails_as_the_model_says(what: str, restarts: bool) -> None:
    verdict = run_virtual(run_with_failing_write(what, restarts))
    if restarts:
        assert not verdict.violations and not verdict.inconclusive
        # The others may as well not have been looked at, as far as anybody can see.
        assert what != "assignment" or verdict.rules["failure.assignment"] == 1
    else:
        assert len(verdict.violations) == 1


async def run_with_failing_write(what: str, restarts: bool) -> TraceVerdict:
    """One write of the bundled coordinator fails, around a restart or not."""
    log = FailingLog()
    target = InProcessTarget(SETTINGS, topics={"t": 4}, log=log)
    await target.open()
    loop = asyncio.get_running_loop()
    recorder = TraceBuilder(lambda: round(loop.time() * 1000))
    channel = target.channel(recorder)

    async def ask(api: str, version: int, **body: Any) -> dict[str, Any]:
        response = await channel.send(api, version, {"group_id": "g", **body}).response
        assert response is not None
        return dict(response)

    offer = {key: value for key, value in join_body("").items() if key != "member_id"}

    async def join(group: str = "g") -> dict[str, Any]:
        return await ask("JoinGroup", 9, **offer, member_id="", group_instance_id="i", group_id=group)

    async def sync(joined: dict[str, Any]) -> dict[str, Any]:
        who = {"generation_id": joined["generation_id"], "member_id": joined["member_id"]}
        names = {"protocol_type": "x", "protocol_name": "p"}
        given = [{"member_id": joined["member_id"], "assignment": b"plan"}]
        return await ask("SyncGroup", 5, **who, **names, assignments=given)

    row = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
    topics = [{"name": "t", "partitions": [row]}]
    bare = [{"name": "t", "partitions": [{"partition_index": 0}]}]
    if restarts:
        await target.restart()
    if what in ("deletion", "offset-deletion"):
        await ask("OffsetCommit", 6, topics=topics)
    joined = await join() if what in ("assignment", "replacement") else {}
    if what == "replacement":
        await sync(joined)
    log.broken = True
    match what:
        case "commit":
            await ask("OffsetCommit", 6, topics=topics)
        case "assignment":
            await sync(joined)
        case "replacement":
            await join()
        case "creation":
            await join("new")
        case "deletion":
            await ask("DeleteGroups", 1, groups_names=["g"])
        case "offset-deletion":
            await ask("OffsetDelete", 0, topics=bare)
    assert not log.broken
    if joined:
        await ask("Heartbeat", 3, member_id=joined["member_id"], generation_id=joined["generation_id"])
    await ask("DescribeGroups", 5, groups=["g", "new"])
    await ask("OffsetFetch", 5, topics=None)
    events: tuple[Event, ...] = recorder.events
    await target.close()
    return judge(Header("test", Order.TOTAL, "virtual", SETTINGS, 0), events)


# --- moving


@ORDERS
@pytest.mark.parametrize(("restarts", "faults"), [(True, 0), (False, 1)])
def test_a_parked_join_is_sent_elsewhere(order: Order, restarts: bool, faults: int) -> None:
    tape = OneMemberTrace(order).form_stable_group()
    if restarts:
        tape.restart(1_000)
        fetch_offset(tape, 1_100, -1)
    moved = {
        "error_code": Error.NOT_COORDINATOR,
        "member_id": "b",
        "generation_id": -1,
        "protocol_name": "",
        "leader": "",
    }
    parked = tape.send_request(1_200, "JoinGroup", join_body(""), 2)
    tape.heartbeat(1_300, Error.REBALANCE_IN_PROGRESS)
    tape.send_response(1_500, parked, moved)
    fetch_offset(tape, 1_600, -1, error=Error.COORDINATOR_LOAD_IN_PROGRESS)
    tape.heartbeat(2_000, 0)
    assert bool(count_violations(order, tape)) is bool(faults)


# --- The judge on restarts: state that comes back, and state that may be lost.


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
        (scenario,) = (one for one in failovers.scenarios if one.name == "group-above-the-limit")
        return await play_scenario(scenario, target, await target.open(), "g", grace=0, restart=target.restart)

    seen = run_virtual(run())
    assert {mark.status for mark in seen.verdict.check_results} == {CheckStatus.PASS}
    untold = [replace(event, body={}) if event.api == "restart" else event for event in seen.events]
    assert judge(seen.header, untold).violations
