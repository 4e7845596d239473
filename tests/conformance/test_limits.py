"""Limits of a run: failures, seconds, seconds of shrinking, and requirements that are left out."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import fencepost
from fencepost.conformance.classic.protocol import CLASSIC
from fencepost.conformance.events import Progress, RunEvent, ScheduleShrunk
from fencepost.conformance.plan import Plan
from fencepost.conformance.results import EndKind, Verdict
from fencepost.conformance.run.engines import VirtualEngine
from fencepost.conformance.run.stream import CurrentWork, RunLimits
from tests.support.faulty_coordinators import FORGIVING, altering_coordinator, install, replace_error

Patch = pytest.MonkeyPatch


def test_a_run_ends_at_the_first_failure(monkeypatch: Patch) -> None:
    install(monkeypatch, FORGIVING)
    whole = fencepost.run("bundled", only=["HB-*"])
    report = fencepost.run("bundled", only=["HB-*"], max_failures=1)
    assert [result.id for result in report.failed_results()] == ["HB-04"]
    assert report.ended is not None and report.ended.kind is EndKind.STOPPED
    assert report.ended.reason == "HB-04 failed: --max-failures 1"
    assert report.schedules < whole.schedules
    unplayed = {result.id for result in report.results if result.note == f"not played: {report.ended.reason}"}
    assert unplayed and all(report.result(id).verdict is Verdict.NOT_OBSERVED for id in unplayed)
    assert report.exit_code() == 1


def test_more_failures_than_there_are_end_nothing(monkeypatch: Patch) -> None:
    install(monkeypatch, FORGIVING)
    report = fencepost.run("bundled", only=["HB-*"], max_failures=2)
    assert len(report.failed_results()) == 1 and report.ended is None


def test_no_time_at_all() -> None:
    report = fencepost.run("bundled", only=["HB-*"], seconds=0)
    assert report.ended is not None and report.ended.reason == "the time is up: --seconds 0"
    assert report.exit_code() == 3
    assert {result.verdict for result in report.results} == {Verdict.NOT_OBSERVED}


def test_excluded_requirements_are_not_in_the_report() -> None:
    report = fencepost.run("bundled", only=["HB-*"], exclude=["HB-0*"])
    assert report.results and all(result.id.startswith("HB-1") for result in report.results)
    with pytest.raises(fencepost.errors.UnknownRequirement):
        fencepost.run("bundled", exclude=["NO-01"])
    with pytest.raises(TypeError):
        fencepost.run("bundled", exclude="HB-01")


def test_shares_of_the_time_that_is_left(monkeypatch: Patch) -> None:
    limits = RunLimits(60.0)
    monkeypatch.setattr(limits, "elapsed_seconds", lambda: 20.0)
    assert limits.share(4) == 10.0
    monkeypatch.setattr(limits, "elapsed_seconds", lambda: 61.0)
    assert limits.share(4) == 0.0
    assert RunLimits().share(4) is None


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    async def play() -> None:
        await asyncio.sleep(0)

    assert asyncio.run(RunLimits(3600).play(play(), CurrentWork())) is None


@dataclass
class ShrinkLog:
    """The seconds that each shrinking got, and the events of the run."""

    seconds: list[float] = field(default_factory=list)
    events: list[RunEvent] = field(default_factory=list)

    def install(self, patch: Patch) -> None:
        """Log all shrinking."""
        shrink = VirtualEngine.shrink_schedule

        async def shrink_and_log(engine: VirtualEngine, shown: Any, requirement: str, seconds: float) -> Any:
            self.seconds.append(seconds)
            return await shrink(engine, shown, requirement, seconds)

        patch.setattr(VirtualEngine, "shrink_schedule", shrink_and_log)

    def run(self, only: Sequence[str], **options: Any) -> fencepost.Report:
        """Run with a few schedules."""
        self.events += fencepost.stream("bundled", only=only, schedules=20, **options)
        (finished,) = (event for event in self.events if isinstance(event, fencepost.events.RunFinished))
        return finished.report


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 6.0])
def test_shrinking_has_a_budget_for_the_run(seconds: float, monkeypatch: Patch) -> None:
    """No scenario is played, so that random schedules alone show what a forgiving coordinator breaks."""
    install(monkeypatch, altering_coordinator(replace_error("Heartbeat", 0, 25)))
    monkeypatch.setattr("fencepost.conformance.run.registry.DEFAULT_PROTOCOL", replace(CLASSIC, scenarios=()))
    log = ShrinkLog()
    log.install(monkeypatch)
    report = log.run(["HB-*"], shrink_seconds=seconds)
    assert report.ended is None
    shrunk = [event for event in log.events if isinstance(event, ScheduleShrunk)]
    shown = [event for event in log.events if isinstance(event, Progress) and event.unit == "violated requirements"]
    assert shrunk and len(shown) == len(shrunk)
    assert [event.current for event in shown] == [f"shrinking {event.requirement}" for event in shrunk]
    assert log.seconds and all(each <= seconds for each in log.seconds)


def test_plans_shrink_for_a_minute_by_default() -> None:
    assert Plan("bundled").shrink_seconds == 60.0
