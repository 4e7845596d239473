"""What a target was seen to do of what the model can: which transitions and rules, and how near to the others it came.

The transitions that the model is known to take were collected from the forecasts of many schedules; what a run adds to
them counts too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from fencepost.conformance.results import Coverage
from fencepost.conformance.schedules.statistics import RunStatistics
from fencepost.model.classic.rules import RULES
from fencepost.traces.model_transitions import Transition
from fencepost.traces.verdict import TraceVerdict

KNOWN_TRANSITIONS_FILE = Path(__file__).parent / "classic" / "transitions.txt"
INTERNAL_EVENT = "by itself"


@cache
def known_transitions() -> frozenset[Transition]:
    """The transitions that the model is known to take."""
    return frozenset(Transition.parse(line) for line in KNOWN_TRANSITIONS_FILE.read_text(encoding="utf-8").splitlines())


def measure_coverage(statistics: RunStatistics, others: Iterable[TraceVerdict] = ()) -> Coverage:
    """What the target was seen to do in these schedules and in other traces."""
    seen, rules_seen = Counter(statistics.transitions), set(statistics.rules)
    for each in others:
        seen.update(each.transitions)
        rules_seen |= each.rules.keys()
    possible = known_transitions() | statistics.predicted.keys()
    missed = sorted(possible - seen.keys(), key=lambda one: (-nearness(one, seen), str(one)))
    return Coverage(
        schedules=statistics.schedules,
        undecided=statistics.undecided,
        transitions={str(each): seen[each] for each in sorted(seen)},
        missed={str(each): describe_nearest(each, seen) for each in missed},
        rules={rule: describe_nearest_rule(rule, possible, seen) for rule in sorted(RULES.keys() - rules_seen)},
    )


def nearness(wanted: Transition, seen: Mapping[Transition, int]) -> int:
    """3 if the state met the event, 2 if the target was in the state, 1 if the event came, else 0."""
    if any((each.state, each.event) == (wanted.state, wanted.event) for each in seen):
        return 3 if wanted.event != INTERNAL_EVENT else 2
    if any(each.state == wanted.state for each in seen):
        return 2
    return int(any(each.event == wanted.event for each in seen))


def describe_nearest(wanted: Transition, seen: Mapping[Transition, int]) -> str:
    """How near the best schedule came to this transition."""
    at = Counter[str]()
    states = events = 0
    for each, times in seen.items():
        states += times * (each.state == wanted.state)
        events += times * (each.event == wanted.event)
        if (each.state, each.event) == (wanted.state, wanted.event):
            at[each.rule] += times
    if at:
        instead = ", ".join(f"{rule} ({times})" for rule, times in at.most_common(2))
        return f"the state met the event, but then came {instead}"
    if states:
        return f"the state was there for {states} steps, the event came {events} times, never both at once"
    return f"the state was never reached, the event came {events} times"


def describe_nearest_rule(rule: str, possible: Iterable[Transition], seen: Mapping[Transition, int]) -> str:
    """How near the best schedule came to a rule."""
    ways = [each for each in possible if each.rule == rule]
    if not ways:
        return f"no schedule is known to come there: {RULES[rule].guard or 'it takes a failure of the target'}"
    best = max(ways, key=lambda one: (nearness(one, seen), str(one)))
    return f"{best.state}, {best.event}: {describe_nearest(best, seen)}"
