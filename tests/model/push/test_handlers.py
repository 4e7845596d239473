"""The handlers of coordinator and consumer, each branch by its rule."""

import pytest

from fencepost.model.frozen import evolve
from fencepost.model.push.consumer import PushConsumer, handle_start, handle_stop, new_consumer
from fencepost.model.push.coordinator import queue_index
from fencepost.model.push.dialect import DRAFT, REPAIRED, undo_repairs
from fencepost.model.push.group import (
    DUPLICATE,
    ILLEGAL_STATE,
    TIMEOUT_TOO_SMALL,
    Interest,
    PushGroup,
    PushMember,
    RegisterRequest,
    StartRequest,
    StartResponse,
    StopRequest,
    StopResponse,
    UnusableInterest,
    assign_ranges,
    format_interest,
    parse_interest,
    register_consumer,
    remove_consumer,
    trigger_rebalance,
)
from fencepost.model.push.rebalance import (
    check_necessity,
    compute_assignment,
    receive_response,
    record_owners,
    reset_bit,
    send_starts,
    send_stops,
    take_request,
)

WANTED = Interest((("t", 1),))
ONE = PushGroup((PushMember("c0", 1, WANTED),), rebalancing=True)


@pytest.mark.parametrize(
    ("timeout", "error", "rule"),
    [
        (999, TIMEOUT_TOO_SMALL, "register.timeout-too-small"),
        (1000, TIMEOUT_TOO_SMALL, "register.timeout-too-small"),
        (1001, 0, "register.accepted"),
    ],
)
def test_the_session_timeout_has_to_be_above_the_minimum(timeout: int, error: int, rule: str) -> None:
    request = RegisterRequest("c0", 1, WANTED, timeout)
    group, _, found, code = register_consumer(None, request, True, 1000, REPAIRED)
    assert (found, code, group is None) == (rule, error, bool(error))


def test_an_id_is_registered_once() -> None:
    group, step, rule, error = register_consumer(ONE, RegisterRequest("c0", 2), True, 0, REPAIRED)
    assert (group, step, rule, error) == (ONE, None, "register.duplicate", DUPLICATE)


def test_a_group_without_a_topic_waits_for_one() -> None:
    group, step, rule, _ = register_consumer(None, RegisterRequest("c0", 1), False, 0, REPAIRED)
    assert group is not None and not group.rebalancing
    assert (step, rule) == (None, "register.no-topics")


def test_a_change_that_meets_the_bit_is_remembered_or_forgotten() -> None:
    assert trigger_rebalance(ONE, REPAIRED).group.changed
    assert trigger_rebalance(ONE, DRAFT).rule == "trigger.forgotten"


def test_the_last_member_leaves_without_a_rebalance() -> None:
    step = remove_consumer(evolve(ONE, rebalancing=False), "c0", 1, REPAIRED)
    assert step is not None and (step.rule, step.requests) == ("remove.last", 0)


def test_a_leftover_watcher_removes_nobody_once_registrations_are_numbered() -> None:
    assert remove_consumer(ONE, "c0", 0, REPAIRED) is None
    assert remove_consumer(ONE, "c0", 0, DRAFT) is not None


def test_a_rebalance_goes_through_its_phases() -> None:
    rules = []
    step = take_request(ONE)
    for handle in (
        lambda group: compute_assignment(group, {"t": ("p0", "p1")}),
        lambda group: check_necessity(group, None, REPAIRED),
        lambda group: send_stops(group, 1, REPAIRED),
        lambda group: receive_response(group, "c0", 1, StopResponse(0), REPAIRED),
        lambda group: receive_response(group, "c0", 1, StopResponse(1), REPAIRED),
        lambda group: send_starts(group, 1),
        lambda group: receive_response(group, "c0", 0, StartResponse(1), REPAIRED),
        lambda group: receive_response(group, "c0", 1, StartResponse(1), REPAIRED),
        lambda group: record_owners(group, 0, REPAIRED),
        reset_bit,
    ):
        after = handle(step.group)
        assert after is not None
        if after.rule == "rebalance.starting":
            (sending,) = after.sendings
            assert sending.message == StartRequest(1, ("p0", "p1"))
        step = after
        rules.append(step.rule)
    assert rules == [
        "rebalance.computed",
        "rebalance.necessary",
        "rebalance.stopping",
        "response.not-awaited",
        "rebalance.all-stopped",
        "rebalance.starting",
        "response.not-awaited",
        "rebalance.all-started",
        "rebalance.recorded",
        "rebalance.finished",
    ]
    assert not step.group.rebalancing and step.group.completed is not None


def test_stop_closes_half_started_fetchers_once_the_flag_is_lowered_first() -> None:
    start = StartRequest(1, ("p0", "p1"))
    for dialect, left in ((REPAIRED, ()), (undo_repairs("lowers_flag_first"), ("p0",))):
        half = handle_start(new_consumer(dialect), start, dialect, fails_after=1)
        assert (half.rule, half.response) == ("start.failed", None)
        assert handle_stop(half.consumer, StopRequest(2), dialect).consumer.fetchers == left


def test_a_start_without_a_stop_is_refused() -> None:
    running = PushConsumer(is_stopped=False, registry=("p0",), fetchers=("p0",))
    step = handle_start(running, StartRequest(1, ("p1",)), REPAIRED)
    assert (step.rule, step.response) == ("start.illegal", StartResponse(1, ILLEGAL_STATE))
    assert handle_start(running, StartRequest(1, ("p1",)), DRAFT).response is None
    assert handle_start(running, StartRequest(1, ("p0",)), REPAIRED).rule == "start.started"


@pytest.mark.parametrize(
    ("threads", "shares"),
    [
        ({"a": 1, "b": 1}, {"a": (0, 1), "b": (2,)}),
        ({"a": 1, "b": 2}, {"a": (0,), "b": (1, 2)}),
        ({"a": 2, "b": 3}, {"a": (0, 1), "b": (2,)}),
        ({}, {}),
    ],
)
def test_ranges_over_threads(threads: dict[str, int], shares: dict[str, tuple[int, ...]]) -> None:
    assert assign_ranges(range(3), threads) == shares


def test_interests() -> None:
    assert parse_interest('{"t": 2}') == Interest((("t", 2),))
    wild = parse_interest("*2*log-.*")
    assert [wild.threads_for(topic) for topic in ("log-a", "x")] == [2, 0]
    assert all(parse_interest(format_interest(one)) == one for one in (wild, WANTED))


@pytest.mark.parametrize("text", ["", "{}", "t", '{"t": 0}', "[1]", "*1*("])
def test_an_interest_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(UnusableInterest, match="topic_count"):
        parse_interest(text)


def test_the_queue_of_a_group() -> None:
    names = [f"consumers-{number}" for number in range(100)]
    assert {queue_index(name, 4, REPAIRED) for name in names} == {0, 1, 2, 3}
    assert min(queue_index(name, 4, DRAFT) for name in names) < 0
