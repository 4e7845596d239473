"""The command line of `fencepost pipeline`: options in, Spark started, lines and tables out."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from fencepost.conformance.cli.importing import cluster_options
from fencepost.conformance.cli.pipeline_options import BUCKETS
from fencepost.conformance.events import Progress
from fencepost.conformance.pipeline.campaign import run_seeds
from fencepost.conformance.pipeline.merge import merge_findings
from fencepost.conformance.pipeline.shard_findings import shard_findings
from fencepost.conformance.plan import Plan
from fencepost.conformance.reports.json_report import to_json
from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.reports.pipeline import query_lines, report_lines
from fencepost.conformance.reports.progress import ProgressDisplay
from fencepost.conformance.reports.text import escape_unprintable, render_report
from fencepost.conformance.results import ExitCode, Report
from fencepost.traces.pipeline.corpus import Corpus, Counts
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.ingest import ingest
from fencepost.traces.pipeline.parallel import as_pipeline_error
from fencepost.traces.pipeline.queries import INVARIANTS
from fencepost.traces.pipeline.results import CorpusResults, create_folder, judge_corpus, query_corpus
from fencepost.traces.pipeline.sources import SOURCES, TraceSource, capture_source, trace_files
from fencepost.traces.pipeline.spark_session import spark_session
from fencepost.traces.pipeline.stream import read_findings, watch_folder

__all__ = ["PipelineError", "run"]

Show = Callable[[str], None]


def run(options: argparse.Namespace, show: Show) -> int:
    """Do what was asked. Raises `PipelineError` and `OSError`."""
    stages: dict[str, Callable[[argparse.Namespace, Show, ProgressDisplay], int]] = {
        "ingest": run_ingest,
        "judge": run_judge,
        "watch": run_watch,
        "campaign": run_campaign,
    }
    display = ProgressDisplay(sys.stderr, live=sys.stderr.isatty())
    try:
        return stages[options.stage](options, show, display)
    finally:
        display.close()


def run_ingest(options: argparse.Namespace, show: Show, display: ProgressDisplay) -> int:
    """`fencepost pipeline ingest`."""
    source = source_of(options)
    corpus = Corpus.create(options.to, options.buckets)
    paths = trace_files(options.traces, options.to / "made", source)
    tell = StageProgress(display, "MiB", 1 << 20)
    with spark_session("ingest", options.master, dict(options.conf)) as spark:
        done = ingest(spark, corpus, paths, tell)
    display.close()
    counts = done.counts
    known = f", {done.already_ingested} known already" if done.already_ingested else ""
    show(f"{done.inputs} files read{known}; the corpus is {options.to}\n")
    kinds = f"{counts.headers} headers + {counts.events} events + {counts.quarantined} in quarantine"
    show(f"{counts.lines} lines = {kinds}\n")
    return ExitCode.CONFORMANT


def source_of(options: argparse.Namespace) -> TraceSource:
    """What makes traces of what was named. Raises `PipelineError` and `ProfileError`."""
    if options.source != "captures":
        if options.port or options.profile:
            raise PipelineError(f"--port and --profile are for captures, not for {options.source}")
        return SOURCES[options.source]
    return capture_source(*cluster_options(options))


def run_judge(options: argparse.Namespace, show: Show, display: ProgressDisplay) -> int:
    """`fencepost pipeline judge`."""
    corpus = Corpus.open(options.corpus)
    counts = sum((batch.counts for batch in corpus.batches()), Counts())
    begun = time.monotonic()
    to = options.to or options.corpus / ("queried" if options.queries else "judged")
    with create_folder(to) as folder, spark_session("judge", options.master, dict(options.conf)) as spark:
        if not options.queries:
            judge_corpus(spark, corpus, folder, shard_findings, StageProgress(display, "tasks"))
        query_corpus(spark, corpus, folder, StageProgress(display, "queries"))
    display.close()
    judged = CorpusResults(to)
    violated = any(True for name in INVARIANTS for _ in judged.query_rows(name))
    if options.queries:
        show("\n".join([*query_lines(judged), f"The tables are in {to}"]) + "\n")
        return ExitCode.VIOLATION if violated else ExitCode.CONFORMANT
    report = merge_findings(judged.report_findings(), counts.events, time.monotonic() - begun)
    lines = report_lines(judged)
    show(render_report(report, colour=False))
    show("\n" + "\n".join(lines) + f"\nThe tables are in {to}\n")
    write_reports(options, report)
    return ExitCode.VIOLATION if violated else report.exit_code()


def run_watch(options: argparse.Namespace, show: Show, display: ProgressDisplay) -> int:
    """`fencepost pipeline watch`."""
    if not options.landing.is_dir():
        raise PipelineError(f"{options.landing}: there is no such folder")
    options.to.mkdir(parents=True, exist_ok=True)
    before = list(read_findings(options.to))
    seen = {name for name, _ in before}
    violations = sum(row["kind"] == "violation" for _, row in before)
    with spark_session("watch", options.master, dict(options.conf)) as spark, as_pipeline_error():
        query = watch_folder(spark, options.landing, options.to, options.buckets, once=options.once)
        try:
            ended: bool | None = False
            while not ended:
                ended = query.awaitTermination(1)
                for name, row in list(read_findings(options.to, frozenset(seen))):
                    seen.add(name)
                    violations += row["kind"] == "violation"
                    show(finding_line(row) + "\n")
        except KeyboardInterrupt:
            query.stop()
    show(f"{violations} violations found so far; the tables are in {options.to}\n")
    return ExitCode.VIOLATION if violations else ExitCode.CONFORMANT


def run_campaign(options: argparse.Namespace, show: Show, display: ProgressDisplay) -> int:
    """`fencepost pipeline campaign`."""
    plan = Plan(options.target, smoke=not options.full, schedules=options.schedules, profile=options.profile)
    corpus = Corpus.create(options.to, BUCKETS)
    with spark_session("campaign", options.master, dict(options.conf)) as spark:
        report = run_seeds(spark, corpus, plan, range(1, options.seeds + 1), StageProgress(display, "seeds"))
    display.close()
    show(render_report(report, colour=False))
    show(f"\nThe corpus is {options.to}: fencepost pipeline judge takes it\n")
    write_reports(options, report)
    return report.exit_code()


def write_reports(options: argparse.Namespace, report: Report) -> None:
    """Write the report where that was asked for."""
    for path, content in ((options.json, to_json), (options.junit, to_junit)):
        if path is not None:
            path.write_text(content(report), encoding="utf-8")


def finding_line(row: Mapping[str, Any]) -> str:
    """Something found, in a line."""
    value = json.loads(row["value"])
    if row["kind"] == "quarantine":
        return f"{row['path']}:{value['line']}: in quarantine: {value['reason']}"
    word = "VIOLATION" if row["kind"] == "violation" else "withdrawn"
    broken = ", ".join(value["requirements"]) or "no requirement"
    told = f"observed {value['observed']}; allowed {' or '.join(value['allowed'])}"
    return escape_unprintable(
        f"{word} {broken}: {value['group']!r}, {value['api']}, event {row['sequence']}: {told}; {row['path']}"
    )


class StageProgress:
    """Tells a person how far a stage is."""

    def __init__(self, display: ProgressDisplay, what: str, unit: int = 1) -> None:
        self.display = display
        self.unit_name = what
        self.unit = unit
        self.started_at = time.monotonic()

    def __call__(self, done: int, total: int, doing: str) -> None:
        """So much is done of so much."""
        seconds = time.monotonic() - self.started_at
        total = -(-total // self.unit)
        self.display(Progress(min(total, -(-done // self.unit)), total, seconds, 0, doing, self.unit_name))
