"""Playing many scenarios at once on a target that is reached over the network; one restart for all that need it.

A target that goes down is a finding and not the end: it is started again, and the scenarios that were being played
are played in ever smaller groups until the one that brings it down is alone.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.adapters.target import Description
from fencepost.conformance.execution.crash_monitor import CrashMonitor, TargetGone
from fencepost.conformance.execution.loop_lag import LoopLagMonitor, discard_if_lagging
from fencepost.conformance.execution.pacing import Pacer
from fencepost.conformance.execution.play import JudgeFunction, record_scenario
from fencepost.conformance.execution.remote_target import RemoteTarget
from fencepost.conformance.execution.restart_barrier import RestartBarrier
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.conformance.scenario.selection import required_capabilities

MAX_CONCURRENCY = 120
"""How many scenarios are in flight."""
CONNECTIONS_PER_SCENARIO = 3
"""How many connections a scenario needs at the same time, as a rule."""

RunCallback = Callable[[ScenarioRun], None]


class RunInterrupted(Exception):
    """The target went down while scenarios were played side by side."""


@dataclass(frozen=True, slots=True)
class ScenarioPool:
    """Plays scenarios side by side on one target. `dataclasses.replace` makes a pool of other settings on it.

    Group ids end in `token` and the name of the attempt. `grace` is in milliseconds. Runs are judged by `judge`;
    without one they are returned unjudged.
    """

    target: RemoteTarget
    description: Description
    crash_monitor: CrashMonitor
    lag_monitor: LoopLagMonitor
    judge: JudgeFunction | None
    token: str
    grace: int
    max_concurrency: int = MAX_CONCURRENCY
    pacer: Pacer = field(default_factory=Pacer)
    playing: set[str] = field(default_factory=set)
    """The names of the scenarios that are being played; when the pool is cancelled, of those that were."""

    async def play(
        self,
        scenario: Scenario,
        attempt: str,
        restart: Callable[[], Coroutine[Any, Any, None]] | None = None,
        *,
        alone: bool = True,
    ) -> ScenarioRun:
        """Play one scenario. Raises `RunInterrupted` if the target went down and it may have been another's doing."""
        begun = asyncio.get_running_loop().time()
        self.playing.add(scenario.name)
        group = f"{scenario.name}-{self.token}-{attempt}"
        run = await record_scenario(scenario, self.target, self.description, group, grace=self.grace, restart=restart)
        self.playing.discard(scenario.name)
        if await self.crash_monitor.went_down(run.events, scenario.name, begun) and not alone:
            raise RunInterrupted
        if self.judge is not None:
            run = replace(run, verdict=await self.judge(run.header, run.events))
        crashed = self.crash_monitor.is_down
        if crashed:
            self.crash_monitor.crashing_scenarios.add(scenario.name)
        return discard_if_lagging(replace(run, crashed=crashed, loop_lag=self.lag_monitor.worst_since(begun)))

    async def play_all(self, scenarios: Sequence[Scenario], attempt: str, on_run: RunCallback) -> None:
        """Play scenarios side by side, then those that need a restart, then those that move groups, each alone, for
        other groups move with theirs; those that brought the target down before go first, one by one, and intrusive
        ones last, each alone."""
        crashing = self.crash_monitor.crashing_scenarios
        intrusive = [scenario for scenario in scenarios if "intrusive" in required_capabilities(scenario)]
        harmless = [scenario for scenario in scenarios if scenario not in intrusive]
        moving = [scenario for scenario in harmless if "graceful-move" in required_capabilities(scenario)]
        harmless = [scenario for scenario in harmless if scenario not in moving]
        calm = [scenario for scenario in harmless if "restart" not in required_capabilities(scenario)]
        rough = [scenario for scenario in harmless if "restart" in required_capabilities(scenario)]
        for scenario in calm:
            if scenario.name in crashing:
                await self.play_concurrently([scenario], attempt, on_run)
        await self.play_concurrently([scenario for scenario in calm if scenario.name not in crashing], attempt, on_run)
        if rough:
            # A restart would end what the scenarios before have brought about.
            await self.target.watch_idle("after the scenarios without a restart")
        barrier = RestartBarrier(len(rough), self.target.restart)
        await play_together(self.play_with_restart(scenario, attempt, on_run, barrier) for scenario in rough)
        await self.check_restart(barrier)
        for scenario in (*moving, *intrusive):
            await self.play_concurrently([scenario], attempt, on_run)

    async def check_restart(self, barrier: RestartBarrier) -> None:
        """Raises `TargetGone` if a restart failed and the target does not respond either; one that was not killed is
        still there to be tested."""
        if barrier.error is not None and not await self.target.is_alive():
            told = f"the target could not be restarted: {barrier.error}"
            raise TargetGone(told, last_sign=self.crash_monitor.last_sign)

    async def play_with_restart(
        self, scenario: Scenario, attempt: str, on_run: RunCallback, barrier: RestartBarrier
    ) -> None:
        """Play a scenario that needs a restart, and wait for it where the others do."""
        try:
            on_run(await self.play(scenario, attempt, barrier.wait))
        except Exception:
            await barrier.leave()
            raise
        await barrier.leave()  # but not when cancelled: the target is not restarted for a run that is cut short

    async def play_concurrently(self, scenarios: Sequence[Scenario], attempt: str, on_run: RunCallback) -> None:
        """Play scenarios side by side; if the target goes down, find out which of them brings it down."""
        if not scenarios:
            return
        await self.target.open_idle_connections(CONNECTIONS_PER_SCENARIO * min(len(scenarios), self.max_concurrency))
        places = asyncio.Semaphore(self.max_concurrency)
        interrupted: list[Scenario] = []

        async def play_one(scenario: Scenario) -> None:
            async with places:
                try:
                    if self.crash_monitor.is_down:
                        raise RunInterrupted
                    await self.pacer.wait()
                    on_run(await self.play(scenario, attempt, alone=len(scenarios) == 1))
                except RunInterrupted:
                    interrupted.append(scenario)

        await play_together(play_one(scenario) for scenario in scenarios)
        if self.crash_monitor.is_down:
            await self.crash_monitor.revive()
        middle = (len(interrupted) + 1) // 2
        for half in (interrupted[:middle], interrupted[middle:]):
            if half:
                await self.play_concurrently(half, attempt, on_run)


async def play_together(playing: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all of them. The first error cancels the others, so that nothing is played on behind a run that ends."""
    tasks = [asyncio.ensure_future(each) for each in playing]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        if not all(task.done() for task in tasks):
            await asyncio.wait(tasks)
