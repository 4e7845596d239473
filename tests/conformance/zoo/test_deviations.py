"""Deviations that were found on products, and correct variants: they can be put in, and differ from what is shipped."""

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
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault, can_start, play_scenario_in
from fencepost.conformance.classic.zoo.variants import VARIANTS
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.run.play import DEFAULT_GRACE_MS, NewTarget
from fencepost.conformance.subject import select_requirements
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.model.errors import Error
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.verdict import TraceVerdict
from tests.support.faulty_coordinators import altering_coordinator

EVERYTHING = [*DEVIATIONS.values(), *VARIANTS.values()]


@pytest.mark.parametrize("fault", EVERYTHING, ids=lambda fault: fault.id)
def test_it_can_be_put_in(fault: CoordinatorFault) -> None:
    assert fault.sentence
    assert can_start(fault)
    assert set(fault.breaks) <= set(CATALOGUE)


def test_no_deviation_has_the_name_of_a_variant() -> None:
    assert not DEVIATIONS.keys() & VARIANTS.keys()


@pytest.mark.parametrize(
    ("name", "scenario", "requirement"),
    [
        ("static-newcomer-needs-id", "static-member-joins-in-one-step", "STATIC-01"),
        ("session-ends-in-parked-join", "parked-join-protects-the-session", "TIMER-03"),
        ("deleted-group-comes-back", "deleted-group-stays-deleted", "FAILOVER-15"),
        ("begins-with-generation-101", "first-generation", "GEN-01"),
    ],
)
def test_a_scenario_shows_it(name: str, scenario: str, requirement: str) -> None:
    fault = {**DEVIATIONS, **VARIANTS}[name]
    with fault.activate():
        run = play_scenario_in(fault.setting, next(each for each in ALL if each.name == scenario))
    assert requirement in run.verdict.violated


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda variant: variant.id)
def test_a_variant_forms_and_dissolves_groups(variant: CoordinatorFault) -> None:
    names = {"last-member-leaves", "commit-in-stable", "unsynced-round-is-lost"}
    with variant.activate():
        runs = [play_scenario_in(variant.setting, each) for each in ALL if each.name in names]
    assert not {id for run in runs for id in run.verdict.violated} - set(variant.breaks)


# --- Deviations that scenarios once missed: each fails under its name, with an initial delay and without.


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
