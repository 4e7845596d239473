"""Targets and profiles that cannot be used: one clear line through the command line, and exit code 2."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.conformance.testing.threads import enter_in_thread
from fencepost.traces.files.trace_files import open_trace
from tests.support.fake_broker import DISCONNECT, FakeBroker, serve_brokers

Capture = pytest.CaptureFixture[str]


@contextmanager
def listening(broker: FakeBroker) -> Iterator[str]:
    """Serve a broker from a thread of its own; gives the target to name."""
    with enter_in_thread(lambda: serve_brokers(broker)):
        yield f"kafka://127.0.0.1:{broker.port}"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace that could be replayed."""
    folder = tmp_path_factory.mktemp("traces")
    assert main(["test", "bundled", "--only", "HB-01", "--traces", str(folder)]) == 0
    return min(trace for trace in folder.glob("*.jsonl") if list(open_trace(trace)[1]))


def complaint(arguments: list[str], capsys: Capture) -> str:
    """The only line that a command has to say before it gives up."""
    capsys.readouterr()
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    return line


def raw_broker(reply: bytes) -> FakeBroker:
    """Something that says this to everybody and hangs up."""
    broker = FakeBroker()
    broker.responses["ApiVersions"] = lambda _: reply
    return broker


@pytest.mark.parametrize("command", ["test", "replay"])
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (DISCONNECT, "the target closed the connection; it gave no reason; look into its log"),
        (b"\x15\x03\x03\0\x02\x02\x46", "speaks TLS; write TARGET"),
        (
            b"HTTP/1.1 400 Bad Request\r\n",
            "speaks HTTP, not Kafka's protocol; check the port",
        ),
    ],
    ids=["closes", "TLS", "HTTP"],
)
def test_something_else_listens(command: str, reply: bytes, reason: str, trace: Path, capsys: Capture) -> None:
    with listening(raw_broker(reply)) as target:
        words = [command, *([str(trace)] if command == "replay" else []), target]
        told = reason.replace("TARGET", target.replace("kafka", "kafka+ssl"))
        assert complaint(words, capsys) == f"fencepost: {target}: {told}"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("kafka://127.0.0.1:1", "kafka://127.0.0.1:1: connection refused; is the broker running?"),
        ("kafka://no-such-host.invalid:1", "kafka://no-such-host.invalid:1: no such host; check the host name"),
        (
            "127.0.0.1:9092/t",
            "'127.0.0.1:9092/t' is no target: write bundled, host:port, kafka://host:port or kafka+ssl://host:port",
        ),
    ],
)
def test_nobody_listens(target: str, reason: str, trace: Path, capsys: Capture) -> None:
    assert complaint(["test", target], capsys) == f"fencepost: {reason}"
    assert complaint(["replay", str(trace), target], capsys) == f"fencepost: {reason}"


def test_an_unknown_requirement(capsys: Capture) -> None:
    assert complaint(["test", "bundled", "--only", "HB-99"], capsys) == (
        "fencepost: no requirement matches 'HB-99'; try an id like HB-09 or a pattern like 'HB-*'"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[target", "not TOML: Expected ']' at the end of a table declaration (at end of document)"),
        (
            "[targets]",
            "targets: unknown section; the sections are target, settings, capabilities, known, about, timing, security",
        ),
        ("[settings]\ngrace = 1", "[settings] grace: unknown key; the keys are min_session_timeout, "),
        ('[known]\nHB-99 = "later"', "[known] HB-99: no such requirement; write an id like JOIN-29"),
        ('[target]\nkill = "x"', "[target]: kill is of no use without start; give that too"),
    ],
)
def test_a_bad_profile(text: str, reason: str, trace: Path, tmp_path: Path, capsys: Capture) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text(text)
    for words in (["test", "bundled"], ["replay", str(trace), "bundled"]):
        assert complaint([*words, "--profile", str(profile)], capsys).startswith(f"fencepost: {profile}: {reason}")


def test_a_profile_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    profile = tmp_path / "p.toml"
    assert complaint(["test", "bundled", "--profile", str(profile)], capsys) == (
        f"fencepost: {profile}: No such file or directory; name a readable TOML file"
    )
