"""The opening of KIP-41, as runs of the reference client against the model's coordinator: each has a shortest one,
and the bound on `max.poll.records` removes them all."""

from dataclasses import replace

import pytest

from fencepost.model.classic.explore import poll_loops as loops
from fencepost.model.classic.explore.poll_loops import (
    EVICTED,
    LOST,
    REPEATED,
    REPEATED_ELSEWHERE,
    Application,
    PollLoopSetting,
    explore_poll_loops,
    largest_safe_limit,
    slow_rebalance,
    worst_heartbeat_gap,
)

BATCH_OF_FOUR = PollLoopSetting()
"""Two processes; a batch of four records takes four ticks, and a session three."""
PATIENT = PollLoopSetting(session_ticks=10)
TICK, GETS = "a tick goes by", "A polls and gets records 0 to 3"


def test_a_process_is_evicted_while_it_works_and_its_records_are_processed_twice() -> None:
    found = explore_poll_loops(BATCH_OF_FOUR)
    assert found.is_finished
    assert found.runs[EVICTED] == ("A starts", GETS, TICK, TICK, TICK)
    again = ("A starts", GETS, TICK, TICK, TICK, "B starts", "B polls and gets records 0 to 3", TICK)
    assert found.runs[REPEATED] == found.runs[REPEATED_ELSEWHERE] == again
    assert LOST not in found.runs


def test_a_group_never_gets_on() -> None:
    stall = explore_poll_loops(replace(BATCH_OF_FOUR, consumers=1)).stall
    assert stall is not None
    assert stall.path == ("A starts", GETS, TICK, TICK, TICK, TICK, "A commits", GETS, TICK)
    assert stall.cycle == (TICK, TICK, TICK, "A commits", GETS, TICK)


@pytest.mark.parametrize(("limit", "wait"), [(1, 1), (2, 2), (3, 3), (4, 4)])
def test_a_rebalance_takes_as_long_as_a_batch(limit: int, wait: int) -> None:
    setting = replace(PATIENT, max_poll_records=limit)
    found = explore_poll_loops(setting)
    assert (found.longest_wait, found.runs, found.stall) == (wait, {}, None)
    run = slow_rebalance(setting, wait)
    assert run is not None and run.count(TICK) >= wait and "B polls" in run
    assert slow_rebalance(setting, wait + 1) is None


def test_a_smaller_batch_removes_them_all() -> None:
    for limit in (1, 2):
        found = explore_poll_loops(replace(BATCH_OF_FOUR, max_poll_records=limit))
        assert (found.is_finished, found.runs, found.stall) == (True, {}, None)
    assert EVICTED in explore_poll_loops(replace(BATCH_OF_FOUR, max_poll_records=3)).runs


COSTS = [(3, 1, 1), (3, 2, 2), (4, 2, 1), (4, 1, 2), (5, 1, 1), (5, 2, 2), (6, 4, 1)]
"""Ticks of a session, between heartbeats, and of work on a record."""


@pytest.mark.slow
@pytest.mark.parametrize(("session", "heartbeat", "cost"), COSTS)
def test_the_bound_is_that_a_heartbeat_comes_in_every_session(session: int, heartbeat: int, cost: int) -> None:
    setting = PollLoopSetting(session_ticks=session, heartbeat_ticks=heartbeat, ticks_per_record=cost)
    safe = [
        limit
        for limit in range(1, 5)
        if worst_heartbeat_gap(replace(setting, max_poll_records=limit)) < setting.session_ticks
    ]
    assert largest_safe_limit(setting, 4) == max(safe)


def test_the_heartbeat_that_was_rejected_loses_records() -> None:
    asking = replace(PATIENT, application=Application.HEARTBEATS)
    found = explore_poll_loops(asking)
    assert found.runs == {LOST: ("A starts", GETS, "B starts", "B polls", TICK, "A commits")}
    # The proposal's own remedy: the original loop with one record in each poll.
    safe = explore_poll_loops(replace(PATIENT, max_poll_records=1))
    assert LOST not in safe.runs and EVICTED not in safe.runs


def test_heartbeats_in_the_background_leave_the_poll_interval_as_the_limit() -> None:
    background = replace(BATCH_OF_FOUR, heartbeats_in_poll=False)
    assert explore_poll_loops(background).runs == {}
    short = explore_poll_loops(replace(background, max_poll_ticks=3))
    assert short.runs[EVICTED] == ("A starts", GETS, TICK, TICK, TICK)
    assert short.stall is not None


def test_how_generations_are_written_changes_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = explore_poll_loops(BATCH_OF_FOUR)
    monkeypatch.setattr(loops, "MAX_GENERATION", 4)
    wide = explore_poll_loops(BATCH_OF_FOUR)
    assert wide.runs == narrow.runs and wide.longest_wait == narrow.longest_wait
    assert wide.states > narrow.states
