"""Runs on the bundled region: it keeps its requirements, and every fault in it is found, by scenarios and schedules."""

import pytest

from fencepost.conformance.results import Verdict
from tests.support.faulty_regions import FAULTS, mark_name
from tests.support.older_faults import failed_ids, first_telling_schedule, region_bench, run_region

NOT_ON_THE_LINE = {"REGION-09", "REGION-38"}
"""Threads, and a time that the repaired design does not keep."""
QUICK = {"ignore_revocation", "keep_queue"}


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
    with FAULTS[name].activate():
        assert first_telling_schedule(region_bench())
