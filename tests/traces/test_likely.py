"""Traces of random schedules on Apache Kafka that the quick passes of the judge must explain."""

from pathlib import Path

import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import BEAM_WIDTHS, Judge, judge
from fencepost.traces.judge.search import eager
from fencepost.traces.judge.search.time_interval import high

REGRESSIONS = Path(__file__).parent / "regressions"


def read_regression(name: str) -> tuple[Header, tuple[Event, ...]]:
    header, events = open_trace(REGRESSIONS / f"{name}.jsonl.gz")
    return header, tuple(events)


def test_a_timer_is_likeliest_to_fire_as_soon_as_it_may() -> None:
    """Of the JoinGroup that began the delay no answer was seen, so the model cannot tell when exactly it ends."""
    header, events = read_regression("delay-in-three-parts")
    assert header.settings != Settings()
    verdict = Judge(header, beam_width=eager.EAGER_BEAM_WIDTH, eager=True).judge_events(events)
    assert (verdict.violations, verdict.inconclusive) == ((), ())


def test_without_that_the_same_trace_is_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "low", high)
    header, events = read_regression("delay-in-three-parts")
    assert Judge(header, beam_width=eager.EAGER_BEAM_WIDTH, eager=True).judge_events(events).violations


@pytest.mark.slow
def test_what_few_explanations_leave_open_more_of_them_decide() -> None:
    header, events = read_regression("hidden-by-a-restart")
    assert Judge(header, beam_width=BEAM_WIDTHS[0]).judge_events(events).violations
    verdict = judge(header, events, eager=True)
    assert (verdict.violations, verdict.inconclusive) == ((), ())
