"""Shrinking of schedules, and minimizing of traces."""

from collections.abc import Iterator, Sequence
from functools import cache, partial

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules, generate_schedules
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import target_bench
from fencepost.conformance.run.schedule import ScheduleScope
from fencepost.conformance.subject import ScenarioRun
from fencepost.traces.events import Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.judge.minimize import id_issuers, member_ids_in, minimize_trace
from fencepost.traces.shrinker import shrink, shrink_steps
from tests.support.faulty_coordinators import EagerSyncCoordinator

# --- Shrinking finds the minimal failing sequence in few runs, with single candidates and with batches.


def is_subsequence(wanted: Sequence[int], given: Sequence[int]) -> bool:
    rest = iter(given)
    return all(any(each == one for each in rest) for one in wanted)


@pytest.mark.parametrize("wanted", [(), (0,), (99,), (3, 70), (1, 2, 3), (10, 40, 41, 98)])
def test_what_matters_is_kept_in_order_and_nothing_else(wanted: tuple[int, ...]) -> None:
    assert shrink(range(100), lambda kept: is_subsequence(wanted, kept)) == wanted


def test_shrink_takes_few_runs() -> None:
    tried: list[tuple[int, ...]] = []

    def fails(kept: tuple[int, ...]) -> bool:
        tried.append(kept)
        return is_subsequence((3, 70), kept)

    shrink(range(100), fails)
    assert len(tried) < 60
    assert len(set(tried)) == len(tried)


def test_simpler_items_take_the_place_of_others() -> None:
    def smaller(item: int) -> Iterator[int]:
        yield from (0, item // 2, item - 1) if item else ()

    assert shrink((5, 80, 9), lambda kept: any(each >= 17 for each in kept), smaller) == (17,)


def test_what_needs_two_items_at_once_keeps_both() -> None:
    assert shrink(range(8), lambda kept: len(kept) >= 2) == (0, 1)


def test_a_run_that_ends_early_keeps_what_it_has() -> None:
    left = iter(range(5))
    found = shrink(range(100), lambda kept: 99 in kept, may_continue=lambda: next(left, None) is not None)
    assert 99 in found
    assert len(found) < 100


def test_many_candidates_at_once_take_few_rounds() -> None:
    steps = shrink_steps(range(100))
    rounds = 1
    batch = next(steps)
    try:
        while True:
            batch = steps.send([place for place, kept in enumerate(batch) if is_subsequence((3, 70), kept)])
            rounds += 1
    except StopIteration as done:
        assert done.value == (3, 70)
    assert rounds < 40


# --- The smallest part of a recorded trace that shows its fault: causal, and wrong in the same way.


@cache
def premature_sync_trace() -> ScenarioRun:
    """Followers are answered before the leader has assigned anything."""
    scope = ScheduleScope(BUNDLED_SETTINGS)
    make_target = partial(InProcessTarget, BUNDLED_SETTINGS, make_coordinator=EagerSyncCoordinator)
    bench = target_bench(ClassicSchedules(scope), make_target)
    played = [bench.play(each.schedule) for each in generate_schedules(scope, 4, 0, 8)]
    failed = [run for run in played if run.verdict.violations and len(run.events) > 60]
    return min(failed, key=lambda run: run.verdict.violations[0].sequence)  # the one with the least before the fault


def test_a_trace_becomes_as_short_as_its_fault_allows() -> None:
    played = premature_sync_trace()
    fault = played.verdict.violations[0]
    part = minimize_trace(played.header, played.events, fault, seconds=60)
    requests = [event for event in part if event.kind is Kind.REQUEST]
    assert len(requests) <= 6
    assert fault.sequence == requests[-1].sequence
    (again, *_) = judge(played.header, part).violations
    assert (again.sequence, again.kind) == (fault.sequence, fault.kind)


def test_what_is_left_is_part_of_the_trace_and_causal() -> None:
    played = premature_sync_trace()
    part = minimize_trace(played.header, played.events, played.verdict.violations[0], seconds=60)
    assert [event for event in played.events if event in part] == list(part)
    kept = {event.sequence for event in part}
    assert all(event.of in kept for event in part if event.of is not None)
    givers = id_issuers(played.events)
    named = {
        each for event in part if event.kind is Kind.REQUEST for each in member_ids_in(event.body) if each in givers
    }
    assert {givers[each] for each in named} <= kept


def test_without_time_the_trace_stays_whole_up_to_the_fault() -> None:
    played = premature_sync_trace()
    fault = played.verdict.violations[0]
    part = minimize_trace(played.header, played.events, fault, seconds=0)
    assert part == played.events[: len(part)]
    assert any(event.of == fault.sequence for event in part)
