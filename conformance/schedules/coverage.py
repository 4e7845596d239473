"""Coverage of the model by a target: the transitions and rules it was seen to take, and how near it came to others."""

from collections import Counter
from collections.abc import Iterable, Mapping

from fencepost.conformance.results import Coverage
from fencepost.conformance.schedules.protocol import CoverageGoals
from fencepost.conformance.schedules.statistics import RunStatistics
from fencepost.traces.model_transitions import Transition
from fencepost.traces.verdict import TraceVerdict

INTERNAL_EVENT = "by itself"


def measure_coverage(statistics: RunStatistics, goals: CoverageGoals, others: Iterable[TraceVerdict] = ()) -> Coverage:
    """The coverage of the goals, and of the transitions predicted in this run, by its schedules and other traces."""
    seen, rules_seen = Counter(statistics.transitions), set(statistics.rules)
    for each in others:
        seen.update(each.transitions)
        rules_seen |= each.rules.keys()
    possible = goals.transitions | statistics.predicted.keys()
    missed = sorted(possible - seen.keys(), key=lambda one: (-nearness(one, seen), str(one)))
    rules = sorted(goals.rules.keys() - rules_seen)
    return Coverage(
        schedules=statistics.schedules,
        undecided=statistics.undecided,
        transitions={str(each): seen[each] for each in sorted(seen)},
        missed={str(each): describe_nearest(each, seen) for each in missed},
        rules={rule: describe_nearest_rule(rule, goals.rules[rule], possible, seen) for rule in rules},
    )


def nearness(wanted: Transition, seen: Mapping[Transition, int]) -> int:
    """3 if the event was seen in the state, 2 if the state was seen, 1 if the event was seen, else 0."""
    if any((each.state, each.event) == (wanted.state, wanted.event) for each in seen):
        return 3 if wanted.event != INTERNAL_EVENT else 2
    if any(each.state == wanted.state for each in seen):
        return 2
    return int(any(each.event == wanted.event for each in seen))


def describe_nearest(wanted: Transition, seen: Mapping[Transition, int]) -> str:
    """How near the best schedule came to this transition, in words."""
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


def describe_nearest_rule(rule: str, guard: str, possible: Iterable[Transition], seen: Mapping[Transition, int]) -> str:
    """How near the best schedule came to a rule, in words; its guard if no schedule is known to reach it."""
    ways = [each for each in possible if each.rule == rule]
    if not ways:
        return f"no schedule is known to come there: {guard or 'it takes a failure of the target'}"
    best = max(ways, key=lambda one: (nearness(one, seen), str(one)))
    return f"{best.state}, {best.event}: {describe_nearest(best, seen)}"
