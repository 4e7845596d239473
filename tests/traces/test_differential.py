"""Model, judge and bundled coordinator against each other: they agree on the responses to any schedule."""

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
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
