"""The schedule engines for targets: one in this process on virtual time, one over the network.

Over the network hundreds of groups are under way at once, with one restart per batch for all that need it. While a
batch is played the next one is generated and the last one judged, in processes beside this one.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count as counting
from pathlib import Path

from fencepost.adapters.virtual_clock import run_in_thread
from fencepost.conformance.run.engine import Confirmation, Replay, ScheduleEngine, ScheduleResult
from fencepost.conformance.run.play import Bench, explain_lag
from fencepost.conformance.run.pool import RestartBarrier, RunCallback, ScenarioPool
from fencepost.conformance.run.schedule import (
    BatchSpec,
    GeneratedSchedule,
    Schedule,
    ScheduleProtocol,
    generate_batch,
)
from fencepost.conformance.run.stream import write_run
from fencepost.conformance.run.workers import JudgePool, WorkerPool
from fencepost.conformance.subject import Scenario, ScenarioRun, required_capabilities

# -- the schedule engine for targets on virtual time ------------------------------------------------------------------

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
        results = []
        for generated in generate_batch(spec):
            run = self.bench.play_decided(generated.schedule, dict(spec.decisions))
            if self.traces is not None:
                write_run(self.traces, run)
            results.append(ScheduleResult.from_run(generated, run))
        return results


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


# -- one restart for a batch of schedules -----------------------------------------------------------------------------

Tasks = list[asyncio.Task[None]]


def start_delays(generated: Sequence[GeneratedSchedule]) -> list[int]:
    """How many milliseconds after the others each has to begin, for all to be ready for the restart together."""
    lasts = max((each.restart_at or each.duration for each in generated), default=0)
    return [lasts - each.restart_at if each.restart_at else 0 for each in generated]


class RestartBatch:
    """Some schedules on a target that can be restarted."""

    def __init__(self, protocol: ScheduleProtocol, pool: ScenarioPool, on_run: RunCallback) -> None:
        self.protocol = protocol
        self.pool = pool
        self.on_run = on_run
        self.after_restart: Tasks = []
        """Those that go on after the restart."""

    async def play(self, generated: Sequence[GeneratedSchedule], previous: "RestartBatch") -> None:
        """Play them up to the restart; `previous` has to end until then."""
        meeting = RestartBarrier(1 + sum(each.restart_at > 0 for each in generated), self.pool.crash_monitor.restart)
        late = zip(generated, start_delays(generated), strict=True)

        async def play_delayed(scenario: Scenario, delay: int) -> None:
            await asyncio.sleep(delay / 1000)
            await self.pool.crash_monitor.revive()
            await self.pool.pacer.wait(self.pool.crash_monitor.is_gone)
            await self.pool.play_with_restart(scenario, "run", self.on_run, meeting)

        self.after_restart = [
            asyncio.create_task(play_delayed(self.protocol.scenario_of(each.schedule), delay))
            for each, delay in late
            if each.restart_at
        ]
        calm = [self.protocol.scenario_of(each.schedule) for each in generated if not each.restart_at]
        await self.pool.play_concurrently(calm, "run", self.on_run)
        await previous.finish()
        await meeting.leave()
        if self.after_restart:
            await meeting.done.wait()
            await self.pool.check_restart(meeting)

    async def finish(self) -> None:
        """Wait for those that go on after the restart."""
        await asyncio.gather(*self.after_restart)

    def cancel(self) -> None:
        """Give up what goes on."""
        for each in self.after_restart:
            each.cancel()


# -- random schedules over the network --------------------------------------------------------------------------------

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
    protocol: ScheduleProtocol

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
        generating = asyncio.create_task(self.generate(next(rounds, [])))
        try:
            while generated := await generating:
                generating = asyncio.create_task(self.generate(next(rounds, [])))
                await self.play_restart_batch(generated)
            await self.restart_batch.finish()
            await asyncio.gather(*self.judging_tasks)
        finally:
            self.restart_batch.cancel()
            for task in (generating, *self.judging_tasks):
                task.cancel()

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
        """The run with its verdict. What the kit itself was too late for is not judged: no replay would help."""
        note = explain_lag(run.loop_lag, run.header.grace)
        if note:
            return replace(run, blocked=note)
        return replace(run, verdict=await self.judge(run.header, run.events))

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
