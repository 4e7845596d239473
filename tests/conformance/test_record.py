"""`fencepost record` from the command line."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.traces.files.trace_files import open_trace
from tests.support.served_coordinator import serve_in_thread
from tests.targets import probe

Capture = pytest.CaptureFixture[str]
LIMIT = 60


def complaint(arguments: list[str], capsys: Capture) -> str:
    """The only line that the command has to say before it gives up."""
    assert main(["record", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-o", "x.jsonl"], "--upstream"),
        (["--upstream", "127.0.0.1:9"], "-o/--output"),
        (["--upstream", "nowhere", "-o", "x.jsonl"], "'nowhere' is not host:port"),
        (["--upstream", "127.0.0.1:9", "-o", "x.jsonl", "--listen", "9092"], "'9092' is not host:port"),
        (["--upstream", "127.0.0.1:9", "-o", "x.jsonl", "--rotate", "0"], "'0' is not a size such as 50M"),
        (["--upstream", "127.0.0.1:9", "-o", "x.jsonl", "--sync", "0"], "'0' is not a number of seconds"),
        (["--upstream", "127.0.0.1:9", "-o", "/nowhere/x.jsonl"], "/nowhere/x.jsonl: No such file or directory"),
        (["--upstream", "127.0.0.1:9", "-o", "x.jsonl", "--profile", "no.toml"], "no.toml"),
    ],
)
def test_what_cannot_be_asked(arguments: list[str], reason: str, capsys: Capture) -> None:
    assert reason in complaint(arguments, capsys)


def test_a_cluster_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "x.jsonl"
    assert "refused" in complaint(["--upstream", "127.0.0.1:1", "-o", str(path)], capsys)
    assert not path.exists()


def test_a_file_that_is_there(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("precious")
    with serve_in_thread() as upstream:
        words = ["--upstream", upstream, "-o", str(path)]
        reason = "File exists; choose another name, or write over it with --force"
        assert complaint(words, capsys) == f"fencepost: {path}: {reason}"
        assert path.read_text() == "precious"
        assert main(["record", *words, "--force", "--seconds", "0.1"]) == 0
    assert [event.api for event in open_trace(path)[1]] == ["unknown"]


def test_an_address_that_is_taken_leaves_no_file(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "x.jsonl"
    with serve_in_thread() as upstream:
        assert complaint(["--upstream", upstream, "--listen", upstream, "-o", str(path)], capsys) == (
            f"fencepost: {upstream}: cannot listen: Address already in use; "
            "choose another port, 0 for any, or another host"
        )
    assert not path.exists()


def test_a_recording_for_some_seconds(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "x.jsonl.gz"
    with serve_in_thread() as upstream:
        assert main(["record", "--upstream", upstream, "-o", str(path), "--seconds", "0.1"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("127.0.0.1:")
    assert output.err == f"fencepost: 1 events in {path}\n"
    assert [event.api for event in open_trace(path)[1]] == ["unknown"]


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_recording_until_it_is_enough(ending: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with serve_in_thread() as upstream:
        command = [sys.executable, "-m", "fencepost", "record", "--upstream", upstream, "-o", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            bootstrap = process.stdout.readline().strip()
            assert probe.api_versions(int(bootstrap.rpartition(":")[2]))
            os.kill(process.pid, ending)
            _, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, err) == (0, f"fencepost: 3 events in {path}\n")
    assert [event.api for event in open_trace(path)[1]] == ["unknown", "ApiVersions", "ApiVersions"]
