"""The kit's own delays: a violation that a busy machine may have caused is not reported."""

import asyncio
from collections import deque
from dataclasses import replace

from fencepost.conformance.analysis.root_cause import satisfied_requirements
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.traces.verdict import TraceVerdict, without_remarks

TICK_SECONDS = 0.02
MIN_LAG_SECONDS = 0.1
"""Shorter delays are not recorded."""
MAX_LAGS = 10_000
MAX_GRACE_SHARE = 0.5
"""The share of a target's grace that the kit itself may use up."""


class LoopLagMonitor:
    """Watches the event loop and records when it was late to run what was due."""

    def __init__(self) -> None:
        self.lags: deque[tuple[float, float]] = deque(maxlen=MAX_LAGS)
        """Pairs of loop time and delay, in seconds."""

    async def watch(self) -> None:
        """Measure the delay of a timer over and over, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            now = loop.time()
            if now - due >= MIN_LAG_SECONDS:
                self.lags.append((now, now - due))

    def worst_since(self, since: float) -> int:
        """The longest delay in milliseconds since `since`, a time of the loop in seconds."""
        return round(1000 * max((late for at, late in self.lags if at >= since), default=0.0))


def discard_if_lagging(run: ScenarioRun) -> ScenarioRun:
    """The run; if the kit itself was too late to be sure of anything, without its verdict if that has a violation, and
    without remarks."""
    note = explain_lag(run.loop_lag, run.header.grace)
    if not note:
        return run
    if run.verdict.violated:
        nothing = TraceVerdict((), (), inconclusive=(note,), events=len(run.events))
        return replace(run, verdict=nothing, blocked=note)
    checks = tuple(without_remarks(run.verdict.check_results))
    if checks == run.verdict.check_results:
        return run
    return replace(run, verdict=replace(run.verdict, check_results=checks))


def explain_lag(loop_lag: int, grace: int) -> str:
    """Why a violation proves nothing if the kit was this late on a target with this grace, both in milliseconds; "" if
    it was in time."""
    if loop_lag <= MAX_GRACE_SHARE * grace:
        return ""
    return f"the kit itself was {loop_lag} ms late, so it can blame nobody: this machine is too busy"


def is_inconclusive(run: ScenarioRun) -> bool:
    """Neither did the run pass a check of each of its requirements nor did it violate any, as in a stall."""
    missing = not satisfied_requirements([run]).issuperset(run.scenario.requirements)
    return missing and not run.unsupported and not run.crashed and not run.verdict.violated
