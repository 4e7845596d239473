"""The last stage of a run: random schedules, then the shrinking of those with violations that no scenario shows."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from fencepost.conformance.events import Progress
from fencepost.conformance.run.ending import RunLimits
from fencepost.conformance.run.run_state import RunState
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.schedules.engine import Confirmation, ScheduleEngine

PlayScenarios = Callable[[Sequence[Scenario]], Awaitable[None]]
"""Plays scenarios, adds their runs, and replays those that fail."""
WatchIdle = Callable[[str], Awaitable[None]]
"""Looks at a target that is idle, as the phrase says, such as "after the scenarios"."""
FinishScenarios = Callable[[], Awaitable[None]]
"""Waits for the scenarios that are played beside the random schedules, and replays those that fail."""


async def run_schedules(
    state: RunState,
    engine: ScheduleEngine,
    play: PlayScenarios,
    watch: WatchIdle | None = None,
    finish: FinishScenarios | None = None,
) -> None:
    """Play random schedules, then shrink and replay those that violate what no scenario violates.

    Before that, scenarios that were left out are asked what they say of it: `play` plays and replays them, once
    `finish` has waited for those under way. Whenever nothing is in flight, `watch` looks at the target.
    """
    state.statistics = engine.statistics
    state.work.stage = "random schedules"
    state.pace_from = (state.limits.elapsed_seconds(), len({run.scenario.name for run in state.runs}))
    await engine.run(state.add_schedule)
    if finish is not None:
        await finish()
    if watch is not None:
        await watch(f"after {state.plan.schedules} random schedules")
    neighbours = state.neighbouring_scenarios()
    if neighbours:
        state.work.stage = "scenarios beside what random schedules have found"
        state.selection = state.selection.with_scenarios(neighbours)
        await play(neighbours)
    has_shrunk = await shrink_failures(state, engine)
    if watch is not None and has_shrunk:
        await watch("after the random schedules were shrunk")


async def shrink_failures(state: RunState, engine: ScheduleEngine) -> bool:
    """Replay the schedules that violate what is not confirmed, and shrink them in the seconds that the plan gives;
    what was not shrunk to the end is noted in the report. Returns whether there were any.

    Violations that may follow from those of scenarios come last, and have half of the seconds that are left: most of
    them say nothing new.
    """
    independent, dependent = state.requirements_to_shrink()
    state.work.stage = "replays of random schedules"
    found = await engine.confirm_violations(independent)
    limits = RunLimits(state.plan.shrink_seconds)
    cut_short = await shrink_confirmed(state, engine, found, limits)
    left = [each for each in dependent if each in state.unconfirmed_requirements()]
    state.work.stage = "replays of random schedules"
    limits = RunLimits(limits.share(2))
    found = await engine.confirm_violations(left, limits.share(1))
    cut_short += await shrink_confirmed(state, engine, found, limits)
    if cut_short and state.facts is not None:
        note = f"no time to shrink the schedules further that violate {', '.join(cut_short)} (--shrink-seconds)"
        state.facts = replace(state.facts, remarks=(*state.facts.remarks, note))
    return bool(independent or dependent)


async def shrink_confirmed(
    state: RunState, engine: ScheduleEngine, found: Mapping[str, Confirmation], limits: RunLimits
) -> list[str]:
    """Shrink the schedules of some requirements within the limits; returns those that were not shrunk to the end."""
    done, cut_short = 0, list[str]()
    groups = engine.group_for_shrinking(found)
    for number, group in enumerate(groups):
        left = [each for each in group if each in state.unconfirmed_requirements()]
        if left:
            doing, seconds = f"shrinking {', '.join(left)}", limits.elapsed_seconds()
            state.work.stage = f"shrinking schedules that violate {', '.join(left)}"
            state.emit(Progress(done, len(found), seconds, len(state.violated), doing, "violated requirements"))
            share = limits.share(len(groups) - number)
            shrunk = await asyncio.gather(*(engine.shrink_violation(each, found[each], share) for each in left))
            for requirement, one in zip(left, shrunk, strict=True):
                if requirement in state.unconfirmed_requirements():
                    state.add_shrunk(requirement, one.run, one.again)
                    cut_short += [] if one.is_minimal else [requirement]
        done += len(group)
    return cut_short
