"""A hunt: draw schedules for a target in this process until one fails, see it fail again, and make it short."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count

from fencepost.adapters.target import Target
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.root_cause import violated_requirements, violations_in
from fencepost.conformance.execution.play import JudgeFunction, ScenarioRun, play_scenario
from fencepost.conformance.schedules.classic.generation import ScheduleScope, generate_schedules
from fencepost.conformance.schedules.classic.interpreter import scenario_of
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.simplify import build_schedule, shrinkable_items, simplifications
from fencepost.traces.events import Kind
from fencepost.traces.shrinker import shrink

BATCH_SIZE = 20
"""How many schedules are drawn at a time."""
TargetFactory = Callable[[], Target]
ScheduleSource = Callable[[int], Iterable[Schedule]]
"""Gives schedules by the number of their chunk, for ever."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """What a hunt found: the requirement that is broken, after how many schedules and seconds, and the schedule as
    it was drawn and made short, each as played."""

    requirement: str
    schedules: int
    seconds: float
    generated: Schedule
    shrunk: Schedule
    run: ScenarioRun

    @property
    def requests(self) -> int:
        """How many requests it takes, up to the wrong answer."""
        last = min(each.sequence for each in violations_in(self.run.verdict) if each.requirement == self.requirement)
        return count_requests(self.run, last)


def count_requests(run: ScenarioRun, sequence: int) -> int:
    """How many requests there are up to one of them."""
    return sum(event.kind is Kind.REQUEST and event.sequence <= sequence for event in run.events)


@dataclass(frozen=True, slots=True)
class NoCounterexample:
    """A hunt that found nothing, and how long it took."""

    schedules: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Bench:
    """Where a hunt takes place: a target for every schedule, whose timers may be `grace` milliseconds late."""

    make_target: TargetFactory
    grace: int = 0

    def play(self, schedule: Schedule, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """See `play_schedule`."""
        return play_schedule(self.make_target, schedule, self.grace, judge_trace)

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """The requirements that a schedule shows broken."""
        return violated_requirements(self.play(schedule))

    def violated_by_new(self, schedule: Schedule) -> frozenset[str]:
        """As `violated_by`, of a schedule that was just drawn."""
        return self.violated_by(schedule)


def schedule_source(scope: ScheduleScope, seed: int) -> ScheduleSource:
    """The kit's own schedules."""
    return lambda chunk: (each.schedule for each in generate_schedules(scope, seed, chunk, BATCH_SIZE))


def falsify(
    make_target: TargetFactory, scope: ScheduleScope, seed: int, seconds: float, shrink_seconds: float = 10.0
) -> Counterexample | NoCounterexample:
    """Look for a violation by the kit's own schedules, on a target without grace."""
    return find_counterexample(Bench(make_target), schedule_source(scope, seed), seconds, shrink_seconds)


def find_counterexample(
    bench: Bench,
    source: ScheduleSource,
    seconds: float,
    shrink_seconds: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
) -> Counterexample | NoCounterexample:
    """Look for a violation as long as `seconds` on this clock; a failure that does not come again is none."""
    begun = clock()
    played = 0
    for chunk in count():
        for schedule in source(chunk):
            if clock() - begun > seconds:
                return NoCounterexample(played, clock() - begun)
            played += 1
            found = bench.violated_by_new(schedule)
            again = bench.violated_by(schedule) if found else found
            if found & again:
                return shrink_counterexample(bench, schedule, played, clock() - begun, shrink_seconds, clock)
    raise AssertionError("chunks never end")


def shrink_counterexample(
    bench: Bench, schedule: Schedule, played: int, taken: float, seconds: float, clock: Callable[[], float]
) -> Counterexample:
    """What was found, with its schedule made short."""
    deadline = clock() + seconds
    found = bench.violated_by(schedule)
    named = (each.requirement for each in violations_in(bench.play(schedule).verdict))
    requirement = next(each for each in named if each in found)
    kept = shrink(
        shrinkable_items(schedule),
        lambda candidate: requirement in bench.violated_by(build_schedule(schedule, candidate)),
        simplifications,
        lambda: clock() < deadline,
    )
    shortest = build_schedule(schedule, kept)
    return Counterexample(requirement, played, taken, schedule, shortest, bench.play(shortest))


def play_schedule(
    make_target: TargetFactory, schedule: Schedule, grace: int = 0, judge_trace: JudgeFunction | None = None
) -> ScenarioRun:
    """Play a schedule on a target of its own, on virtual time, and judge it: here, unless `judge_trace` does."""

    async def performance() -> ScenarioRun:
        target = make_target()
        description = await target.open()
        try:
            return await play_scenario(
                scenario_of(schedule),
                target,
                description,
                schedule.name,
                grace=grace,
                restart=target.restart,
                judge_trace=judge_trace,
            )
        finally:
            await target.close()

    return run_virtual(performance())
