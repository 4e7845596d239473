"""Of the schedules drawn, those come first that promise something new."""

from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.schedules.classic.generation import Drawn, Ground, draw
from fencepost.conformance.schedules.guidance import Order, chosen, drawn_for
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.traces.model_transitions import Transition

GROUND = Ground(BUNDLED_SETTINGS)


def one(name: str, *rules: str) -> Drawn:
    return Drawn(Schedule(name, (), ()), {transition(rule): 1 for rule in rules})


def transition(rule: str) -> Transition:
    return Transition("stable", "Heartbeat", rule, "stable")


def names(found: list[Drawn]) -> list[str]:
    return [each.schedule.name for each in found]


def test_what_promises_most_comes_first_and_what_is_seen_or_promised_counts_no_more() -> None:
    candidates = [one("a", "1"), one("b", "1", "2", "3"), one("c", "3", "4"), one("d", "5", "6")]
    assert names(chosen(candidates, {transition("5"), transition("6")}, 3)) == ["b", "c", "a"]


def test_without_anything_new_the_order_stays() -> None:
    candidates = [one("a", "1"), one("b", "1"), one("c")]
    assert names(chosen(candidates, {transition("1")}, 2)) == ["a", "b"]


def test_the_same_order_gives_the_same_schedules() -> None:
    order = Order(GROUND, 4, 2, 5)
    assert drawn_for(order) == drawn_for(order)


def test_steered_schedules_promise_more_than_the_next_ones() -> None:
    drawn = draw(GROUND, 4, 2, 20)
    seen = frozenset(each for drawn_one in draw(GROUND, 4, 1, 20) for each in drawn_one.transitions)

    def new(found: list[Drawn]) -> int:
        return len({each for drawn_one in found for each in drawn_one.transitions} - seen)

    assert new(chosen(drawn, seen, 10)) > new(drawn[:10])
