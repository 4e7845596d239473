"""Falsification of one target in this process: schedules are played, each on a target of its own and on virtual time,
until one fails twice, which is shrunk."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Protocol

from fencepost.adapters.target import Target
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.analysis.root_cause import is_specific
from fencepost.conformance.run.play import JudgeFunction, NewTarget
from fencepost.conformance.run.schedule import (
    BATCH_SIZE,
    Schedule,
    ScheduleProtocol,
    build_schedule,
    related_items,
    shrinkable_items,
    simplifications,
)
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import NO_DECISIONS, Scenario, ScenarioRun, TraceJudge
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.shrinker import shrink
from fencepost.traces.verdict import CheckResult, TraceVerdict, violations_in

# -- playing schedules in this process --------------------------------------------------------------------------------


class Player(Protocol):
    """Plays scenarios, each on a target or with a client of its own."""

    async def play(self, scenario: Scenario, name: str, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """Play a scenario under a name that tells this play from others of it, and have its trace judged."""
        ...


@dataclass(frozen=True, slots=True)
class Bench:
    """Plays schedules one after the other, on virtual time."""

    protocol: ScheduleProtocol
    make_player: Callable[[], Player]
    judge: TraceJudge = judge

    def play(self, schedule: Schedule, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """Play a schedule and judge its trace: by `judge` without decisions, or by `judge_trace` if it is given."""

        async def judge_here(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            return self.judge(header, events, NO_DECISIONS)

        scenario = self.protocol.scenario_of(schedule)
        return run_virtual(self.make_player().play(scenario, schedule.name, judge_trace or judge_here))

    def play_decided(self, schedule: Schedule, decisions: Mapping[str, bool]) -> ScenarioRun:
        """As `play`, with these reference differences settled."""

        async def judge_here(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            return self.judge(header, events, decisions)

        return self.play(schedule, judge_here)

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """The requirements that a schedule shows violated."""
        return self.play(schedule).verdict.violated

    def violated_by_new(self, schedule: Schedule) -> frozenset[str]:
        """As `violated_by`, for a schedule that is played the first time."""
        return self.violated_by(schedule)


def target_bench(
    protocol: ScheduleProtocol, make_target: Callable[[], Target], grace: int = 0, judge: TraceJudge = judge
) -> Bench:
    """A bench with a new target for each schedule, whose timers may be `grace` milliseconds late."""
    return Bench(protocol, partial(NewTarget, make_target, grace), judge)


# -- falsification of one target in this process ----------------------------------------------------------------------

ScheduleSource = Callable[[int], Iterable[Schedule]]
"""Gives schedules by the number of their batch, without end."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A violated requirement, after how many schedules and seconds it was found, the schedule as it was generated and
    as it was shrunk, and the run of the latter."""

    requirement: str
    schedules: int
    seconds: float
    generated: Schedule
    shrunk: Schedule
    run: ScenarioRun

    @property
    def requests(self) -> int:
        """The number of requests of the shrunk run, up to the one with the wrong response."""
        last = min(each.sequence for each in violations_in(self.run.verdict) if each.requirement == self.requirement)
        return count_requests(self.run, last)


def most_specific(violations: Sequence[CheckResult]) -> CheckResult:
    """The first violation of which the judge says more than its rule, else the first."""
    rules = DEFAULT_SPECIFICATION.rules
    specific = (each for each in violations if each.violation is None or is_specific(each.violation, rules))
    return next(specific, violations[0])


def count_requests(run: ScenarioRun, sequence: int) -> int:
    """The number of requests of a run up to the one with this sequence number."""
    return sum(event.kind is Kind.REQUEST and event.sequence <= sequence for event in run.events)


@dataclass(frozen=True, slots=True)
class NoCounterexample:
    """A search without a result: the schedules it played and the seconds it took."""

    schedules: int
    seconds: float


def schedule_source(protocol: ScheduleProtocol, seed: int) -> ScheduleSource:
    """The schedules that the protocol generates from a seed."""
    return lambda batch: (each.schedule for each in protocol.generate(seed, batch, BATCH_SIZE))


def falsify(bench: Bench, seed: int, seconds: float, shrink_seconds: float = 10.0) -> Counterexample | NoCounterexample:
    """Look for a violation by the schedules of a seed."""
    return find_counterexample(bench, schedule_source(bench.protocol, seed), seconds, shrink_seconds)


def find_counterexample(
    bench: Bench,
    source: ScheduleSource,
    seconds: float,
    shrink_seconds: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
) -> Counterexample | NoCounterexample:
    """Look for a violation for `seconds` on this clock. A violation counts once a second run shows it again."""
    begun = clock()
    played = 0
    for batch in count():
        for schedule in source(batch):
            if clock() - begun > seconds:
                return NoCounterexample(played, clock() - begun)
            played += 1
            found = bench.violated_by_new(schedule)
            again = bench.violated_by(schedule) if found else found
            if found & again:
                return shrink_counterexample(bench, schedule, played, clock() - begun, shrink_seconds, clock)
    raise AssertionError("batches never end")


def shrink_counterexample(
    bench: Bench, schedule: Schedule, played: int, taken: float, seconds: float, clock: Callable[[], float]
) -> Counterexample:
    """Shrink a failing schedule for at most `seconds`, keeping the most specific requirement that it violates."""
    deadline = clock() + seconds
    found = bench.violated_by(schedule)
    run = bench.play(schedule)
    violation = most_specific([each for each in violations_in(run.verdict) if each.requirement in found])
    requirement = violation.requirement
    shortcuts = bench.protocol.shortcuts(schedule, run.events, violation.sequence)
    shorter = (each for each in shortcuts if clock() < deadline and requirement in bench.violated_by(each))
    begin = next(shorter, schedule)
    kept = shrink(
        shrinkable_items(bench.protocol, begin),
        lambda candidate: requirement in bench.violated_by(build_schedule(bench.protocol, begin, candidate)),
        partial(simplifications, bench.protocol),
        lambda: clock() < deadline,
        related_items,
    )
    shortest = build_schedule(bench.protocol, begin, kept)
    return Counterexample(requirement, played, taken, schedule, shortest, bench.play(shortest))
