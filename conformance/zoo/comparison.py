"""Comparison of a mutant with the shipped coordinator on the same requests.

A mutant whose traces are all the same is not told apart. It may be wrong all the same, where nobody looked.

Traces are compared whole: each response and its time, with member ids numbered in the order in which they were handed
out, because ids are opaque. The requests are those of all tours (every state of one or two members under every input),
all scenarios, some random schedules, and scenarios made for the comparison (`compared_scenarios`).
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.schedules.falsify import schedule_source
from fencepost.conformance.zoo.classic.compared_scenarios import comparison_scenarios
from fencepost.conformance.zoo.classic.environments import PLAIN
from fencepost.conformance.zoo.coordinators import BUNDLED_SCHEDULES, CoordinatorFault, play_scenario_in, scenarios_for
from fencepost.conformance.zoo.measuring import CpuLimitExceeded, Line, cpu_limit, lines_changed_by, trace_lines
from fencepost.conformance.zoo.strategies import SCENARIOS, TOURS
from fencepost.traces.events import Event, Kind

SCHEDULE_COUNT = 200
"""The number of random schedules that are compared."""
MAX_PLAY_SECONDS = 30.0
"""The seconds of one core after which a coordinator counts as hanging."""


def find_difference(fault: CoordinatorFault) -> str:
    """The scenario in which the trace differs from the shipped coordinator's, and the requirements violated there; ""
    if there is none."""
    changed = lines_changed_by(fault.mutant) if fault.mutant is not None else None
    for play in compared_scenarios():
        expected, lines = observe_reference(play)
        if changed is not None and changed.isdisjoint(lines):
            continue
        try:
            with fault.activate(), cpu_limit(MAX_PLAY_SECONDS):
                same = observe(play) == expected
                violated = "" if same else violated_in(play)
        except CpuLimitExceeded:
            return play.name
        if not same:
            return play.name + violated
    return ""


def violated_in(play: Scenario) -> str:
    """The requirements that a run of a scenario violates, in words; "" if it violates none."""
    violated = play_scenario_in(PLAIN, play).verdict.violated
    return f", which violates {', '.join(sorted(violated))}" if violated else ""


def compared_scenarios() -> Iterator[Scenario]:
    """The scenarios, tours and random schedules whose traces are compared."""
    yield from made_scenarios()
    yield from scenarios_for(SCENARIOS)
    yield from scenarios_for(TOURS)
    yield from random_schedules()


@cache
def made_scenarios() -> tuple[Scenario, ...]:
    """The scenarios made for the comparison."""
    return tuple(comparison_scenarios())


@cache
def random_schedules() -> tuple[Scenario, ...]:
    """Random schedules of seed 0, as scenarios."""
    source = schedule_source(BUNDLED_SCHEDULES, 0)
    drawn = islice((each for chunk in range(SCHEDULE_COUNT) for each in source(chunk)), SCHEDULE_COUNT)
    return tuple(BUNDLED_SCHEDULES.scenario_of(each) for each in drawn)


def observe(play: Scenario) -> str:
    """The trace of a scenario in text, with normalized member ids, on the coordinator that is active in this
    process."""
    return normalize_ids(play_scenario_in(PLAIN, play).events)


def normalize_ids(events: Sequence[Event]) -> str:
    """Events in text, with member ids replaced by their numbers, also where a member made them part of other values."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(member_ids_in(events))) if name}
    text = repr(events)
    for name in sorted(numbers, key=len, reverse=True):
        text = text.replace(name, f"member {numbers[name]}")
    return text


def member_ids_in(events: Sequence[Event]) -> Iterator[str]:
    """The member ids in responses, in order."""
    for event in events:
        if event.kind is Kind.RESPONSE and event.api == "JoinGroup":
            yield event.body["member_id"]
        elif event.kind is Kind.RESPONSE and event.api == "DescribeGroups":
            yield from (member["member_id"] for group in event.body["groups"] for member in group["members"])


@cache
def observe_reference(play: Scenario) -> tuple[str, frozenset[Line]]:
    """The trace of a scenario on the shipped coordinator, as `observe` gives it, and the lines that it runs."""
    with trace_lines() as lines:
        text = observe(play)
    return text, frozenset(lines)
