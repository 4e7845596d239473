"""Random schedules over the network: hundreds of groups at once, and one restart per batch for all that need it.

While a batch is played the next one is generated and the last one judged, in processes beside this one.
"""

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count as counting
from pathlib import Path

from fencepost.conformance.execution.judge_pool import JudgePool
from fencepost.conformance.execution.loop_lag import discard_if_lagging
from fencepost.conformance.execution.pool import ScenarioPool
from fencepost.conformance.execution.saving import write_run
from fencepost.conformance.scenario.scenario import Scenario, ScenarioRun
from fencepost.conformance.scenario.selection import required_capabilities
from fencepost.conformance.schedules.batches import BatchSpec, generate_batch
from fencepost.conformance.schedules.engine import Confirmation, Replay, ScheduleEngine
from fencepost.conformance.schedules.protocol import TargetScheduleProtocol
from fencepost.conformance.schedules.restart_batch import RestartBatch
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Schedule
from fencepost.conformance.schedules.statistics import ScheduleResult

MAX_SHRINK_CONCURRENCY = 40
"""How many shorter schedules of one violation are tried side by side."""
SHRUNK_AT_ONCE = 8
"""How many violations are shrunk side by side."""
MIN_PATIENCE_SECONDS = 0.5
"""How long the others are waited for at least once one of them has failed."""
CONFIRMING_FACTOR = 1.25
"""How much longer two replays side by side may take than the one before."""


class ConcurrentEngine(ScheduleEngine):
    """Schedules on the target of a pool that leaves its runs unjudged: this engine judges them while others are played.

    `judges` also generate the schedules. The traces of schedules go to the folder `traces` if there is one.
    """

    batches_per_round = 30
    shrink_seconds = 90.0
    protocol: TargetScheduleProtocol

    def __init__(
        self,
        pool: ScenarioPool,
        judges: JudgePool,
        protocol: TargetScheduleProtocol,
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
        runs: dict[int, ScenarioRun] = {}
        await self.replay_each(schedules, runs.__setitem__)
        return [runs[place] for place in range(len(schedules))]

    async def replay_each(self, schedules: Sequence[Schedule], on_run: Callable[[int, ScenarioRun], None]) -> None:
        """Play some schedules once more; `on_run` gets the place of each and its run as soon as that is judged."""
        attempt = f"replay-{next(self.replay_numbers)}"
        scenarios = [self.protocol.scenario_of(each) for each in schedules]
        numbered = [replace(each, name=f"{each.name}-{place}") for place, each in enumerate(scenarios)]
        places = {each.name: place for place, each in enumerate(numbered)}
        judging: list[asyncio.Task[None]] = []

        async def judge_one(run: ScenarioRun) -> None:
            place = places[run.scenario.name]
            on_run(place, replace(await self.judge_run(run), scenario=scenarios[place]))

        try:
            await self.pool.play_all(numbered, attempt, lambda run: judging.append(asyncio.create_task(judge_one(run))))
            await asyncio.gather(*judging)
        finally:
            self.pool.playing.difference_update(places)
            for task in judging:
                task.cancel()

    async def first_failing(
        self, attempts: Mapping[str, Sequence[Schedule]], deadline: float = math.inf
    ) -> dict[str, Replay]:
        """As `ScheduleEngine.first_failing`, those of all requirements at once; once each is shown, the others have as
        long again. Schedules that restart the target are replayed one by one, and only for what no other shows: each
        needs the restart at a time of its own."""
        numbered = [(requirement, schedule) for requirement, some in attempts.items() for schedule in some]
        calm = [each for each in numbered if not needs_restart(self.protocol.scenario_of(each[1]))]
        failing: dict[int, Replay] = {}
        wanted = {requirement for requirement, _ in calm}

        def keep(place: int, replay: Replay) -> bool:
            if calm[place][0] in replay.run.verdict.violated:
                failing[place] = replay
            return wanted == {calm[each][0] for each in failing}

        await self.replay_until([schedule for _, schedule in calm], keep, deadline)
        shown = {calm[place][0]: failing[place] for place in sorted(failing, reverse=True)}
        left = {
            requirement: [each for each in schedules if (requirement, each) not in calm]
            for requirement, schedules in attempts.items()
            if requirement not in shown
        }
        return shown | await super().first_failing(left, deadline)

    def group_for_shrinking(self, found: Mapping[str, Confirmation]) -> list[list[str]]:
        """As `ScheduleEngine.group_for_shrinking`. Schedules that restart the target come last and each alone, for the
        others would not know what happened to them."""
        rough = [
            each for each, one in found.items() if one.replay is not None and needs_restart(one.replay.run.scenario)
        ]
        calm = [each for each in found if each not in rough]
        groups = [calm[begin : begin + SHRUNK_AT_ONCE] for begin in range(0, len(calm), SHRUNK_AT_ONCE)]
        return [*groups, *([each] for each in rough)]

    def seconds_to_confirm(self, shortest: Replay) -> float:
        """As `ScheduleEngine.seconds_to_confirm`, side by side."""
        return CONFIRMING_FACTOR * shortest.seconds + MIN_PATIENCE_SECONDS

    async def failing_replays(
        self, candidates: Sequence[Schedule], requirement: str, deadline: float, usual_seconds: float
    ) -> dict[int, Replay]:
        """As `ScheduleEngine.failing_replays`, many at once. Those that restart the target are not given up: they have
        to bring it back."""
        loop = asyncio.get_running_loop()
        numbered = list(enumerate(candidates))
        rough = [each for each in numbered if needs_restart(self.protocol.scenario_of(each[1]))]
        calm = [each for each in numbered if each not in rough]
        for part, is_calm in ((calm, True), (rough, False)):
            for begin in range(0, len(part), MAX_SHRINK_CONCURRENCY):
                some = part[begin : begin + MAX_SHRINK_CONCURRENCY]
                if loop.time() >= deadline:
                    break
                latest = min(deadline, loop.time() + 2 * usual_seconds + MIN_PATIENCE_SECONDS) if is_calm else math.inf
                failing = await self.failing_places([schedule for _, schedule in some], requirement, latest)
                if failing:
                    return {some[place][0]: replay for place, replay in failing.items()}
        return {}

    async def failing_places(
        self, schedules: Sequence[Schedule], requirement: str, deadline: float
    ) -> dict[int, Replay]:
        """The replays that violate the requirement, by the places of the schedules. Once one does, the others have as
        long again, unless there is no deadline."""
        failing: dict[int, Replay] = {}

        def keep(place: int, replay: Replay) -> bool:
            if requirement in replay.run.verdict.violated:
                failing[place] = replay
            return bool(failing) and not math.isinf(deadline)

        await self.replay_until(schedules, keep, deadline)
        return dict(sorted(failing.items()))

    async def replay_until(
        self, schedules: Sequence[Schedule], keep: Callable[[int, Replay], bool], deadline: float
    ) -> None:
        """Play some schedules once more until the deadline. `keep` gets the place of each and its replay; once it says
        that this is enough, the others have as long again."""
        loop = asyncio.get_running_loop()
        begun, is_enough = loop.time(), False
        limit = asyncio.timeout_at(None if math.isinf(deadline) else deadline)

        def on_run(place: int, run: ScenarioRun) -> None:
            nonlocal is_enough
            seconds = loop.time() - begun
            if keep(place, Replay(schedules[place], run, seconds)) and not is_enough:
                is_enough = True
                limit.reschedule(min(deadline, begun + 2 * seconds + MIN_PATIENCE_SECONDS))

        with suppress(TimeoutError):
            async with limit:
                await self.replay_each(schedules, on_run)


def needs_restart(scenario: Scenario) -> bool:
    """Whether a scenario restarts its target."""
    return "restart" in required_capabilities(scenario)
