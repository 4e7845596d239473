"""The power of each check: an altered response that a check covers violates exactly the requirements of the check.

Every scenario is played on the bundled coordinator, every marked answer is altered in every field that its marks
look at, and the judge has to find just the requirements that the altered field is evidence of.
"""

from functools import cache

import pytest

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.model.catalogue.requirement import Requirement, Verifiability
from fencepost.model.classic.catalogue import CATALOGUE, CLASSIC
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckStatus
from tests.support.response_mutations import alter_field, checked_responses, violated_by

NEVER_REACHED = {"FIND-08", "HB-12"}
"""They speak of a coordinator that is not available for a while; the bundled one always is."""
ADVICE = frozenset(id for id in CATALOGUE if CLASSIC.is_recommendation(id))


@cache
def play_bundled(scenario: Scenario) -> ScenarioRun:
    """The scenario on the bundled coordinator."""
    return run_virtual(BundledRun(Plan(BUNDLED), Profile()).play(scenario, "run"))


@cache
def altered_fields(scenario: Scenario) -> set[str]:
    """Alter every marked answer in every field; returns the requirements that were seen to break."""
    one = play_bundled(scenario)
    seen: set[str] = set()
    for marked in checked_responses(one.events):
        for field in sorted({name for _, fields in marked.checks for name in fields or {"error"}}):
            events = alter_field(one.events, marked, field)
            if events is None:
                continue
            verdict = judge(one.header, events)
            what = f"{marked.request.api} v{marked.request.version} at {marked.request.sequence}, {field}"
            found = ScenarioRun(scenario, one.header, events, verdict)
            concerned = violated_by(marked, field)
            assert (what, failed_checks(found)) == (what, concerned)
            binding = concerned - ADVICE
            # Where only advice is not taken, the answer may break what nobody looked at here.
            assert (what, found.verdict.violated) == (what, binding) or not binding
            seen |= concerned
    # A mark whose situation did not come about fails as well, but it shows nothing.
    return seen & {mark.requirement for mark in one.verdict.check_results if mark.status is CheckStatus.PASS}


def failed_checks(one: ScenarioRun) -> frozenset[str]:
    """The requirements of marks that fail, and the advice that is not taken."""
    marks = one.verdict.check_results
    failed = {mark.requirement for mark in marks if mark.status is CheckStatus.FAIL}
    return frozenset(failed | {mark.requirement for mark in marks if mark.status is CheckStatus.UNUSUAL} & ADVICE)


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_an_altered_answer_breaks_what_it_is_marked_for(scenario: Scenario) -> None:
    assert play_bundled(scenario).verdict.violated == frozenset()
    altered_fields(scenario)


def is_out_of_reach(requirement: Requirement) -> bool:
    """No scenario can show the requirement on the bundled coordinator."""
    return requirement.testability is Verifiability.UNTESTABLE or requirement.id in NEVER_REACHED


def test_every_requirement_can_be_broken() -> None:
    breakable = {each for scenario in ALL for each in altered_fields(scenario)}
    assert breakable == {each.id for each in CATALOGUE.values() if not is_out_of_reach(each)}
