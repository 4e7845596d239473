"""Real input for the pipeline: one run of three real clients on Apache Kafka, seen three ways.

Through the recorder, in a packet capture and in the broker's log, ingested and judged, it comes to the same verdict
where all three can see: the same rounds, with the same generations, leaders and members, and no requirement kept here
and broken there.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from fencepost.adapters.record.recorder import RecordingOptions
from fencepost.conformance.analysis.trace_report import judge_files
from fencepost.conformance.pipeline.overview import SUMMARY
from fencepost.conformance.pipeline.shard_findings import shard_findings
from fencepost.conformance.results import Report, Verdict
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.history.timeline import TraceHistory
from fencepost.traces.history.trace_history import HistoryRecorder
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.importers.packet_capture import CaptureSource, import_capture
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.imports import (
    LOG_IMPORTER,
    Importer,
    capture_importer,
    find_imports,
    make_opener,
)
from fencepost.traces.pipeline.ingest import ingest, trace_files
from fencepost.traces.pipeline.results import find_unreadable, fold_here, judge_corpus
from fencepost.traces.pipeline.shard_plan import plan_parts
from fencepost.traces.pipeline.spark_session import spark_session as spark_session
from tests.acceptance.checks.conformance import running_target
from tests.acceptance.crash_recovery import SPARK_CONFIG, ignore_progress
from tests.acceptance.framework import Check, Figure, MeasurementError, exactly, without_threshold
from tests.acceptance.loopback_capture import RawSocketRefused, capture_loopback
from tests.support.real_clients import CLIENTS, TOPIC, RealClientGroup, produce
from tests.support.recorder_thread import parse_bootstrap, record_in_thread
from tests.targets.kafka.installation import VERSIONS

ToldRebalance = tuple[int | None, int | None, str]
GROUP = "three-ways"
STEADY_SECONDS = 2.0
"""How long the group is left in peace between two rebalances."""


@dataclass(frozen=True, slots=True)
class CompletedRebalance:
    """One completed round, as every source can see it."""

    generation: int
    members: int
    leader: str


def run_clients(bootstrap: str) -> None:
    """Three clients come, consume, go and come again."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 4, 1)])[TOPIC].result(30)
    room = RealClientGroup(bootstrap, GROUP)
    wanted = produce(bootstrap, range(100))
    for client in CLIENTS:
        room.add_member(client)
    room.wait_until(lambda: room.is_fully_assigned() and room.has_consumed(wanted))
    for client in CLIENTS:
        time.sleep(STEADY_SECONDS)
        room.remove_member(room.members[0])
        room.wait_until(room.is_fully_assigned)
        room.add_member(client)
        room.wait_until(room.is_fully_assigned)
    while room.members:
        room.remove_member(room.members[0])


def rebalances_in_responses(events: Iterator[Event]) -> list[CompletedRebalance]:
    """The rebalances in a trace, each read from the JoinGroup response that lists the members to the leader."""
    return [
        CompletedRebalance(event.body["generation_id"], len(event.body["members"]), event.body["leader"])
        for event in events
        if event.kind is Kind.RESPONSE and event.api == "JoinGroup" and event.body.get("members")
    ]


def rebalances_in_log(events: Iterator[Event]) -> list[CompletedRebalance]:
    """The rounds that a log tells of: whose assignment came in."""
    return [
        CompletedRebalance(event.body["generation"], event.body["count"], event.body["member"])
        for event in events
        if event.body.get("step") == "publish" and event.body["group"] == GROUP
    ]


def check_sources(name: str, folder: Path) -> Iterator[Figure]:
    """One run, its three traces, and their verdicts."""
    recorded, captured, logged = (folder / f"{way}.jsonl" for way in ("recorded", "captured", "logged"))
    with running_target(name, folder) as address:
        upstream = parse_bootstrap(address.removeprefix("kafka://"))
        try:
            with capture_loopback(upstream[1], folder / "kafka.pcap"):
                job = RecordingOptions(("127.0.0.1", 0), upstream, recorded)
                with record_in_thread(job) as session:
                    run_clients(session.bootstrap)
        except RawSocketRefused as reason:
            raise MeasurementError(str(reason)) from None
        log = folder / "run" / f"kafka-{name[-1]}" / "target.log"
        lines = import_log([log], logged)
    header, _ = open_trace(recorded)
    capture = CaptureSource([folder / "kafka.pcap"], frozenset({upstream[1]}), header.settings)
    packets = import_capture(capture, captured)
    yield exactly("recorder: messages not decoded", session.results[0].undecoded, 0)
    yield exactly("capture: gaps, messages not decoded", packets.gaps + packets.undecoded, 0)
    yield exactly("log: lines of the coordinator that are not known", lines.unknown, 0)
    seen = [rebalances_in_responses(open_trace(recorded)[1]), rebalances_in_responses(open_trace(captured)[1])]
    seen.append(rebalances_in_log(open_trace(logged)[1]))
    alike = sum(one == two == three for one, two, three in zip(*seen, strict=False))
    yield exactly("rounds that all three show alike", alike, len(seen[0]))
    yield exactly("rounds in the log", len(seen[2]), len(seen[0]))
    reports: dict[str, Report] = {}
    told: list[list[ToldRebalance]] = []
    for path in (recorded, captured, logged):
        reports[path.stem], rebalances = tell_rebalances(path)
        told.append(rebalances)
    yield without_threshold("rebalances that the story of the recording tells", len(told[0]))
    yield exactly("the same in the story of the capture", str(told[1] == told[0]), "True")
    yield exactly("the same in the story of the log", str(told[2] == told[0]), "True")
    inputs = {
        "recorded": (recorded, None),
        "captured": (folder / "kafka.pcap", capture_importer(capture.ports, header.settings)),
        "logged": (log, LOG_IMPORTER),
    }
    with spark_session("acceptance", "local[2]", SPARK_CONFIG) as spark:
        for way, (path, importer) in inputs.items():
            report = pipeline_report(spark, folder / f"corpus-{way}", path, importer)
            yield without_threshold(f"{way}: events", report.events)
            yield exactly(f"{way}: in quarantine or left open", len(report.undecided), 0)
            yield exactly(
                f"{way}: requirements that fail", sum(each.verdict is Verdict.FAIL for each in report.results), 0
            )
            pairs = zip(report.results, reports[way].results, strict=True)
            other = sum(one.verdict is not two.verdict for one, two in pairs)
            yield exactly(f"{way}: requirements with another verdict than the judge's", other, 0)
            reports[way] = report
    for ways in (("recorded", "captured"), tuple(reports)):
        both = shared_verdicts(*(reports[way] for way in ways))
        yield without_threshold(f"requirements that {', '.join(ways)} can see", len(both))
        yield exactly("of them with different verdicts", sum(len(set(each)) > 1 for each in both), 0)


def tell_rebalances(path: Path) -> tuple[Report, list[ToldRebalance]]:
    """The report on a trace, and the rebalances of its history: generation, members and the phase afterwards."""
    histories: list[TraceHistory] = []
    report = judge_files([path], lambda _: None, lambda name, header: HistoryRecorder(name, header, histories))
    timeline = next(each for each in histories[0].groups if each.group == GROUP)
    return report, [(each.generation, each.members, each.phase) for each in timeline.rebalances]


def pipeline_report(spark: SparkSession, folder: Path, path: Path, importer: Importer | None) -> Report:
    """The report on a corpus of one source."""
    corpus = Corpus.create(folder, 16)
    if importer is None:
        ingest(spark, corpus, trace_files(spark, [path]), ignore_progress)
    else:
        found = find_imports(spark, importer, [path])
        ingest(spark, corpus, found, ignore_progress, open_input=make_opener(importer))
    out = folder / "judged"
    out.mkdir()
    find_unreadable(spark, corpus, out)
    judge_corpus(spark, corpus, plan_parts(spark, corpus), out, shard_findings, ignore_progress)
    return fold_here(out, SUMMARY).report.build_report(0)


def shared_verdicts(*reports: Report) -> list[tuple[Verdict, ...]]:
    """The verdicts on each requirement that was observed in all of these."""
    rows = zip(*(report.results for report in reports), strict=True)
    found = [tuple(result.verdict for result in row) for row in rows]
    return [each for each in found if Verdict.NOT_OBSERVED not in each]


SOURCE_CHECKS = tuple(
    Check(
        f"real-input-kafka{key}",
        f"one run on Apache Kafka {version}, seen three ways, ingested and judged",
        partial(check_sources, f"kafka{key}"),
    )
    for key, version in VERSIONS.items()
)
