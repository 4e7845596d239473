"""The schedule engine: random schedules, played until the number asked for, and a shrunk trace of each violation.

Theory of operation
-------------------

    seed, batch number
          │
          ▼
     ┌──────────┐  GeneratedSchedule  ┌──────┐  trace  ┌───────┐  ScheduleResult
     │ generate │────────────────────►│ play │────────►│ judge │────────┐
     └──────────┘                     └──────┘         └───────┘        ▼
          ▲                               ▲                      RunStatistics
          │                               │                             │ candidate
       protocol                           │                             ▼ failures
                                          │  replay twice  ┌──────────────────┐
      trace of the violation  ◄── save ───┴────────────────│ confirm ► shrink │
                                                           └──────────────────┘

1. Generate. A protocol draws schedules: a cast of actors and their moves, as plain data. It plays each on the model
   while it draws it, so that moves make sense, and so that the transitions of the model that the schedule takes are
   predicted. The same seed and batch number give the same schedules, in any process.
2. Play. The protocol turns a schedule into a scenario, which is played as all scenarios are: on a target of its own on
   virtual time (`virtual_engine`), or with many others in groups of their own on a real target (`concurrent_engine`;
   schedules that restart the target share the restarts, `restart_batch`).
3. Judge. The judge holds the trace against the model. No expectation is part of a schedule: whatever the model does
   not allow is a violation of the requirements that the judge names.
4. Confirm. Of each violated requirement the shortest failing schedules are candidates. A candidate is replayed, and
   counts only if it violates the requirement again; a violation that no replay shows is reported as inconclusive.
5. Shrink. Moves and special roles are removed and options simplified by delta debugging (`traces.shrinker`) for as
   long as the requirement stays violated. Each attempt is a run of its own: any sequence of moves can be played,
   because a move that makes no sense in a state is sent all the same or left out. The shortest schedule is replayed
   twice more; if it does not fail both times, the unshrunk run is reported.
6. Save. The run that is reported carries the reference differences it was judged by, so that its trace can be judged
   and replayed by itself.

The engine knows no protocol and no target: the former is a `ScheduleProtocol`, the latter a subclass here.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from fencepost.conformance.analysis.root_cause import violated_requirements
from fencepost.conformance.execution.saving import with_decisions
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.conformance.schedules.batches import BATCH_SIZE, BatchSpec
from fencepost.conformance.schedules.protocol import ScheduleProtocol
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.simplify import Item, build_schedule, shrinkable_items, simplifications
from fencepost.conformance.schedules.statistics import CandidateFailure, RunStatistics, ScheduleResult
from fencepost.traces.shrinker import shrink_steps


class ScheduleEngine(ABC):
    """The random schedules of a run. Subclasses play them on one kind of target."""

    batches_per_round = 2
    """How many batches are generated and played together."""
    shrink_seconds = 10.0
    """How long the schedule of one violation is shrunk."""

    def __init__(self, protocol: ScheduleProtocol, seed: int, count: int, decisions: dict[str, bool]) -> None:
        self.protocol = protocol
        self.seed = seed
        self.count = count
        self.decisions = tuple(sorted(decisions.items()))
        self.statistics = RunStatistics()

    async def run(self, on_result: Callable[[ScheduleResult], None]) -> None:
        """Generate and play all schedules; `on_result` gets the result of each."""

        def add_result(result: ScheduleResult) -> None:
            self.statistics.add_result(result)
            on_result(result)

        await self.play(self.rounds(), add_result)

    def rounds(self) -> Iterator[list[BatchSpec]]:
        """The batches of each round."""
        sizes = [min(BATCH_SIZE, self.count - begin) for begin in range(0, self.count, BATCH_SIZE)]
        numbered = list(enumerate(sizes))
        for begin in range(0, len(numbered), self.batches_per_round):
            yield [self.batch_spec(batch, size) for batch, size in numbered[begin : begin + self.batches_per_round]]

    def batch_spec(self, batch: int, size: int) -> BatchSpec:
        """The spec of a batch."""
        return BatchSpec(self.protocol, self.seed, batch, size, self.decisions)

    async def confirm_violation(
        self, requirement: str, seconds: float | None = None
    ) -> tuple[ScenarioRun, frozenset[str]]:
        """The shortest run found that violates the requirement, and the requirements that its replay violates.

        The latter are empty if no replay violates the requirement; such a schedule is not shrunk. Shrinking takes at
        most `seconds`, and never more than `shrink_seconds`.
        """
        limit = self.shrink_seconds if seconds is None else min(seconds, self.shrink_seconds)
        candidates = self.statistics.candidate_failures[requirement]
        for candidate in candidates:
            again = violated_requirements((await self.replay([candidate.schedule]))[0])
            if requirement not in again:
                continue
            short = await self.shrink_schedule(candidate.schedule, requirement, limit)
            first, second = [(await self.replay([short]))[0] for _ in range(2)]
            if requirement in violated_requirements(first) & violated_requirements(second):
                shrunk = CandidateFailure(short, first)
                return self.record_decisions(shrunk.run_named_after(requirement)), violated_requirements(second)
            return self.record_decisions(candidate.run_named_after(requirement)), again
        return self.record_decisions(candidates[0].run_named_after(requirement)), frozenset()

    def record_decisions(self, run: ScenarioRun) -> ScenarioRun:
        """The run with the reference differences that it was judged by in its trace."""
        return replace(run, events=tuple(with_decisions(run.events, dict(self.decisions))))

    async def shrink_schedule(self, schedule: Schedule, requirement: str, seconds: float) -> Schedule:
        """The shortest schedule found in so many seconds that violates the same requirement."""
        deadline = time.monotonic() + seconds
        best: Sequence[Item] = shrinkable_items(self.protocol, schedule)
        steps = shrink_steps(best, partial(simplifications, self.protocol))
        try:
            batch = next(steps)
            while time.monotonic() < deadline:
                candidates = [build_schedule(self.protocol, schedule, each) for each in batch]
                failing = await self.failing_indices(candidates, requirement, deadline)
                if failing:
                    best = batch[failing[0]]
                batch = steps.send(failing)
        except StopIteration as done:
            best = done.value
        return build_schedule(self.protocol, schedule, best)

    async def failing_indices(self, candidates: Sequence[Schedule], requirement: str, deadline: float) -> list[int]:
        """The indices of candidates that violate the requirement; at least the first, if there is one."""
        for index, candidate in enumerate(candidates):
            if time.monotonic() > deadline:
                break
            if requirement in violated_requirements((await self.replay([candidate]))[0]):
                return [index]
        return []

    @abstractmethod
    async def play(self, rounds: Iterator[list[BatchSpec]], on_result: Callable[[ScheduleResult], None]) -> None:
        """Generate and play the batches of each round."""

    @abstractmethod
    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """Play some schedules once more."""
