"""The fast path gives the same verdicts as the search, and leaves to the search the steps it may not explain."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from fencepost.traces.classic import calm_group
from fencepost.traces.classic.stepper import ClassicStepper
from fencepost.traces.classic.stepping import CoordinatorStepper
from fencepost.traces.events import Event, Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation
from tests.support.random_client import random_trace

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
