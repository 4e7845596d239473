"""What a run says of a coordinator that does not answer, and of scenarios that are given up for that."""

import asyncio

import pytest

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.classic.zoo.bugs.environments import CrashingTarget
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import ExitCode, Report, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.subject import Scenario
from fencepost.conformance.zoo.registry import fault_named
from fencepost.model.classic.catalogue import CATALOGUE
from tests.support.faulty_coordinators import (
    NEVER_ENDS_JOIN_PHASE,
    NEVER_HANDS_OUT_ASSIGNMENTS,
    install_late_rebalance_timeout,
)

CONFIRMS_NO_JOIN = "rebalance.Rebalancer.confirm_join: never: request is not None -> False"
REFUSES_NO_PARKED_JOIN = "rebalance.Rebalancer.refuse_parked_join: never: request is not None -> False"


def run_on_bundled(*requirements: str, scenarios: tuple[Scenario, ...] = ()) -> Report:
    """The report of a run on the bundled coordinator."""
    run = BundledRun(Plan(BUNDLED), Profile(), scenarios=scenarios)
    return asyncio.run(run.run([CATALOGUE[each] for each in requirements], lambda event: None))


def run_on(coordinator: type[Coordinator], *requirements: str) -> Report:
    """The report of a run on a coordinator."""
    run = BundledRun(Plan(BUNDLED), Profile(), lambda given: InProcessTarget(given, make_coordinator=coordinator))
    return asyncio.run(run.run([CATALOGUE[each] for each in requirements], lambda event: None))


def verdicts_in(report: Report) -> dict[str, Verdict]:
    return {result.id: result.verdict for result in report.results}


def test_a_parked_join_that_is_never_answered_is_a_violation() -> None:
    report = run_on(NEVER_ENDS_JOIN_PHASE, "TIMER-16", "JOIN-44")
    assert verdicts_in(report) == {"TIMER-16": Verdict.FAIL, "JOIN-44": Verdict.INCONCLUSIVE}
    assert report.exit_code() is ExitCode.VIOLATION
    failure, blocked = report.results[0].failures[0], report.results[1]
    assert failure.observed == "no answer, although the coordinator answers later requests of the group"
    assert failure.rule.startswith("timer.initial-delay: the initial delay is over")
    assert failure.state.startswith("Completing, generation 1,")
    assert failure.replayed and "blocked by TIMER-16" in blocked.note


def test_a_parked_sync_that_is_never_answered_is_a_violation() -> None:
    report = run_on(NEVER_HANDS_OUT_ASSIGNMENTS, "SYNC-10", "SYNC-18", "TIMER-13")
    assert set(verdicts_in(report).values()) == {Verdict.FAIL}


def test_a_late_rebalance_timeout_is_not_conformant(monkeypatch: pytest.MonkeyPatch) -> None:
    install_late_rebalance_timeout(monkeypatch)
    report = run_on_bundled("TIMER-09", "JOIN-44")
    assert verdicts_in(report) == {"TIMER-09": Verdict.INCONCLUSIVE, "JOIN-44": Verdict.FAIL}
    assert "blocked by JOIN-44" in report.results[0].note
    assert run_on_bundled("TIMER-09").exit_code() is not ExitCode.CONFORMANT


@pytest.mark.parametrize(
    ("mutant", "requirements"),
    [(CONFIRMS_NO_JOIN, ["TIMER-16"]), (REFUSES_NO_PARKED_JOIN, ["LEAVE-09", "STATIC-05", "TIMER-06"])],
)
def test_mutants_that_do_not_answer_are_found(mutant: str, requirements: list[str]) -> None:
    with fault_named(mutant).activate():
        run = BundledRun(Plan(BUNDLED), Profile(), CrashingTarget)
        report = asyncio.run(run.run([CATALOGUE[each] for each in requirements], lambda event: None))
    assert verdicts_in(report) == dict.fromkeys(requirements, Verdict.FAIL)


async def wait_in_vain(group: ScenarioContext) -> None:
    """Await the response to a JoinGroup after its connection is dropped."""
    call = group.join(group.member("A"), version=3)
    call.drop_connection()
    await group.check("JOIN-44", call)


def test_a_scenario_given_up_leaves_a_mark_on_a_pass() -> None:
    reason = "the connection ended without an answer to JoinGroup"
    report = run_on_bundled("JOIN-44", scenarios=(Scenario("in-vain", ("JOIN-44",), wait_in_vain),))
    (result,) = report.results
    assert (result.verdict, result.note) == (Verdict.PASS, f"1 of {report.schedules} scenarios undecided: {reason}")


def test_without_it_the_pass_is_bare() -> None:
    (result,) = run_on_bundled("JOIN-44").results
    assert (result.verdict, result.note) == (Verdict.PASS, "")
