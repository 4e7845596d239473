"""Whether a mutant is the same program after all: it and the shipped coordinator get the same requests, side by side.

What is compared is everything that can be seen: each answer and when it came, with member ids by the order in which
they were given out, as nobody may read anything in them. All of a small world is gone through (the tours: every state
of one or two members under every input), and beyond it all scenarios and some random schedules.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.schedules.classic.generation import Ground
from fencepost.conformance.schedules.classic.interpreter import Playing
from fencepost.conformance.schedules.falsify import drawn_from
from fencepost.conformance.zoo.crashing_target import MortalTarget
from fencepost.conformance.zoo.faulty import MakeTarget, Specimen
from fencepost.conformance.zoo.hunt import plays, run_of
from fencepost.conformance.zoo.line_coverage import Line, traced
from fencepost.conformance.zoo.strategies import SCENARIOS, TOURS
from fencepost.conformance.zoo.timeouts import Stuck, at_most
from fencepost.traces.events import Event, Kind

SCHEDULES = 200
"""How many random schedules are compared."""
PLAY_SECONDS = 30.0
"""What takes longer is taken to hang."""


def difference(specimen: Specimen) -> str:
    """Where the specimen's behaviour differs from the shipped one's; "" if it never does."""
    changed = specimen.changed
    with specimen.applied() as make_target:
        for play in everything():
            expected, lines = shipped(play)
            if changed is not None and changed.isdisjoint(lines):
                continue
            try:
                with at_most(PLAY_SECONDS):
                    same = seen(make_target, play) == expected
            except Stuck:
                same = False
            if not same:
                return play.name
    return ""


def everything() -> Iterator[Scenario]:
    """All that is compared."""
    yield from plays(SCENARIOS)
    yield from plays(TOURS)
    yield from schedules()


@cache
def schedules() -> tuple[Scenario, ...]:
    """The random schedules."""
    source = drawn_from(Ground(BUNDLED_SETTINGS), 0)
    drawn = islice((each for chunk in range(SCHEDULES) for each in source(chunk)), SCHEDULES)
    return tuple(Scenario(each.name, (), Playing(each)) for each in drawn)


def seen(make_target: MakeTarget, play: Scenario) -> str:
    """All that is seen of a coordinator."""
    return without_names(run_virtual(run_of(make_target, 0).play(play, "run")).events)


def without_names(events: Sequence[Event]) -> str:
    """Events in text, with the member ids that were given out replaced by their numbers, also in what members made
    of them."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names(events))) if name}
    text = repr(events)
    for name in sorted(numbers, key=len, reverse=True):
        text = text.replace(name, f"member {numbers[name]}")
    return text


def names(events: Sequence[Event]) -> Iterator[str]:
    """The member ids that answers show, in order."""
    for event in events:
        if event.kind is Kind.ANSWER and event.api == "JoinGroup":
            yield event.body["member_id"]
        elif event.kind is Kind.ANSWER and event.api == "DescribeGroups":
            yield from (member["member_id"] for group in event.body["groups"] for member in group["members"])


@cache
def shipped(play: Scenario) -> tuple[str, frozenset[Line]]:
    """All that is seen of the shipped coordinator, and the lines of it that are run."""
    with traced() as lines:
        text = seen(MortalTarget, play)
    return text, frozenset(lines)
