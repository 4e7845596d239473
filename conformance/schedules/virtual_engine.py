"""The schedule engine for targets on virtual time: in this process, or in two more for a long run."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fencepost.adapters.virtual_clock import run_in_thread
from fencepost.conformance.execution.saving import write_run
from fencepost.conformance.execution.workers import WorkerPool
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.conformance.schedules.batches import BatchSpec, generate_batch
from fencepost.conformance.schedules.bench import Bench
from fencepost.conformance.schedules.engine import ScheduleEngine
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.statistics import ScheduleResult

WORKER_PROCESSES = 2
MIN_FOR_PROCESSES = 200
"""The number of schedules from which worker processes pay off."""


@dataclass(frozen=True, slots=True)
class BatchWorker:
    """Plays batches of schedules on a bench. The folder `traces` gets every trace, if it is given."""

    bench: Bench
    traces: Path | None = None

    def run_batch(self, spec: BatchSpec) -> list[ScheduleResult]:
        """Generate and play the schedules of a batch."""
        return [ScheduleResult.from_run(each, self.play_and_save(each.schedule, spec)) for each in generate_batch(spec)]

    def play_and_save(self, schedule: Schedule, spec: BatchSpec) -> ScenarioRun:
        """Play a schedule, and write its trace if traces are wanted."""
        run = self.bench.play_decided(schedule, dict(spec.decisions))
        if self.traces is not None:
            write_run(self.traces, run)
        return run


class VirtualEngine(ScheduleEngine):
    """Plays schedules one after the other, on virtual time."""

    def __init__(
        self,
        worker: BatchWorker,
        seed: int,
        count: int,
        decisions: dict[str, bool],
        *,
        may_start_processes: bool = True,
    ) -> None:
        super().__init__(worker.bench.protocol, seed, count, decisions)
        self.worker = worker
        self.pool: WorkerPool | None = None
        if may_start_processes and count >= MIN_FOR_PROCESSES:
            self.pool = WorkerPool(WORKER_PROCESSES)
            self.pool.start()

    async def play(self, rounds: Iterator[list[BatchSpec]], on_result: Callable[[ScheduleResult], None]) -> None:
        """As `ScheduleEngine.play`."""
        for specs in rounds:
            async for results in self.batch_results(specs):
                for result in results:
                    on_result(result)

    async def batch_results(self, specs: Sequence[BatchSpec]) -> AsyncIterator[list[ScheduleResult]]:
        """The results of each batch of a round."""
        if self.pool is None:
            for spec in specs:
                yield await run_in_thread(partial(self.worker.run_batch, spec))
            return
        loop = asyncio.get_running_loop()
        for batch in [loop.run_in_executor(self.pool.executor, self.worker.run_batch, spec) for spec in specs]:
            yield await batch

    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """As `ScheduleEngine.replay`."""
        play = partial(self.worker.bench.play_decided, decisions=dict(self.decisions))
        return [await run_in_thread(partial(play, each)) for each in schedules]

    def close(self) -> None:
        """End the worker processes, whatever they are playing."""
        if self.pool is not None:
            self.pool.end()
