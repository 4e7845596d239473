"""Whether a mutant is the same program after all: it and the shipped coordinator get the same requests, side by side.

What is compared is everything that can be seen: each answer and when it came, with member ids by the order in which
they were given out, as nobody may read anything in them. All of a small world is gone through (the tours: every state
of one or two members under every input), and beyond it all scenarios and some random schedules.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.schedules.falsify import schedule_source
from fencepost.conformance.zoo.classic.crashing_target import CrashingTarget
from fencepost.conformance.zoo.faulty import BUNDLED_SCHEDULES, FaultyCoordinator, MakeTarget
from fencepost.conformance.zoo.hunt import bundled_run_on, scenarios_for
from fencepost.conformance.zoo.line_coverage import Line, trace_lines
from fencepost.conformance.zoo.strategies import SCENARIOS, TOURS
from fencepost.conformance.zoo.timeouts import CpuLimitExceeded, cpu_limit
from fencepost.traces.events import Event, Kind

SCHEDULE_COUNT = 200
"""How many random schedules are compared."""
MAX_PLAY_SECONDS = 30.0
"""What takes longer is taken to hang."""


def find_difference(specimen: FaultyCoordinator) -> str:
    """Where the specimen's behaviour differs from the shipped one's; "" if it never does."""
    changed = specimen.changed_lines
    with specimen.activate() as make_target:
        for play in compared_scenarios():
            expected, lines = observe_reference(play)
            if changed is not None and changed.isdisjoint(lines):
                continue
            try:
                with cpu_limit(MAX_PLAY_SECONDS):
                    same = observe(make_target, play) == expected
            except CpuLimitExceeded:
                same = False
            if not same:
                return play.name
    return ""


def compared_scenarios() -> Iterator[Scenario]:
    """All that is compared."""
    yield from scenarios_for(SCENARIOS)
    yield from scenarios_for(TOURS)
    yield from random_schedules()


@cache
def random_schedules() -> tuple[Scenario, ...]:
    """The random schedules."""
    source = schedule_source(BUNDLED_SCHEDULES, 0)
    drawn = islice((each for chunk in range(SCHEDULE_COUNT) for each in source(chunk)), SCHEDULE_COUNT)
    return tuple(BUNDLED_SCHEDULES.scenario_of(each) for each in drawn)


def observe(make_target: MakeTarget, play: Scenario) -> str:
    """All that is seen of a coordinator."""
    return normalize_ids(run_virtual(bundled_run_on(make_target, 0).play(play, "run")).events)


def normalize_ids(events: Sequence[Event]) -> str:
    """Events in text, with the member ids that were given out replaced by their numbers, also in what members made
    of them."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(member_ids_in(events))) if name}
    text = repr(events)
    for name in sorted(numbers, key=len, reverse=True):
        text = text.replace(name, f"member {numbers[name]}")
    return text


def member_ids_in(events: Sequence[Event]) -> Iterator[str]:
    """The member ids that answers show, in order."""
    for event in events:
        if event.kind is Kind.RESPONSE and event.api == "JoinGroup":
            yield event.body["member_id"]
        elif event.kind is Kind.RESPONSE and event.api == "DescribeGroups":
            yield from (member["member_id"] for group in event.body["groups"] for member in group["members"])


@cache
def observe_reference(play: Scenario) -> tuple[str, frozenset[Line]]:
    """All that is seen of the shipped coordinator, and the lines of it that are run."""
    with trace_lines() as lines:
        text = observe(CrashingTarget, play)
    return text, frozenset(lines)
