"""Hunts for faults that are put into the two older systems, by scenarios and by random schedules."""

import asyncio
from collections.abc import Collection
from functools import partial

from fencepost.adapters.region.line_target import LineTarget, connect_in_memory
from fencepost.adapters.target import Target
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.push.scenarios import ALL as PUSH_SCENARIOS
from fencepost.conformance.region.protocol import REGION
from fencepost.conformance.region.schedules import RegionSchedules
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.falsify import Bench, target_bench
from fencepost.conformance.run.stream import consume, stream_events
from fencepost.model.settings import Settings
from fencepost.traces.judge.judge import judge
from fencepost.traces.region.judge import RegionProtocol
from fencepost.traces.verdict import violations_in
from tests.support.push.faults import PushFault
from tests.support.system_traces import play_on

SEED = 11
MOST_BATCHES, BATCH_SIZE = 60, 10
"""No fault of the push coordinator takes more schedules."""
MOST_REGION_BATCHES = 400
"""A walk through a region seldom comes to a checkpoint that a partition has no owner in."""


def new_region_target(settings: Settings | None = None) -> Target:
    """The operators of the bundled region."""
    return LineTarget("region", connect_in_memory)


def region_bench() -> Bench:
    """Plays and judges schedules of a region."""
    return target_bench(RegionSchedules(), new_region_target, judge=partial(judge, protocol=RegionProtocol))


def run_region(schedules: int) -> Report:
    """A run on the bundled region with all scenarios, and so many random schedules."""
    plan = Plan("region", schedules=schedules)
    run = BundledRun(plan, Profile(), new_region_target, can_configure=False, protocol=REGION)
    requirements = tuple(REGION.specification.requirements.values())
    return asyncio.run(consume(stream_events(lambda emit: run.run(requirements, emit))))


def failed_ids(report: Report) -> set[str]:
    """The requirements that fail."""
    return {result.id for result in report.results if result.verdict is Verdict.FAIL}


def found_in_push_scenarios(fault: PushFault) -> set[str]:
    """The requirements that the first scenario with the right ones shows violated."""
    for scenario in PUSH_SCENARIOS:
        violated = {each.requirement for each in violations_in(play_on(scenario, fault.make_target()).verdict)}
        if violated & fault.requirements:
            return violated
    return set()


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
