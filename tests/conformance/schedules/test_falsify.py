"""A hunt finds what is wrong with a coordinator, and makes it short; a sound one gives it nothing."""

from typing import Any

import pytest

from fencepost.adapters.bundled.classic.messages import Response
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Target
from fencepost.conformance.analysis.root_cause import violated_requirements
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.schedules.classic.generation import ScheduleScope, generate_schedules
from fencepost.conformance.schedules.falsify import Counterexample, NoCounterexample, falsify, play_schedule
from fencepost.conformance.schedules.schedule import OPTIONS
from fencepost.conformance.zoo.classic.bugs import COORDINATOR_BUGS
from fencepost.model.errors import Error
from fencepost.traces.events import Kind
from tests.support.faulty_coordinators import altering_coordinator, replace_error

GROUND = ScheduleScope(BUNDLED_SETTINGS)


def correct_target() -> Target:
    return InProcessTarget(BUNDLED_SETTINGS)


def test_a_seed_and_a_number_give_the_same_schedules() -> None:
    first, again, other = (
        generate_schedules(GROUND, 7, 3, 10),
        generate_schedules(GROUND, 7, 3, 10),
        generate_schedules(GROUND, 7, 4, 10),
    )
    assert first == again
    assert [each.schedule.moves for each in first] != [each.schedule.moves for each in other]
    assert [each.schedule.name for each in first] == [f"schedule-7-3-{number}" for number in range(10)]


def test_moves_say_nothing_but_what_they_may() -> None:
    drawn = [each.schedule for chunk in range(4) for each in generate_schedules(GROUND, 1, chunk, 10)]
    moves = [move for schedule in drawn for move in schedule.moves]
    assert {move.kind for move in moves} == set(OPTIONS)
    for move in moves:
        assert {name for name, _ in move.options} <= set(OPTIONS[move.kind])


def test_the_bundled_coordinator_keeps_to_the_model_and_the_forecast_comes_true() -> None:
    for drawn in generate_schedules(GROUND, 1, 0, 20):
        played = play_schedule(correct_target, drawn.schedule)
        assert (played.verdict.violations, played.verdict.inconclusive, played.blocked) == ((), (), "")
        assert set(played.verdict.rules) - {"clean-up"} <= set(drawn.rules) | {
            rule for rule in played.verdict.rules if "unknown-group" in rule
        }


def test_a_schedule_is_played_alike_every_time() -> None:
    schedule = generate_schedules(GROUND, 2, 0, 5)[-1].schedule
    assert play_schedule(correct_target, schedule).events == play_schedule(correct_target, schedule).events


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["BUG-35", "BUG-12", "BUG-04"])
def test_a_bug_is_found_and_made_short(bug: str) -> None:
    with COORDINATOR_BUGS[bug].activate():
        quarry = falsify(correct_target, GROUND, 1, seconds=60)
        assert isinstance(quarry, Counterexample)
        assert quarry.requests <= 12
        assert quarry.requirement in violated_requirements(play_schedule(correct_target, quarry.shrunk))
    assert not violated_requirements(play_schedule(correct_target, quarry.shrunk))


def test_a_wrong_error_is_found_with_a_single_request() -> None:
    wrong = altering_coordinator(replace_error("Heartbeat", 22, 25))
    quarry = falsify(lambda: InProcessTarget(BUNDLED_SETTINGS, make_coordinator=wrong), GROUND, 1, seconds=60)
    assert isinstance(quarry, Counterexample)
    assert quarry.requirement.startswith("HB-")
    assert quarry.requests == 1


@pytest.mark.slow
def test_what_does_not_fail_again_is_no_find() -> None:
    def once(_: Any, response: Response) -> Response:
        if response.body.get("error_code") == 25 and not told:
            told.append(True)
            return Response(response.handle, {**response.body, "error_code": Error.ILLEGAL_GENERATION})
        return response

    told: list[bool] = []
    wrong = altering_coordinator(once)
    found = falsify(lambda: InProcessTarget(BUNDLED_SETTINGS, make_coordinator=wrong), GROUND, 1, seconds=8)
    assert isinstance(found, NoCounterexample)
    assert told


def test_requests_are_counted_up_to_the_wrong_answer() -> None:
    wrong = altering_coordinator(replace_error("Heartbeat", 22, 25))
    quarry = falsify(lambda: InProcessTarget(BUNDLED_SETTINGS, make_coordinator=wrong), GROUND, 3, seconds=60)
    assert isinstance(quarry, Counterexample)
    requests = [event for event in quarry.run.events if event.kind is Kind.REQUEST]
    assert quarry.requests <= len(requests)
