"""Traces of the two older systems in this process: those of scenarios on a bundled target, whole or with a fault."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from fencepost.adapters.push.target import BundledPushTarget
from fencepost.adapters.region.line_target import LineTarget, connect_in_memory
from fencepost.adapters.target import Target
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.push.scenarios import ALL as PUSH_SCENARIOS
from fencepost.conformance.region.scenarios import ALL as REGION_SCENARIOS
from fencepost.conformance.run.play import Bench, play_scenario
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.traces.files.trace_files import write_trace

SEED, BATCH_SIZE = 11, 10
"""Of random schedules."""
MOST_REGION_BATCHES = 400
"""A walk through a region seldom comes to a checkpoint that a partition has no owner in."""


def play_on(scenario: Scenario, target: Target) -> ScenarioRun:
    """A run of a scenario in virtual time."""

    async def play_here() -> ScenarioRun:
        description = await target.open()
        try:
            return await play_scenario(scenario, target, description, scenario.name, grace=0)
        finally:
            await target.close()

    return run_virtual(play_here())


def write_traces(
    folder: Path, scenarios: Iterable[Scenario], make_target: Callable[[], Target], requirement: str = ""
) -> list[Path]:
    """The traces of scenarios, of all or those for a requirement."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for scenario in scenarios:
        if not requirement or requirement in scenario.requirements:
            run = play_on(scenario, make_target())
            paths.append(folder / f"{scenario.name}.jsonl")
            write_trace(paths[-1], run.header, run.events)
    return paths


def write_push_traces(folder: Path, requirement: str = "") -> list[Path]:
    """The traces of scenarios on a push coordinator."""
    return write_traces(folder, PUSH_SCENARIOS, BundledPushTarget, requirement)


def write_region_traces(folder: Path, requirement: str = "") -> list[Path]:
    """The traces of scenarios on the operators of a region."""
    return write_traces(folder, REGION_SCENARIOS, new_region_target, requirement)


def new_region_target() -> Target:
    """The operators of the bundled region."""
    return LineTarget("region", connect_in_memory)


def first_telling_schedule(bench: Bench, wanted: Collection[str] = (), batches: int = MOST_REGION_BATCHES) -> int:
    """The number of the first random schedule that shows one of these requirements violated, or without any named some
    requirement; 0 if none does."""
    number = 0
    for batch in range(batches):
        for each in bench.protocol.generate(SEED, batch, BATCH_SIZE):
            number += 1
            violated = bench.violated_by(each.schedule)
            if violated & set(wanted) if wanted else violated:
                return number
    return 0
