"""The runs behind test cases: each selection of results has all of its violations and no other."""

import itertools

import pytest

from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.testing.runs import InProcessRun, RunChoices
from fencepost.model.classic.catalogue import CATALOGUE

BUGS = ("BUG-05", "BUG-12", "BUG-40", "BUG-50")


def run_on(bug: CoordinatorFault, *, knows: bool) -> InProcessRun:
    """A run on a bug; with `knows` it is known what will be asked for, as where there is one worker."""
    expected = tuple(CATALOGUE) if knows else ()

    def make_run(plan: Plan, profile: Profile) -> BundledRun:
        return BundledRun(plan, profile, bug.setting.make_target)

    profile = Profile(grace=bug.setting.grace)
    return InProcessRun(make_run, RunChoices(profile), tuple(CATALOGUE), expected)


def violated_in(run: InProcessRun, ids: list[str]) -> set[str]:
    """The requirements whose violation the test cases of these ids show."""
    found: set[str] = set()
    for id in ids:
        if run.result(id).verdict is Verdict.FAIL:
            found.add(id)
        found |= {finding.requirement for finding in run.findings_beside(id)}
    return found


def found_by_workers(bug: CoordinatorFault, workers: int) -> set[str]:
    """The violations that workers show of which each gets a share of the requirements and knows nothing of the rest."""
    found: set[str] = set()
    with bug.activate():
        for share in range(workers):
            ids = list(itertools.islice(CATALOGUE, share, None, workers))
            found |= violated_in(run_on(bug, knows=False), ids)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [BUGS[0], *(pytest.param(number, marks=pytest.mark.acceptance) for number in BUGS[1:])]
)
def test_workers_lose_no_violation(number: str) -> None:
    bug = COORDINATOR_BUGS[number]
    with bug.activate():
        alone = violated_in(run_on(bug, knows=True), list(CATALOGUE))
    assert alone and alone <= found_by_workers(bug, 2)


def test_a_worker_plays_only_what_it_is_asked_for() -> None:
    run = InProcessRun(BundledRun, RunChoices(), tuple(CATALOGUE))
    assert run.result("HB-05").verdict is Verdict.PASS
    assert {id for each in run.state.runs for id in each.scenario.requirements} >= {"HB-05"}
    assert len(run.state.runs) < 20 < len(run.left)


def test_everything_is_played_once_something_is_wrong() -> None:
    bug = COORDINATOR_BUGS["BUG-07"]
    with bug.activate():
        run = InProcessRun(BundledRun, RunChoices(), tuple(CATALOGUE)[:40])
        assert run.result("JOIN-15").verdict is Verdict.FAIL
    assert not run.left
