"""A series on the bundled coordinator: in this process, or in two beside it if it is a long one."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Target
from fencepost.adapters.virtual_clock import run_in_thread
from fencepost.conformance.execution.play import ScenarioRun
from fencepost.conformance.execution.saving import trace_path
from fencepost.conformance.execution.signals import ignore_interrupts, start_workers
from fencepost.conformance.schedules.classic.generation import ScheduleScope
from fencepost.conformance.schedules.engine import ScheduleEngine
from fencepost.conformance.schedules.falsify import play_schedule
from fencepost.conformance.schedules.guidance import BatchSpec, generate_batch
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.statistics import ScheduleResult
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

WORKER_PROCESSES = 2
MIN_FOR_PROCESSES = 200
"""From how many schedules on it pays to start processes for them."""


@dataclass(frozen=True, slots=True)
class BatchWorker:
    """Where schedules are played: a coordinator of its own for each. `traces` gets all that is seen there."""

    settings: Settings
    grace: int = 0
    traces: Path | None = None
    make_target: Callable[[Settings], Target] = InProcessTarget

    def run_batch(self, spec: BatchSpec) -> list[ScheduleResult]:
        """Draw the schedules of a chunk and play them."""
        return [ScheduleResult.from_run(each, self.play_and_save(each.schedule, spec)) for each in generate_batch(spec)]

    def play_and_save(self, schedule: Schedule, spec: BatchSpec) -> ScenarioRun:
        """Play one schedule, and write what was seen where that is wanted."""
        played = self.play(schedule, dict(spec.decisions))
        if self.traces is not None:
            write_trace(trace_path(self.traces, played), played.header, played.events)
        return played

    def play(self, schedule: Schedule, decisions: dict[str, bool]) -> ScenarioRun:
        """Play one schedule."""

        async def judging(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            return judge(header, events, decisions)

        return play_schedule(partial(self.make_target, self.settings), schedule, self.grace, judging)


class VirtualEngine(ScheduleEngine):
    """Schedules on the bundled coordinator."""

    def __init__(
        self,
        field: BatchWorker,
        scope: ScheduleScope,
        seed: int,
        count: int,
        decisions: dict[str, bool],
        *,
        may_start_processes: bool = True,
    ) -> None:
        super().__init__(scope, seed, count, decisions)
        self.worker = field
        many = may_start_processes and count >= MIN_FOR_PROCESSES
        self.pool = (
            ProcessPoolExecutor(WORKER_PROCESSES, get_context("spawn"), initializer=ignore_interrupts) if many else None
        )
        if self.pool is not None:
            start_workers(self.pool, WORKER_PROCESSES)

    async def play(self, rounds: Iterator[list[BatchSpec]], on_result: Callable[[ScheduleResult], None]) -> None:
        """As `ScheduleEngine.play`."""
        for orders in rounds:
            async for outcomes in self.batch_results(orders):
                for outcome in outcomes:
                    on_result(outcome)

    async def batch_results(self, specs: Sequence[BatchSpec]) -> AsyncIterator[list[ScheduleResult]]:
        """What came of a round, chunk by chunk."""
        if self.pool is None:
            for order in specs:
                yield await run_in_thread(partial(self.worker.run_batch, order))
            return
        loop = asyncio.get_running_loop()
        for chunk in [loop.run_in_executor(self.pool, self.worker.run_batch, order) for order in specs]:
            yield await chunk

    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """As `ScheduleEngine.replay`."""
        decisions = dict(self.decisions)
        return [await run_in_thread(partial(self.worker.play, each, decisions)) for each in schedules]

    def close(self) -> None:
        """End the processes, as soon as they have done what they are at."""
        if self.pool is not None:
            self.pool.shutdown(wait=False, cancel_futures=True)
