"""Failures of a target that is an older Apache Kafka say so, and stay failures."""

from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.reports.report import render_report
from fencepost.conformance.results import ExitCode, Report, Verdict
from tests.support.sample_reports import JOIN_29

NOTE = "as Apache Kafka before 3.7.1 (KAFKA-16371)"


def report_on(release: str, *requirements: str) -> Report:
    """A report on a target by whose versions it is this release, with a failure of each requirement."""
    builder = ReportBuilder(requirements, kafka_release=release)
    for requirement in requirements:
        builder.add_failure(requirement, JOIN_29)
    return builder.build(schedules=1, events=1, seconds=1.0, target={"name": "kafka://127.0.0.1:9092"})


def test_a_failure_of_an_older_kafka_says_so_and_stays_one() -> None:
    report = report_on("3.6.2", "COMMIT-15")
    assert report.result("COMMIT-15").note == NOTE
    assert report.result("COMMIT-15").verdict is Verdict.FAIL
    assert report.exit_code() is ExitCode.VIOLATION
    assert f"note          {NOTE}" in render_report(report)


def test_a_failure_of_a_newer_or_unknown_target_stands_alone() -> None:
    # By its versions, 3.7.0 is no other than 3.7.2, which does better.
    for release in ("3.7.2", "3.8.1", "3.9.2", ""):
        report = report_on(release, "COMMIT-15")
        assert report.result("COMMIT-15").note == ""
        assert "as Apache Kafka before" not in render_report(report)


def test_a_requirement_that_always_held_gets_no_note() -> None:
    assert report_on("2.3.1", "JOIN-29").result("JOIN-29").note == ""


def test_each_of_several_failures_with_one_cause_has_its_note() -> None:
    text = render_report(report_on("2.8.2", "LEAVE-15", "STATIC-07"))
    assert text.count("as Apache Kafka before 3.0.0") == 2


def test_json_says_since_when_a_requirement_holds() -> None:
    report = report_on("3.6.2", "COMMIT-15")
    assert '"since": "Apache Kafka 3.7.1 (KAFKA-16371)"' in to_json(report)
    assert from_json(to_json(report)) == report
