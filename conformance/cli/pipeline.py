"""`fencepost pipeline`: traces ingested, judged, watched and produced in bulk, on Spark."""

import argparse
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.conformance.cli.console import Console, handle_signals
from fencepost.conformance.cli.options import (
    LOUDNESS,
    PROFILE,
    REPORT_FILES,
    TARGET_HELP,
    Command,
    OneOf,
    Option,
    count,
    location,
    port,
    report_paths,
    setting,
)
from fencepost.conformance.cli.record import cluster_options

if TYPE_CHECKING:
    from fencepost.conformance.pipeline.overview import CorpusSummary
    from fencepost.conformance.reports.progress import ProgressDisplay
    from fencepost.traces.pipeline.ingest import IngestSummary, Source
    from fencepost.traces.pipeline.topics import Topic

BUCKETS = 16
WATCH_BUCKETS = 4


def spark_conf(options: argparse.Namespace) -> dict[str, str]:
    """The settings for Spark that the options name. Raises `PipelineError`."""
    from fencepost.traces.pipeline.spark_session import archive_settings

    packed = {} if options.archives is None else archive_settings(options.archives, options.master)
    return {**packed, **dict(options.conf)}


# --- ingest


def run_ingest(options: argparse.Namespace, console: Console) -> int:
    """Read traces into a corpus and print the counts."""
    from fencepost.traces.pipeline.corpus import Corpus
    from fencepost.traces.pipeline.ingest import IngestSummary, check_inputs, find_inputs, ingest
    from fencepost.traces.pipeline.spark_session import spark_session
    from fencepost.traces.pipeline.topics import is_topic

    with console.progress() as display:
        source, read = source_of(options), topics_of(options)
        files = [each for each in options.traces if not is_topic(each)]
        check_inputs(files)
        corpus = Corpus.create(options.to, options.buckets)
        with spark_session("ingest", options.master, spark_conf(options)) as spark:
            done = IngestSummary()
            if files:
                told = StageProgress(display, "MiB", 1 << 20)
                done += ingest(spark, corpus, find_inputs(spark, files, source), told, source=source)
            if read:
                from fencepost.traces.pipeline.topic_ingest import ingest_topic
            for topic in read:
                progress = StageProgress(display, "tasks")
                done += ingest_topic(spark, corpus, topic, progress, takes_unended=options.unended)
    known = f", {done.already_ingested} known already" if done.already_ingested else ""
    console.print_line(f"{done.inputs} {'traces' if read else 'files'} read{known}; the corpus is {options.to}")
    return print_ingested(done, console)


def print_ingested(done: "IngestSummary", console: Console) -> int:
    """Print what came of an ingest, and return its exit code."""
    from fencepost.conformance.results import ExitCode

    counts = done.counts
    kinds = f"{counts.headers} headers + {counts.events} events + {counts.quarantined} in quarantine"
    console.print_line(f"{counts.lines} lines = {kinds}")
    if done.flaws:
        console.print_line("\n".join(flaw_lines(done.flaws)))
    if done.unended:
        title = f"{len(done.unended)} traces are not over, and are left to a later ingest (--unended takes them):"
        console.print_line("\n".join(list_some(title, done.unended)))
    if done.failed:
        more = f" (and {len(done.failed) - 1} more)" if len(done.failed) > 1 else ""
        return console.fail(f"{done.failed[0]}{more}")
    if done.changed:
        more = f" and {len(done.changed) - 1} more" if len(done.changed) > 1 else ""
        return console.fail(f"{done.changed[0]}{more} was ingested before, and has changed since: not ingested again")
    return ExitCode.INCONCLUSIVE if done.flaws else ExitCode.CONFORMANT


def flaw_lines(flaws: Sequence[str]) -> list[str]:
    """The files that could not be read, or not to their end, with the reasons."""
    return list_some(f"{len(flaws)} files could not be read, or not to their end:", flaws)


def list_some(title: str, found: Sequence[str]) -> list[str]:
    """A title, the first of what was found, and how many more there are."""
    from fencepost.conformance.reports.layout import escape_unprintable
    from fencepost.conformance.reports.report import MAX_OPEN_SHOWN

    shown = [f"  {escape_unprintable(each)}" for each in found[:MAX_OPEN_SHOWN]]
    return [title, *shown, *([f"  and {len(found) - len(shown)} more"] if len(found) > len(shown) else [])]


def topics_of(options: argparse.Namespace) -> "list[Topic]":
    """The topics among the inputs. Raises `PipelineError`."""
    from fencepost.traces.pipeline import PipelineError
    from fencepost.traces.pipeline.topics import find_topic, is_topic

    found = [find_topic(each, dict(options.kafka)) for each in options.traces if is_topic(each)]
    if found and options.source != "traces":
        raise PipelineError(f"{found[0].uri}: a topic has lines of traces, not {options.source}")
    if not found and (options.kafka or options.unended):
        raise PipelineError("--kafka and --unended are for topics: kafka://HOST:PORT/TOPIC")
    return found


def source_of(options: argparse.Namespace) -> "Source":
    """The source of the kind of files that --from names. Raises `PipelineError` and `ProfileError`."""
    from fencepost.traces.importers.packet_capture import DEFAULT_PORT
    from fencepost.traces.pipeline import PipelineError
    from fencepost.traces.pipeline.imports import (
        LOG_IMPORTER,
        OFFSETS_IMPORTER,
        capture_importer,
        import_source,
        recording_importer,
        request_log_importer,
    )
    from fencepost.traces.pipeline.ingest import TRACE_FILES

    if options.port and options.source != "captures":
        raise PipelineError(f"--port is for captures, not for {options.source}")
    if options.source == "captures":
        ports = frozenset(options.port or (DEFAULT_PORT,))
        return import_source(capture_importer(ports, *cluster_options(options)))
    if options.source == "request-logs":
        return import_source(request_log_importer(*cluster_options(options)))
    if options.profile:
        raise PipelineError(f"--profile is for captures and request logs, not for {options.source}")
    importers = {"logs": LOG_IMPORTER, "offsets": OFFSETS_IMPORTER, "recordings": recording_importer()}
    return import_source(importers[options.source]) if options.source in importers else TRACE_FILES


# --- judge


def run_judge(options: argparse.Namespace, console: Console) -> int:
    """Judge a corpus, or query its invariants, and print and write the report."""
    from fencepost.conformance.cli.files import ReportFiles, check_outputs
    from fencepost.conformance.pipeline.overview import SUMMARY, overview_lines
    from fencepost.conformance.pipeline.shard_findings import shard_findings
    from fencepost.conformance.pipeline.worker_daemon import DAEMON_CONF
    from fencepost.conformance.reports.report import render_report
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run.provenance import record_judging
    from fencepost.traces.pipeline.corpus import Corpus
    from fencepost.traces.pipeline.files import join_location
    from fencepost.traces.pipeline.query_corpus import query_corpus
    from fencepost.traces.pipeline.results import (
        create_folder,
        find_unreadable,
        fold_here,
        fold_on_workers,
        judge_corpus,
    )
    from fencepost.traces.pipeline.shard_plan import plan_parts
    from fencepost.traces.pipeline.spark_session import is_short_work, spark_session

    check_outputs(report_paths(options))
    whole = Corpus.open(options.corpus)
    begun, provenance = time.monotonic(), record_judging()
    to = options.to or join_location(whole.folder, "queried" if options.queries else "judged")
    with create_folder(to) as folder:
        corpus = whole.snapshot()
        conf, size = {**DAEMON_CONF, **spark_conf(options)}, corpus.size()
        with console.progress() as display, spark_session("judge", options.master, conf, size=size) as spark:
            find_unreadable(spark, corpus, folder)
            parts = plan_parts(spark, corpus)
            if not options.queries:
                judge_corpus(spark, corpus, parts, folder, shard_findings, StageProgress(display, "tasks"))
            query_corpus(spark, corpus, parts, folder, StageProgress(display, "tasks"))
            found = fold_here(folder, SUMMARY) if is_short_work(size) else fold_on_workers(spark, folder, SUMMARY)
        tables = f"The tables are in {to if isinstance(folder, Path) else folder}"
        if options.queries:
            return print_queried(found, tables, console, is_empty=not any(row.events for row in corpus.inputs()))
        report = found.report.build_report(time.monotonic() - begun, provenance)
        console.print_line(render_report(report, colour=False).rstrip("\n"))
        console.print_line("\n" + "\n".join([*overview_lines(found.overview), tables]))
    files = ReportFiles(console, report_paths(options))
    files.write(report)
    return ExitCode.VIOLATION if found.overview.is_violated else files.exit_code(report.exit_code())


def print_queried(found: "CorpusSummary", tables: str, console: Console, *, is_empty: bool) -> int:
    """Print what the queries found, and return the exit code; `is_empty` says whether the corpus has no event."""
    from fencepost.conformance.pipeline.merge import open_lines
    from fencepost.conformance.pipeline.overview import query_lines
    from fencepost.conformance.results import ExitCode

    flaws = open_lines(found.report.errors, "files")
    console.print_line("\n".join([*query_lines(found.overview), *(flaw_lines(flaws) if flaws else ()), tables]))
    if found.overview.is_violated:
        return ExitCode.VIOLATION
    return ExitCode.INCONCLUSIVE if flaws or is_empty else ExitCode.CONFORMANT


# --- watch


@dataclass(slots=True)
class WatchedFindings:
    """What a watch has found: the violations that stand, and whether lines or files were not judged."""

    violations: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    is_open: bool = False

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a finding."""
        key = (row["trace"], row["bucket"], row["value"])
        if row["kind"] == "violation":
            self.violations[key] += 1
        elif row["kind"] == "withdrawn" and self.violations[key]:
            self.violations[key] -= 1
        self.is_open = self.is_open or row["kind"] in ("quarantine", "unjudged")


def unread_line(path: Path, reason: str) -> str:
    """A file that `fencepost pipeline watch` passes over, in one line."""
    from fencepost.conformance.reports.layout import escape_unprintable

    return escape_unprintable(f"{path}: not read: {reason}")


def finding_line(row: Mapping[str, Any]) -> str:
    """A finding of `fencepost pipeline watch` in one line."""
    from fencepost.conformance.reports.layout import escape_unprintable

    value = json.loads(row["value"])
    if row["kind"] == "quarantine":
        return escape_unprintable(f"{row['path']}:{value['line']}: in quarantine: {value['reason']}")
    if row["kind"] == "unjudged":
        return escape_unprintable(f"{row['path']}: not judged any more: {value['reason']}")
    word = "VIOLATION" if row["kind"] == "violation" else "withdrawn"
    broken = ", ".join(value["requirements"]) or "no requirement"
    difference = f"observed {value['observed']}; allowed {' or '.join(value['allowed'])}"
    return escape_unprintable(
        f"{word} {broken}: {value['group']!r}, {value['api']}, event {row['sequence']}: {difference}; {row['path']}"
    )


def run_watch(options: argparse.Namespace, console: Console) -> int:
    """Judge traces as they land, and print each finding, until a signal or with --once until all are judged."""
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.pipeline import PipelineError
    from fencepost.traces.pipeline.files import resolve_location
    from fencepost.traces.pipeline.parallel import as_pipeline_error
    from fencepost.traces.pipeline.spark_session import silence, spark_session
    from fencepost.traces.pipeline.stream import (
        check_same_watch,
        findings_log,
        input_log,
        new_findings,
        new_unread_files,
        watch_folder,
        watch_topic,
    )
    from fencepost.traces.pipeline.topics import find_topic, is_topic

    topic = find_topic(options.landing, dict(options.kafka)) if is_topic(options.landing) else None
    if topic is None and not (isinstance(options.landing, Path) and options.landing.is_dir()):
        raise PipelineError(f"{options.landing}: there is no such folder")
    if topic is None and options.kafka:
        raise PipelineError("--kafka is for topics: kafka://HOST:PORT/TOPIC")
    to = resolve_location(options.to)
    if not isinstance(to, Path):
        raise PipelineError(
            f"{options.to}: Spark keeps the state of a watch in a folder: give one that all nodes share"
        )
    to.mkdir(parents=True, exist_ok=True)
    check_same_watch(to, options.buckets, topic.uri if topic else str(options.landing.resolve()))
    found, findings, inputs = WatchedFindings(), findings_log(to), input_log(to)
    for row in new_findings(findings):
        found.add(row)
    with spark_session("watch", options.master, spark_conf(options)) as spark, as_pipeline_error():
        if topic is not None:
            query = watch_topic(spark, topic, to, once=options.once)
        else:
            query = watch_folder(spark, options.landing.resolve(), to, options.buckets, once=options.once)
        ended: bool | None = False
        asked = threading.Event()
        with handle_signals(lambda *_: asked.set()):  # an exception would break off a call of Java
            while not ended and not asked.is_set():
                ended = query.awaitTermination(1)
                for row in new_findings(findings):
                    found.add(row)
                    if row["kind"] != "following":
                        console.print_line(finding_line(row))
                for path, reason in new_unread_files(inputs) if topic is None else ():
                    found.is_open = True
                    console.print_line(unread_line(path, reason))
            if not ended:
                silence(spark)
                query.stop()
    violations = found.violations.total()
    console.print_line(f"{violations} violations found so far; the tables are in {options.to}")
    if violations:
        return ExitCode.VIOLATION
    return ExitCode.CONFORMANT if ended and not found.is_open else ExitCode.INCONCLUSIVE


# --- campaign


def run_campaign(options: argparse.Namespace, console: Console) -> int:
    """Test a target with many seeds, and print and write one report of all."""
    from fencepost.conformance.cli.files import ReportFiles, check_outputs
    from fencepost.conformance.pipeline.campaign import check_plan, run_seeds
    from fencepost.conformance.plan import Plan
    from fencepost.conformance.reports.report import render_report
    from fencepost.traces.pipeline.corpus import Corpus
    from fencepost.traces.pipeline.spark_session import spark_session

    check_outputs(report_paths(options))
    plan = Plan(options.target, smoke=not options.full, schedules=options.schedules, profile=options.profile)
    check_plan(plan)
    corpus = Corpus.create(options.to, BUCKETS)
    with (
        console.progress() as display,
        spark_session("campaign", options.master, spark_conf(options)) as spark,
    ):
        report = run_seeds(spark, corpus, plan, range(1, options.seeds + 1), StageProgress(display, "seeds"))
    console.print_line(render_report(report, colour=False))
    console.print_line(f"The corpus is {options.to}: fencepost pipeline judge and extract take it")
    files = ReportFiles(console, report_paths(options))
    files.write(report)
    return files.exit_code(report.exit_code())


class StageProgress:
    """Shows the progress of a stage, counted in bytes, tasks or seeds, on a display that counts `unit` of them as one
    `unit_name`."""

    def __init__(self, display: "ProgressDisplay", unit_name: str, unit: int = 1) -> None:
        self.display = display
        self.unit_name = unit_name
        self.unit = unit
        self.started_at = time.monotonic()

    def __call__(self, done: int, total: int, current: str) -> None:
        """Show that `done` of `total` are done, and `current` is in work."""
        from fencepost.conformance.events import Progress

        seconds = time.monotonic() - self.started_at
        total = -(-total // self.unit)
        self.display(Progress(min(total, -(-done // self.unit)), total, seconds, 0, current, self.unit_name))


# --- sql


def run_sql(options: argparse.Namespace, console: Console) -> int:
    """Answer a question about a judged corpus: a view, or a query of one's own; without one, say which there are."""
    from fencepost.conformance.reports.layout import escape_unprintable
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.pipeline.corpus import Corpus
    from fencepost.traces.pipeline.spark_session import spark_session
    from fencepost.traces.pipeline.views import (
        JudgedCorpus,
        query_in_duckdb,
        query_in_spark,
        read_views,
        to_csv,
        to_lines,
    )

    judged = JudgedCorpus.open(Corpus.open(options.corpus), options.judged)
    if options.query is None:
        width = max(len(view.name) for view in read_views())
        console.print_line("\n".join(f"{view.name:{width}}  {view.question}" for view in read_views()))
        return ExitCode.CONFORMANT
    if options.duckdb:
        rows = query_in_duckdb(judged, options.query)
    else:
        with spark_session("sql", options.master, spark_conf(options), size=judged.corpus.size()) as spark:
            rows = query_in_spark(spark, judged, options.query)
    if options.csv:
        console.print(to_csv(rows))
    else:
        console.print_line("\n".join(map(escape_unprintable, to_lines(rows))))
    return ExitCode.CONFORMANT


# --- what needs no Spark


def run_inputs(options: argparse.Namespace, console: Console) -> int:
    """List the inputs of a corpus."""
    from fencepost.conformance.reports.layout import escape_unprintable
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.pipeline.corpus import Corpus

    for row in sorted(Corpus.open(options.corpus).inputs()):
        bad = f", {row.quarantined} in quarantine" if row.quarantined else ""
        console.print_line(escape_unprintable(f"{row.input}: {row.events} events{bad}"))
    return ExitCode.CONFORMANT


def run_compact(options: argparse.Namespace, console: Console) -> int:
    """Put the small files of a corpus together."""
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.pipeline.corpus import Corpus, compact

    before, after = compact(Corpus.open(options.corpus))
    console.print_line(f"{before} files are {after} now; the corpus is {options.corpus}")
    return ExitCode.CONFORMANT


def run_extract(options: argparse.Namespace, console: Console) -> int:
    """Write the trace of a finding to a file."""
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.pipeline.corpus import Corpus
    from fencepost.traces.pipeline.trace_rows import extract_trace

    events = extract_trace(Corpus.open(options.corpus), options.finding, options.output)
    console.print_line(f"{events} events; the trace is {options.output}: fencepost replay and fencepost judge take it")
    return ExitCode.CONFORMANT


def run_forget(options: argparse.Namespace, console: Console) -> int:
    """Take an input with all its rows out of a corpus."""
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.pipeline.corpus import Corpus, forget

    counts = forget(Corpus.open(options.corpus), options.input)
    console.print_line(f"{counts.lines} lines of {options.input} are out of {options.corpus}")
    return ExitCode.CONFORMANT


def run_pack(options: argparse.Namespace, console: Console) -> int:
    """Pack Fencepost and what its workers need."""
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.pipeline.spark_session import pack_environment

    size = pack_environment(options.output)
    console.print_line(
        f"{size >> 20} MiB for workers with the Python of this machine; --archives takes {options.output}"
    )
    return ExitCode.CONFORMANT


# --- the commands

_CORPUS = Option("corpus", "CORPUS", "a corpus: a folder, or a URI (s3://)", location)
_KAFKA = Option(
    "--kafka",
    "KEY=VALUE",
    "of topics: a setting of the client, by librdkafka's name (security.protocol=SSL); repeatable",
    setting,
    repeats=True,
)
_SPARK: tuple[Option | OneOf, ...] = (
    Option("--master", "URL", "Spark's master", default="local[*]"),
    Option(
        "--archives",
        "FILE",
        "a packed environment for the workers of a cluster: of `fencepost pipeline pack`, or of conda-pack",
        Path,
    ),
    Option("--conf", "KEY=VALUE", "a setting for Spark; repeatable", setting, repeats=True),
    LOUDNESS,
)
_INGEST = (
    Option(
        "traces",
        "PATH",
        "a trace, or a folder with traces (*.jsonl, *.jsonl.gz); a path, a URI (s3://, hdfs://), or a topic of lines "
        "of traces (kafka://HOST:PORT/TOPIC)",
        location,
        nargs="+",
    ),
    Option("--to", "CORPUS", "the corpus: a folder, or a URI (s3://)", location, required=True),
    Option(
        "--from",
        help="kind of PATH: traces, logs or request logs of Kafka brokers, packet captures, or recordings of several "
        "recorders to join",
        choices=("traces", "logs", "captures", "request-logs", "recordings", "offsets"),
        dest="source",
    ),
    Option("--port", "P", "of captures: a broker's port (9092)", port, repeats=True),
    Option("--profile", "F", "of captures and request logs: settings and grace of the cluster", Path),
    Option("--buckets", "N", "number of buckets for the groups of a new corpus", count, BUCKETS),
    Option("--unended", help="of topics: also take traces that are not over, as they are"),
    _KAFKA,
    *_SPARK,
)
_JUDGE = (
    _CORPUS,
    Option("--to", "DIR", "folder for the tables (default: CORPUS/judged)", location),
    Option("--queries", help="query the invariants only, without judging"),
    *REPORT_FILES,
    *_SPARK,
)
_WATCH = (
    Option(
        "landing",
        "FOLDER",
        "folder that complete trace files are moved to, or a topic of lines of traces (kafka://HOST:PORT/TOPIC)",
        location,
    ),
    Option("--to", "DIR", "folder for the findings and checkpoint", Path, required=True),
    Option("--once", help="end when everything in FOLDER is judged"),
    _KAFKA,
    Option("--buckets", "N", "number of buckets for the groups of a trace, the same each time", count, WATCH_BUCKETS),
    *_SPARK,
)
_CAMPAIGN = (
    Option("target", "TARGET", TARGET_HELP),
    Option("--to", "CORPUS", "the campaign's corpus: a folder, or a URI (s3://)", location, required=True),
    Option("--seeds", "N", "seeds 1 to N", count, required=True),
    Option("--schedules", "N", "random schedules of each seed", count, 40),
    Option("--full", help="run all scenarios for each seed (default: the smoke scenarios)"),
    PROFILE,
    *REPORT_FILES,
    *_SPARK,
)
_EXTRACT = (
    _CORPUS,
    Option("--finding", "TRACE[:EVENT]", "the trace, and the event, as a report names them", required=True),
    Option("-o --output", "TRACE", "a new file for the trace", Path, required=True),
)
_FORGET = (_CORPUS, Option("input", "INPUT", "an input, as `inputs` lists it or as its path; 'seed N'; a topic"))
_SQL = (
    _CORPUS,
    Option("query", "QUERY", "a view, a table, or a query in SQL (default: list the views)", nargs="?"),
    Option("--judged", "DIR", "folder of `judge --to` (default: CORPUS/judged)", location),
    Option("--csv", help="print all rows as CSV"),
    Option("--duckdb", help="ask DuckDB, which starts at once, and not Spark"),
    *_SPARK,
)
_PACK = (Option("-o --output", "FILE", "a new archive (.tar.gz), for --archives", Path, required=True),)
COMMANDS = {
    "pipeline": Command(
        actions={
            "ingest": ("read traces into a corpus of Parquet files", Command(run_ingest, _INGEST)),
            "judge": ("judge a corpus, and query its invariants", Command(run_judge, _JUDGE)),
            "watch": ("judge traces as they land in a folder", Command(run_watch, _WATCH)),
            "campaign": ("test a target with many seeds at once", Command(run_campaign, _CAMPAIGN)),
            "sql": ("ask who caused rebalances, when, and what they cost", Command(run_sql, _SQL)),
            "inputs": ("list the inputs of a corpus", Command(run_inputs, (_CORPUS,))),
            "compact": ("put small files of a corpus together", Command(run_compact, (_CORPUS,))),
            "extract": ("write a trace of a corpus to a file", Command(run_extract, _EXTRACT)),
            "forget": ("take an input out of a corpus", Command(run_forget, _FORGET)),
            "pack": ("pack Fencepost for the workers of a cluster", Command(run_pack, _PACK)),
        },
    )
}
