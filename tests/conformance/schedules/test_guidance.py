"""Of the schedules drawn, those come first that promise something new."""

from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.schedules.classic.generation import generate_schedules
from fencepost.conformance.schedules.classic.protocol import ClassicSchedules
from fencepost.conformance.schedules.guidance import BatchSpec, generate_batch, select_by_novelty
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Schedule
from fencepost.conformance.schedules.scope import ScheduleScope
from fencepost.traces.model_transitions import Transition

GROUND = ScheduleScope(BUNDLED_SETTINGS)


def generated_schedule(name: str, *rules: str) -> GeneratedSchedule:
    return GeneratedSchedule(Schedule(name, (), ()), {transition(rule): 1 for rule in rules})


def transition(rule: str) -> Transition:
    return Transition("stable", "Heartbeat", rule, "stable")


def names(found: list[GeneratedSchedule]) -> list[str]:
    return [each.schedule.name for each in found]


def test_what_promises_most_comes_first_and_what_is_seen_or_promised_counts_no_more() -> None:
    candidates = [
        generated_schedule("a", "1"),
        generated_schedule("b", "1", "2", "3"),
        generated_schedule("c", "3", "4"),
        generated_schedule("d", "5", "6"),
    ]
    assert names(select_by_novelty(candidates, {transition("5"), transition("6")}, 3)) == ["b", "c", "a"]


def test_without_anything_new_the_order_stays() -> None:
    candidates = [generated_schedule("a", "1"), generated_schedule("b", "1"), generated_schedule("c")]
    assert names(select_by_novelty(candidates, {transition("1")}, 2)) == ["a", "b"]


def test_the_same_order_gives_the_same_schedules() -> None:
    order = BatchSpec(ClassicSchedules(GROUND), 4, 2, 5)
    assert generate_batch(order) == generate_batch(order)


def test_steered_schedules_promise_more_than_the_next_ones() -> None:
    drawn = generate_schedules(GROUND, 4, 2, 20)
    seen = frozenset(each for drawn_one in generate_schedules(GROUND, 4, 1, 20) for each in drawn_one.transitions)

    def new(found: list[GeneratedSchedule]) -> int:
        return len({each for drawn_one in found for each in drawn_one.transitions} - seen)

    assert new(select_by_novelty(drawn, seen, 10)) > new(drawn[:10])
