"""A busy machine is no fault of the target's."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fencepost.adapters.target import Description
from fencepost.adapters.virtual_clock import VirtualClock, run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.schedules.cast import MemberRole
from fencepost.conformance.classic.zoo.bugs.environments import CrashingTarget
from fencepost.conformance.classic.zoo.coordinator_stand import BUNDLED_SCHEDULES
from fencepost.conformance.events import Progress, RunEvent
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import LoopLagMonitor, discard_if_lagging, is_inconclusive, target_bench
from fencepost.conformance.run.pool import CrashMonitor, ScenarioPool
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.run_state import RunState
from fencepost.conformance.run.schedule import Move, Schedule
from fencepost.conformance.subject import Scenario, ScenarioRun, select_scenarios
from fencepost.conformance.zoo.registry import fault_named
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.traces.events import Order
from fencepost.traces.verdict import CheckResult, CheckStatus, TraceVerdict

EXPIRED = Schedule(
    "expired",
    (MemberRole(), MemberRole()),
    (Move("join"), Move("join"), Move("wait", 1, (("for", "session"),)), Move("commit")),
)
"""A member that never synced is given up, and the group with it; then it commits."""
DESCRIPTION = Description("target", Order.INTERVALS, "monotonic", {}, BUNDLED_SETTINGS, "topic")
CHOSEN = next(one for one in ALL if one.requirements)


@pytest.fixture(scope="module")
def run_with_violation() -> ScenarioRun:
    """A coordinator that takes the commit, for it has forgotten the group."""
    with fault_named("BUG-01").activate():
        return target_bench(BUNDLED_SCHEDULES, partial(CrashingTarget, BUNDLED_SETTINGS), grace=2_000).play(EXPIRED)


def test_the_loop_is_late_when_something_holds_it_up() -> None:
    async def story() -> tuple[int, int, int]:
        lateness, loop = LoopLagMonitor(), asyncio.get_running_loop()
        assert isinstance(loop, VirtualClock)
        watching = asyncio.create_task(lateness.watch())
        await asyncio.sleep(1)
        quiet = lateness.worst_since(0)
        loop.jump(0.6)  # as if a callback had taken that long
        await asyncio.sleep(0.1)
        watching.cancel()
        return quiet, lateness.worst_since(0), lateness.worst_since(loop.time() - 0.05)

    quiet, worst, since = run_virtual(story())
    assert quiet == 0
    assert 550 <= worst <= 600
    assert since == 0


def test_lagging_kit_reports_no_violation(run_with_violation: ScenarioRun) -> None:
    assert run_with_violation.verdict.violated
    found = discard_if_lagging(replace(run_with_violation, loop_lag=1_001))
    assert not found.verdict.violated
    assert found.blocked == "the kit itself was 1001 ms late, so it can blame nobody: this machine is too busy"
    assert found.verdict.inconclusive == (found.blocked,)


def test_only_violations_are_discarded_on_lag(run_with_violation: ScenarioRun) -> None:
    in_time = replace(run_with_violation, loop_lag=1_000)
    assert discard_if_lagging(in_time) is in_time
    right = target_bench(BUNDLED_SCHEDULES, partial(CrashingTarget, BUNDLED_SETTINGS), grace=2_000).play(EXPIRED)
    late = replace(right, loop_lag=5_000)
    assert discard_if_lagging(late) is late


def test_a_scenario_decides_something_once_all_it_promises_is_shown_or_something_is_broken(
    run_with_violation: ScenarioRun,
) -> None:
    asked = replace(run_with_violation, scenario=Scenario("asked", ("COMMIT-01",), CHOSEN.play))
    shown = CheckResult("COMMIT-01", 1, CheckStatus.PASS)
    nothing, unsure = replace(shown, status=CheckStatus.NOT_OBSERVED), replace(shown, status=CheckStatus.INCONCLUSIVE)
    stalled = TraceVerdict((), (), {}, events=3)
    assert is_inconclusive(replace(asked, verdict=stalled))
    assert is_inconclusive(replace(asked, verdict=replace(stalled, check_results=(nothing, unsure))))
    assert not is_inconclusive(replace(asked, verdict=replace(stalled, check_results=(nothing, shown))))
    assert not is_inconclusive(asked), "a violation decides"
    assert not is_inconclusive(replace(asked, verdict=stalled, unsupported="restart"))
    assert not is_inconclusive(replace(asked, verdict=stalled, crashed=True))


def run_state_of(plan: Plan) -> RunState:
    requirements = [CATALOGUE[each] for each in CHOSEN.requirements]
    selection = select_scenarios(ALL, requirements, frozenset(), smoke=False)
    return RunState(plan, replace(selection, scenarios=(CHOSEN,)), lambda _: None)


def attempts_made(state: RunState, first: ScenarioRun, *outcomes: ScenarioRun) -> list[str]:
    """Play the chosen scenario, which goes as told time and again; the attempts that were made."""
    attempts: list[str] = []

    class FakePool(ScenarioPool):
        async def play_all(self, scenarios: Any, attempt: str, on_run: Any) -> None:
            for scenario in scenarios:
                attempts.append(attempt)
                on_run(replace(outcomes[len(attempts) - 1], scenario=scenario))

    async def story() -> None:
        run = RemoteRun(state.plan, Profile())
        monitor = CrashMonitor(run.target, can_restart=False)
        pool = FakePool(run.target, DESCRIPTION, monitor, LoopLagMonitor(), None, "token", 2_000)
        await run.play_and_confirm(state, pool, first, state.selection.scenarios)
        run.judges.close()

    asyncio.run(story())
    return attempts


def test_lagging_run_is_repeated_without_violation(run_with_violation: ScenarioRun) -> None:
    course = run_state_of(Plan("kafka://127.0.0.1:1"))
    unfair = discard_if_lagging(replace(run_with_violation, loop_lag=1_500))
    attempts = attempts_made(
        course, replace(run_with_violation, scenario=Scenario("first", (), CHOSEN.play)), *[unfair] * 3
    )
    assert attempts == ["run", "again", "at-last"]
    assert not any(each.verdict.violated for each in course.runs)
    report = course.build_report({"name": "target"})
    assert {each.verdict.value for each in report.results} == {"inconclusive"}
    assert all("this machine is too busy" in each.note for each in report.results)


def test_a_scenario_that_went_astray_is_played_again_until_it_decides(run_with_violation: ScenarioRun) -> None:
    told: list[tuple[int, int]] = []
    course = run_state_of(Plan("kafka://127.0.0.1:1"))

    def note_progress(event: RunEvent) -> None:
        if isinstance(event, Progress):
            told.append((event.done, event.total))

    course.emit = note_progress
    evidence = tuple(CheckResult(each, 1, CheckStatus.PASS) for each in CHOSEN.requirements)
    expired = replace(run_with_violation, verdict=TraceVerdict((), (), {}), blocked="SyncGroup got UNKNOWN_MEMBER_ID")
    well = replace(expired, verdict=replace(expired.verdict, check_results=evidence), blocked="")
    first = replace(run_with_violation, scenario=Scenario("first", (), CHOSEN.play))
    assert attempts_made(course, first, expired, well) == ["run", "again"]
    assert told == [(1, 1), (1, 1)]
    report = course.build_report({"name": "target"})
    assert {each.verdict.value for each in report.results} == {"pass"}
