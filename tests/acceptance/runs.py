"""What the suites run: the kit on a target, and tests."""

import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.framework import (
    ROOT,
    Figure,
    MeasurementError,
    at_least,
    exactly,
    without_threshold,
)
from tests.targets.running import RunningTarget, load_target


@dataclass(frozen=True, slots=True)
class KitRun:
    """A run of the kit: its exit code, the seconds it took as its user sees them, and its report."""

    exit_code: int
    seconds: float
    report: dict[str, Any]

    def count(self, verdict: str) -> int:
        """How many requirements got the verdict."""
        return int(self.report["outcome"]["verdicts"][verdict])


def run_test_command(target: str, folder: Path, *options: str, run_folder: Path | None = None) -> KitRun:
    """Run `fencepost test`."""
    file = folder / "report.json"
    file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "fencepost", "test", target, "--json", str(file), *options]
    begun = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=command_environment(run_folder), stdout=subprocess.PIPE, text=True)
    seconds = round(time.monotonic() - begun, 1)
    if not file.exists():
        raise MeasurementError(f"fencepost test {target}: exit code {done.returncode}")
    report = file.read_text()
    if kept := os.environ.get("FENCEPOST_REPORTS"):
        (Path(kept) / f"{time.strftime('%H%M%S')}-{target.rpartition('/')[2]}.json").write_text(report)
    return KitRun(done.returncode, seconds, json.loads(report))


def command_environment(run_folder: Path | None = None) -> dict[str, str]:
    """The variables of a command: this Python comes first, and targets live in their own folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path} | ({"FENCEPOST_RUN": str(run_folder)} if run_folder else {})


@contextmanager
def running_target(name: str, folder: Path) -> Iterator[str]:
    """A target of tests/targets, started with empty storage; gives its address."""
    with start_target(load_target(name, folder / "run")) as address:
        yield address


@contextmanager
def start_target(target: RunningTarget) -> Iterator[str]:
    """Start a target for the block; gives its address. Raises MeasurementError if it cannot be started."""
    try:
        target.start()
    except (pytest.skip.Exception, AssertionError) as reason:
        raise MeasurementError(" ".join(str(reason).split())) from None
    try:
        yield f"kafka://{target.bootstrap}"
    finally:
        target.kill()


def profile_option(name: str) -> list[str]:
    """The option that names a target's profile."""
    return ["--profile", f"tests/targets/{name}.toml"]


def join_ids(ids: Iterable[str]) -> str:
    """Requirements in a line."""
    return ", ".join(sorted(ids)) or "none"


# --- tests ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PytestResult:
    """A run of pytest, by test case."""

    passed: int
    failed: int
    skipped: int
    seconds: float


def run_tests(folder: Path, paths: Sequence[str], *options: str) -> PytestResult:
    """Run tests, showing their progress."""
    missing = [path for path in paths if not (ROOT / path.partition("::")[0]).exists()]
    if missing:
        raise MeasurementError(f"{', '.join(missing)}: not there")
    file = folder / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={file}", *options, *paths]
    begun = time.monotonic()
    subprocess.run(command, cwd=ROOT, env=command_environment(folder / "run"))
    seconds = round(time.monotonic() - begun, 1)
    if not file.exists():
        raise MeasurementError("pytest left no report")
    cases = list(ElementTree.parse(file).iter("testcase"))
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    return PytestResult(len(cases) - failed - skipped, failed, skipped, seconds)


def expect_passing(tests: PytestResult) -> Iterator[Figure]:
    """All tests pass, and there are some."""
    yield exactly("tests failed", tests.failed, 0)
    yield exactly("tests skipped", tests.skipped, 0)
    yield at_least("tests passed", tests.passed, 1)
    yield without_threshold("seconds", tests.seconds)
