"""What a run says of a coordinator that does not answer, and of scenarios that are given up for that."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.failures import Origin
from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.zoo.bugs.environments import CrashingTarget
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.reports.report import render_report
from fencepost.conformance.results import ExitCode, Report, RequirementResult, Verdict
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.crashes import CrashMonitor, TargetGone
from fencepost.conformance.run.play import LoopLagMonitor
from fencepost.conformance.run.pool import RunCallback, ScenarioPool
from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.run_state import RunState
from fencepost.conformance.subject import Scenario, ScenarioRun, select_scenarios
from fencepost.conformance.zoo.registry import fault_named
from fencepost.model.classic.catalogue import CATALOGUE, CLASSIC
from fencepost.traces.events import Header, Order
from fencepost.traces.verdict import CheckResult, CheckStatus, TraceVerdict
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


async def wait_in_vain_after_a_check(group: ScenarioContext) -> None:
    """See the requirement kept once, and give up."""
    await group.check("GEN-01", await group.join_new(group.member("A")), fields="generation")
    await wait_in_vain(group)


def test_a_scenario_given_up_passes_nothing() -> None:
    scenario = Scenario("in-vain", ("GEN-01",), wait_in_vain_after_a_check)
    run = run_virtual(BundledRun(Plan(BUNDLED), Profile()).play(scenario, "run"))
    builder = ReportBuilder(["GEN-01"])
    builder.add_runs(DEFAULT_PROTOCOL.subject, [run], {}, lambda run, id: Origin("", ""))
    report = builder.build(schedules=1, events=0, seconds=0)
    (result,) = report.results
    assert result.verdict is Verdict.INCONCLUSIVE and result.note.startswith("the connection ended without an answer")


def test_without_it_the_pass_is_bare() -> None:
    (result,) = run_on_bundled("JOIN-44").results
    assert (result.verdict, result.note) == (Verdict.PASS, "")


# --- Over the network, scenarios that wait for clean-up passes and random schedules go on side by side.

DESCRIPTION = Description("target", Order.INTERVALS, "monotonic", {}, BUNDLED_SETTINGS, "topic")
WAITING = next(one for one in ALL if one.name == "explicit-retention-expires")
"""A scenario that waits for a clean-up pass, here for 25 s; any other takes 1 s."""
BRIEF = next(one for one in ALL if one.name == "heartbeat-in-stable")
REQUIREMENTS = [CATALOGUE[each] for each in (*WAITING.requirements, *BRIEF.requirements)]
HEADER = Header("target", Order.INTERVALS, "monotonic", BUNDLED_SETTINGS, 2_000)


class SlowPool(ScenarioPool):
    """A pool whose scenarios pass after their time, or end with the target."""

    crashes = False

    async def play_all(self, scenarios: Sequence[Scenario], attempt: str, on_run: RunCallback) -> None:
        for scenario in scenarios:
            await asyncio.sleep(25 if scenario is WAITING else 1)
            if self.crashes and scenario is WAITING:
                raise TargetGone("the target stopped answering")
            checks = tuple(CheckResult(each, 1, CheckStatus.PASS) for each in scenario.requirements)
            on_run(ScenarioRun(scenario, HEADER, (), TraceVerdict((), checks, {}, events=3)))


class CrashingPool(SlowPool):
    """A pool whose target goes down while a clean-up pass is waited for."""

    crashes = True


class QuickRun(RemoteRun):
    """A run whose random schedules take 30 s; `times` has the second in which each part ended."""

    def __init__(self) -> None:
        super().__init__(Plan("kafka://127.0.0.1:1", schedules=20), Profile())
        self.times: dict[str, float] = {}

    async def play_schedules(self, state: RunState, *others: Any) -> None:
        await asyncio.sleep(30)
        self.times["schedules"] = asyncio.get_running_loop().time()
        await others[-1]()
        assert {each.scenario.name for each in state.runs} == {WAITING.name, BRIEF.name}


def play(pool_type: type[SlowPool], offered: frozenset[str]) -> dict[str, float]:
    """Play both scenarios and the schedules; when each part ended, in seconds of virtual time."""

    async def story() -> dict[str, float]:
        run = QuickRun()
        selection = select_scenarios(ALL, REQUIREMENTS, offered, smoke=False)
        selection = replace(selection, scenarios=(WAITING, BRIEF))
        state = RunState(run.plan, selection, lambda _: None)
        monitor = CrashMonitor(run.target, can_restart=False)
        pool = pool_type(run.target, DESCRIPTION, monitor, LoopLagMonitor(), None, "token", 2_000)
        other = ScenarioRun(Scenario("other", (), BRIEF.play), HEADER, (), TraceVerdict((), (), {}, events=3))
        try:
            await run.play_all(state, pool, other, offered)
        finally:
            run.times["all"] = asyncio.get_running_loop().time()
            run.judges.close()
        return run.times

    return run_virtual(story())


def test_random_schedules_begin_while_a_scenario_waits_for_a_cleanup_pass() -> None:
    assert play(SlowPool, frozenset({"retention"})) == {"schedules": 31, "all": 31}


def test_nothing_is_restarted_while_a_scenario_waits() -> None:
    assert play(SlowPool, frozenset({"retention", "restart"})) == {"schedules": 56, "all": 56}


def test_a_target_that_goes_down_ends_both() -> None:
    with pytest.raises(TargetGone, match="stopped answering"):
        play(CrashingPool, frozenset({"retention"}))


# --- Unusual responses, allowed and different from Apache Kafka's: the requirement passes with a note.

NAMED = "administration.Admin.find: always: known -> True"
"""Beside the error for an unknown kind of key a node is named all the same."""
KEPT = "administration.Cleanup.is_expired: never: offset.expires_at is not None -> False"
"""An explicit retention is not looked at."""
SHORT_LIVED = "administration.Cleanup.is_expired: always: self._runtime.now >= offset.expires_at -> True"
"""What has an explicit retention goes with the next pass, whether its time is over or not."""


def result(name: str, requirement: str) -> tuple[RequirementResult, str]:
    """The verdict on a requirement, and the report, of a run on a mutant."""
    with fault_named(name).activate():
        run = BundledRun(Plan(BUNDLED), Profile())
        run.make_target = CrashingTarget
        report = asyncio.run(run.run([CATALOGUE[requirement]], lambda progress: None))
    return report.results[0], render_report(report)


def test_a_field_within_the_latitude_is_noted() -> None:
    found, report = result(NAMED, "FIND-07")
    assert found.verdict is Verdict.PASS
    assert found.comment == "unusual: allowed, but not as Apache Kafka has it: node"
    assert "Notes\n  FIND-07\n    unusual: allowed, but not as Apache Kafka has it: node" in report
    assert "CONFORMANT" in report


def test_who_does_not_do_what_should_be_done_is_unusual() -> None:
    found, _ = result(KEPT, "COMMIT-26")
    assert found.verdict is Verdict.PASS
    assert found.comment == "unusual: 2 clean-up intervals after its time was over the offset is still there"


def test_what_must_not_be_is_a_failure_whatever_else_should_be() -> None:
    found, _ = result(SHORT_LIVED, "COMMIT-25")
    assert found.verdict is Verdict.FAIL
    found, _ = result(SHORT_LIVED, "COMMIT-26")
    assert found.verdict is Verdict.PASS
    assert found.comment.startswith("unusual: ") and "usual is" in found.comment


@pytest.mark.parametrize("id", ["FIND-07", "COMMIT-26"])
def test_nothing_is_unusual_about_the_bundled_coordinator(id: str) -> None:
    report = asyncio.run(BundledRun(Plan(BUNDLED), Profile()).run([CATALOGUE[id]], lambda progress: None))
    assert [(one.verdict, one.note) for one in report.results] == [(Verdict.PASS, "")]
    assert report.exit_code() is ExitCode.CONFORMANT


def test_advice_is_what_should_be() -> None:
    assert [id for id in CATALOGUE if CLASSIC.is_recommendation(id)] == [
        "FIND-09",
        "COMMIT-26",
        "COMMIT-30",
        "ADMIN-33",
        "TIMER-17",
        "TIMER-23",
    ]
    assert not CLASSIC.is_recommendation("NO-01")
