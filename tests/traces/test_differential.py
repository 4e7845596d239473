"""Model, judge and bundled coordinator against each other: they agree on the responses to any schedule."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.traces.classic import calm_group
from fencepost.traces.classic.stepper import ClassicStepper
from fencepost.traces.classic.stepping import CoordinatorStepper
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation
from fencepost.traces.verdict import TraceVerdict
from tests.support.client_view import as_seen_by_clients
from tests.support.random_client import random_trace

SHORT, LONG = 60, 300
PAUSE_MS, TRAVEL_MS = 10, 12


def assert_agreement(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
    verdict = judge(header, events)
    assert verdict.violations == ()
    assert verdict.inconclusive == ()
    return verdict


@pytest.mark.slow
@given(source=st.randoms(use_true_random=False), steps=st.integers(1, SHORT))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_judge_accepts_any_schedule_of_the_bundled_coordinator(source: random.Random, steps: int) -> None:
    assert_agreement(*random_trace(source, steps))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_random_walks(block: int) -> None:
    for seed in range(20):
        assert_agreement(*random_trace(random.Random(20 * block + seed), SHORT))


@pytest.mark.parametrize("seed", range(4))
def test_long_random_walks(seed: int) -> None:
    assert_agreement(*random_trace(random.Random(seed), LONG))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_what_clients_see_of_random_walks(seed: int) -> None:
    header, events = random_trace(random.Random(seed), SHORT // 2, PAUSE_MS)
    far = replace(header, grace=2 * TRAVEL_MS)
    verdict = judge(*as_seen_by_clients(far, events, random.Random(seed), TRAVEL_MS))
    assert verdict.violations == ()


# --- The fast path gives the same verdicts as the search, and leaves to the search the steps it may not explain.

FastPath = Callable[[CoordinatorStepper, Configuration, GroupOperation], Configuration | None]
REBALANCE_IN_PROGRESS = 27
"""REBALANCE_IN_PROGRESS."""


def with_wrong_error(events: tuple[Event, ...], source: random.Random) -> tuple[Event, ...]:
    """The events with the error of one Heartbeat's or OffsetCommit's answer exchanged."""
    places = [
        place
        for place, event in enumerate(events)
        if event.kind is Kind.RESPONSE
        and event.api == "Heartbeat"
        and event.body["error_code"] != REBALANCE_IN_PROGRESS
    ]
    if not places:
        return events
    place = source.choice(places)
    wrong = replace(events[place], body={**events[place].body, "error_code": REBALANCE_IN_PROGRESS})
    return (*events[:place], wrong, *events[place + 1 :])


@pytest.mark.parametrize("spoil", [False, True])
def test_both_ways_lead_to_the_same_verdict(spoil: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {True: 0, False: 0}
    plain: FastPath = calm_group.take_fast_path

    def count_fast_path(of: CoordinatorStepper, one: Configuration, part: GroupOperation) -> Configuration | None:
        after = plain(of, one, part)
        found[after is not None] += 1
        return after

    wrong = 0
    for seed in range(25):
        header, events = random_trace(random.Random(seed), 60)
        if spoil:
            events = with_wrong_error(events, random.Random(seed))
        monkeypatch.setattr(ClassicStepper, "take_fast_path", count_fast_path)
        quickly = judge(header, events)
        monkeypatch.setattr(ClassicStepper, "take_fast_path", lambda *_: None)
        assert judge(header, events) == quickly
        wrong += bool(quickly.violations)
    assert found[True] > 50
    assert found[False] > 50
    assert (wrong > 10) is spoil


# --- Traces that were recorded on kfake, whose wrong responses were held against its source by hand.

KFAKE = Path(__file__).parent / "data" / "kfake"


def judge_recorded(name: str) -> TraceVerdict:
    """The verdict on a trace of kfake."""
    header, events = open_trace(KFAKE / f"{name}.jsonl")
    return judge(header, list(events))


@pytest.mark.parametrize(
    ("trace", "sequence", "requirements", "rule"),
    [
        # Whoever leaves is forgotten with the JoinGroup that waits for its end.
        ("leave-answers-the-parked-join", 15, ("LEAVE-09",), "leave.member"),
        ("nobody-came", 7, ("LEAVE-09",), "leave.member"),
        # A session runs out while its JoinGroup or SyncGroup is parked.
        ("parked-join-protects-the-session", 15, ("TIMER-03",), "join.unknown-member"),
        ("parked-sync-protects-the-session", 11, ("TIMER-04",), "sync.unknown-member"),
        # A clean-up pass has removed the Empty group, and kfake answers GROUP_ID_NOT_FOUND for one that is not there.
        ("static-session-expiry", 5, ("HB-02",), "heartbeat.unknown-group"),
        ("fetches-do-not-extend-the-session", 23, ("FETCH-03",), "fetch.unknown-group"),
        # It has no place for that error in version 0, and leaves the partitions out.
        ("fetch-in-version-0", 1, ("FETCH-03",), "fetch.unknown-group"),
        # The instance id alone says who leaves.
        ("leave-with-another-instance-id", 9, ("LEAVE-15",), "leave.nobody"),
        # Nobody waits for the owners of pending ids.
        ("pending-id-holds-up-the-phase", 9, ("JOIN-28",), "join.stable.leader"),
        # In version 0 the session timeout does not count. The judge does not take the request to have been on its way
        # until the other member was gone.
        ("version-0-ends-early", 5, ("JOIN-26",), "join.new"),
        # A commit was refused as if the group were gone, which it may have been by a clean-up pass, and was not.
        ("join-after-a-refused-commit", 9, (), "timer.initial-delay"),
    ],
)
def test_what_kfake_does_wrong_is_charged_to_what_it_breaks(
    trace: str, sequence: int, requirements: tuple[str, ...], rule: str
) -> None:
    first, *_ = judge_recorded(trace).violations
    assert (first.sequence, first.requirements, first.rule) == (sequence, requirements, rule)


def test_a_response_without_any_error_code_decides_nothing_and_excuses_nothing() -> None:
    verdict = judge_recorded("fetch-in-version-0")
    assert "keeps_version_0" not in verdict.decisions
    assert verdict.inconclusive == ()


def test_a_group_that_was_removed_is_followed_on() -> None:
    verdict = judge_recorded("fetches-do-not-extend-the-session")
    assert {violation.requirements for violation in verdict.violations} == {("FETCH-03",), ("HB-02",)}
