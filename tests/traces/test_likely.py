"""Traces of random schedules on Apache Kafka that the quick passes of the judge must explain."""

from pathlib import Path

import pytest

from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import WIDTHS, Judge, judge
from fencepost.traces.judge.search import eager
from fencepost.traces.judge.search.time_interval import high

SEEN = Path(__file__).parent / "regressions"


def seen(name: str) -> tuple[Header, tuple[Event, ...]]:
    header, events = open_trace(SEEN / f"{name}.jsonl.gz")
    return header, tuple(events)


def test_a_timer_is_likeliest_to_fire_as_soon_as_it_may() -> None:
    """Of the JoinGroup that began the delay no answer was seen, so the model cannot tell when exactly it ends."""
    header, events = seen("delay-in-three-parts")
    assert header.settings != Settings()
    verdict = Judge(header, width=eager.PROMPT_WIDTH, prompt=True).read(events)
    assert (verdict.faults, verdict.inconclusive) == ((), ())


def test_without_that_the_same_trace_is_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "low", high)
    header, events = seen("delay-in-three-parts")
    assert Judge(header, width=eager.PROMPT_WIDTH, prompt=True).read(events).faults


def test_what_few_explanations_leave_open_more_of_them_decide() -> None:
    header, events = seen("hidden-by-a-restart")
    assert Judge(header, width=WIDTHS[0]).read(events).faults
    verdict = judge(header, events, likely=True)
    assert (verdict.faults, verdict.inconclusive) == ((), ())
