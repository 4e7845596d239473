"""A bad input, the folder that it is tried in, and the promises about it."""

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fencepost.conformance.cli import main
from fencepost.conformance.reports.json_report import to_json
from fencepost.conformance.reports.report import to_html
from fencepost.model.settings import Settings
from fencepost.traces.events import Header, Order
from fencepost.traces.files.jsonl import encode_header
from tests.support.sample_reports import VIOLATED

MAX_LINE = 600
"""The longest complaint in characters; some list the keys of a section."""
PASSWORD = "swordfish"
"""What stands for a password; it is never shown."""
LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class BadInput:
    """Arguments that cannot work, tried in a folder with these files; `place` is what the complaint must name."""

    name: str
    words: tuple[str, ...]
    place: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    report: str = ""
    """The file that has to hold a report on why nothing was tested, if one was asked for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did."""

    exit_code: int | None
    out: str
    err: str


def prepare_folder(case: BadInput, folder: Path) -> None:
    """Write the files of a bad input."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def run_process(words: Sequence[str], folder: Path) -> Outcome:
    """Run the command line in a process of its own, without a terminal."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FORCE_", "NO_COLOR"))}
    command = [sys.executable, "-m", "fencepost", *words]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return Outcome(None, "", "")
    return Outcome(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def run_here(words: Sequence[str], folder: Path) -> Outcome:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return Outcome(int(code), out.getvalue(), err.getvalue())


def broken_promises(case: BadInput, outcome: Outcome, folder: Path) -> list[str]:
    """What a command did not keep of: exit code 2, one line that names the place, no traceback, nothing lost."""
    if outcome.exit_code is None:
        return [f"it goes on after {LIMIT_S:g} s"]
    lines = outcome.err.splitlines()
    line = lines[0] if lines else ""
    checks = {
        f"exit code {outcome.exit_code}": outcome.exit_code != 2,
        "a traceback": "Traceback" in outcome.err,
        f"{len(lines)} lines": len(lines) != 1,
        "output": outcome.out != "",
        f"the line does not say who speaks: {line[:80]!r}": not line.startswith("fencepost"),
        f"a line of {len(line)} characters": len(line) > MAX_LINE,
        "characters that upset a terminal": not line.isprintable(),
        f"{case.place!r} is not named": case.place not in outcome.err,
        "a password": PASSWORD in outcome.err + outcome.out,
        "an error of the kit": "error in Fencepost itself" in outcome.err,
    }
    broken = [promise for promise, is_broken in checks.items() if is_broken]
    return broken + changed_files(case, folder)


def changed_files(case: BadInput, folder: Path) -> list[str]:
    """What was done to the folder: files changed, lost or left behind, or no report where one was asked for."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    changed = [f"{name} was changed" for name, content in case.files.items() if found.get(name) != content]
    left = [f"{name} was left behind" for name in found if name not in case.files and name != case.report]
    if case.report and b'"could-not-run"' not in found.get(case.report, b""):
        left.append("no report on why nothing was tested")
    return changed + left


# --- Good inputs, of which bad ones are made.

DATA = Path(__file__).parents[2] / "traces" / "data"
HEADER = Header("here", Order.INTERVALS, "wall", Settings(), 1_000)


def _event(sequence: int, kind: str, api: str, body: dict[str, Any], of: int | None = None) -> dict[str, Any]:
    event = {
        "sequence": sequence,
        "time": sequence,
        "connection": 1,
        "member": "A",
        "kind": kind,
        "api": api,
        "version": 4,
        "body": body,
    }
    return event if of is None else {**event, "of": of}


BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}
EVENTS = (
    _event(0, "request", "Heartbeat", BEAT),
    _event(1, "response", "Heartbeat", {"throttle_time_ms": 0, "error_code": 25}, 0),
    _event(2, "internal", "check", {"requirement": "HB-02", "fields": []}),
    _event(3, "request", "Heartbeat", BEAT),
    _event(4, "response", "Heartbeat", {"throttle_time_ms": 0, "error_code": 25}, 3),
)
"""Heartbeats of a group that does not exist, and a check."""


@dataclass(frozen=True)
class Samples:
    """A good input of each kind."""

    @cached_property
    def header(self) -> dict[str, Any]:
        """The header of a trace."""
        header: dict[str, Any] = json.loads(encode_header(HEADER))
        return header

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The events of a trace."""
        events: list[dict[str, Any]] = json.loads(json.dumps(EVENTS))
        events[2]["of"] = 1
        return events

    @cached_property
    def trace(self) -> bytes:
        """A trace that can be judged and replayed."""
        return join_lines(self.header, *self.events)

    @cached_property
    def trace_gz(self) -> bytes:
        """The trace, compressed."""
        return gzip.compress(self.trace, mtime=0)

    @cached_property
    def report(self) -> dict[str, Any]:
        """The JSON report of a run with a violation."""
        report: dict[str, Any] = json.loads(to_json(VIOLATED))
        return report

    @cached_property
    def page(self) -> str:
        """The page of the report."""
        return to_html(VIOLATED)

    @cached_property
    def log(self) -> bytes:
        """The log of a broker."""
        return (DATA / "kafka-4.log").read_bytes()

    @cached_property
    def capture(self) -> bytes:
        """A packet capture."""
        return (DATA / "kafka.pcap").read_bytes()


def join_lines(*lines: object) -> bytes:
    """Lines of JSON."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


SAMPLES = Samples()
