"""What a run measures of itself: the lag of its loop, its pace, and its progress."""

import asyncio
import io
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.target import Description
from fencepost.adapters.virtual_clock import VirtualClock, run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.schedules.cast import MemberRole
from fencepost.conformance.classic.zoo.bugs.environments import CrashingTarget
from fencepost.conformance.classic.zoo.coordinator_stand import BUNDLED_SCHEDULES
from fencepost.conformance.cli import main
from fencepost.conformance.events import Progress, RunEvent
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.reports.progress import ProgressDisplay, progress_line
from fencepost.conformance.reports.words import format_duration
from fencepost.conformance.results import TargetFacts
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.crashes import CrashMonitor
from fencepost.conformance.run.play import LoopLagMonitor, discard_if_lagging, is_inconclusive, target_bench
from fencepost.conformance.run.pool import MAX_WAIT_SECONDS, Pacer, ScenarioPool
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.run_state import RunState
from fencepost.conformance.run.schedule import Move, Schedule
from fencepost.conformance.subject import Scenario, ScenarioRun, select_scenarios
from fencepost.conformance.zoo.registry import fault_named
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.verdict import CheckResult, CheckStatus, TraceVerdict
from tests.support.served_coordinator import serve_in_thread

# --- A busy machine is no fault of the target's.

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


def test_delays_that_follow_each_other_add_up() -> None:
    monitor = LoopLagMonitor()
    monitor.lags.extend([(1.0, 0.5), (2.0, 0.4), (2.5, 0.3), (9.0, 0.2)])
    assert [monitor.worst_since(0, window) for window in (0.0, 0.5, 1.0, 2.0, 9.0)] == [500, 700, 900, 1_200, 1_400]
    assert monitor.worst_since(2.0, 2.0) == 700


def test_delays_before_and_after_do_not_count() -> None:
    monitor = LoopLagMonitor()
    monitor.lags.extend([(2.0, 0.5), (6.0, 2.5), (9.0, 0.3)])
    assert [monitor.worst_since(3.0, until=until) for until in (3.4, 3.6, 9.0)] == [0, 2_500, 2_500]
    assert monitor.worst_since(7.0, until=8.0) == 0


async def judge_late(monitor: LoopLagMonitor, run: ScenarioRun, at: float, judged_at: float) -> ScenarioRun:
    """The run as a pool returns it if the kit is 3 s late at one time of the run and while the trace is judged."""

    async def judge(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
        monitor.lags.append((judged_at, 3.0))
        return run.verdict

    monitor.lags.append((at, 3.0))
    pool = ScenarioPool(None, DESCRIPTION, CrashMonitor(None, can_restart=False), monitor, judge, "token", 2_000)  # type: ignore[arg-type]
    return await pool.judge_run(replace(run, verdict=TraceVerdict((), (), {}, events=0)), 0.0)


def test_only_delays_around_a_violation_make_it_doubtful(run_with_violation: ScenarioRun) -> None:
    (commit,) = (each for each in run_with_violation.events if each.api == "OffsetCommit" and each.kind is Kind.REQUEST)
    wrong_at = commit.time / 1000
    assert wrong_at > 5, "a session before"
    for at, is_doubtful in ((wrong_at - 2.1, False), (wrong_at - 1.9, True), (wrong_at + 1, True)):
        judged = run_virtual(judge_late(LoopLagMonitor(), run_with_violation, at, judged_at=wrong_at + 9))
        assert bool(judged.blocked) is is_doubtful
        assert bool(judged.verdict.violated) is not is_doubtful


def test_scenarios_begin_at_the_pace_of_the_target() -> None:
    run = RemoteRun(Plan("kafka://127.0.0.1:1"), Profile())
    try:
        assert run.scenario_pool(DESCRIPTION, LoopLagMonitor()).pacer.lag == run.target.measure_response_time
    finally:
        run.judges.close()


def test_what_the_kit_was_too_late_for_is_told(run_with_violation: ScenarioRun) -> None:
    course = run_state_of(Plan("kafka://127.0.0.1:1"))
    course.facts = TargetFacts({}, {}, (), {})
    course.runs.append(run_with_violation)
    course.tell_delays(300)
    assert not course.facts.remarks
    course.runs.append(discard_if_lagging(replace(run_with_violation, loop_lag=1_500)))
    course.tell_delays(1_500)
    told = "this machine is too busy: 1 plays were given up, for the kit itself was up to 1500 ms late"
    assert course.facts.remarks == (told,)


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


# --- Pacing: scenarios start later while the responses of the target are slow.


def begins(lags: Iterator[float], count: int) -> list[float]:
    """When so many begin, if answers take as long as told one after the other."""
    found: list[float] = []

    async def lag() -> float:
        return next(lags)

    async def one(pace: Pacer) -> None:
        await pace.wait(asyncio.Event())
        found.append(round(asyncio.get_running_loop().time(), 2))

    async def company() -> None:
        pace = Pacer(lag)
        await asyncio.gather(*(one(pace) for _ in range(count)))

    run_virtual(company())
    return found


def test_nobody_waits_while_answers_are_quick() -> None:
    assert begins(iter([0.001, 0.002, 0.03]), 3) == [0.0, 0.0, 0.0]


def test_when_answers_take_long_the_next_waits_and_so_do_those_behind_it() -> None:
    assert begins(iter([0.001, 0.3, 0.2, 0.001, 0.001]), 3) == [0.0, 0.1, 0.1]


def test_a_target_that_is_slow_by_nature_is_not_waited_for() -> None:
    assert begins(iter([0.5, 0.6, 1.9]), 3) == [0.0, 0.0, 0.0]


def test_nobody_waits_for_a_target_that_is_gone() -> None:
    async def one_after_the_end() -> float:
        is_gone, pace = asyncio.Event(), Pacer(never)
        is_gone.set()
        await pace.wait(is_gone)
        return asyncio.get_running_loop().time()

    async def never() -> float:
        return float("inf")

    assert run_virtual(one_after_the_end()) == 0.0


def test_nobody_waits_for_ever() -> None:
    first, second = begins(iter([0.001] + [float("inf")] * 1_000), 2)
    assert second - first <= MAX_WAIT_SECONDS + 0.1


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (Progress(0, 80, 0.0), "0/80 schedules, 0.0 s"),
        (Progress(20, 80, 5.0, current="JOIN-29"), "20/80 schedules, 5.0 s, about 15.0 s left: JOIN-29"),
        (Progress(20, 80, 60.0, failures=2), "20/80 schedules, 2 violated, 1 min 00 s, about 3 min 00 s left"),
        (Progress(20, 80, 5.0, waits=70.0), "20/80 schedules, 5.0 s, about 1 min 10 s left"),
        (Progress(30, 80, 130.0, pace_from=(120.0, 20)), "30/80 schedules, 2 min 10 s, about 50.0 s left"),
        (Progress(20, 80, 130.0, pace_from=(120.0, 20)), "20/80 schedules, 2 min 10 s"),
        (
            Progress(20, 80, 5.0, waits=40.0, current="JOIN-29"),
            "20/80 schedules, 5.0 s, about 40.0 s left: JOIN-29",
        ),
        (Progress(80, 80, 90.0), "80/80 schedules, 1 min 30 s"),
        (Progress(81, 80, 90.0), "81/80 schedules, 1 min 30 s"),
        (Progress(0, 0, 1.0), "0/0 schedules, 1.0 s"),
    ],
)
def test_a_line_says_how_much_is_done_and_left(progress: Progress, expected: str) -> None:
    assert progress_line(progress) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.04, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (119.6, "2 min 00 s"), (3725, "62 min 05 s")],
)
def test_durations(seconds: float, expected: str) -> None:
    assert format_duration(seconds) == expected


def test_on_a_terminal_one_line_is_rewritten_and_finally_cleared() -> None:
    stream = io.StringIO()
    display = ProgressDisplay(stream, live=True)
    display(Progress(1, 2, 1.0, current="x" * 200))
    display(Progress(2, 2, 2.0))
    display.close()
    long = "1/2 schedules, 1.0 s, about 1.0 s left: "
    assert stream.getvalue() == (f"\r\x1b[K{long}{'x' * (79 - len(long))}\r\x1b[K2/2 schedules, 2.0 s\r\x1b[K")


def test_elsewhere_only_tenths_and_new_failures_are_worth_a_line() -> None:
    stream = io.StringIO()
    display = ProgressDisplay(stream, live=False)
    for done in range(101):
        display(Progress(done, 100, float(done), failures=1 if done >= 55 else 0))
    display.close()
    lines = stream.getvalue().splitlines()
    assert [int(line.partition("/")[0]) for line in lines] == [10, 20, 30, 40, 50, 55, 60, 70, 80, 90, 100]
    assert lines[5] == "55/100 schedules, 1 violated, 55.0 s, about 45.0 s left"


@pytest.mark.parametrize(("columns", "shown"), [(40, 39), (None, 79), (200, 142)])
def test_the_line_is_as_wide_as_the_terminal(columns: int | None, shown: int) -> None:
    stream = io.StringIO()
    ProgressDisplay(stream, live=True, columns=lambda: columns)(Progress(0, 0, 0.0, current="x" * 120))
    line = "0/0 schedules, 0.0 s: " + "x" * 120
    assert stream.getvalue() == f"\r\x1b[K{line[:shown]}"


@pytest.mark.real_time
def test_over_the_network_the_waits_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The schedules that take longest are the last to end, and some begin only after the restart."""
    settings = Settings(min_session_timeout=500, initial_rebalance_delay=200, offsets_partitions=2)
    profile = tmp_path / "p.toml"
    with serve_in_thread(settings) as address:
        profile.write_text(f"[target]\nstart = 'echo {address}'\nkill = 'true'\n")
        main(["test", address, "--only", "HB-0*", "FAILOVER-01", "--profile", str(profile)])
    lines = [line for line in capsys.readouterr().err.splitlines() if " schedules, " in line]
    assert all(" s left" in line for line in lines[:-1])
