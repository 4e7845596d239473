"""The straight way through a trace finds what the search finds, and what it may not explain is left to the search."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from fencepost.traces.events import Event, Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.judge.search import fast_path, search
from fencepost.traces.judge.search.configuration import Configuration, Part
from tests.support.random_client import random_trace

Straight = Callable[[search.Search, Configuration, Part], Configuration | None]
SPOILED = 27
"""REBALANCE_IN_PROGRESS."""


def spoiled(events: tuple[Event, ...], source: random.Random) -> tuple[Event, ...]:
    """The events with the error of one Heartbeat's or OffsetCommit's answer exchanged."""
    places = [
        place
        for place, event in enumerate(events)
        if event.kind is Kind.ANSWER and event.api == "Heartbeat" and event.body["error_code"] != SPOILED
    ]
    if not places:
        return events
    place = source.choice(places)
    wrong = replace(events[place], body={**events[place].body, "error_code": SPOILED})
    return (*events[:place], wrong, *events[place + 1 :])


@pytest.mark.parametrize("spoil", [False, True])
def test_both_ways_lead_to_the_same_verdict(spoil: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {True: 0, False: 0}
    plain: Straight = fast_path.straight

    def counted(of: search.Search, one: Configuration, part: Part) -> Configuration | None:
        after = plain(of, one, part)
        found[after is not None] += 1
        return after

    wrong = 0
    for seed in range(25):
        header, events = random_trace(random.Random(seed), 60)
        if spoil:
            events = spoiled(events, random.Random(seed))
        monkeypatch.setattr(search, "straight", counted)
        quickly = judge(header, events)
        monkeypatch.setattr(search, "straight", lambda *_: None)
        assert judge(header, events) == quickly
        wrong += bool(quickly.faults)
    assert found[True] > 50
    assert found[False] > 50
    assert (wrong > 10) is spoil
