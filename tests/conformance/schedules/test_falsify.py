"""A hunt finds what is wrong with a coordinator, and makes it short; a sound one gives it nothing."""

from typing import Any

import pytest

from fencepost.adapters.bundled.classic.messages import Answer
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Target
from fencepost.conformance.analysis.root_cause import broken
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.schedules.classic.generation import Ground, draw
from fencepost.conformance.schedules.falsify import Blank, Quarry, hunt, perform
from fencepost.conformance.schedules.schedule import OPTIONS
from fencepost.conformance.zoo.classic.bugs import COORDINATOR
from fencepost.traces.events import Kind
from tests.support.faulty_coordinators import error_instead, flawed

GROUND = Ground(BUNDLED_SETTINGS)


def sound() -> Target:
    return InProcessTarget(BUNDLED_SETTINGS)


def test_a_seed_and_a_number_give_the_same_schedules() -> None:
    first, again, other = draw(GROUND, 7, 3, 10), draw(GROUND, 7, 3, 10), draw(GROUND, 7, 4, 10)
    assert first == again
    assert [each.schedule.moves for each in first] != [each.schedule.moves for each in other]
    assert [each.schedule.name for each in first] == [f"schedule-7-3-{number}" for number in range(10)]


def test_moves_say_nothing_but_what_they_may() -> None:
    drawn = [each.schedule for chunk in range(4) for each in draw(GROUND, 1, chunk, 10)]
    moves = [move for schedule in drawn for move in schedule.moves]
    assert {move.kind for move in moves} == set(OPTIONS)
    for move in moves:
        assert {name for name, _ in move.options} <= set(OPTIONS[move.kind])


def test_the_bundled_coordinator_keeps_to_the_model_and_the_forecast_comes_true() -> None:
    for drawn in draw(GROUND, 1, 0, 20):
        played = perform(sound, drawn.schedule)
        assert (played.verdict.faults, played.verdict.inconclusive, played.blocked) == ((), (), "")
        assert set(played.verdict.rules) - {"clean-up"} <= set(drawn.rules) | {
            rule for rule in played.verdict.rules if "unknown-group" in rule
        }


def test_a_schedule_is_played_alike_every_time() -> None:
    schedule = draw(GROUND, 2, 0, 5)[-1].schedule
    assert perform(sound, schedule).events == perform(sound, schedule).events


@pytest.mark.parametrize("bug", ["BUG-35", "BUG-12", "BUG-04"])
def test_a_bug_is_found_and_made_short(bug: str) -> None:
    with COORDINATOR[bug].applied():
        quarry = hunt(sound, GROUND, 1, seconds=60)
        assert isinstance(quarry, Quarry)
        assert quarry.requests <= 12
        assert quarry.requirement in broken(perform(sound, quarry.shortest))
    assert not broken(perform(sound, quarry.shortest))


def test_a_wrong_error_is_found_with_a_single_request() -> None:
    wrong = flawed(error_instead("Heartbeat", 22, 25))
    quarry = hunt(lambda: InProcessTarget(BUNDLED_SETTINGS, make_coordinator=wrong), GROUND, 1, seconds=60)
    assert isinstance(quarry, Quarry)
    assert quarry.requirement.startswith("HB-")
    assert quarry.requests == 1


def test_what_does_not_fail_again_is_no_find() -> None:
    def once(_: Any, answer: Answer) -> Answer:
        if answer.body.get("error_code") == 25 and not told:
            told.append(True)
            return Answer(answer.handle, {**answer.body, "error_code": 22})
        return answer

    told: list[bool] = []
    wrong = flawed(once)
    found = hunt(lambda: InProcessTarget(BUNDLED_SETTINGS, make_coordinator=wrong), GROUND, 1, seconds=8)
    assert isinstance(found, Blank)
    assert told


def test_requests_are_counted_up_to_the_wrong_answer() -> None:
    wrong = flawed(error_instead("Heartbeat", 22, 25))
    quarry = hunt(lambda: InProcessTarget(BUNDLED_SETTINGS, make_coordinator=wrong), GROUND, 3, seconds=60)
    assert isinstance(quarry, Quarry)
    requests = [event for event in quarry.played.events if event.kind is Kind.REQUEST]
    assert quarry.requests <= len(requests)
