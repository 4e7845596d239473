"""Falsification finds a violation of a faulty coordinator and shrinks its schedule; a correct one has none."""

import time
from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve.coordination import Response
from fencepost.adapters.target import Target
from fencepost.conformance.classic.schedules.draw import RandomDraw
from fencepost.conformance.classic.schedules.interactions import INTERACTIONS, Family, choose_families
from fencepost.conformance.classic.schedules.moves import KINDS
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules, generate_schedules
from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import (
    Bench,
    Counterexample,
    NoCounterexample,
    falsify,
    find_counterexample,
    schedule_source,
    target_bench,
)
from fencepost.conformance.run.schedule import ScheduleScope
from fencepost.model.errors import Error
from fencepost.traces.events import Kind
from tests.support.faulty_coordinators import altering_coordinator, replace_error

GROUND = ScheduleScope(BUNDLED_SETTINGS)


def correct_target() -> Target:
    return InProcessTarget(BUNDLED_SETTINGS)


def bench_with(coordinator: type[Coordinator]) -> Bench:
    """A bench whose targets run this coordinator."""
    return target_bench(
        ClassicSchedules(GROUND), lambda: InProcessTarget(BUNDLED_SETTINGS, make_coordinator=coordinator)
    )


CORRECT = target_bench(ClassicSchedules(GROUND), correct_target)


def test_a_seed_and_a_number_give_the_same_schedules() -> None:
    first, again, other = (
        generate_schedules(GROUND, 7, 3, 10),
        generate_schedules(GROUND, 7, 3, 10),
        generate_schedules(GROUND, 7, 4, 10),
    )
    assert first == again
    assert [each.schedule.moves for each in first] != [each.schedule.moves for each in other]
    assert [each.schedule.name for each in first] == [f"schedule-7-3-{number}" for number in range(10)]


def test_generated_moves_have_registered_kinds_and_options() -> None:
    drawn = [each.schedule for chunk in range(4) for each in generate_schedules(GROUND, 1, chunk, 10)]
    moves = [move for schedule in drawn for move in schedule.moves]
    assert {move.kind for move in moves} == set(KINDS)
    assert {name for move in moves for name, _ in move.options} >= {"producer", "further", "share", "client", "groups"}
    for move in moves:
        assert {name for name, _ in move.options} <= set(KINDS[move.kind].options)


def test_bundled_coordinator_behaves_as_predicted() -> None:
    seen = unforeseen = 0
    for drawn in generate_schedules(GROUND, 1, 0, 20):
        played = CORRECT.play(drawn.schedule)
        assert (played.verdict.violations, played.verdict.inconclusive, played.blocked) == ((), (), "")
        seen += len(played.verdict.rules)
        unforeseen += len(played.verdict.rules.keys() - drawn.rules)
    assert unforeseen <= seen // 10  # the simulation never cleans up, and responds to members in another order


def test_families_of_interactions_meet_in_pairs() -> None:
    scope = ScheduleScope(BUNDLED_SETTINGS, cuts=True)
    chosen = [choose_families(RandomDraw(str(number)), scope) for number in range(600)]
    pairs = Counter(pair for families in chosen for pair in combinations(families, 2))
    assert len(pairs) == len(tuple(combinations(Family, 2)))
    assert max(pairs.values()) <= 2 * min(pairs.values())


def test_what_a_target_does_not_allow_is_in_no_schedule() -> None:
    scope = ScheduleScope(BUNDLED_SETTINGS, restarts=False, transactions=False)
    drawn = [each.schedule for each in generate_schedules(scope, 1, 0, 20)]
    kinds = {move.kind for schedule in drawn for move in schedule.moves}
    assert not kinds & {"restart", "init-producer", "end"}
    assert not any(move.get("sent") for schedule in drawn for move in schedule.moves)


def test_each_family_has_interactions() -> None:
    assert {each.family for each in INTERACTIONS.values()} == set(Family)


def test_a_schedule_is_played_alike_every_time() -> None:
    schedule = generate_schedules(GROUND, 2, 0, 5)[-1].schedule
    assert CORRECT.play(schedule).events == CORRECT.play(schedule).events


def find_and_shrink(bench: Bench, seed: int) -> Counterexample | NoCounterexample:
    """The counterexample of a seed, within processor seconds, so that a busy machine finds and shrinks as much."""
    return find_counterexample(bench, schedule_source(bench.protocol, seed), 60, clock=time.process_time)


MAX_REQUESTS = 12
"""Of one counterexample; the median of the zoo is held to less (tests/quality)."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "bug",
    [
        pytest.param("BUG-35", marks=pytest.mark.acceptance),
        pytest.param("BUG-12", marks=pytest.mark.acceptance),
        "BUG-04",
    ],
)
def test_a_bug_is_found_and_made_short(bug: str) -> None:
    with COORDINATOR_BUGS[bug].activate():
        found = find_and_shrink(CORRECT, 1)
        assert isinstance(found, Counterexample)
        assert found.requests <= MAX_REQUESTS
        assert found.requirement in CORRECT.play(found.shrunk).verdict.violated
    assert not CORRECT.play(found.shrunk).verdict.violated


def test_a_wrong_error_is_found_with_hardly_a_request() -> None:
    wrong = altering_coordinator(replace_error("Heartbeat", 22, 25))
    found = find_and_shrink(bench_with(wrong), 1)
    assert isinstance(found, Counterexample)
    assert found.requirement.startswith("HB-")
    assert found.requests <= (1 if found.requirement == "HB-02" else 3), "a group has to be there first, or not"


@pytest.mark.slow
def test_violation_that_does_not_come_again_is_no_counterexample() -> None:
    def once(_: Any, response: Response) -> Response:
        if response.body.get("error_code") == Error.UNKNOWN_MEMBER_ID and not changed:
            changed.append(True)
            return Response(response.handle, {**response.body, "error_code": Error.ILLEGAL_GENERATION})
        return response

    changed: list[bool] = []
    wrong = altering_coordinator(once)
    found = falsify(bench_with(wrong), 1, seconds=8)
    assert isinstance(found, NoCounterexample)
    assert changed


def test_requests_are_counted_up_to_the_wrong_answer() -> None:
    wrong = altering_coordinator(replace_error("Heartbeat", 22, 25))
    found = find_and_shrink(bench_with(wrong), 3)
    assert isinstance(found, Counterexample)
    requests = [event for event in found.run.events if event.kind is Kind.REQUEST]
    assert found.requests <= len(requests)
