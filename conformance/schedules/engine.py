"""A series: as many schedules as were asked for, round after round; then what failed is seen again and made short."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fencepost.conformance.analysis.root_cause import violated_requirements
from fencepost.conformance.execution.play import ScenarioRun
from fencepost.conformance.execution.saving import with_decisions
from fencepost.conformance.schedules.classic.generation import ScheduleScope
from fencepost.conformance.schedules.guidance import BatchSpec
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.simplify import Item, build_schedule, shrinkable_items, simplifications
from fencepost.conformance.schedules.statistics import CandidateFailure, RunStatistics, ScheduleResult
from fencepost.traces.shrinker import shrink_steps

BATCH_SIZE = 20
"""How many schedules are drawn at a time."""


class ScheduleEngine(ABC):
    """The random schedules of a run. What is specific to a target is left to subclasses."""

    batches_per_round = 2
    """How many chunks make a round; what they show steers the next one."""
    shrink_seconds = 10.0
    """How long the schedule of one violation is made shorter."""

    def __init__(self, scope: ScheduleScope, seed: int, count: int, decisions: dict[str, bool]) -> None:
        self.scope = scope
        self.seed = seed
        self.count = count
        self.decisions = tuple(sorted(decisions.items()))
        self.statistics = RunStatistics()

    async def run(self, on_result: Callable[[ScheduleResult], None]) -> None:
        """Draw and play them all; `on_result` is told of each that was judged."""

        def keep(outcome: ScheduleResult) -> None:
            self.statistics.add_result(outcome)
            on_result(outcome)

        await self.play(self.rounds(), keep)

    def rounds(self) -> Iterator[list[BatchSpec]]:
        """What to draw in each round, as far as is known by then."""
        sizes = [min(BATCH_SIZE, self.count - begin) for begin in range(0, self.count, BATCH_SIZE)]
        numbered = list(enumerate(sizes))
        for begin in range(0, len(numbered), self.batches_per_round):
            yield [self.batch_spec(chunk, size) for chunk, size in numbered[begin : begin + self.batches_per_round]]

    def batch_spec(self, batch: int, size: int) -> BatchSpec:
        """What to draw next, as far as is known by now."""
        return BatchSpec(self.scope, self.seed, batch, size, frozenset(self.statistics.transitions), self.decisions)

    async def confirm_violation(self, requirement: str) -> tuple[ScenarioRun, frozenset[str]]:
        """What shows this requirement broken, as short as it gets, and what broke when it was replayed.

        A schedule that does not fail again is not made short, and then nothing broke.
        """
        suspects = self.statistics.candidate_failures[requirement]
        for suspect in suspects:
            again = violated_requirements((await self.replay([suspect.schedule]))[0])
            if requirement not in again:
                continue
            short = await self.shrink_schedule(suspect.schedule, requirement)
            first, second = [(await self.replay([short]))[0] for _ in range(2)]
            if requirement in violated_requirements(first) & violated_requirements(second):
                return self.record_decisions(
                    CandidateFailure(short, first).run_named_after(requirement)
                ), violated_requirements(second)
            return self.record_decisions(suspect.run_named_after(requirement)), again
        return self.record_decisions(suspects[0].run_named_after(requirement)), frozenset()

    def record_decisions(self, run: ScenarioRun) -> ScenarioRun:
        """What was played, with the reference differences it was judged by told in its trace."""
        return replace(run, events=tuple(with_decisions(run.events, dict(self.decisions))))

    async def shrink_schedule(self, schedule: Schedule, requirement: str) -> Schedule:
        """The schedule as short as it gets in the time allowed, with the same requirement broken."""
        deadline = time.monotonic() + self.shrink_seconds
        steps = shrink_steps(shrinkable_items(schedule), simplifications)
        best: Sequence[Item] = shrinkable_items(schedule)
        try:
            batch = next(steps)
            while time.monotonic() < deadline:
                found = await self.failing_indices(
                    [build_schedule(schedule, each) for each in batch], requirement, deadline
                )
                if found:
                    best = batch[found[0]]
                batch = steps.send(found)
        except StopIteration as done:
            best = done.value
        return build_schedule(schedule, best)

    async def failing_indices(self, candidates: Sequence[Schedule], requirement: str, deadline: float) -> list[int]:
        """The places of those that break the requirement; the first is enough."""
        for place, candidate in enumerate(candidates):
            if time.monotonic() > deadline:
                break
            if requirement in violated_requirements((await self.replay([candidate]))[0]):
                return [place]
        return []

    @abstractmethod
    async def play(self, rounds: Iterator[list[BatchSpec]], on_result: Callable[[ScheduleResult], None]) -> None:
        """Draw and play them, round after round."""

    @abstractmethod
    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """Play some schedules once more."""
