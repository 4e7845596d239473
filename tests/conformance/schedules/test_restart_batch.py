"""A season on a target: who begins when, and what is judged meanwhile."""

from dataclasses import replace

from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.schedules.classic.generation import Drawn, Ground, draw
from fencepost.conformance.schedules.restart_batch import delays
from fencepost.conformance.schedules.schedule import Schedule

CALM = Drawn(Schedule("calm", (), ()), {}, length=3_000)
ROUGH = Drawn(Schedule("rough", (), ()), {}, length=9_000, lead=1_000)


def test_all_are_ready_for_the_restart_at_the_same_time() -> None:
    assert delays([CALM, ROUGH, replace(ROUGH, lead=4_000)]) == [0, 3_000, 0]
    assert delays([CALM, ROUGH]) == [0, 2_000]
    assert delays([CALM]) == [0]
    assert delays([]) == []


def test_the_forecast_tells_when_a_restart_comes_and_when_the_end() -> None:
    drawn = [each for chunk in range(3) for each in draw(Ground(BUNDLED_SETTINGS), 1, chunk, 10)]
    rough = [each for each in drawn if any(move.kind == "restart" for move in each.schedule.moves)]
    assert rough
    assert all(0 < each.lead <= max(1, each.length) for each in rough)
    assert not any(each.lead for each in drawn if each not in rough)


def test_a_target_on_real_time_is_not_waited_for_as_long() -> None:
    hasty = Ground(BUNDLED_SETTINGS, patient=False, grace=2_000)
    drawn = [each for chunk in range(2) for each in draw(hasty, 1, chunk, 10)]
    # Every request may be waited for a little, however often the target did not answer in time.
    assert max(each.length for each in drawn) < 60_000
