"""Functions that play one scenario on a target and have the judge check its trace."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from fencepost.adapters.target import Description, Target, TargetError, TraceBuilder
from fencepost.conformance.scenario.context import Blocked, ScenarioContext, Unanswered, Unsupported
from fencepost.conformance.scenario.scenario import Scenario, ScenarioRun
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

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
