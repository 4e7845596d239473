"""The kit's power, requirement by requirement: an answer that is marked and made wrong breaks what it is marked for.

Every scenario is played on the bundled coordinator, every marked answer is altered in every field that its marks
look at, and the judge has to find just the requirements that the altered field is evidence of.
"""

from functools import cache

import pytest

from fencepost.adapters.virtual import run_virtual
from fencepost.conformance.aggregation import broken
from fencepost.conformance.bundled_run import Bundled
from fencepost.conformance.execution import Played
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.scenario import Scenario
from fencepost.conformance.scenarios import ALL
from fencepost.traces.judge.judge import judge
from fencepost.traces.judge.verdict import Standing
from tests.conformance.alterations import altered, broken_by, marked_answers

BLUNT = {"TIMER-23": "an answer without any delay cannot come earlier, and later ones are slow, not wrong"}
"""Requirements whose marks no alteration can break, and why."""


@cache
def played(scenario: Scenario) -> Played:
    """The scenario on the bundled coordinator."""
    return run_virtual(Bundled(Plan(BUNDLED), Profile()).play(scenario, "run"))


@cache
def altered_fields(scenario: Scenario) -> set[str]:
    """Alter every marked answer in every field; returns the requirements that were seen to break."""
    one = played(scenario)
    seen: set[str] = set()
    for marked in marked_answers(one.events):
        for field in sorted({name for _, fields in marked.marks for name in fields or {"error"}}):
            events = altered(one.events, marked, field)
            if events is None:
                continue
            verdict = judge(one.header, events)
            what = f"{marked.request.api} v{marked.request.version} at {marked.request.sequence}, {field}"
            found = Played(scenario, one.header, events, verdict)
            assert (what, broken(found)) == (what, broken_by(marked, field))
            seen |= broken_by(marked, field)
    return seen


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_an_altered_answer_breaks_what_it_is_marked_for(scenario: Scenario) -> None:
    assert broken(played(scenario)) == frozenset()
    altered_fields(scenario)


def test_every_requirement_that_is_marked_can_be_broken() -> None:
    passed = {
        mark.requirement
        for scenario in ALL
        for mark in played(scenario).verdict.evidence
        if mark.standing is Standing.PASS
    }
    breakable = {each for scenario in ALL for each in altered_fields(scenario)}
    assert passed - breakable == set(BLUNT)
