"""Random schedules over the network: hundreds of groups at once, and one restart per batch for all that need it.

While a batch is played the next one is generated and the last one judged, in processes beside this one.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count as counting
from pathlib import Path

from fencepost.conformance.analysis.root_cause import violated_requirements
from fencepost.conformance.execution.judge_pool import JudgePool
from fencepost.conformance.execution.loop_lag import discard_if_lagging
from fencepost.conformance.execution.pool import ScenarioPool
from fencepost.conformance.execution.saving import write_run
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.conformance.schedules.batches import BatchSpec, generate_batch
from fencepost.conformance.schedules.engine import ScheduleEngine
from fencepost.conformance.schedules.protocol import ScheduleProtocol
from fencepost.conformance.schedules.restart_batch import RestartBatch
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Schedule
from fencepost.conformance.schedules.statistics import ScheduleResult

MAX_SHRINK_CONCURRENCY = 40
"""How many shorter schedules are tried side by side."""


class ConcurrentEngine(ScheduleEngine):
    """Schedules on the target of a pool that leaves its runs unjudged: this engine judges them while others are played.

    `judges` also generate the schedules. The traces of schedules go to the folder `traces` if there is one.
    """

    batches_per_round = 30
    shrink_seconds = 90.0

    def __init__(
        self,
        pool: ScenarioPool,
        judges: JudgePool,
        protocol: ScheduleProtocol,
        seed: int,
        count: int,
        decisions: dict[str, bool],
        traces: Path | None = None,
    ) -> None:
        super().__init__(protocol, seed, count, decisions)
        self.pool = pool
        self.judges = judges
        self.judge = judges.judge_with(decisions)
        self.traces = traces
        self.replay_numbers = counting(1)
        self.generated: dict[str, GeneratedSchedule] = {}
        self.restart_batch = RestartBatch(protocol, pool, self.judge_in_background)
        self.judging_tasks: list[asyncio.Task[None]] = []
        self.on_result: Callable[[ScheduleResult], None] = lambda result: None

    async def play(self, rounds: Iterator[list[BatchSpec]], on_result: Callable[[ScheduleResult], None]) -> None:
        """As `ScheduleEngine.play`."""
        self.on_result = on_result
        generating = self.start_generating(next(rounds, []))
        try:
            while generated := await generating:
                generating = self.start_generating(next(rounds, []))
                await self.play_restart_batch(generated)
            await self.restart_batch.finish()
            await asyncio.gather(*self.judging_tasks)
        finally:
            self.restart_batch.cancel()
            for task in (generating, *self.judging_tasks):
                task.cancel()

    def start_generating(self, specs: Sequence[BatchSpec]) -> "asyncio.Task[list[GeneratedSchedule]]":
        """Start a task that generates some batches."""
        return asyncio.create_task(self.generate(specs))

    async def generate(self, specs: Sequence[BatchSpec]) -> list[GeneratedSchedule]:
        """The schedules of some batches."""
        loop = asyncio.get_running_loop()
        batches = await asyncio.gather(
            *(loop.run_in_executor(self.judges.executor, generate_batch, spec) for spec in specs)
        )
        return [generated for batch in batches for generated in batch]

    async def play_restart_batch(self, generated: Sequence[GeneratedSchedule]) -> None:
        """Play up to the restart, and wait until all runs of the batch before are judged."""
        self.generated.update((each.schedule.name, each) for each in generated)
        before, left = self.restart_batch, self.judging_tasks
        self.judging_tasks = []
        self.restart_batch = RestartBatch(self.protocol, self.pool, self.judge_in_background)
        try:
            await self.restart_batch.play(generated, before)
        finally:
            before.cancel()
        await asyncio.gather(*left)

    def judge_in_background(self, run: ScenarioRun) -> None:
        """Start a task that judges a run and reports its result."""
        self.judging_tasks.append(asyncio.create_task(self.report_result(run)))

    async def report_result(self, run: ScenarioRun) -> None:
        """Judge a run, report its result and save its trace."""
        judged = await self.judge_run(run)
        self.on_result(ScheduleResult.from_run(self.generated.pop(run.scenario.name), judged))
        if self.traces is not None:
            write_run(self.traces, judged)

    async def judge_run(self, run: ScenarioRun) -> ScenarioRun:
        """The run with its verdict."""
        return discard_if_lagging(replace(run, verdict=await self.judge(run.header, run.events)))

    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """As `ScheduleEngine.replay`: side by side, then those that need a restart."""
        attempt = f"replay-{next(self.replay_numbers)}"
        numbered = [replace(each, name=f"{each.name}-{place}") for place, each in enumerate(schedules)]
        scenarios = [self.protocol.scenario_of(each) for each in numbered]
        judging: dict[str, asyncio.Task[ScenarioRun]] = {}

        def start_judging(run: ScenarioRun) -> None:
            judging[run.scenario.name] = asyncio.create_task(self.judge_run(run))

        try:
            await self.pool.play_all(scenarios, attempt, start_judging)
            runs = [await judging[scenario.name] for scenario in scenarios]
        finally:
            for task in judging.values():
                task.cancel()
        played = zip(runs, schedules, strict=True)
        return [replace(run, scenario=self.protocol.scenario_of(each)) for run, each in played]

    async def failing_indices(self, candidates: Sequence[Schedule], requirement: str, deadline: float) -> list[int]:
        """As `ScheduleEngine.failing_indices`, many at once."""
        for begin in range(0, len(candidates), MAX_SHRINK_CONCURRENCY):
            if time.monotonic() > deadline:
                break
            runs = await self.replay(candidates[begin : begin + MAX_SHRINK_CONCURRENCY])
            failing = [begin + place for place, run in enumerate(runs) if requirement in violated_requirements(run)]
            if failing:
                return failing
        return []
