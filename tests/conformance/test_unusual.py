"""Unusual responses, allowed and different from Apache Kafka's: the requirement passes with a note."""

import asyncio

import pytest

from fencepost.conformance.classic.zoo.bugs.environments import CrashingTarget
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.reports.report import render_report
from fencepost.conformance.results import ExitCode, RequirementResult, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.zoo.registry import fault_named
from fencepost.model.classic.catalogue import CATALOGUE, CLASSIC

NAMED = "administration.Admin.find: always: known -> True"
"""Beside the error for an unknown kind of key a node is named all the same."""
KEPT = "administration.Cleanup.is_expired: never: offset.expires_at is not None -> False"
"""An explicit retention is not looked at."""
SHORT_LIVED = "administration.Cleanup.is_expired: always: self._runtime.now >= offset.expires_at -> True"
"""What has an explicit retention goes with the next pass, whether its time is over or not."""


def result(name: str, requirement: str) -> tuple[RequirementResult, str]:
    """The verdict on a requirement, and the report, of a run on a mutant."""
    with fault_named(name).activate():
        run = BundledRun(Plan(BUNDLED), Profile())
        run.make_target = CrashingTarget
        report = asyncio.run(run.run([CATALOGUE[requirement]], lambda progress: None))
    return report.results[0], render_report(report)


def test_a_field_within_the_latitude_is_noted() -> None:
    found, report = result(NAMED, "FIND-07")
    assert found.verdict is Verdict.PASS
    assert found.comment == "unusual: allowed, but not as Apache Kafka has it: node"
    assert "Notes\n  FIND-07\n    unusual: allowed, but not as Apache Kafka has it: node" in report
    assert "CONFORMANT" in report


def test_who_does_not_do_what_should_be_done_is_unusual() -> None:
    found, _ = result(KEPT, "COMMIT-26")
    assert found.verdict is Verdict.PASS
    assert found.comment == "unusual: 2 clean-up intervals after its time was over the offset is still there"


def test_what_must_not_be_is_a_failure_whatever_else_should_be() -> None:
    found, _ = result(SHORT_LIVED, "FETCH-01")
    assert found.verdict is Verdict.FAIL
    found, _ = result(SHORT_LIVED, "COMMIT-26")
    assert found.verdict is Verdict.PASS
    assert found.comment.startswith("unusual: ") and "usual is" in found.comment


@pytest.mark.parametrize("id", ["FIND-07", "COMMIT-26"])
def test_nothing_is_unusual_about_the_bundled_coordinator(id: str) -> None:
    report = asyncio.run(BundledRun(Plan(BUNDLED), Profile()).run([CATALOGUE[id]], lambda progress: None))
    assert [(one.verdict, one.note) for one in report.results] == [(Verdict.PASS, "")]
    assert report.exit_code() is ExitCode.CONFORMANT


def test_advice_is_what_should_be() -> None:
    assert [id for id in CATALOGUE if CLASSIC.is_recommendation(id)] == [
        "FIND-09",
        "COMMIT-26",
        "COMMIT-30",
        "ADMIN-33",
        "TIMER-17",
        "TIMER-23",
    ]
    assert not CLASSIC.is_recommendation("NO-01")
