"""Playing many scenarios at once on a target that is reached over the network; one restart for all that need it.

A target that goes down is a finding and not the end: it is started again, the scenario that brings it down is looked
for among those that were being played, and played alone, and then the others are played again.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from fencepost.adapters.target import Description
from fencepost.conformance.execution.crash_monitor import CrashMonitor, TargetGone, connection_losses
from fencepost.conformance.execution.crash_search import Suspect, find_crashing_scenario
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
TRIAL_MARGIN_SECONDS = 1.0
"""How much longer a trial of suspects may take than the play before it, which the target did not survive."""
CONNECTIONS_PER_SCENARIO = 3
"""How many connections a scenario needs at the same time, as a rule."""

RunCallback = Callable[[ScenarioRun], None]


class RunInterrupted(Exception):
    """The target went down while scenarios were played side by side. The `suspect` is one of them, None if it had not
    begun."""

    def __init__(self, suspect: Suspect | None = None) -> None:
        super().__init__()
        self.suspect = suspect


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
    crash_numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """What is played again after a crash has groups of its own, for the target may remember the others."""

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
            raise RunInterrupted(Suspect(scenario, connection_losses(run.events, scenario.name, 0.0).lost_at))
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
        """Play scenarios side by side; if the target goes down, find out which of them brings it down, and play that
        one alone. If no trial shows it, they are played in ever smaller groups."""
        if not scenarios:
            return
        interrupted = await self.play_side_by_side(scenarios, attempt, on_run)
        await self.revive()
        if not interrupted:
            return
        again = f"{attempt}-{next(self.crash_numbers)}"
        suspects = [suspect for suspect in interrupted.values() if suspect is not None]
        crashing = await find_crashing_scenario(suspects, self.try_out) if suspects else None
        left, middle = list(interrupted), (len(interrupted) + 1) // 2
        if crashing is not None:
            left.remove(crashing)
            parts = [[crashing], left]
        else:
            parts = [left[:middle], left[middle:]]
        for part in parts:
            await self.play_concurrently(part, again, on_run)

    async def play_side_by_side(
        self, scenarios: Sequence[Scenario], attempt: str, on_run: RunCallback
    ) -> dict[Scenario, Suspect | None]:
        """Play scenarios side by side until the target goes down, and return those that did not come to their end."""
        await self.target.open_idle_connections(CONNECTIONS_PER_SCENARIO * min(len(scenarios), self.max_concurrency))
        places = asyncio.Semaphore(self.max_concurrency)
        interrupted: dict[Scenario, Suspect | None] = {}

        async def play_one(scenario: Scenario) -> None:
            async with places:
                try:
                    if self.crash_monitor.is_down:
                        raise RunInterrupted
                    await self.pacer.wait()
                    on_run(await self.play(scenario, attempt, alone=len(scenarios) == 1))
                except RunInterrupted as interruption:
                    interrupted[scenario] = interruption.suspect

        await play_together(play_one(scenario) for scenario in scenarios)
        return interrupted

    async def try_out(self, delays: Mapping[Suspect, float]) -> float | None:
        """Play suspects, each begun after its delay, until the target should be down; after how many seconds it was.
        Nothing is judged."""
        trial = replace(self, judge=None, playing=set())
        attempt = f"trial-{next(self.crash_numbers)}"
        moments: list[float] = []

        async def play_one(suspect: Suspect, delay: float) -> None:
            await asyncio.sleep(delay)
            try:
                await trial.play(suspect.scenario, attempt, alone=False)
            except RunInterrupted as interruption:
                moments.append(delay + (interruption.suspect or suspect).seconds)
                raise

        needed = max(delay + each.seconds for each, delay in delays.items())
        with suppress(TimeoutError, RunInterrupted):
            async with asyncio.timeout(needed + TRIAL_MARGIN_SECONDS):
                await play_together(play_one(each, delay) for each, delay in delays.items())
        return min(moments, default=needed) if await self.revive() else None

    async def revive(self) -> bool:
        """Start the target again if it is down; whether it was."""
        was_down = self.crash_monitor.is_down
        if was_down:
            await self.crash_monitor.revive()
        return was_down


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
