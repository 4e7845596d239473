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
4. Confirm. Of each violated requirement the shortest failing schedules are candidates. They are replayed, and with them
   shortcuts of the shortest: parts of it that lead the model to the state in which it failed. The violation counts only
   if one of these violates the requirement again; one that no replay shows is reported as inconclusive.
5. Shrink. The first replay that failed is where shrinking begins. Actors, kinds of moves, moves and special roles are
   removed and options simplified by delta debugging (`traces.shrinker`) for as long as the requirement stays violated.
   Each attempt is a run of its own: any sequence of moves can be played, because a move that makes no sense in a state
   is sent all the same or left out. The shortest schedule is replayed twice more; if it does not fail both times, or
   there is no time for that, the unshrunk run is reported.
6. Save. The run that is reported carries the reference differences it was judged by, so that its trace can be judged
   and replayed by itself.

The engine knows no protocol and no target: the former is a `ScheduleProtocol`, the latter a subclass here.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from fencepost.adapters.virtual_clock import run_in_thread
from fencepost.conformance.analysis.root_cause import violated_requirements, violations_in
from fencepost.conformance.execution.saving import with_decisions
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.conformance.schedules.batches import BATCH_SIZE, BatchSpec
from fencepost.conformance.schedules.protocol import ScheduleProtocol
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.simplify import (
    Item,
    build_schedule,
    related_items,
    shrinkable_items,
    simplifications,
)
from fencepost.conformance.schedules.statistics import CandidateFailure, RunStatistics, ScheduleResult
from fencepost.traces.shrinker import shrink_steps


@dataclass(frozen=True, slots=True)
class Replay:
    """A schedule that was played once more, and that run."""

    schedule: Schedule
    run: ScenarioRun

    @property
    def seconds(self) -> float:
        """How long the run took; nothing on virtual time."""
        is_virtual = self.run.header.clock == "virtual" or not self.run.events
        return 0.0 if is_virtual else self.run.events[-1].time / 1000


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The shortest candidate of a requirement, and the shortest replay that shows the violation again, if one does."""

    candidate: CandidateFailure
    replay: Replay | None


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The run to report for a requirement, and the requirements that its replay violates; none if no replay showed the
    violation again. It is minimal if there was time to try everything."""

    run: ScenarioRun
    again: frozenset[str]
    is_minimal: bool


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

    async def confirm_violations(self, requirements: Sequence[str]) -> dict[str, Confirmation]:
        """Replay the candidates of each requirement, and shortcuts of the first: the shortest run that shows the
        violation again, and the requirements that it violates; those are none if no replay shows it."""
        attempts = {each: await run_in_thread(partial(self.attempts_for, each)) for each in requirements}
        shown = await self.first_failing(attempts)
        return {
            each: Confirmation(self.statistics.candidate_failures[each][0], shown.get(each)) for each in requirements
        }

    def attempts_for(self, requirement: str) -> list[Schedule]:
        """The schedules that may show a violation again, the shortest first."""
        candidates = self.statistics.candidate_failures[requirement]
        first = candidates[0]
        sequence = min(each.sequence for each in violations_in(first.run.verdict) if each.requirement == requirement)
        shortcuts = self.protocol.shortcuts(first.schedule, first.run.events, sequence)
        return sorted((*shortcuts, *(each.schedule for each in candidates)), key=lambda each: len(each.moves))

    async def first_failing(self, attempts: Mapping[str, Sequence[Schedule]]) -> dict[str, Replay]:
        """For each requirement the replay of the first of its schedules that violates it."""
        shown: dict[str, Replay] = {}
        for requirement, schedules in attempts.items():
            for schedule in schedules:
                run = (await self.replay([schedule]))[0]
                if requirement in violated_requirements(run):
                    shown[requirement] = Replay(schedule, run)
                    break
        return shown

    def group_for_shrinking(self, found: Mapping[str, Confirmation]) -> list[list[str]]:
        """The requirements in this order, in groups that are shrunk side by side."""
        return [[requirement] for requirement in found]

    async def shrink_violation(self, requirement: str, found: Confirmation, seconds: float | None = None) -> Shrunk:
        """The shortest run that violates a requirement and that a further replay confirms; the candidate's own run if
        there is no shorter one, or no time to confirm it.

        That takes at most `seconds`, and never more than `shrink_seconds`. What no replay shows is not shrunk.
        """
        candidate, shown = found.candidate, found.replay
        whole = self.record_decisions(candidate.run_named_after(requirement))
        if shown is None:
            return Shrunk(whole, frozenset(), is_minimal=True)
        limit = self.shrink_seconds if seconds is None else min(seconds, self.shrink_seconds)
        deadline = asyncio.get_running_loop().time() + limit
        reserve = min(shown.seconds, limit)
        short, is_minimal = await self.shrink_schedule(shown.schedule, requirement, limit, reserve)
        if short != candidate.schedule:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    first, second = await self.replay([short, short])
                again = violated_requirements(second)
                if requirement in violated_requirements(first) & again:
                    run = CandidateFailure(short, first).run_named_after(requirement)
                    return Shrunk(self.record_decisions(run), again, is_minimal)
            is_minimal = False
        return Shrunk(whole, violated_requirements(shown.run), is_minimal)

    def record_decisions(self, run: ScenarioRun) -> ScenarioRun:
        """The run with the reference differences that it was judged by in its trace."""
        return replace(run, events=tuple(with_decisions(run.events, dict(self.decisions))))

    async def shrink_schedule(
        self, schedule: Schedule, requirement: str, seconds: float, reserve: float = 0.0
    ) -> tuple[Schedule, bool]:
        """The shortest schedule found in so many seconds that violates the same requirement, and whether nothing was
        left to try. As many seconds as it takes to replay the schedule are left over: `reserve`, or less once there is
        a quicker one."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        best: Sequence[Item] = shrinkable_items(self.protocol, schedule)
        steps = shrink_steps(best, partial(simplifications, self.protocol), related_items)
        try:
            batch = next(steps)
            while (begun := loop.time()) < deadline - reserve:
                candidates = [build_schedule(self.protocol, schedule, each) for each in batch]
                failing = await self.failing_indices(candidates, requirement, deadline - reserve)
                if failing:
                    best = batch[failing[0]]
                    reserve = min(reserve, loop.time() - begun)
                elif loop.time() >= deadline - reserve:
                    break
                batch = steps.send(failing)
        except StopIteration as done:
            return build_schedule(self.protocol, schedule, done.value), True
        return build_schedule(self.protocol, schedule, best), False

    async def failing_indices(self, candidates: Sequence[Schedule], requirement: str, deadline: float) -> list[int]:
        """The indices of candidates that violate the requirement; at least the first, if there is one. A run that takes
        until the deadline is given up."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                for index, candidate in enumerate(candidates):
                    if requirement in violated_requirements((await self.replay([candidate]))[0]):
                        return [index]
        return []

    @abstractmethod
    async def play(self, rounds: Iterator[list[BatchSpec]], on_result: Callable[[ScheduleResult], None]) -> None:
        """Generate and play the batches of each round."""

    @abstractmethod
    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """Play some schedules once more."""
