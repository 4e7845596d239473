"""Findings of all shards are merged into one report, in any order."""

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from fencepost.conformance.pipeline.merge import MAX_OPEN_LINES, MAX_SHOWN_FAILURES
from fencepost.conformance.pipeline.overview import CorpusSummary, merge_summaries, overview_lines, summarize_rows
from fencepost.conformance.reports.typed import to_plain
from fencepost.conformance.results import ExitCode, Failure, Verdict
from fencepost.model.classic.catalogue import CLASSIC
from fencepost.traces.history.builder import CauseKind
from fencepost.traces.pipeline.judge_corpus import FoundInShard
from fencepost.traces.pipeline.queries import OFFSETS
from fencepost.traces.pipeline.story import REBALANCES
from tests.support.same_reports import merge_findings


def finding(trace: str, kind: str, /, **value: Any) -> FoundInShard:
    return FoundInShard(trace, 0, kind, None, None, None, json.dumps(value))


def verdict(trace: str, violations: dict[str, int], source: str = "recorded") -> FoundInShard:
    rules = {"heartbeat.stable": 3}
    implementation = {"name": trace, "version": "4.1"}
    told = {"source": source, "implementation": implementation, "rules": rules, "violations": violations}
    subject, decisions = CLASSIC.subject, {"unknown_group_named": True}
    return finding(trace, "verdict", **told, subject=subject, decisions=decisions, events=10, files=1)


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


def random_findings(source: random.Random) -> list[list[FoundInShard]]:
    """Findings of many traces, those of a trace together; some have a malformed message, or could not be read."""
    found = []
    for number in range(60):
        trace = f"/t/{number:02}"
        rows = [verdict(trace, {"HB-05": 2} if source.random() < 0.7 else {}, source.choice(("recorded", "log")))]
        for place in range(source.randrange(4)):
            status, note = source.choice(("pass", "not-observed")), source.choice(("", f"note {number}"))
            rows.append(finding(trace, "check", requirement="HB-01", status=status, note=note, rank=place))
        for place in range(source.randrange(3)):
            schedule = [f"step {step}" for step in range(source.randint(1, 9))]
            shown = Failure(trace, place, "seen", ("wanted",), "", tuple(schedule), "", False, "a title")
            rows.append(finding(trace, "failure", requirement="HB-05", rank=[0, place, 0], failure=to_plain(shown)))
        if source.random() < 0.3:
            malformed = source.random() < 0.5
            reason = f"reason {number}"
            rows.append(finding(trace, "unreadable", line=3, reason=reason, files=0, malformed=malformed))
        rows += [finding(trace, "inconclusive", reason="too long")] if source.random() < 0.3 else []
        for _ in range(source.randrange(4)):
            told = {"time": 0, "ms": source.randrange(90), "is_over": source.random() < 0.7, "group": trace}
            causes = {"cause": CauseKind.NOT_SHOWN, "awaited": "", "outcome": "Preparing"}
            rows.append(finding(trace, REBALANCES, **told, **causes, generation=1))
        lag = source.choice((None, 0, 5, 6))
        where = {"group": trace, "topic": "t", "partition": number}
        rows.append(finding(trace, OFFSETS, lag=lag, is_last=source.random() < 0.8, **where))
        if source.random() < 0.5:
            rows.append(finding(trace, "one-leader", group="g", generation=1, trace=trace, sequence=number))
        found.append(rows)
    return found


def told_by(summary: CorpusSummary) -> tuple[object, ...]:
    return summary.report.build_report(0), overview_lines(summary.overview)


def summarize(traces: Sequence[Sequence[FoundInShard]]) -> CorpusSummary:
    return summarize_rows(row for rows in traces for row in rows)


@pytest.mark.parametrize("seed", range(5))
def test_parts_add_up_to_the_whole_in_any_order(seed: int) -> None:
    source = random.Random(seed)
    traces = random_findings(source)
    whole = summarize(traces)
    assert len(whole.report.failures) == MAX_SHOWN_FAILURES and whole.report.errors.count and whole.report.doubts.count
    source.shuffle(traces)
    cuts = [0, *sorted(source.sample(range(len(traces)), 4)), len(traces)]
    parts = [summarize(traces[begin:end]) for begin, end in pairwise(cuts)]
    source.shuffle(parts)
    assert told_by(merge_summaries(parts)) == told_by(whole)


def test_only_the_first_open_places_are_named_and_all_are_counted() -> None:
    rows = [finding(f"/t/{number:05}", "inconclusive", reason="why") for number in range(3 * MAX_OPEN_LINES)]
    random.Random(1).shuffle(rows)
    told = merge_findings([verdict("/t/00000", {}), *rows], 0).undecided
    assert told[:2] == ("/t/00000: why", "/t/00001: why") and len(told) == MAX_OPEN_LINES + 1
    assert told[-1] == "and 2,000 more places where the judge gave up: the findings name them"
