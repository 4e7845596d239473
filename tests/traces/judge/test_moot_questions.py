"""Questions that the judge takes as answered make no difference."""

import pytest

from fencepost.traces.classic import stepping
from fencepost.traces.judge.judge import Judge
from tests.support.altered_traces import altered_trace


def ignore_room(*_: object) -> None:
    """Leave the question open."""


@pytest.mark.parametrize("seed", range(12))
def test_a_join_where_there_is_room_needs_no_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    header, events = altered_trace(seed)
    events = tuple(events)
    verdict = Judge(header).judge_events(events)
    monkeypatch.setattr(stepping, "settle_question_of_room", ignore_room)
    assert Judge(header).judge_events(events) == verdict
