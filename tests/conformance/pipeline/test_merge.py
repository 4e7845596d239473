"""Findings of all shards are merged into one report, in any order."""

import json
from typing import Any

from fencepost.conformance.pipeline.merge import merge_findings
from fencepost.conformance.results import ExitCode, Verdict
from fencepost.traces.pipeline.judge_corpus import Finding


def finding(trace: str, kind: str, **value: Any) -> Finding:
    return Finding(trace, 0, kind, None, None, None, json.dumps(value))


def verdict(trace: str, violations: dict[str, int], source: str = "recorded") -> Finding:
    rules = {"heartbeat.stable": 3}
    implementation = {"name": trace, "version": "4.1"}
    told = {"source": source, "implementation": implementation, "rules": rules, "violations": violations}
    return finding(trace, "verdict", **told, decisions={"unknown_group_named": True}, events=10, files=1)


def test_a_requirement_without_violations_passes() -> None:
    report = merge_findings([verdict("a", {}), verdict("b", {})], 1.0)
    kept = {result.id for result in report.results if result.verdict is Verdict.PASS}
    assert kept and report.exit_code() is ExitCode.CONFORMANT
    assert report.target == {"name": "recorded", "version": "4.1"}
    assert (report.schedules, report.events, report.undecided) == (2, 20, ())


def test_a_reference_difference_decided_alike_by_all_shards_is_noted() -> None:
    marked = finding("a", "check", requirement="COMMIT-11", status="pass", note="")
    (result,) = (each for each in merge_findings([verdict("a", {}), marked], 1.0).results if each.id == "COMMIT-11")
    assert result.comment.startswith("ambiguous in the sources: as the newer coordinator")


def test_an_inconclusive_finding_is_reported_with_its_trace() -> None:
    found = [finding("b", "inconclusive", reason="too long"), verdict("b", {}), verdict("a", {}, "imported")]
    report = merge_findings(found, 1.0)
    assert report.undecided == ("b: too long",)
    assert report.target["name"] == "2 traces"
    assert report.exit_code() is ExitCode.INCONCLUSIVE


def test_a_violation_in_one_trace_outweighs_passes_in_others() -> None:
    report = merge_findings([verdict("a", {"HB-05": 1}), verdict("b", {})], 1.0)
    (result,) = (each for each in report.results if each.id == "HB-05")
    assert result.verdict is Verdict.INCONCLUSIVE  # violated, and no failure of it was shown
    assert result.checks == 4
