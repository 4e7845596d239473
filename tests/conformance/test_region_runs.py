"""Runs on the bundled region: it keeps its requirements, and every fault in it is found, by scenarios and schedules."""

import asyncio
from functools import partial

import pytest

from fencepost.adapters.region.line_target import LineTarget, connect_in_memory
from fencepost.adapters.target import Target
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.protocols.region import REGION
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.stream import consume, stream_events
from fencepost.conformance.schedules.bench import Bench
from fencepost.conformance.schedules.falsify import Counterexample, falsify
from fencepost.conformance.schedules.region.protocol import RegionSchedules
from fencepost.model.settings import Settings
from fencepost.traces.judge.judge import judge
from fencepost.traces.judge.region.protocol import RegionProtocol
from tests.support.faulty_regions import FAULTS, mark_name

NOT_ON_THE_LINE = {"REGION-09", "REGION-38"}
"""Threads, and a time that the repaired design does not keep."""
HUNT_SECONDS = 120.0
QUICK = {"ignore_revocation", "keep_queue"}
NO_SCHEDULE = {"retire_all", "report_longest_alone", "go_on_alone", "skip_lost_records"}
"""No reset is under way when a checkpoint is retired: in a region that runs, it makes no difference which are. In the
regions that are walked through drains take no time, merges come in time, and logs lose nothing."""


def new_target(settings: Settings | None = None) -> Target:
    return LineTarget("region", connect_in_memory)


def run_all(schedules: int) -> Report:
    plan = Plan("region", schedules=schedules)
    run = BundledRun(plan, Profile(), new_target, can_configure=False, protocol=REGION)
    requirements = tuple(REGION.specification.requirements.values())
    return asyncio.run(consume(stream_events(lambda emit: run.run(requirements, emit))))


def failed_ids(report: Report) -> set[str]:
    return {result.id for result in report.results if result.verdict is Verdict.FAIL}


def hunt(seconds: float = HUNT_SECONDS) -> object:
    bench = Bench(RegionSchedules(), new_target, judge=partial(judge, protocol=RegionProtocol))
    return falsify(bench, seed=1, seconds=seconds)


def test_the_bundled_region_keeps_its_requirements() -> None:
    report = run_all(30)
    assert failed_ids(report) == set()
    verdicts = {result.id: result.verdict for result in report.results}
    assert {id for id, verdict in verdicts.items() if verdict is not Verdict.PASS} == NOT_ON_THE_LINE


@pytest.mark.parametrize("name", FAULTS)
def test_scenarios_find_each_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in, requirements, _ = FAULTS[name]
    put_in(monkeypatch)
    assert failed_ids(run_all(0)) & set(requirements)


@pytest.mark.slow
@pytest.mark.parametrize("name", [mark_name(name, QUICK) for name in sorted(FAULTS.keys() - NO_SCHEDULE)])
def test_schedules_find_each_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in, _, _ = FAULTS[name]
    put_in(monkeypatch)
    assert isinstance(hunt(), Counterexample)
