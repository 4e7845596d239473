"""Members whose ids no response has shown can be matched with a description in more ways than there is time for."""

from pathlib import Path

import pytest

from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import Judge, judge

TRACE = Path(__file__).parents[1] / "regressions" / "sixteen-unknown-ids.jsonl.gz"
"""A random schedule: DescribeGroups shows the ids of members whose JoinGroups all lost their connections."""


@pytest.fixture(scope="module")
def trace() -> tuple[Header, tuple[Event, ...]]:
    header, events = open_trace(TRACE)
    return header, tuple(events)


def test_some_of_the_ways_are_enough_to_accept_a_trace(trace: tuple[Header, tuple[Event, ...]]) -> None:
    header, events = trace
    verdict = judge(header, events, eager=True)
    assert (verdict.violations, verdict.inconclusive) == ((), ())


@pytest.mark.slow
def test_a_search_that_wants_all_of_them_gives_up(trace: tuple[Header, tuple[Event, ...]]) -> None:
    header, events = trace
    verdict = Judge(header, max_configurations=3_000).judge_events(events)
    assert verdict.violations == ()
    assert any("720 ways to match the ids of one response" in each for each in verdict.inconclusive)
