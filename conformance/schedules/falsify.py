"""Falsification of one target in this process: generate and play schedules until one fails twice, then shrink it."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Protocol

from fencepost.conformance.analysis.naming import is_specific
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.conformance.schedules.batches import BATCH_SIZE
from fencepost.conformance.schedules.protocol import ScheduleProtocol
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.simplify import build_schedule, related_items, shrinkable_items, simplifications
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.traces.events import Kind
from fencepost.traces.shrinker import shrink
from fencepost.traces.verdict import CheckResult, violations_in

ScheduleSource = Callable[[int], Iterable[Schedule]]
"""Gives schedules by the number of their batch, without end."""


class ScheduleBench(Protocol):
    """What a search needs to play schedules, on targets or with clients."""

    @property
    def protocol(self) -> ScheduleProtocol: ...

    def play(self, schedule: Schedule) -> ScenarioRun:
        """Play a schedule, and judge it."""
        ...

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """The requirements that a schedule shows violated."""
        ...

    def violated_by_new(self, schedule: Schedule) -> frozenset[str]:
        """As `violated_by`, for a schedule that is played the first time."""
        ...


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


def falsify(
    bench: ScheduleBench, seed: int, seconds: float, shrink_seconds: float = 10.0
) -> Counterexample | NoCounterexample:
    """Look for a violation by the schedules of a seed."""
    return find_counterexample(bench, schedule_source(bench.protocol, seed), seconds, shrink_seconds)


def find_counterexample(
    bench: ScheduleBench,
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
    bench: ScheduleBench, schedule: Schedule, played: int, taken: float, seconds: float, clock: Callable[[], float]
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
