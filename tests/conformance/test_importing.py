"""`fencepost import` from the command line."""

import sys
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from tests.support.log_stories import DATA as RUN

Capture = pytest.CaptureFixture[str]
DATA = Path(__file__).parents[1] / "traces" / "data"
LOG = str(DATA / "kafka-4.log")
CAPTURE = str(DATA / "kafka.pcap")
REQUESTS = str(DATA / "kafka-4-requests.log.gz")


def complaint(arguments: list[str], capsys: Capture) -> str:
    """The only line that the command has to say before it gives up."""
    assert main(["import", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    return line


def test_a_log_is_imported_and_judged(tmp_path: Path, capsys: Capture) -> None:
    trace = str(tmp_path / "trace.jsonl")
    assert main(["import", "log", LOG, "-o", trace]) == 0
    assert "lines (Kafka 3.7 or newer) in" in capsys.readouterr().err
    assert main(["judge", trace]) == 0
    report = capsys.readouterr().out
    assert "NO VIOLATION" in report and "GEN           5 pass" in report


@pytest.mark.extra("dpkt")
@pytest.mark.parametrize("profile", ["", "[settings]\ninitial_rebalance_delay = 600\nmin_session_timeout = 500\n"])
def test_a_capture_is_imported_and_judged(profile: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "profile.toml").write_text(profile)
    trace = str(tmp_path / "trace.jsonl")
    assert main(["import", "capture", CAPTURE, "-o", trace, "--profile", str(tmp_path / "profile.toml")]) == 0
    assert "events from 330 packets on 5 connections" in capsys.readouterr().err
    assert main(["judge", trace]) == 0
    report = capsys.readouterr().out
    assert "NO VIOLATION" in report
    assert ("TIMER" in report) is bool(profile) and "HB            3 pass" in report


@pytest.mark.parametrize("profile", ["", "[settings]\ninitial_rebalance_delay = 600\nmin_session_timeout = 500\n"])
def test_a_request_log_is_imported_and_judged(profile: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "profile.toml").write_text(profile)
    trace = str(tmp_path / "trace.jsonl")
    assert main(["import", "request-log", REQUESTS, "-o", trace, "--profile", str(tmp_path / "profile.toml")]) == 0
    told = capsys.readouterr().err
    assert "events from 72 requests in 95 lines" in told and "5 requests left out, of groups" in told
    assert main(["judge", trace]) == 0
    report = capsys.readouterr().out
    assert "NO VIOLATION" in report and "HB            3 pass" in report


def test_without_what_reads_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "dpkt", None)
    assert "pip install 'fencepost[capture]'" in complaint(
        ["capture", CAPTURE, "-o", str(tmp_path / "x.jsonl")], capsys
    )


def test_a_log_of_a_wrong_coordinator_is_a_violation(tmp_path: Path, capsys: Capture) -> None:
    text = Path(LOG).read_text().replace("Stabilized group demo-4 generation 3", "Stabilized group demo-4 generation 2")
    (tmp_path / "server.log").write_text(text)
    trace = str(tmp_path / "trace.jsonl")
    assert main(["import", "log", str(tmp_path / "server.log"), "-o", trace]) == 0
    assert main(["judge", trace]) == 1
    report = capsys.readouterr().out
    assert "FAIL GEN-02" in report and "each completed join phase counts one" in report


def capture_case(arguments: list[str], reason: str) -> object:
    """A case that opens the capture, for which the extra is needed."""
    return pytest.param(arguments, reason, marks=pytest.mark.extra("dpkt"))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "KIND"),
        (["nothing"], "invalid choice"),
        (["log", LOG], "-o/--output"),
        (["log", "missing.log", "-o", "x.jsonl"], "missing.log: cannot be read: No such file"),
        (["log", __file__, "-o", "x.jsonl"], "no line of a group coordinator"),
        (["request-log", LOG, "-o", "x.jsonl"], "no line of a request log; is it that of kafka.request.logger"),
        (["request-log", "missing.log", "-o", "x.jsonl"], "missing.log: cannot be read: No such file"),
        (["log", LOG, "-o", "/nowhere/x.jsonl"], "/nowhere/x.jsonl: No such file"),
        (["log", LOG, "-o", LOG], "would be written over"),
        capture_case(["capture", LOG, "-o", "x.jsonl"], f"fencepost: {LOG}: not a packet capture (pcap or pcapng)"),
        capture_case(["capture", CAPTURE, "-o", "x.jsonl", "--port", "9"], "no TCP to or from port 9 in 330 packets"),
        capture_case(["capture", CAPTURE, "-o", "x.jsonl", "--port", "70000"], "'70000' is not a port"),
        (["capture", CAPTURE, "-o", "x.jsonl", "--profile", "no.toml"], "no.toml"),
        capture_case(["capture", "missing.pcap", "-o", "x.jsonl"], "missing.pcap: cannot be read: No such file"),
    ],
)
def test_what_cannot_be_imported(
    arguments: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert reason in complaint(arguments, capsys)
    assert not list(tmp_path.iterdir())


def test_a_trace_that_is_there_is_written_over_only_if_asked(tmp_path: Path, capsys: Capture) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text("precious")
    words = ["import", "log", LOG, "-o", str(trace)]
    expected = f"fencepost: {trace}: File exists; choose another name, or write over it with --force"
    assert complaint(words[1:], capsys) == expected
    bad = tmp_path / "bad.log"
    bad.write_text("no coordinator")
    assert main(["import", "log", str(bad), "--force", "-o", str(trace)]) == 2
    assert trace.read_text() == "precious"
    assert main([*words, "--force"]) == 0
    assert main(["judge", str(trace)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.log", "trace.jsonl"]


@pytest.mark.extra("dpkt")
def test_a_length_that_no_packet_has_is_damage(tmp_path: Path, capsys: Capture) -> None:
    """The rest of the file would else be one packet."""
    good = Path(CAPTURE).read_bytes()
    capture = tmp_path / "x.pcap"
    capture.write_bytes(good[:24] + good[24:32] + b"\xff\xff\xff\x7f" * 2 + good[40:])
    assert complaint(["capture", str(capture), "-o", str(tmp_path / "x.jsonl")], capsys) == (
        f"fencepost: {capture}: damaged after packet 0: a packet of 2147483647 bytes"
    )


@pytest.mark.parametrize(
    "path", [*RUN.glob("*.log"), *RUN.glob("dump*"), *RUN.glob("*/*.log")], ids=lambda path: path.name
)
def test_judge_says_what_a_file_is_and_what_makes_a_trace_of_it(path: Path, tmp_path: Path, capsys: Capture) -> None:
    source = "offsets" if "dump" in path.name or path.name[0] == "0" else "log"
    assert main(["judge", str(path)]) == 2
    assert f"fencepost import {source} {path}" in capsys.readouterr().err
    assert main(["import", source, str(path), "-o", str(tmp_path / "t.jsonl")]) == 0


def test_a_trace_that_speaks_of_joining_is_none_of_these(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "t").write_text('{"fencepost_trace": 1, "source": "joining group"}\n')
    assert main(["judge", str(tmp_path / "t")]) == 2
    assert "make a trace of it" not in capsys.readouterr().err
