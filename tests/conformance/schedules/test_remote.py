"""Random schedules over the network on a server with a known bug: found, seen again, made short, saved and replayed."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.conformance.classic.protocol import CLASSIC
from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.cli import main
from fencepost.conformance.run.engines import ConcurrentEngine
from fencepost.model.settings import Settings
from fencepost.traces.events import Kind
from fencepost.traces.files.trace_files import open_trace
from tests.support.served_coordinator import serve_in_thread

SETTINGS = Settings(min_session_timeout=300, initial_rebalance_delay=100, offsets_partitions=2)
BUG, REQUIREMENT = "BUG-40", "JOIN-29"
SHRINK_SECONDS = 6.0
MAX_REQUESTS = 20
"""Of the saved trace."""
PROFILE = "[timing]\ngrace_ms = 1500\n"


@contextmanager
def faulty_server() -> Iterator[str]:
    """A server with the bug."""
    with COORDINATOR_BUGS[BUG].activate(), serve_in_thread(SETTINGS) as bootstrap:
        yield bootstrap


@pytest.mark.slow
def test_a_bug_is_found_made_short_saved_and_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fencepost.conformance.run.registry.DEFAULT_PROTOCOL", replace(CLASSIC, scenarios=()))
    monkeypatch.setattr(ConcurrentEngine, "shrink_seconds", SHRINK_SECONDS)
    report, folder, profile = tmp_path / "r.json", tmp_path / "failures", tmp_path / "p.toml"
    profile.write_text(PROFILE)
    options = ["--schedules", "8", "--seed", "1", "--only", REQUIREMENT, "--profile", str(profile)]
    with faulty_server() as bootstrap:
        run = ["test", f"kafka://{bootstrap}", *options, "--save", str(folder), "--json", str(report)]
        assert main(run) == 1
        document = json.loads(report.read_text())
        (found,) = document["requirements"]
        (failure,) = found["failures"]
        assert (found["id"], found["verdict"], failure["replayed"]) == (REQUIREMENT, "fail", True)
        words = shlex.split(failure["replay"])
        (saved,) = (path for path in folder.iterdir() if str(path) in words)
        _, events = open_trace(saved)
        requests = [event for event in events if event.kind is Kind.REQUEST]
        assert len(requests) <= MAX_REQUESTS
        capsys.readouterr()
        assert main(words[1:]) == 1
        assert capsys.readouterr().out.endswith("STILL FAILS\n")
    with serve_in_thread(SETTINGS) as bootstrap:
        again = [f"kafka://{bootstrap}" if word.startswith("kafka://") else word for word in words[1:]]
        assert main(again) == 0
        assert capsys.readouterr().out == "FIXED\n"
