"""Restart batches: start delays, and the predicted times of restarts."""

from dataclasses import replace

from fencepost.conformance.classic.schedules.protocol import generate_schedules
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.engines import start_delays
from fencepost.conformance.run.schedule import GeneratedSchedule, Schedule, ScheduleScope

WITHOUT_RESTART = GeneratedSchedule(Schedule("calm", (), ()), {}, duration=3_000)
WITH_RESTART = GeneratedSchedule(Schedule("rough", (), ()), {}, duration=9_000, restart_at=1_000)


def test_all_are_ready_for_the_restart_at_the_same_time() -> None:
    assert start_delays([WITHOUT_RESTART, WITH_RESTART, replace(WITH_RESTART, restart_at=4_000)]) == [0, 3_000, 0]
    assert start_delays([WITHOUT_RESTART, WITH_RESTART]) == [0, 2_000]
    assert start_delays([WITHOUT_RESTART]) == [0]
    assert start_delays([]) == []


def test_schedules_predict_their_restart_and_their_end() -> None:
    drawn = [each for chunk in range(3) for each in generate_schedules(ScheduleScope(BUNDLED_SETTINGS), 1, chunk, 10)]
    rough = [each for each in drawn if any(move.kind == "restart" for move in each.schedule.moves)]
    assert rough
    assert all(0 < each.restart_at <= max(1, each.duration) for each in rough)
    assert not any(each.restart_at for each in drawn if each not in rough)


def test_a_target_on_real_time_is_not_waited_for_as_long() -> None:
    hasty = ScheduleScope(BUNDLED_SETTINGS, virtual_time=False, grace=2_000)
    drawn = [each for chunk in range(2) for each in generate_schedules(hasty, 1, chunk, 10)]
    # Every request may be waited for a little, however often the target did not answer in time.
    assert max(each.duration for each in drawn) < 60_000
