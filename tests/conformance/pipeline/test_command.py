"""`fencepost pipeline` on the command line: output, exit codes, and errors in one line."""

import json
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fencepost.conformance.cli import main
from fencepost.conformance.cli.pipeline import WatchedFindings
from fencepost.model.errors import Error
from fencepost.traces.events import Kind
from fencepost.traces.files.trace_files import open_trace, write_trace
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.results import replace_folder
from tests.support.altered_traces import altered_trace
from tests.support.corpus_tables import CorpusResults
from tests.support.faulty_regions import FAULTS
from tests.support.pcap_writer import PORT, PcapWriter, write_heartbeats
from tests.support.random_client import random_trace
from tests.support.system_traces import write_region_traces

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def running(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session of the tests in the place of one of its own."""

    @contextmanager
    def here(*_: Any, **__: Any) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("fencepost.traces.pipeline.spark_session.spark_session", here)


@pytest.mark.slow
@pytest.mark.usefixtures("running")
def test_a_violation_gets_from_ingest_to_report(tmp_path: Path, capsys: Capture) -> None:
    header, events = random_trace(random.Random(4), 60)
    wrong = next(each for each in events if each.kind is Kind.RESPONSE and each.api == "Heartbeat")
    spoiled = [
        replace(each, body={**each.body, "error_code": Error.FENCED_INSTANCE_ID}) if each is wrong else each
        for each in events
    ]
    write_trace(tmp_path / "t.jsonl", header, spoiled)
    (tmp_path / "bad.jsonl").write_bytes(b"?\n")
    corpus, report = tmp_path / "c", tmp_path / "r.json"
    assert main(["pipeline", "ingest", str(tmp_path), "--to", str(corpus), "--buckets", "2"]) == 3
    lines = len(events) + 2
    told = capsys.readouterr().out
    assert f"{lines} lines = 1 headers + {len(events)} events + 1 in quarantine" in told
    assert f"1 files could not be read, or not to their end:\n  {tmp_path}/bad.jsonl:1: not JSON" in told
    assert main(["pipeline", "judge", str(corpus), "--json", str(report)]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "FAIL HB-" in told and "Invariants, queried" in told and report.exists()
    assert (
        "one leader per generation: holds (" in told
        and "each partition owned at most once in a generation: not" in told
    )
    assert f"not judged: {tmp_path}/bad.jsonl:1: not JSON" in told and "1 of 2 files could not be read" in told


@pytest.mark.slow
@pytest.mark.usefixtures("running")
def test_a_corpus_that_holds_nothing_is_not_conformant(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty.jsonl").touch()
    corpus = str(tmp_path / "c")
    assert main(["pipeline", "ingest", str(tmp_path), "--to", corpus]) == 3
    assert main(["pipeline", "judge", corpus, "--queries"]) == 3
    assert f"{tmp_path}/empty.jsonl:1: the file is empty" in capsys.readouterr().out
    with replace_folder(tmp_path / "c" / "judged") as other:  # what another judge prepares there is left alone
        assert main(["pipeline", "judge", corpus]) == 3
        assert "INCONCLUSIVE: not all files could be read." in capsys.readouterr().out
        assert other.is_dir() and CorpusResults(tmp_path / "c" / "judged").examined_counts()["one-leader"] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("running")
def test_a_watch_that_finds_a_violation_says_so_by_its_exit_code(tmp_path: Path, capsys: Capture) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    write_trace(landing / "t.jsonl", *altered_trace(5))
    for _ in range(2):
        assert main(["pipeline", "watch", str(landing), "--to", str(tmp_path / "w"), "--once"]) == 1
    told = capsys.readouterr().out
    assert told.count("VIOLATION ") == 1 and told.count("1 violations found so far") == 2


@pytest.mark.slow
@pytest.mark.usefixtures("running")
def test_traces_of_another_protocol_get_from_ingest_to_report(tmp_path: Path, capsys: Capture) -> None:
    with FAULTS["leave_out_seek_map"].activate():
        traces, corpus = tmp_path / "traces", str(tmp_path / "c")
        count = len(write_region_traces(traces))
        assert main(["pipeline", "ingest", str(traces), "--to", corpus, "--buckets", "2"]) == 0
        assert f"{count} files read" in capsys.readouterr().out
        reports = [tmp_path / "pipeline.json", tmp_path / "judge.json"]
        assert main(["pipeline", "judge", corpus, "--json", str(reports[0])]) == 1
        assert "FAIL REGION-31" in capsys.readouterr().out
        assert main(["judge", str(traces), "--json", str(reports[1])]) == 1
        mine, theirs = (json.loads(report.read_text()) for report in reports)
        for told in (mine, theirs):
            for row in told["requirements"]:
                row["more_failures"] = len(row.pop("failures")) + (row.get("more_failures") or 0)
        assert mine["requirements"] == theirs["requirements"] and mine["rules"] == theirs["rules"]
        assert main(["pipeline", "watch", str(traces), "--to", str(tmp_path / "w"), "--once"]) == 1
        assert "REGION-31" in capsys.readouterr().out


def test_a_watch_counts_the_violations_that_stand() -> None:
    found = WatchedFindings()
    row = {"trace": "t", "bucket": 0, "kind": "violation", "value": "{}"}
    found.add(row)
    assert (found.violations.total(), found.is_open) == (1, False)
    found.add({**row, "kind": "withdrawn"})
    found.add({**row, "kind": "unjudged", "value": "{1}"})
    assert (found.violations.total(), found.is_open) == (0, True)


@pytest.mark.usefixtures("running")
def test_captures_are_of_the_ports_and_settings_that_are_named(tmp_path: Path, capsys: Capture) -> None:
    capture, profile, corpus = tmp_path / "a.pcap", tmp_path / "profile.toml", tmp_path / "corpus"
    write_heartbeats(PcapWriter()).write(capture)
    profile.write_text("[settings]\ninitial_rebalance_delay = 7\n[timing]\ngrace_ms = 5\n")
    common = ["pipeline", "ingest", "--from", "captures", str(capture), "--to", str(corpus)]
    assert main([*common, "--port", str(PORT), "--profile", str(profile)]) == 0
    assert "1 files read" in capsys.readouterr().out
    (row,) = Corpus.open(corpus).inputs()
    assert row.input.startswith(f"{capture}#captures-") and row.size == capture.stat().st_size
    assert main(["pipeline", "extract", str(corpus), "--finding", row.input, "-o", str(tmp_path / "made.jsonl")]) == 0
    header, _ = open_trace(tmp_path / "made.jsonl")
    assert (header.settings.initial_rebalance_delay, header.grace) == (7, 5)
    assert main([*common, "--port", "1"]) == 2
    assert "no TCP to or from port 1" in capsys.readouterr().err
    assert main([*common, "--port", str(PORT), "--profile", str(profile)]) == 0
    assert "0 files read, 1 known already" in capsys.readouterr().out
    write_heartbeats(PcapWriter()).write(tmp_path / "b.pcap")
    (tmp_path / "c.pcap").write_bytes(b"?")
    several = [*common[:4], str(tmp_path / "c.pcap"), str(tmp_path / "b.pcap"), *common[5:], "--port", str(PORT)]
    assert main(several) == 2
    told = capsys.readouterr()
    assert "1 files read" in told.out and f"\nfencepost: {tmp_path}/c.pcap: not a packet capture" in "\n" + told.err
    capture.write_bytes((tmp_path / "b.pcap").read_bytes())
    os.utime(capture, ns=(1, 1))
    assert main([*common, "--port", str(PORT), "--profile", str(profile)]) == 2
    assert "was ingested before, and has changed since" in capsys.readouterr().err


def test_errors_are_one_line(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "t.jsonl").touch()
    trace = str(tmp_path / "t.jsonl")
    for arguments, line in (
        (["judge", str(tmp_path)], f"fencepost: {tmp_path} is not a corpus: make one with fencepost pipeline ingest"),
        (
            ["ingest", trace, "--to", str(tmp_path / "full")],
            f"fencepost: {tmp_path}/full is neither empty nor a corpus",
        ),
        (["ingest", "/nowhere", "--to", str(tmp_path / "c")], "fencepost: /nowhere: there is no such file or folder"),
        (["ingest", trace, "--to", trace], f"fencepost: {trace} is neither empty nor a corpus"),
        (
            ["ingest", trace, "--to", str(tmp_path / "c"), "--port", "9093"],
            "fencepost: --port is for captures, not for traces",
        ),
        (["watch", "/nowhere", "--to", str(tmp_path / "w")], "fencepost: /nowhere: there is no such folder"),
    ):
        assert main(["pipeline", *arguments]) == 2
        output = capsys.readouterr()
        assert (output.out, output.err) == ("", f"{line}\n")


def test_without_the_extra_the_pipeline_says_what_to_install(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "fencepost.traces.pipeline.spark_session")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert main(["pipeline", "judge", "c"]) == 2
    assert capsys.readouterr().err == (
        "fencepost: this command needs pyspark, which is not installed: pip install 'fencepost[spark]'\n"
    )
