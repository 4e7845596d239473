"""Runs on the bundled region: it keeps its requirements, and every fault in it is found, by scenarios and schedules."""

import asyncio
from functools import partial

import pytest

from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.region.protocol import REGION
from fencepost.conformance.region.schedules import RegionSchedules
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.play import target_bench
from fencepost.conformance.run.stream import consume, stream_events
from fencepost.traces.judge.judge import judge
from fencepost.traces.region.judge import RegionProtocol
from tests.support.faulty_regions import FAULTS, mark_name
from tests.support.system_traces import first_telling_schedule, new_region_target

NOT_ON_THE_LINE = {"REGION-09", "REGION-38"}
"""Threads, and a time that the repaired design does not keep."""
QUICK = {"ignore_revocation", "keep_queue"}


def run_region(schedules: int) -> Report:
    """A run on the bundled region with all scenarios, and so many random schedules."""
    plan = Plan("region", schedules=schedules)
    run = BundledRun(plan, Profile(), lambda settings: new_region_target(), can_configure=False, protocol=REGION)
    requirements = tuple(REGION.specification.requirements.values())
    return asyncio.run(consume(stream_events(lambda emit: run.run(requirements, emit))))


def failed_ids(report: Report) -> set[str]:
    """The requirements that fail."""
    return {result.id for result in report.results if result.verdict is Verdict.FAIL}


def test_the_bundled_region_keeps_its_requirements() -> None:
    report = run_region(30)
    assert failed_ids(report) == set()
    verdicts = {result.id: result.verdict for result in report.results}
    assert {id for id, verdict in verdicts.items() if verdict is not Verdict.PASS} == NOT_ON_THE_LINE


@pytest.mark.parametrize("name", FAULTS)
def test_scenarios_find_each_fault(name: str) -> None:
    with FAULTS[name].activate():
        assert failed_ids(run_region(0)) & set(FAULTS[name].breaks)


@pytest.mark.slow
@pytest.mark.parametrize("name", [mark_name(name, QUICK) for name in sorted(FAULTS)])
def test_schedules_find_each_fault(name: str) -> None:
    bench = target_bench(RegionSchedules(), new_region_target, judge=partial(judge, protocol=RegionProtocol))
    with FAULTS[name].activate():
        assert first_telling_schedule(bench)
