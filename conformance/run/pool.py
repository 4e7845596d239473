"""Many scenarios at once on a target over the network, at its pace, with one restart for all that need it.

Whatever was in flight when the target went down is suspect, and one of the suspects needs as many seconds to bring it
down as it had been played for. They are played again, each begun so late that these seconds are over at a moment of its
own: the moment at which the target goes down again tells who it was, but for jitter, and for others that would have
brought it down a little later. Those nearest to that moment are tried alone, and then ever more of the others together.
A trial is given up when the target should be down.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, starmap
from types import MappingProxyType
from typing import Any

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import Description
from fencepost.conformance.run.crashes import CrashMonitor, TargetGone, connection_losses
from fencepost.conformance.run.play import (
    JudgeFunction,
    LoopLagMonitor,
    discard_if_lagging,
    doubtful_spans,
    record_scenario,
)
from fencepost.conformance.run.protocol import RemoteTarget
from fencepost.conformance.subject import Scenario, ScenarioRun, required_capabilities

# -- finding out which of the scenarios in flight did it --------------------------------------------------------------

SPACING_SECONDS = 0.1
"""How far the moments of two suspects are apart."""
JITTER_SECONDS = 0.2
"""How much earlier than its moment a suspect may bring the target down."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A scenario that was being played when the target went down, for so many seconds until then."""

    scenario: Scenario
    seconds: float


TryOut = Callable[[Sequence[Suspect]], Awaitable[bool]]
"""Plays suspects at once for a little longer than any of them needs. Whether the target went down; it is up again
afterwards."""


def separate_moments(suspects: Iterable[Suspect]) -> dict[Scenario, float]:
    """When each suspect brings the target down, if it does and is begun in time for that: as soon as possible, and at
    moments that are `SPACING_SECONDS` apart."""
    moments: dict[Scenario, float] = {}
    latest = 0.0
    for each in sorted(suspects, key=lambda each: each.seconds):
        moments[each.scenario] = latest = max(latest + SPACING_SECONDS, each.seconds)
    return moments


def order_suspects(suspects: Iterable[Suspect], moments: Mapping[Scenario, float], went_down: float) -> list[Suspect]:
    """The suspects by how near their moments are to when the target went down: those before it first, and those without
    a moment last."""

    def place(suspect: Suspect) -> tuple[bool, bool, float]:
        moment = moments.get(suspect.scenario)
        lag = went_down - moment if moment is not None else 0.0
        return moment is None, lag < -JITTER_SECONDS, abs(lag)

    return sorted(suspects, key=place)


async def find_crashing_scenario(suspects: Sequence[Suspect], try_out: TryOut) -> Scenario | None:
    """The scenario that brings the target down, None if no trial shows it. The most suspect come first."""
    left, size = list(suspects), 1
    while left:
        some, left = left[:size], left[size:]
        if await try_out(some):
            return some[0].scenario if len(some) == 1 else await find_crashing_scenario(some, try_out)
        size *= 2
    return None


# -- the pace ---------------------------------------------------------------------------------------------------------

BUSY_FACTOR = 4
"""A target is busy when a response takes this many times as long as the quickest one."""
MIN_BUSY_SECONDS = 0.05
"""A target with responses within this time is never busy."""
PAUSE_SECONDS = 0.05
MAX_WAIT_SECONDS = 2.0
"""The longest delay of a start."""


async def zero_lag() -> float:
    """A response time of 0 s, for a target that is never busy."""
    return 0.0


class Pacer:
    """Starts scenarios one after the other. `lag` measures how many seconds a response takes at present."""

    def __init__(self, lag: Callable[[], Awaitable[float]] = zero_lag) -> None:
        self.lag = lag
        self.min_lag = float("inf")
        self.lock = asyncio.Lock()

    async def wait(self, is_gone: asyncio.Event) -> None:
        """Wait for the turn, and until the target is not busy, `MAX_WAIT_SECONDS` at most; not at all once it is gone.
        Raises `TargetError`."""
        async with self.lock:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + MAX_WAIT_SECONDS
            while not is_gone.is_set() and await self.is_busy() and loop.time() < deadline:
                await asyncio.sleep(PAUSE_SECONDS)

    async def is_busy(self) -> bool:
        """Responses take much longer than the quickest one so far."""
        lag = await self.lag()
        self.min_lag = min(self.min_lag, lag)
        return lag > max(BUSY_FACTOR * self.min_lag, MIN_BUSY_SECONDS)


# -- one restart of a target for many scenarios -----------------------------------------------------------------------


class RestartBarrier:
    """A barrier for `expected` scenarios: the target is restarted once, when the last of them asks for it."""

    def __init__(self, expected: int, restart: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.expected = expected
        self.restart = restart
        self.arrived = 0
        self.started = False
        self.done = asyncio.Event()
        self.error: TargetError | None = None
        """Why the target could not be restarted."""

    async def wait(self) -> None:
        """Wait until the target was restarted. Raises `TargetError` if it could not be."""
        self.arrived += 1
        await self.restart_if_complete()
        await self.done.wait()
        if self.error is not None:
            raise TargetError(str(self.error))

    async def leave(self) -> None:
        """Expect one scenario less: it is finished or failed."""
        self.expected -= 1
        await self.restart_if_complete()

    async def restart_if_complete(self) -> None:
        """Restart the target if all expected scenarios wait for it; all of them get to know if it fails. If none is
        left that would, nobody has to wait."""
        if self.arrived >= self.expected and not self.started:
            self.started = True
            try:
                if self.arrived:
                    await self.restart()
            except TargetError as error:
                self.error = error
            finally:
                self.done.set()


# -- playing many scenarios at once on a target -----------------------------------------------------------------------

MAX_CONCURRENCY = 400
"""How many scenarios or schedules are in flight: most of them wait for a timer."""
TRIAL_MARGIN_SECONDS = 1.0
"""How much longer a trial of suspects may take than the play before it, which the target did not survive."""
CONNECTIONS_PER_SCENARIO = 3
"""How many connections a scenario needs at the same time, as a rule."""

RunCallback = Callable[[ScenarioRun], None]


class RunInterrupted(Exception):
    """The target went down while scenarios were played side by side, so many `seconds` after this one had begun."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


@dataclass(slots=True)
class Interruption:
    """The scenarios that did not come to their end because the target went down, with the seconds that they had been
    played for, None for those that had not begun. The target went down `at` so many seconds after the first one was
    begun."""

    seconds: dict[Scenario, float | None] = field(default_factory=dict)
    at: float = math.inf
    culprit: Scenario | None = None
    """The one with a request that brings the target down alone."""

    def suspects(self) -> list[Suspect]:
        """Those that had begun."""
        return [Suspect(scenario, each) for scenario, each in self.seconds.items() if each is not None]


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
    lag_window_s: float = 0.0
    """In how many seconds the delays of the kit itself are added up."""
    max_concurrency: int = MAX_CONCURRENCY
    pacer: Pacer = field(default_factory=Pacer)
    playing: set[str] = field(default_factory=set)
    """The names of the scenarios that are being played; when the pool is cancelled, of those that were."""
    crash_numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """The numbers of attempts after a crash."""

    async def play(
        self,
        scenario: Scenario,
        attempt: str,
        restart: Callable[[], Coroutine[Any, Any, None]] | None = None,
        *,
        alone: bool = True,
    ) -> ScenarioRun:
        """Play one scenario. Raises `RunInterrupted` if the target went down and it may have been another's doing."""
        run, begun = await self.record(scenario, attempt, restart)
        if await self.crash_monitor.went_down(run, begun) and not alone:
            raise RunInterrupted(connection_losses(run.events, scenario.name, 0.0).lost_at)
        return await self.judge_run(run, begun)

    async def record(
        self, scenario: Scenario, attempt: str, restart: Callable[[], Coroutine[Any, Any, None]] | None = None
    ) -> tuple[ScenarioRun, float]:
        """Play one scenario; the run, not judged yet, and when it began, in seconds of the event loop."""
        begun = asyncio.get_running_loop().time()
        self.playing.add(scenario.name)
        group = f"{scenario.name}-{self.token}-{attempt}"
        watch = self.crash_monitor
        run = await record_scenario(
            scenario, self.target, self.description, group, grace=self.grace, restart=restart, watch=watch
        )
        self.playing.discard(scenario.name)
        return replace(run, loop_lag=self.worst_lag(begun)), begun

    def worst_lag(self, since: float, until: float = math.inf) -> int:
        """How late the kit itself was between two times of the event loop, in milliseconds."""
        return self.lag_monitor.worst_since(since, self.lag_window_s, until)

    async def judge_run(self, run: ScenarioRun, begun: float) -> ScenarioRun:
        """The run with its verdict, and with whether it brought the target down. How late the kit was counts where it
        may have made a violation; nothing counts that happens while the trace waits for its judge."""
        if self.judge is not None:
            run = replace(run, verdict=await self.judge(run.header, run.events))
            spans = [(begun + first / 1000, begun + last / 1000) for first, last in doubtful_spans(run)]
            run = replace(run, loop_lag=max(starmap(self.worst_lag, spans), default=run.loop_lag))
        crashed = self.crash_monitor.is_down
        if crashed:
            self.crash_monitor.crashing_scenarios.add(run.scenario.name)
        return discard_if_lagging(replace(run, crashed=crashed))

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
        barrier = RestartBarrier(len(rough), self.crash_monitor.restart)
        await play_together(self.play_with_restart(scenario, attempt, on_run, barrier) for scenario in rough)
        await self.check_restart(barrier)
        await self.crash_monitor.revive()
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
        """Play scenarios side by side. If the target goes down, the one with the culprit is played alone; without a
        culprit those that were interrupted are played again, begun at different times, so that the one which brings
        the target down is found and played alone. If no trial shows it, they are played in ever smaller groups."""
        interruption = await self.play_side_by_side(scenarios, attempt, on_run)
        moments: dict[Scenario, float] = {}
        while left := list(interruption.seconds):
            if moments or interruption.culprit is not None:
                suspects = order_suspects(interruption.suspects(), moments, interruption.at)
                suspects.sort(key=lambda each: each.scenario is not interruption.culprit)
                crashing = await find_crashing_scenario(suspects, partial(self.try_out, attempt=attempt, on_run=on_run))
                if crashing is None:
                    middle = (len(left) + 1) // 2
                    for half in (left[:middle], left[middle:]):
                        await self.play_concurrently(half, self.name_again(attempt), on_run)
                    return
                del interruption.seconds[crashing]
            suspects = interruption.suspects()
            moments = separate_moments(suspects)
            delays = {each.scenario: moments[each.scenario] - each.seconds for each in suspects}
            again = list(interruption.seconds)
            interruption = await self.play_side_by_side(again, self.name_again(attempt), on_run, delays)

    async def play_side_by_side(
        self,
        scenarios: Sequence[Scenario],
        attempt: str,
        on_run: RunCallback,
        delays: Mapping[Scenario, float] = MappingProxyType({}),
    ) -> Interruption:
        """Play scenarios side by side, each begun after its delay in seconds, until the target goes down; it is up
        again afterwards."""
        interruption = Interruption()
        if not scenarios:
            return interruption
        await self.target.open_idle_connections(CONNECTIONS_PER_SCENARIO * min(len(scenarios), self.max_concurrency))
        places = asyncio.Semaphore(self.max_concurrency)
        loop = asyncio.get_running_loop()
        first_begun = loop.time()

        async def play_one(scenario: Scenario) -> None:
            async with places:
                await asyncio.sleep(max(first_begun + delays.get(scenario, 0.0) - loop.time(), 0.0))
                await self.pacer.wait(self.crash_monitor.is_gone)
                if self.crash_monitor.is_down:
                    interruption.seconds[scenario] = None
                    return
                begun = loop.time()
                try:
                    on_run(await self.play(scenario, attempt, alone=len(scenarios) == 1))
                except RunInterrupted as interrupted:
                    interruption.seconds[scenario] = interrupted.seconds
                    interruption.at = min(interruption.at, begun - first_begun + interrupted.seconds)

        await play_together(play_one(scenario) for scenario in scenarios)
        crash = await self.crash_monitor.revive()
        if crash is not None and crash.culprit is not None:
            interruption.culprit = crash.culprit.run.scenario
        return interruption

    async def try_out(self, suspects: Sequence[Suspect], attempt: str, on_run: RunCallback) -> bool:
        """Play suspects until the target should be down; whether it went down. The run of a single one that brings it
        down counts."""
        trial, again = replace(self, playing=set()), self.name_again(attempt)
        with suppress(TimeoutError, RunInterrupted):
            async with asyncio.timeout(max(each.seconds for each in suspects) + TRIAL_MARGIN_SECONDS):
                if len(suspects) > 1:
                    await play_together(trial.play(each.scenario, again, alone=False) for each in suspects)
                    return await self.crash_monitor.revive() is not None
                run, begun = await trial.record(suspects[0].scenario, again)
            if await self.crash_monitor.went_down(run, begun):
                on_run(await self.judge_run(run, begun))
        return await self.crash_monitor.revive() is not None

    def name_again(self, attempt: str) -> str:
        """The name of a further attempt: the target may remember the groups of the one before."""
        return f"{attempt}-{next(self.crash_numbers)}"


async def play_together(playing: Iterable[Awaitable[object]]) -> None:
    """Await all of them. The first error cancels the others, so that nothing is played on behind a run that ends. Each
    is cancelled once: another time would break off how it ends."""
    tasks = [asyncio.ensure_future(each) for each in playing]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            if not (isinstance(task, asyncio.Task) and task.cancelling()):
                task.cancel()
        if not all(task.done() for task in tasks):
            await asyncio.wait(tasks)
