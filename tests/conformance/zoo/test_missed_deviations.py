"""Deviations of products that scenarios once missed: each fails under its name, with an initial delay and without."""

import asyncio
from functools import partial

import pytest

from fencepost.conformance.classic.zoo.bugs.deviations import DEVIATIONS
from fencepost.conformance.classic.zoo.bugs.environments import CrashingTarget
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.play import DEFAULT_GRACE_MS
from fencepost.conformance.subject import select_requirements
from fencepost.traces.events import Order

DELAYS = (0, 600)


def run_scenarios(fault: CoordinatorFault, delay: int, *patterns: str, seed: int = 0) -> Report:
    """The report of the scenarios of some requirements, on a coordinator with a fault, seen as over a network."""
    profile = Profile(grace=DEFAULT_GRACE_MS, settings={"initial_rebalance_delay": delay})
    make_target = partial(CrashingTarget, order=Order.INTERVALS)
    with fault.activate():
        run = BundledRun(Plan(BUNDLED, seed=seed, patterns=patterns), profile, make_target)
        return asyncio.run(run.run(select_requirements(patterns), lambda event: None))


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize(
    ("name", "requirements"),
    [
        ("every-rejoin-rebalances", ("JOIN-29", "JOIN-32")),
        ("session-ends-in-parked-join", ("TIMER-03",)),
        ("session-ends-in-parked-sync", ("TIMER-04",)),
        ("leave-forgets-parked-join", ("LEAVE-09",)),
        ("absent-static-members-dropped", ("STATIC-18",)),
        ("instance-id-alone-removes", ("LEAVE-15",)),
    ],
)
def test_a_deviation_fails_under_its_name(name: str, requirements: tuple[str, ...], delay: int) -> None:
    for seed in range(3):
        report = run_scenarios(DEVIATIONS[name], delay, *requirements, seed=seed)
        assert {result.id for result in report.failed_results()} == set(requirements)


@pytest.mark.parametrize("delay", DELAYS)
def test_a_member_that_counts_twice_ends_the_join_phase_early(delay: int) -> None:
    report = run_scenarios(DEVIATIONS["replaced-static-member-counts-twice"], delay, "STATIC-05", "JOIN-26")
    assert report.result("JOIN-26").verdict is Verdict.FAIL
