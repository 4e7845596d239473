"""`fencepost pipeline`: traces ingested, judged, watched and produced in bulk, on Spark."""

import argparse
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli import corpus_commands, topics
from fencepost.conformance.cli.argument_types import count, location, port
from fencepost.conformance.cli.console import Console, handle_signals
from fencepost.conformance.cli.options import PROFILE, TARGET_HELP
from fencepost.conformance.cli.record import cluster_options
from fencepost.conformance.cli.report_options import add_report_options, report_paths
from fencepost.conformance.cli.spark_options import add_spark_options, spark_conf

if TYPE_CHECKING:
    from fencepost.conformance.pipeline.overview import CorpusSummary
    from fencepost.conformance.reports.progress import ProgressDisplay
    from fencepost.conformance.results import Report
    from fencepost.traces.pipeline.imports import Importer
    from fencepost.traces.pipeline.ingest import IngestSummary

BUCKETS = 16
WATCH_BUCKETS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stages of `fencepost pipeline` and their arguments."""
    stages = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, summary, add, run_stage in (
        ("ingest", "read traces into a corpus of Parquet files", _add_ingest, run_ingest),
        ("judge", "judge a corpus, and query its invariants", _add_judge, run_judge),
        ("watch", "judge traces as they land in a folder", _add_watch, run_watch),
        ("campaign", "test a target with many seeds at once", _add_campaign, run_campaign),
    ):
        stage = stages.add_parser(name, help=summary, allow_abbrev=False)
        stage.set_defaults(run_stage=run_stage)
        add(stage)
        add_spark_options(stage)
    corpus_commands.add_stages(stages)


def _add_ingest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "traces",
        metavar="PATH",
        nargs="+",
        type=location,
        help="a trace, or a folder with traces (*.jsonl, *.jsonl.gz); a path, a URI (s3://, hdfs://), or a topic of "
        "lines of traces (kafka://HOST:PORT/TOPIC)",
    )
    parser.add_argument(
        "--to", metavar="CORPUS", type=location, required=True, help="the corpus: a folder, or a URI (s3://)"
    )
    parser.add_argument(
        "--from",
        dest="source",
        choices=("traces", "logs", "captures", "request-logs", "recordings"),
        default="traces",
        help="kind of PATH: traces, logs or request logs of Kafka brokers, packet captures, or recordings of several "
        "recorders to join (default: traces)",
    )
    parser.add_argument("--port", metavar="P", type=port, action="append", help="of captures: a broker's port (9092)")
    parser.add_argument(
        "--profile", metavar="F", type=Path, help="of captures and request logs: settings and grace of the cluster"
    )
    parser.add_argument(
        "--buckets",
        metavar="N",
        type=count,
        default=BUCKETS,
        help=f"number of buckets for the groups of a new corpus (default: {BUCKETS})",
    )
    parser.add_argument(
        "--unended", action="store_true", help="of topics: also take traces that are not over, as they are"
    )
    topics.add_kafka(parser)


def _add_judge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpus", metavar="CORPUS", type=location, help=corpus_commands.CORPUS_HELP)
    parser.add_argument("--to", metavar="DIR", type=location, help="folder for the tables (default: CORPUS/judged)")
    parser.add_argument("--queries", action="store_true", help="query the invariants only, without judging")
    add_report_options(parser)


def _add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "landing",
        metavar="FOLDER",
        type=location,
        help="folder that complete trace files are moved to, or a topic of lines of traces (kafka://HOST:PORT/TOPIC)",
    )
    parser.add_argument("--to", metavar="DIR", type=Path, required=True, help="folder for the findings and checkpoint")
    parser.add_argument("--once", action="store_true", help="end when everything in FOLDER is judged")
    topics.add_kafka(parser)
    parser.add_argument(
        "--buckets",
        metavar="N",
        type=count,
        default=WATCH_BUCKETS,
        help=f"number of buckets for the groups of a trace, the same each time (default: {WATCH_BUCKETS})",
    )


def _add_campaign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument(
        "--to", metavar="CORPUS", type=location, required=True, help="the campaign's corpus: a folder, or a URI (s3://)"
    )
    parser.add_argument("--seeds", metavar="N", type=count, required=True, help="seeds 1 to N")
    parser.add_argument(
        "--schedules", metavar="N", type=count, default=40, help="random schedules of each seed (default: 40)"
    )
    parser.add_argument(
        "--full", action="store_true", help="run all scenarios for each seed (default: the smoke scenarios)"
    )
    parser.add_argument("--profile", metavar="F", type=Path, help=PROFILE.help)
    add_report_options(parser)


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the chosen stage; without the extra `spark`, name the package that is missing."""
    try:
        from fencepost.traces.pipeline import PipelineError

        exit_code: int
        try:
            exit_code = options.run_stage(options, console)
        except PipelineError as error:
            return console.fail(error)
    except ImportError as missing:
        if (missing.name or "").startswith("fencepost"):
            raise
        extra = "kafka" if missing.name == "confluent_kafka" else "spark"
        return console.fail(f"the pipeline needs {missing.name}: pip install 'fencepost[{extra}]'")
    return exit_code


def run_ingest(options: argparse.Namespace, console: Console) -> int:
    """Read traces into a corpus and print the counts."""
    from fencepost.traces.pipeline.corpus import Corpus
    from fencepost.traces.pipeline.imports import find_imports, make_opener
    from fencepost.traces.pipeline.ingest import IngestSummary, check_inputs, ingest, trace_files
    from fencepost.traces.pipeline.spark_session import spark_session
    from fencepost.traces.pipeline.topics import is_topic

    unended: list[str] = []
    with console.progress() as display:
        importer, read = importer_of(options), topics.topics_of(options)
        files = [each for each in options.traces if not is_topic(each)]
        check_inputs(files)
        corpus = Corpus.create(options.to, options.buckets)
        with spark_session("ingest", options.master, spark_conf(options)) as spark:
            done = IngestSummary()
            if files:
                told = StageProgress(display, "MiB", 1 << 20)
                if importer is None:
                    done += ingest(spark, corpus, trace_files(spark, files), told)
                else:
                    found = find_imports(spark, importer, files)
                    done += ingest(spark, corpus, found, told, open_input=make_opener(importer))
            if read:
                from fencepost.traces.pipeline.topic_ingest import ingest_topic
            for topic in read:
                progress = StageProgress(display, "tasks")
                summary = ingest_topic(spark, corpus, topic, progress, takes_unended=options.unended)
                done += summary.ingested
                unended += summary.unended
    known = f", {done.already_ingested} known already" if done.already_ingested else ""
    console.print_line(f"{done.inputs} {'traces' if read else 'files'} read{known}; the corpus is {options.to}")
    return print_ingested(done, unended, console)


def print_ingested(done: "IngestSummary", unended: Sequence[str], console: Console) -> int:
    """Print what came of an ingest, and return its exit code."""
    from fencepost.conformance.results import ExitCode

    counts = done.counts
    kinds = f"{counts.headers} headers + {counts.events} events + {counts.quarantined} in quarantine"
    console.print_line(f"{counts.lines} lines = {kinds}")
    if done.flaws:
        console.print_line("\n".join(flaw_lines(done.flaws)))
    if unended:
        console.print_line("\n".join(topics.unended_lines(unended)))
    if done.failed:
        more = f" (and {len(done.failed) - 1} more)" if len(done.failed) > 1 else ""
        return console.fail(f"{done.failed[0]}{more}")
    if done.changed:
        more = f" and {len(done.changed) - 1} more" if len(done.changed) > 1 else ""
        return console.fail(f"{done.changed[0]}{more} was ingested before, and has changed since: not ingested again")
    return ExitCode.INCONCLUSIVE if done.flaws else ExitCode.CONFORMANT


def flaw_lines(flaws: Sequence[str]) -> list[str]:
    """The files that could not be read, or not to their end, with the reasons."""
    from fencepost.conformance.reports.layout import escape_unprintable
    from fencepost.conformance.reports.report import MAX_OPEN_SHOWN

    shown = [f"  {escape_unprintable(flaw)}" for flaw in flaws[:MAX_OPEN_SHOWN]]
    more = [f"  and {len(flaws) - len(shown)} more"] if len(flaws) > len(shown) else []
    return [f"{len(flaws)} files could not be read, or not to their end:", *shown, *more]


def importer_of(options: argparse.Namespace) -> "Importer | None":
    """The importer for the kind of file that --from names; None for traces. Raises `PipelineError` and
    `ProfileError`."""
    from fencepost.traces.importers.packet_capture import DEFAULT_PORT
    from fencepost.traces.pipeline import PipelineError
    from fencepost.traces.pipeline.imports import (
        LOG_IMPORTER,
        capture_importer,
        recording_importer,
        request_log_importer,
    )

    if options.port and options.source != "captures":
        raise PipelineError(f"--port is for captures, not for {options.source}")
    if options.source == "captures":
        return capture_importer(frozenset(options.port or (DEFAULT_PORT,)), *cluster_options(options))
    if options.source == "request-logs":
        return request_log_importer(*cluster_options(options))
    if options.profile:
        raise PipelineError(f"--profile is for captures and request logs, not for {options.source}")
    return {"logs": LOG_IMPORTER, "recordings": recording_importer()}.get(options.source)


def run_judge(options: argparse.Namespace, console: Console) -> int:
    """Judge a corpus, or query its invariants, and print and write the report."""
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

    check_report_files(options)
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
        console.print(render_report(report, colour=False))
        console.print_line("\n" + "\n".join([*overview_lines(found.overview), tables]))
    exit_code = write_reports(options, report, console)
    return ExitCode.VIOLATION if found.overview.is_violated else exit_code


def print_queried(found: "CorpusSummary", tables: str, console: Console, *, is_empty: bool) -> int:
    """Print what the queries found, and return the exit code; `is_empty` says whether the corpus has no event."""
    from fencepost.conformance.pipeline.overview import query_lines
    from fencepost.conformance.results import ExitCode

    flaws = found.report.errors.texts("files")
    console.print_line("\n".join([*query_lines(found.overview), *(flaw_lines(flaws) if flaws else ()), tables]))
    if found.overview.is_violated:
        return ExitCode.VIOLATION
    return ExitCode.INCONCLUSIVE if flaws or is_empty else ExitCode.CONFORMANT


def run_watch(options: argparse.Namespace, console: Console) -> int:
    """Judge traces as they land, and print each finding, until a signal or with --once until all are judged."""
    from fencepost.conformance.cli.watched_findings import WatchedFindings, finding_line, unread_line
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


def run_campaign(options: argparse.Namespace, console: Console) -> int:
    """Test a target with many seeds, and print and write one report of all."""
    from fencepost.conformance.pipeline.campaign import check_plan, run_seeds
    from fencepost.conformance.plan import Plan
    from fencepost.conformance.reports.report import render_report
    from fencepost.traces.pipeline.corpus import Corpus
    from fencepost.traces.pipeline.spark_session import spark_session

    check_report_files(options)
    plan = Plan(options.target, smoke=not options.full, schedules=options.schedules, profile=options.profile)
    check_plan(plan)
    corpus = Corpus.create(options.to, BUCKETS)
    with (
        console.progress() as display,
        spark_session("campaign", options.master, spark_conf(options)) as spark,
    ):
        report = run_seeds(spark, corpus, plan, range(1, options.seeds + 1), StageProgress(display, "seeds"))
    console.print(render_report(report, colour=False))
    console.print_line(f"\nThe corpus is {options.to}: fencepost pipeline judge and extract take it")
    return write_reports(options, report, console)


def check_report_files(options: argparse.Namespace) -> None:
    """Raises `OutputError` and `OSError` for files of the report that cannot be written."""
    from fencepost.conformance.cli.outputs import check_outputs

    check_outputs(report_paths(options))


def write_reports(options: argparse.Namespace, report: "Report", console: Console) -> int:
    """Write the report to its files and return the exit code."""
    from fencepost.conformance.cli.outputs import ReportFiles
    from fencepost.conformance.results import ExitCode

    files = ReportFiles(console, report_paths(options))
    files.write(report)
    return ExitCode.COULD_NOT_RUN if files.failed else report.exit_code()


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
