"""The schedule engine for clients: a cluster of its own for each schedule, and so many at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from fencepost.conformance.clients.schedule_protocol import ClientScheduleProtocol
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.conformance.schedules.batches import BatchSpec, generate_batch
from fencepost.conformance.schedules.engine import ScheduleEngine
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Schedule
from fencepost.conformance.schedules.statistics import ScheduleResult

PlaySchedule = Callable[[Schedule], Awaitable[ScenarioRun]]
"""Plays a schedule with a client, and judges it."""


class ClientEngine(ScheduleEngine):
    """Plays schedules with a client, `at_once` side by side; `on_run` gets each run of a new schedule."""

    batches_per_round = 1
    shrink_seconds = 120.0
    protocol: ClientScheduleProtocol

    def __init__(
        self,
        protocol: ClientScheduleProtocol,
        seed: int,
        count: int,
        play_schedule: PlaySchedule,
        at_once: int,
        on_run: Callable[[ScenarioRun], None] = lambda run: None,
    ) -> None:
        super().__init__(protocol, seed, count, {})
        self.play_schedule = play_schedule
        self.at_once = at_once
        self.on_run = on_run

    async def play(self, rounds: Iterator[list[BatchSpec]], on_result: Callable[[ScheduleResult], None]) -> None:
        """As `ScheduleEngine.play`."""
        drawn = iter([each for specs in rounds for spec in specs for each in generate_batch(spec)])

        async def play_some() -> None:
            for generated in drawn:
                on_result(await self.play_generated(generated))

        async with asyncio.TaskGroup() as group:
            for _ in range(self.at_once):
                group.create_task(play_some())

    async def play_generated(self, generated: GeneratedSchedule) -> ScheduleResult:
        """Play a new schedule."""
        run = await self.play_schedule(generated.schedule)
        self.on_run(run)
        return ScheduleResult.from_run(generated, run)

    async def find_attempts(self, requirement: str) -> list[Schedule]:
        """As `ScheduleEngine.find_attempts`: at once, for schedules of clients have no shortcuts."""
        return self.attempts_for(requirement)

    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """As `ScheduleEngine.replay`, side by side."""
        runs: list[ScenarioRun] = []
        for begin in range(0, len(schedules), self.at_once):
            some = schedules[begin : begin + self.at_once]
            runs += await asyncio.gather(*(self.play_schedule(each) for each in some))
        return runs
