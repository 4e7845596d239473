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
from fencepost.adapters.virtual_clock import beside
from fencepost.conformance.execution.play import Played
from fencepost.conformance.execution.saving import trace_file
from fencepost.conformance.execution.signals import ignore_interrupts, started
from fencepost.conformance.schedules.classic.generation import Ground
from fencepost.conformance.schedules.engine import Series
from fencepost.conformance.schedules.falsify import perform
from fencepost.conformance.schedules.guidance import Order, drawn_for
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.statistics import Outcome
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

PROCESSES = 2
WORTH_PROCESSES = 200
"""From how many schedules on it pays to start processes for them."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where schedules are played: a coordinator of its own for each. `traces` gets all that is seen there."""

    settings: Settings
    grace: int = 0
    traces: Path | None = None
    make_target: Callable[[Settings], Target] = InProcessTarget

    def fulfil(self, order: Order) -> list[Outcome]:
        """Draw the schedules of a chunk and play them."""
        return [Outcome.of(each, self.played(each.schedule, order)) for each in drawn_for(order)]

    def played(self, schedule: Schedule, order: Order) -> Played:
        """Play one schedule, and write what was seen where that is wanted."""
        played = self.perform(schedule, dict(order.decisions))
        if self.traces is not None:
            write_trace(trace_file(self.traces, played), played.header, played.events)
        return played

    def perform(self, schedule: Schedule, decisions: dict[str, bool]) -> Played:
        """Play one schedule."""

        async def judging(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            return judge(header, events, decisions)

        return perform(partial(self.make_target, self.settings), schedule, self.grace, judging)


class InProcessSeries(Series):
    """Schedules on the bundled coordinator."""

    def __init__(self, field: Field, ground: Ground, seed: int, count: int, decisions: dict[str, bool]) -> None:
        super().__init__(ground, seed, count, decisions)
        self.field = field
        many = count >= WORTH_PROCESSES
        self.pool = (
            ProcessPoolExecutor(PROCESSES, get_context("spawn"), initializer=ignore_interrupts) if many else None
        )
        if self.pool is not None:
            started(self.pool, PROCESSES)

    async def play(self, rounds: Iterator[list[Order]], keep: Callable[[Outcome], None]) -> None:
        """As `Series.play`."""
        for orders in rounds:
            async for outcomes in self.fulfilled(orders):
                for outcome in outcomes:
                    keep(outcome)

    async def fulfilled(self, orders: Sequence[Order]) -> AsyncIterator[list[Outcome]]:
        """What came of a round, chunk by chunk."""
        if self.pool is None:
            for order in orders:
                yield await beside(partial(self.field.fulfil, order))
            return
        loop = asyncio.get_running_loop()
        for chunk in [loop.run_in_executor(self.pool, self.field.fulfil, order) for order in orders]:
            yield await chunk

    async def replay(self, schedules: Sequence[Schedule]) -> list[Played]:
        """As `Series.replay`."""
        decisions = dict(self.decisions)
        return [await beside(partial(self.field.perform, each, decisions)) for each in schedules]

    def close(self) -> None:
        """End the processes, as soon as they have done what they are at."""
        if self.pool is not None:
            self.pool.shutdown(wait=False, cancel_futures=True)
