"""Folding spares the judge heartbeats, and takes nothing from its verdict."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fencepost.traces.classic.folding import HeartbeatFolding
from fencepost.traces.events import Event, Header, Lookahead
from fencepost.traces.judge.judge import Judge
from fencepost.traces.verdict import TraceVerdict, Transition
from tests.support.calm_traces import altered_calm_trace, calm_trace

SEEDS = 12
MAX_CONFIGURATIONS = 400


def judge_folded(header: Header, events: Sequence[Event], width: int | None) -> tuple[TraceVerdict, int]:
    """The verdict on a trace that is folded, and how many events the judge has not seen."""
    judge, spared = Judge(header, None, width, max_configurations=MAX_CONFIGURATIONS), 0
    folding = HeartbeatFolding(judge)
    for moment, is_folded in folding.fold(Lookahead(events).pair_operations()):
        spared += is_folded
        if not is_folded:
            judge.on_event(*moment)
    folding.settle()
    return judge.finish(), spared


def judge_all(header: Header, events: Sequence[Event], width: int | None) -> TraceVerdict:
    return Judge(header, None, width, max_configurations=MAX_CONFIGURATIONS).judge_events(events)


def told_of(verdict: TraceVerdict) -> TraceVerdict:
    """The verdict, with transitions counted by their rules: ids that are handed out expire without a sign, so which
    heartbeat was the last before that is not known of those that are folded."""
    rules: Counter[Transition] = Counter()
    for each, count in verdict.transitions.items():
        rules[Transition("", "", each.rule, each.after)] += count
    return replace(verdict, transitions=dict(rules))


def heartbeats(events: Sequence[Event]) -> int:
    return sum(event.api == "Heartbeat" for event in events)


def test_verdicts_are_the_same_with_many_heartbeats_folded() -> None:
    spared, all_heartbeats = 0, 0
    for seed in range(SEEDS):
        header, events = calm_trace(random.Random(seed), 3)
        verdict, few = judge_folded(header, events, None)
        assert told_of(verdict) == told_of(judge_all(header, events, None)), seed
        spared, all_heartbeats = spared + few, all_heartbeats + heartbeats(events)
    assert spared > all_heartbeats / 5, (spared, all_heartbeats)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_verdicts_on_altered_traces_are_the_same(seed: int) -> None:
    header, events = altered_calm_trace(seed)
    width = 12 if header.grace else None
    assert told_of(judge_folded(header, events, width)[0]) == told_of(judge_all(header, events, width))
