"""A busy machine is no fault of the target's."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fencepost.adapters.virtual_clock import VirtualClock, run_virtual
from fencepost.conformance.analysis.root_cause import broken
from fencepost.conformance.execution.loop_lag import Lateness, fair, undecided
from fencepost.conformance.execution.play import Played
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.remote import Remote
from fencepost.conformance.run.run_state import Course
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.selection import select
from fencepost.conformance.scenarios.classic import ALL
from fencepost.conformance.schedules.falsify import Field
from fencepost.conformance.schedules.schedule import Move, Role, Schedule
from fencepost.conformance.zoo.crashing_target import MortalTarget
from fencepost.conformance.zoo.faulty import specimen
from fencepost.model.catalogue.classic import CATALOGUE
from fencepost.traces.verdict import Evidence, Standing, TraceVerdict

EXPIRED = Schedule(
    "expired",
    (Role(), Role()),
    (Move("join"), Move("join"), Move("wait", 1, (("for", "session"),)), Move("commit")),
)
"""A member that never synced is given up, and the group with it; then it commits."""
CHOSEN = next(one for one in ALL if one.requirements)


@pytest.fixture(scope="module")
def wrong() -> Played:
    """A coordinator that takes the commit, for it has forgotten the group."""
    with specimen("BUG-01").applied() as make_target:
        return Field(partial(make_target, BUNDLED_SETTINGS), grace=2_000).perform(EXPIRED)


def test_the_loop_is_late_when_something_holds_it_up() -> None:
    async def story() -> tuple[int, int, int]:
        lateness, loop = Lateness(), asyncio.get_running_loop()
        assert isinstance(loop, VirtualClock)
        watching = asyncio.create_task(lateness.watch())
        await asyncio.sleep(1)
        quiet = lateness.worst(0)
        loop.jump(0.6)  # as if a callback had taken that long
        await asyncio.sleep(0.1)
        watching.cancel()
        return quiet, lateness.worst(0), lateness.worst(loop.time() - 0.05)

    quiet, worst, since = run_virtual(story())
    assert quiet == 0
    assert 550 <= worst <= 600
    assert since == 0


def test_nobody_is_blamed_while_the_kit_is_late(wrong: Played) -> None:
    assert broken(wrong)
    found = fair(replace(wrong, late=1_001))
    assert not broken(found)
    assert found.blocked == "the kit itself was 1001 ms late, so it can blame nobody: this machine is too busy"
    assert found.verdict.inconclusive == (found.blocked,)


def test_a_kit_in_time_blames_and_one_that_is_late_may_praise(wrong: Played) -> None:
    in_time = replace(wrong, late=1_000)
    assert fair(in_time) is in_time
    right = Field(partial(MortalTarget, BUNDLED_SETTINGS), grace=2_000).perform(EXPIRED)
    late = replace(right, late=5_000)
    assert fair(late) is late


def test_a_scenario_decides_something_once_all_it_promises_is_shown_or_something_is_broken(wrong: Played) -> None:
    asked = replace(wrong, scenario=Scenario("asked", ("COMMIT-01",), CHOSEN.play))
    shown = Evidence("COMMIT-01", 1, Standing.PASS)
    nothing, unsure = replace(shown, standing=Standing.NOT_OBSERVED), replace(shown, standing=Standing.INCONCLUSIVE)
    stalled = TraceVerdict((), (), {}, events=3)
    assert undecided(replace(asked, verdict=stalled))
    assert undecided(replace(asked, verdict=replace(stalled, evidence=(nothing, unsure))))
    assert not undecided(replace(asked, verdict=replace(stalled, evidence=(nothing, shown))))
    assert not undecided(asked), "a violation decides"
    assert not undecided(replace(asked, verdict=stalled, unsupported="restart"))
    assert not undecided(replace(asked, verdict=stalled, crashed=True))


def course_of(plan: Plan) -> Course:
    requirements = [CATALOGUE[each] for each in CHOSEN.requirements]
    selection = select(ALL, requirements, frozenset(), smoke=False)
    return Course(plan, replace(selection, scenarios=(CHOSEN,)), lambda _: None)


def played_so(course: Course, first: Played, *outcomes: Played) -> list[str]:
    """Play the chosen scenario, which goes as told time and again; the attempts that were made."""
    attempts: list[str] = []

    class Run(Remote):
        async def play_batch(self, scenarios: Any, attempt: str, description: Any, keep: Any) -> None:
            for scenario in scenarios:
                attempts.append(attempt)
                keep(replace(outcomes[len(attempts) - 1], scenario=scenario))

    async def story() -> None:
        run = Run(course.plan, Profile())
        await run.play_all(course, None, first)  # type: ignore[arg-type]
        run.judges.shutdown()

    asyncio.run(story())
    return attempts


def test_what_the_kit_was_too_late_for_is_played_again_and_blames_nobody(wrong: Played) -> None:
    course = course_of(Plan("kafka://127.0.0.1:1"))
    unfair = fair(replace(wrong, late=1_500))
    attempts = played_so(course, replace(wrong, scenario=Scenario("first", (), CHOSEN.play)), *[unfair] * 3)
    assert attempts == ["run", "again", "at-last"]
    assert not any(broken(each) for each in course.played)
    report = course.report({"name": "target"}, {}, cut_short=False)
    assert {each.verdict.value for each in report.results} == {"inconclusive"}
    assert all("this machine is too busy" in each.note for each in report.results)


def test_a_scenario_that_went_astray_is_played_again_until_it_decides(wrong: Played) -> None:
    told: list[tuple[int, int]] = []
    course = course_of(Plan("kafka://127.0.0.1:1"))
    course.progress = lambda progress: told.append((progress.done, progress.total))
    evidence = tuple(Evidence(each, 1, Standing.PASS) for each in CHOSEN.requirements)
    expired = replace(wrong, verdict=TraceVerdict((), (), {}), blocked="SyncGroup got UNKNOWN_MEMBER_ID")
    well = replace(expired, verdict=replace(expired.verdict, evidence=evidence), blocked="")
    first = replace(wrong, scenario=Scenario("first", (), CHOSEN.play))
    assert played_so(course, first, expired, well) == ["run", "again"]
    assert told == [(1, 1), (1, 1)]
    report = course.report({"name": "target"}, {}, cut_short=False)
    assert {each.verdict.value for each in report.results} == {"pass"}
