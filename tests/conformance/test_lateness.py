"""A busy machine is no fault of the target's."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fencepost.adapters.virtual import VirtualClock, run_virtual
from fencepost.conformance.blame import broken
from fencepost.conformance.bundled_run import BUNDLED_SETTINGS
from fencepost.conformance.course import Course
from fencepost.conformance.execution import Played
from fencepost.conformance.lateness import Lateness, fair, is_unfair
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.remote_run import Remote
from fencepost.conformance.scenario import Scenario
from fencepost.conformance.scenarios import ALL
from fencepost.conformance.schedules.hunt import Field
from fencepost.conformance.schedules.schedule import Move, Role, Schedule
from fencepost.conformance.selection import select
from fencepost.conformance.zoo.specimens import specimen
from fencepost.conformance.zoo.target import MortalTarget
from fencepost.model.catalogue import CATALOGUE

EXPIRED = Schedule(
    "expired",
    (Role(), Role()),
    (Move("join"), Move("join"), Move("wait", 1, (("for", "session"),)), Move("commit")),
)
"""A member that never synced is given up, and the group with it; then it commits."""


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
    assert broken(wrong) and not is_unfair(wrong)
    found = fair(replace(wrong, late=1_001))
    assert not broken(found)
    assert found.blocked == "the kit itself was 1001 ms late, so it can blame nobody: this machine is too busy"
    assert found.verdict.inconclusive == (found.blocked,)
    assert is_unfair(found)


def test_a_kit_in_time_blames_and_one_that_is_late_may_praise(wrong: Played) -> None:
    in_time = replace(wrong, late=1_000)
    assert fair(in_time) is in_time
    right = Field(partial(MortalTarget, BUNDLED_SETTINGS), grace=2_000).perform(EXPIRED)
    late = replace(right, late=5_000)
    assert fair(late) is late and not is_unfair(late)


def test_what_the_kit_was_too_late_for_is_played_once_more(wrong: Played) -> None:
    attempts: list[str] = []

    class Run(Remote):
        async def play_batch(self, scenarios: Any, attempt: str, description: Any, keep: Any) -> None:
            for scenario in scenarios:
                attempts.append(attempt)
                keep(replace(fair(replace(wrong, late=1_500)), scenario=scenario))

    plan = Plan("kafka://127.0.0.1:1")
    scenario = next(one for one in ALL if one.requirements)
    requirements = [CATALOGUE[each] for each in scenario.requirements]
    course = Course(
        plan, replace(select(ALL, requirements, frozenset(), smoke=False), scenarios=(scenario,)), lambda _: None
    )
    first = replace(wrong, scenario=Scenario("first", (), scenario.play))

    async def story() -> None:
        run = Run(plan, Profile())
        await run.play_all(course, None, first)  # type: ignore[arg-type]
        run.judges.shutdown()

    asyncio.run(story())
    assert attempts == ["run", "again"]
    (kept,) = course.played
    assert not broken(kept)
    report = course.report({"name": "target"}, {}, cut_short=False)
    assert {each.verdict.value for each in report.results} == {"inconclusive"}
    assert all("this machine is too busy" in each.note for each in report.results)
