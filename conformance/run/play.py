"""Playing one scenario on a target, and what the delays of the kit itself make of its verdict."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from fencepost.adapters.address import TargetError
from fencepost.adapters.target import Description, Target, TraceBuilder
from fencepost.conformance.analysis.root_cause import satisfied_requirements
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import Blocked, Unanswered, Unsupported
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict, without_remarks

# -- playing a scenario -----------------------------------------------------------------------------------------------

DEFAULT_GRACE_MS = 2_000
"""How late a timer of a real target may fire, and how long it may take over an answer."""


JudgeFunction = Callable[[Header, tuple[Event, ...]], Awaitable[TraceVerdict]]
"""Has a trace judged."""


@dataclass(frozen=True, slots=True)
class Completion:
    """How a play ended."""

    unsupported: str = ""
    blocked: str = ""


async def record_scenario(
    scenario: Scenario,
    target: Target,
    description: Description,
    group: str,
    *,
    grace: int,
    restart: Callable[..., Awaitable[None]] | None = None,
) -> ScenarioRun:
    """Play a scenario in a group of its own and return the run, not judged yet. `grace` is in milliseconds."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    recorder = TraceBuilder(lambda: int((loop.time() - begun) * 1000 + 1e-6))
    header = Header(
        source=f"scenario {scenario.name}",
        order=description.order,
        clock=description.clock,
        settings=description.settings,
        grace=grace,
        implementation=description.implementation,
        protocol=description.protocol,
        limits=description.limits,
    )
    channel = target.channel(recorder)
    move = target.move if description.can_move else None
    context = ScenarioContext(description, channel, recorder, group, grace=grace, restart=restart, move=move)
    try:
        completion = await run_schedule(scenario, context)
    finally:
        await channel.close()
    context.record_checks()
    unjudged = TraceVerdict((), (), {}, events=len(recorder.events))
    return ScenarioRun(scenario, header, recorder.events, unjudged, completion.unsupported, completion.blocked)


async def play_scenario(
    scenario: Scenario,
    target: Target,
    description: Description,
    group: str,
    *,
    grace: int,
    restart: Callable[..., Awaitable[None]] | None = None,
    judge_trace: JudgeFunction | None = None,
) -> ScenarioRun:
    """Play a scenario in a group of its own and judge its trace: here, unless `judge_trace` does it elsewhere."""
    run = await record_scenario(scenario, target, description, group, grace=grace, restart=restart)
    verdict = judge(run.header, run.events) if judge_trace is None else await judge_trace(run.header, run.events)
    return replace(run, verdict=verdict)


@dataclass(frozen=True, slots=True)
class NewTarget:
    """A target of its own for each scenario that is played, whose timers may be `grace` milliseconds late."""

    make_target: Callable[[], Target]
    grace: int = 0

    async def play(self, scenario: Scenario, name: str, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """Open a target, play a scenario in a group of this name, and close the target."""
        target = self.make_target()
        description = await target.open()
        try:
            return await play_scenario(
                scenario,
                target,
                description,
                name,
                grace=self.grace,
                restart=target.restart,
                judge_trace=judge_trace,
            )
        finally:
            await target.close()


async def run_schedule(scenario: Scenario, context: ScenarioContext) -> Completion:
    """Run the schedule to its end, or to where it cannot go on."""
    try:
        await scenario.play(context)
    except Unsupported as missing:
        return Completion(unsupported=f"the target does not offer {missing}")
    except Unanswered as reason:
        await context.seek_sign_of_life()
        return Completion(blocked=str(reason))
    except Blocked as reason:
        return Completion(blocked=str(reason))
    except TargetError as reason:
        return Completion(blocked=str(reason))
    except (KeyError, IndexError, TypeError) as broken:
        # An answer without the fields it has to have; the judge says which.
        return Completion(blocked=f"an answer was not well formed ({type(broken).__name__}: {broken})")
    return Completion()


# -- the kit's own delays ---------------------------------------------------------------------------------------------

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
