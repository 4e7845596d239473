"""Deviations of products that scenarios once missed: each fails under its name, with an initial delay and without."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.scenarios.statics import statics
from fencepost.conformance.classic.zoo.bugs.deviations import DEVIATIONS
from fencepost.conformance.classic.zoo.bugs.environments import CrashingTarget
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.run.play import DEFAULT_GRACE_MS, NewTarget
from fencepost.conformance.subject import select_requirements
from fencepost.model.errors import Error
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.verdict import TraceVerdict
from tests.support.faulty_coordinators import altering_coordinator

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


# --- scenarios go on where a client would


@pytest.mark.parametrize("delay", DELAYS)
def test_static_members_go_on_with_the_id_that_they_get(delay: int) -> None:
    fault = DEVIATIONS["static-newcomer-needs-id"]
    player = NewTarget(partial(InProcessTarget, replace(BUNDLED_SETTINGS, initial_rebalance_delay=delay)))
    with fault.activate():
        runs = [run_virtual(player.play(scenario, scenario.name, judge_nothing)) for scenario in statics.scenarios]
    assert {run.scenario.name for run in runs if run.blocked} <= {"instance-id-is-free-after-leaving"}


async def judge_nothing(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
    """No verdict."""
    return TraceVerdict((), ())


def test_members_rejoin_that_are_told_so_when_they_sync() -> None:
    refused = set[str]()

    def refuse_first(request: Request, response: Response) -> Response:
        if request.api != "SyncGroup" or request.body["member_id"] in refused:
            return response
        refused.add(request.body["member_id"])
        return replace(response, body={**response.body, "error_code": Error.REBALANCE_IN_PROGRESS})

    coordinator = altering_coordinator(refuse_first)
    player = NewTarget(lambda: InProcessTarget(BUNDLED_SETTINGS, make_coordinator=coordinator))
    scenario = next(each for each in ALL if each.name == "heartbeat-in-stable")
    run = run_virtual(player.play(scenario, "run", judge_nothing))
    errors = [
        event.body["error_code"] for event in run.events if event.kind is Kind.RESPONSE and event.api == "Heartbeat"
    ]
    assert not run.blocked and len(refused) == 2 and errors[0] == 0
