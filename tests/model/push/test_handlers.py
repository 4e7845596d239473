"""The handlers of coordinator and consumer, each branch by its rule."""

import pytest

from fencepost.model.frozen import evolve
from fencepost.model.push.consumer import PushConsumer, handle_start
from fencepost.model.push.coordinator import queue_index
from fencepost.model.push.dialect import DRAFT, REPAIRED
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
    UnusableInterest,
    assign_ranges,
    format_interest,
    parse_interest,
    register_consumer,
    remove_consumer,
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


def test_the_last_member_leaves_without_a_rebalance() -> None:
    step = remove_consumer(evolve(ONE, rebalancing=False), "c0", 1, REPAIRED)
    assert step is not None and (step.rule, step.requests) == ("remove.last", 0)


def test_a_leftover_watcher_removes_nobody_once_registrations_are_numbered() -> None:
    assert remove_consumer(ONE, "c0", 0, REPAIRED) is None
    assert remove_consumer(ONE, "c0", 0, DRAFT) is not None


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
