"""How late the kit itself is: what a busy machine does to it must not be blamed on a target."""

import asyncio
from collections import deque
from dataclasses import replace

from fencepost.conformance.analysis.root_cause import satisfied_requirements, violated_requirements
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.traces.verdict import TraceVerdict

TICK_SECONDS = 0.02
MIN_LAG_SECONDS = 0.1
"""Less is nothing to remember."""
MAX_LAGS = 10_000
MAX_GRACE_SHARE = 0.5
"""How much of the grace that a target is granted the kit may use up itself."""


class LoopLagMonitor:
    """Watches the event loop, and remembers when it did late what was due."""

    def __init__(self) -> None:
        self.lags: deque[tuple[float, float]] = deque(maxlen=MAX_LAGS)
        """When, and how late, in seconds."""

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            now = loop.time()
            if now - due >= MIN_LAG_SECONDS:
                self.lags.append((now, now - due))

    def worst_since(self, since: float) -> int:
        """The most milliseconds that anything was late from this time on."""
        return round(1000 * max((late for at, late in self.lags if at >= since), default=0.0))


def discard_if_lagging(run: ScenarioRun) -> ScenarioRun:
    """What was played, with nothing said about the target if the kit was so late that it may be why something fails."""
    if run.loop_lag <= MAX_GRACE_SHARE * run.header.grace or not violated_requirements(run):
        return run
    note = f"the kit itself was {run.loop_lag} ms late, so it can blame nobody: this machine is too busy"
    nothing = TraceVerdict((), (), {}, inconclusive=(note,), events=len(run.events))
    return replace(run, verdict=nothing, blocked=note)


def is_inconclusive(run: ScenarioRun) -> bool:
    """It shows neither all it was written for nor a violation, as where members were given up in a stall."""
    missing = not satisfied_requirements([run]).issuperset(run.scenario.requirements)
    return missing and not run.unsupported and not run.crashed and not violated_requirements(run)
