"""A series over the network: hundreds of groups at once, and one restart a season for all schedules that need it.

While a season is played the next one is drawn and the last one judged, in processes beside this one.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count as counting
from typing import TYPE_CHECKING

from fencepost.adapters.target import Description
from fencepost.conformance.analysis.root_cause import violated_requirements
from fencepost.conformance.execution.loop_lag import discard_if_lagging
from fencepost.conformance.execution.pacing import Pacer
from fencepost.conformance.execution.play import ScenarioRun
from fencepost.conformance.execution.saving import save_trace
from fencepost.conformance.schedules.engine import ScheduleEngine
from fencepost.conformance.schedules.guidance import BatchSpec, generate_batch
from fencepost.conformance.schedules.protocol import ScheduleProtocol
from fencepost.conformance.schedules.restart_batch import RestartBatch
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Schedule
from fencepost.conformance.schedules.statistics import ScheduleResult
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

if TYPE_CHECKING:
    from fencepost.conformance.run.remote import RemoteRun

MAX_CONCURRENCY = 400
"""How many schedules are in flight."""
MAX_SHRINK_CONCURRENCY = 40
"""How many shorter schedules are tried side by side."""


class ConcurrentEngine(ScheduleEngine):
    """Schedules on a Kafka address."""

    batches_per_round = 30
    shrink_seconds = 90.0

    def __init__(
        self,
        remote: "RemoteRun",
        description: Description,
        protocol: ScheduleProtocol,
        count: int,
        decisions: dict[str, bool],
    ) -> None:
        super().__init__(protocol, remote.plan.seed, count, decisions)
        self.remote = remote
        self.description = description
        self.replay_numbers = counting(1)
        remote.max_concurrency = MAX_CONCURRENCY
        remote.pacer = Pacer(remote.target.measure_response_time)
        remote.judge = partial(judge, decisions=decisions, eager=True)
        self.generated: dict[str, GeneratedSchedule] = {}
        self.restart_batch = RestartBatch(protocol, remote, description, self.judge_in_background)
        self.judging_tasks: list[asyncio.Task[None]] = []
        self.on_result: Callable[[ScheduleResult], None] = lambda outcome: None

    async def play(self, rounds: Iterator[list[BatchSpec]], on_result: Callable[[ScheduleResult], None]) -> None:
        """As `ScheduleEngine.play`."""
        self.remote.judge_run_trace, self.on_result = skip_judging, on_result
        drawing = self.start_generating(next(rounds, []))
        try:
            while drawn := await drawing:
                drawing = self.start_generating(next(rounds, []))
                await self.play_restart_batch(drawn)
            await self.restart_batch.finish()
            await asyncio.gather(*self.judging_tasks)
        finally:
            self.remote.judge_run_trace = self.remote.judge_in_pool
            self.restart_batch.cancel()
            for each in (drawing, *self.judging_tasks):
                each.cancel()

    def start_generating(self, specs: Sequence[BatchSpec]) -> "asyncio.Task[list[GeneratedSchedule]]":
        """Have some chunks drawn."""
        return asyncio.create_task(self.generate(specs))

    async def generate(self, specs: Sequence[BatchSpec]) -> list[GeneratedSchedule]:
        """The schedules of some chunks."""
        loop = asyncio.get_running_loop()
        chunks = await asyncio.gather(
            *(loop.run_in_executor(self.remote.judge_pool, generate_batch, order) for order in specs)
        )
        return [each for chunk in chunks for each in chunk]

    async def play_restart_batch(self, generated: Sequence[GeneratedSchedule]) -> None:
        """Play up to the restart, and wait for what the season before has left to be judged."""
        self.generated.update((each.schedule.name, each) for each in generated)
        before, left = self.restart_batch, self.judging_tasks
        self.judging_tasks = []
        self.restart_batch = RestartBatch(self.protocol, self.remote, self.description, self.judge_in_background)
        try:
            await self.restart_batch.play(generated, before)
        finally:
            before.cancel()
        await asyncio.gather(*left)

    def judge_in_background(self, run: ScenarioRun) -> None:
        """Have judged what was played, and go on."""
        self.judging_tasks.append(asyncio.create_task(self.judge_run(run)))

    async def judge_run(self, run: ScenarioRun) -> None:
        """Judge what was played."""
        verdict = await self.remote.judge_in_pool(run.header, run.events)
        judged = discard_if_lagging(replace(run, verdict=verdict))
        self.on_result(ScheduleResult.from_run(self.generated.pop(run.scenario.name), judged))
        save_trace(self.remote.plan, judged)

    async def play_schedules(
        self, schedules: Sequence[Schedule], attempt: str, on_run: Callable[[ScenarioRun], None]
    ) -> None:
        """Play schedules side by side, then those that need a restart."""
        await self.remote.play_batch(
            [self.protocol.scenario_of(each) for each in schedules], attempt, self.description, on_run
        )

    async def replay(self, schedules: Sequence[Schedule]) -> list[ScenarioRun]:
        """As `ScheduleEngine.replay`."""
        found: list[ScenarioRun] = []
        attempt = f"replay-{next(self.replay_numbers)}"
        alike = [replace(each, name=f"{each.name}-{place}") for place, each in enumerate(schedules)]
        await self.play_schedules(alike, attempt, found.append)
        places = {each.name: place for place, each in enumerate(alike)}
        found.sort(key=lambda played: places[played.scenario.name])
        return [
            replace(each, scenario=self.protocol.scenario_of(one)) for each, one in zip(found, schedules, strict=True)
        ]

    async def failing_indices(self, candidates: Sequence[Schedule], requirement: str, deadline: float) -> list[int]:
        """As `ScheduleEngine.failing_indices`, many at once."""
        for begin in range(0, len(candidates), MAX_SHRINK_CONCURRENCY):
            if time.monotonic() > deadline:
                break
            played = await self.replay(candidates[begin : begin + MAX_SHRINK_CONCURRENCY])
            found = [begin + place for place, each in enumerate(played) if requirement in violated_requirements(each)]
            if found:
                return found
        return []


async def skip_judging(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
    """Nothing yet."""
    return TraceVerdict((), (), {}, events=len(events))
