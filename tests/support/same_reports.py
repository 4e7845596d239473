"""The report of the pipeline on some traces, without Spark, beside that of `fencepost judge`."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from fencepost.conformance.analysis.trace_report import judge_files
from fencepost.conformance.pipeline.merge import REPORT_KINDS, ReportPart
from fencepost.conformance.pipeline.shard_findings import shard_findings
from fencepost.conformance.reports.report import render_report
from fencepost.conformance.results import ExitCode, Report
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.judge_corpus import FoundInShard
from tests.support.shards import findings_in

OUTCOMES = {ExitCode.COULD_NOT_RUN: ExitCode.INCONCLUSIVE}
"""Exit codes of `pipeline judge` by those of `judge`, where they differ: a corpus can be read, whatever is in it."""


def pipeline_report(paths: Sequence[Path], split: int = 10**9) -> Report:
    """The report of the pipeline, whose findings come in any order."""
    rows = list(findings_in(Corpus(Path(), 3), paths, split, shard_findings))
    random.Random(1).shuffle(rows)
    return merge_findings(rows, 0)


def merge_findings(findings: Iterable[FoundInShard], seconds: float) -> Report:
    """The report on some findings, which are in any order."""
    part, by_trace = ReportPart(), attrgetter("trace")
    told = (each for each in findings if each.kind in REPORT_KINDS)
    for trace, mine in groupby(sorted(told, key=by_trace), key=by_trace):
        part.add_trace(trace, mine)
    return part.build_report(seconds)


def text_of(report: Report) -> str:
    """The report as text, without times, and without its last line, which depends on the exit code."""
    ended = None if report.ended is None else replace(report.ended, seconds=0)
    text = render_report(replace(report, seconds=0, provenance=None, ended=ended))
    return text.rstrip("\n").rpartition("\n")[0]


def expect_same(paths: Sequence[Path]) -> Report:
    """Compares both reports on some traces, and returns the pipeline's."""
    expected, found = judge_files(sorted(paths), lambda _: None), pipeline_report(paths)
    assert text_of(found) == text_of(expected)
    for mine, theirs in zip(found.results, expected.results, strict=True):
        assert replace(mine, failures=(), more_failures=0) == replace(theirs, failures=())
        assert set(mine.failures) <= set(theirs.failures)
        assert len(mine.failures) + mine.more_failures == len(theirs.failures)
    assert found.exit_code() is OUTCOMES.get(expected.exit_code(), expected.exit_code())
    return found
