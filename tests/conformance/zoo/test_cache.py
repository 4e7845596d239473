"""Caches of hunts change nothing but the time that hunts take."""

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from fencepost.conformance.classic.zoo import coordinator_stand
from fencepost.conformance.classic.zoo.coordinator_stand import (
    BUNDLED_SCHEDULES,
    CachedCoordinator,
    CoordinatorFault,
    make_bench,
    reached_lines,
    reference_run,
    tolerate_timeout,
)
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import (
    Bench,
    Counterexample,
    JudgeFunction,
    NoCounterexample,
    find_counterexample,
    schedule_source,
    target_bench,
)
from fencepost.conformance.run.schedule import Schedule
from fencepost.conformance.subject import ScenarioRun
from fencepost.conformance.zoo.hunt import cached_schedules
from fencepost.conformance.zoo.measuring import CpuClock, CpuLimitExceeded
from fencepost.conformance.zoo.registry import fault_named
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

SEED = 1
SOURCE = partial(schedule_source, BUNDLED_SCHEDULES)
BUG, MUTANT = "BUG-12", "membership.Leaving.remove_entry: always: not member_id -> True"


def plain_bench(fault: CoordinatorFault) -> Bench:
    """A bench without caches, for what is active in this process."""
    return target_bench(BUNDLED_SCHEDULES, partial(fault.setting.make_target, BUNDLED_SETTINGS))


def hunt_uncached(fault: CoordinatorFault, schedules: int) -> Counterexample | NoCounterexample:
    """The result of a hunt without caches, by a clock that counts schedules."""
    ticks = iter(range(10_000))
    with fault.activate():
        return find_counterexample(plain_bench(fault), SOURCE(SEED), schedules, 0, lambda: float(next(ticks)))


def hunt_cached(fault: CoordinatorFault, schedules: int) -> Counterexample | NoCounterexample:
    """The same with caches."""
    bench, ticks = make_bench(fault, CpuClock()), iter(range(10_000))
    assert isinstance(bench, CachedCoordinator)
    return find_counterexample(
        bench, lambda chunk: cached_schedules(SOURCE, SEED, chunk)[0], schedules, 0, lambda: float(next(ticks))
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [BUG, MUTANT])
def test_a_hunt_finds_the_same_in_as_many_schedules(name: str) -> None:
    one, other = hunt_uncached(fault_named(name), 60), hunt_cached(fault_named(name), 60)
    assert isinstance(one, Counterexample) and isinstance(other, Counterexample)
    assert (one.requirement, one.schedules, one.generated, one.shrunk) == (
        other.requirement,
        other.schedules,
        other.generated,
        other.shrunk,
    )


def test_only_what_differs_from_the_shipped_coordinator_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []

    def count_judging(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
        judged.append(len(events))
        return judge(header, events)

    schedules, _ = cached_schedules(SOURCE, SEED, 0)
    for schedule in schedules:
        reference_run(BUNDLED_SCHEDULES, schedule, BUNDLED_SETTINGS)
    monkeypatch.setattr(coordinator_stand, "judge", count_judging)
    bug = fault_named("BUG-22")
    bench = make_bench(bug, CpuClock())
    found = [bool(bench.violated_by_new(each)) for each in schedules]
    assert sum(found) <= len(judged) < len(schedules)
    with bug.activate():
        assert [bool(plain_bench(bug).violated_by(each)) for each in schedules] == found


def test_what_the_shipped_coordinator_shows_is_no_find(monkeypatch: pytest.MonkeyPatch) -> None:
    bug = fault_named("BUG-22")
    (schedules, _), bench = cached_schedules(SOURCE, SEED, 0), make_bench(bug, CpuClock())
    schedule = next(each for each in schedules if bench.violated_by_new(each))
    own = bench.violated_by(schedule)
    shipped = reference_run(BUNDLED_SCHEDULES, schedule, BUNDLED_SETTINGS)
    assert own and not shipped.violated

    def blame(violated: frozenset[str]) -> None:
        monkeypatch.setattr(coordinator_stand, "reference_run", lambda *of: replace(shipped, violated=violated))

    blame(own)
    assert bench.violated_by_new(schedule) == bench.violated_by(schedule) == frozenset()
    blame(frozenset())
    assert bench.violated_by_new(schedule) == own


@pytest.mark.slow
def test_only_what_gets_to_the_changed_lines_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    schedules, _ = cached_schedules(SOURCE, SEED, 0)
    for schedule in schedules:
        reference_run(BUNDLED_SCHEDULES, schedule, BUNDLED_SETTINGS)
        reached_lines(BUNDLED_SCHEDULES, schedule, BUNDLED_SETTINGS)
    played: list[str] = []
    perform = CachedCoordinator.play

    def count_playing(
        bench: CachedCoordinator, schedule: Schedule, judge_trace: JudgeFunction | None = None
    ) -> ScenarioRun:
        played.append(schedule.name)
        return perform(bench, schedule, judge_trace)

    monkeypatch.setattr(CachedCoordinator, "play", count_playing)
    mutant = fault_named(MUTANT)
    bench = make_bench(mutant, CpuClock())
    found = [bool(bench.violated_by_new(each)) for each in schedules]
    assert 0 < len(played) < len(schedules)
    with mutant.activate():
        assert [bool(plain_bench(mutant).violated_by(each)) for each in schedules] == found


def test_what_takes_too_long_is_nothing_unless_the_coordinator_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(inside: bool) -> frozenset[str]:
        raise CpuLimitExceeded(inside)

    assert tolerate_timeout(lambda: frozenset({"HB-06"})) == {"HB-06"}
    assert tolerate_timeout(lambda: stuck(False)) == frozenset()
    with pytest.raises(CpuLimitExceeded):
        tolerate_timeout(lambda: stuck(True))

    def slow(header: Header, events: tuple[Event, ...], decisions: Mapping[str, bool]) -> TraceVerdict:
        begun = time.process_time()
        while time.process_time() - begun < 1:
            pass
        return judge(header, events)

    (schedules, _), bench = cached_schedules(SOURCE, SEED, 0), make_bench(fault_named(BUG), CpuClock())
    monkeypatch.setattr(coordinator_stand, "MAX_PLAY_SECONDS", 0.5)
    assert replace(bench, judge=slow).violated_by(schedules[0]) == frozenset()


def test_what_is_known_is_of_a_coordinator_without_the_bug() -> None:
    reference_run.cache_clear()
    schedule = cached_schedules(SOURCE, SEED, 0)[0][3]
    make_bench(fault_named(BUG), CpuClock()).violated_by_new(schedule)
    remembered = reference_run(BUNDLED_SCHEDULES, schedule, BUNDLED_SETTINGS)
    reference_run.cache_clear()
    assert remembered.digest == reference_run(BUNDLED_SCHEDULES, schedule, BUNDLED_SETTINGS).digest
    assert remembered.verdict.violations == ()


def test_cpu_clock_counts_cached_work_and_skips_uncounted() -> None:
    watch = CpuClock()
    begun = watch()
    watch.add_saved(5.0)
    assert 5.0 <= watch() - begun < 6.0

    def work() -> str:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
        return "done"

    before, real = watch(), time.process_time()
    assert watch.run_uncounted(work) == "done"
    assert watch() - before < (time.process_time() - real) / 2
