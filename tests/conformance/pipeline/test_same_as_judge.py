"""`fencepost pipeline judge` and `fencepost judge` report the same on traces: verdicts, causes, counts, text."""

import gzip
import runpy
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fencepost.conformance.analysis.trace_report import judge_files
from fencepost.conformance.pipeline.overview import SUMMARY, overview_lines
from fencepost.conformance.pipeline.shard_findings import shard_findings
from fencepost.conformance.pipeline.worker_daemon import DAEMON_CONF
from fencepost.conformance.reports.report import render_report
from fencepost.conformance.results import ExitCode
from fencepost.traces.events import Event, Kind
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.judge.minimize import minimize_trace
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.query_corpus import query_corpus
from fencepost.traces.pipeline.results import fold_here, judge_corpus
from fencepost.traces.pipeline.shard_plan import plan_parts
from fencepost.traces.pipeline.spark_session import DAEMON_MODULE
from tests.support.altered_traces import altered_trace, write_in_parts
from tests.support.corpus_tables import CorpusResults, ingest_here, quiet
from tests.support.faulty_regions import FAULTS as REGION_FAULTS
from tests.support.member_recording import RECORDED, T0, record_stable_member, record_wrong_member
from tests.support.push.faults import FAULTS as PUSH_FAULTS
from tests.support.same_reports import expect_same, pipeline_report
from tests.support.system_traces import write_push_traces, write_region_traces

RECORDINGS = Path(__file__).parents[2] / "identity/recordings"
RECORDINGS_IN_CI = 24


@pytest.fixture(autouse=True)
def _minimize_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes of minimizing in limited time depends on the machine."""
    patient = partial(minimize_trace, seconds=1_000)
    monkeypatch.setattr("fencepost.conformance.analysis.trace_report.minimize_trace", patient)


def recordings(folder: Path, count: int) -> list[Path]:
    """So many of the recorded traces, spread over all of them."""
    every = sorted(RECORDINGS.glob("*.jsonl.gz"))
    found = []
    for path in every[:: len(every) // count][:count]:
        found.append(folder / path.name.removesuffix(".gz"))
        with gzip.open(path) as lines:
            found[-1].write_bytes(lines.read())
    return found


@pytest.mark.slow
def test_recorded_traces_have_the_same_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.analysis.trace_report.MAX_MINIMIZED", 0)
    together = expect_same(recordings(tmp_path, RECORDINGS_IN_CI))
    assert together.schedules == RECORDINGS_IN_CI and together.failed_results()


def damage_traces(folder: Path) -> list[Path]:
    """Traces of which some cannot be read, or not to their end, or not be judged; one is in parts."""
    for seed in range(8):
        write_trace(folder / f"{seed}.jsonl", *altered_trace(seed))
    lines = (folder / "1.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "1.jsonl").write_bytes(b"".join([*lines[:30], b"?\n", *lines[31:]]))
    header, events = altered_trace(2)
    odd = next(event for event in events if event.kind is Kind.REQUEST and event.api == "JoinGroup")
    body = {**odd.body, "group_id": []}
    write_trace(folder / "2.jsonl", header, (replace(each, body=body) if each is odd else each for each in events))
    (folder / "3.jsonl").write_bytes(b"")
    (folder / "4.jsonl").write_bytes(b"\xef\xbb\xbf" + (folder / "5.jsonl").read_bytes())
    (folder / "6.jsonl.gz").write_bytes(gzip.compress((folder / "5.jsonl").read_bytes())[:-40])
    parts = write_in_parts(folder, *altered_trace(14), 4)
    lines = parts[1].read_bytes().splitlines(keepends=True)
    parts[1].write_bytes(b"".join([*lines[:-3], b"{}\n", *lines[-2:]]))
    return sorted(folder.iterdir())


def test_traces_that_cannot_be_read_are_told_alike(tmp_path: Path) -> None:
    found = expect_same(damage_traces(tmp_path))
    assert found.ended is not None and found.ended.reason.startswith("6 of 13 files could not be read to the end")
    assert len(found.undecided) >= 6 and found.exit_code() is ExitCode.VIOLATION


@pytest.mark.parametrize("seed", [0, 8])
def test_a_corpus_without_a_violation_is_inconclusive_if_a_file_could_not_be_read(seed: int, tmp_path: Path) -> None:
    write_trace(tmp_path / "good.jsonl", *altered_trace(seed))
    (tmp_path / "empty.jsonl").touch()
    found = expect_same(sorted(tmp_path.iterdir()))
    assert found.exit_code() is ExitCode.INCONCLUSIVE
    assert render_report(found).endswith("INCONCLUSIVE: not all files could be read.\n")


def test_nothing_that_could_be_read_is_not_conformant(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    report = pipeline_report([tmp_path / "empty.jsonl"])
    assert (
        report.exit_code() is ExitCode.INCONCLUSIVE and f"not judged: {tmp_path}/empty.jsonl:1: " in report.undecided[0]
    )


@pytest.mark.parametrize("seed", [1, 2, 5, 6])
def test_parts_of_a_trace_count_its_events_and_files_once(seed: int, tmp_path: Path) -> None:
    paths = write_in_parts(tmp_path, *altered_trace(seed), 3)
    split, whole = pipeline_report(paths, 0), judge_files(paths, lambda _: None)
    assert (split.events, split.schedules, split.rules) == (whole.events, whole.schedules, whole.rules)
    assert [(each.id, each.verdict, each.checks) for each in split.results] == [
        (each.id, each.verdict, each.checks) for each in whole.results
    ]


def test_a_part_of_a_malformed_trace_says_nothing(tmp_path: Path) -> None:
    """One shard meets the malformed message; what the others found is dropped, as `fencepost judge` drops the trace."""
    header, events = altered_trace(2)
    odd = next(event for event in events if event.kind is Kind.REQUEST and event.api == "JoinGroup")
    body = {**odd.body, "session_timeout_ms": "x"}
    write_trace(tmp_path / "t.jsonl", header, (replace(each, body=body) if each is odd else each for each in events))
    report = pipeline_report([tmp_path / "t.jsonl"], 0)
    assert (report.schedules, report.checked_count()) == (0, 0)
    (line,) = report.undecided
    assert line.startswith(f"not judged: {tmp_path}/t.jsonl: event {odd.sequence}: ")


def alter_body(folder: Path, kind: Kind, api: str, body: dict[str, object]) -> list[Path]:
    """A trace with these fields in the body of its last message of this kind, and one in which nothing is odd."""
    header, events = altered_trace(8)
    odd = [event for event in events if event.kind is kind and event.api == api][-1]
    changed = replace(odd, body={**odd.body, **body})
    write_trace(folder / "odd.jsonl", header, (changed if each is odd else each for each in events))
    write_trace(folder / "good.jsonl", header, events)
    return sorted(folder.iterdir())


@pytest.mark.parametrize(
    ("kind", "api", "body"),
    [
        (Kind.REQUEST, "Heartbeat", {"generation_id": "x"}),
        (Kind.REQUEST, "Heartbeat", {"member_id": 5}),
        (Kind.REQUEST, "Heartbeat", {"no such field": 5}),
        (Kind.REQUEST, "JoinGroup", {"group_id": {}}),
        (Kind.REQUEST, "OffsetCommit", {"topics": 5}),
        (Kind.REQUEST, "OffsetCommit", {"topics": [5]}),
        (Kind.REQUEST, "SyncGroup", {"assignments": [5]}),
        (Kind.RESPONSE, "Heartbeat", {"error_code": []}),
        (Kind.RESPONSE, "JoinGroup", {"members": 5}),
        (Kind.RESPONSE, "OffsetCommit", {"topics": [5]}),
        (Kind.RESPONSE, "SyncGroup", {"assignment": {}}),
    ],
)
def test_a_message_of_another_form_is_told_alike(kind: Kind, api: str, body: dict[str, object], tmp_path: Path) -> None:
    paths = alter_body(tmp_path, kind, api, body)
    whole = expect_same(paths)
    assert pipeline_report(paths, 0).undecided == whole.undecided
    if kind is Kind.REQUEST and not isinstance(next(iter(body.values())), list):
        (line,) = whole.undecided
        assert line.startswith(f"not judged: {tmp_path}/odd.jsonl: event ")


def test_the_first_of_several_malformed_messages_is_told(tmp_path: Path) -> None:
    """They are in shards of their own, so that any of them could come first."""
    body = {"group_id": "", "generation_id": "x", "member_id": "m", "group_instance_id": None}
    events = [
        Event(number, number, 0, "A", Kind.REQUEST, "Heartbeat", 4, {**body, "group_id": f"g{number}"})
        for number in range(8)
    ]
    write_trace(tmp_path / "t.jsonl", altered_trace(8)[0], events)
    (line,) = pipeline_report([tmp_path / "t.jsonl"], 0).undecided
    assert line.startswith(f"not judged: {tmp_path}/t.jsonl: event 0: 'generation_id' of Heartbeat v4 is not ")


@pytest.mark.slow
def test_members_are_judged_and_their_partitions_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    handed_on = record_stable_member()
    handed_on.join(generation=2)
    handed_on.wait(200)
    handed_on.sync((T0,), 2)
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, recording in zip(paths, (handed_on, record_wrong_member()), strict=True):
        write_trace(path, RECORDED, recording.events)
    corpus, folder = Corpus.create(tmp_path / "c", 2), tmp_path / "judged"
    ingest_here(corpus, paths)
    parts = plan_parts(spark, corpus)
    judge_corpus(spark, corpus, parts, folder, shard_findings, quiet)
    query_corpus(spark, corpus, parts, folder, quiet)
    summary = fold_here(folder, SUMMARY)
    found, expected = summary.report.build_report(0).members, judge_files(paths, lambda progress: None).members
    assert found is not None and expected is not None
    assert found.results == expected.results and [each.id for each in found.failed_results()] == ["MEMBER-13"]
    rows = {
        (Path(row["trace"]).name, row["partition"]): (row["periods"], row["unowned"])
        for row in CorpusResults(folder).query_rows("unowned")
    }
    assert rows["a.jsonl", "t/0"] == (2, 210) and rows["a.jsonl", "t/1"] == (1, 0)
    assert rows["b.jsonl", "t/0"] == (1, 0)
    assert "Partitions without an owner for a while: 1 of 6, at most 210 ms at a stretch" in overview_lines(
        summary.overview
    )


def test_push_is_judged_alike(tmp_path: Path) -> None:
    whole = expect_same(write_push_traces(tmp_path))
    assert whole.specification.subject == "push coordinator" and whole.checked_count() > 20
    with PUSH_FAULTS["start_before_all_stopped"].activate():
        broken = expect_same(write_push_traces(tmp_path, "PUSH-38"))
    assert [each.id for each in broken.failed_results()] == ["PUSH-38"]


def test_a_region_is_judged_alike(tmp_path: Path) -> None:
    whole = expect_same(write_region_traces(tmp_path))
    assert whole.specification.subject == "consistent region" and whole.checked_count() > 40
    fault = REGION_FAULTS["leave_out_seek_map"]
    with fault.activate():
        broken = expect_same(write_region_traces(tmp_path, "REGION-31"))
    assert {each.id for each in broken.failed_results()} & set(fault.breaks)


def test_a_trace_stays_whole_however_long_it_is(tmp_path: Path) -> None:
    paths = write_push_traces(tmp_path, "PUSH-38")
    split, whole = pipeline_report(paths, split=0), pipeline_report(paths)
    assert split.results == whole.results and split.checked_count() > 5


def test_a_report_is_about_one_protocol(tmp_path: Path) -> None:
    paths = [*write_push_traces(tmp_path, "PUSH-38"), *write_region_traces(tmp_path, "REGION-31")]
    with pytest.raises(PipelineError, match=r"subjects: consistent region, push coordinator; put those of each in a"):
        pipeline_report(paths)


def test_a_trace_of_an_unknown_protocol_is_told(tmp_path: Path) -> None:
    (path, *_) = write_push_traces(tmp_path / "push", "PUSH-38")
    unknown = tmp_path / "rent.jsonl"
    unknown.write_bytes(path.read_bytes().replace(b'"protocol":"push"', b'"protocol":"rent"', 1))
    report = expect_same([path, unknown])
    assert any("rent.jsonl:1: protocol 'rent' is none that is judged" in line for line in report.undecided)


def test_the_module_that_spark_starts_imports_the_judge_and_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[bool] = []
    name = DAEMON_CONF[DAEMON_MODULE]
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("pyspark.daemon.manager", lambda: served.append(True))
    found: Mapping[str, object] = runpy.run_module(name, run_name="__main__")
    assert served and {"shard_findings", "query_corpus"} <= found.keys()
