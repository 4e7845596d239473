"""Thresholds of scenarios, judge and reports on the bundled coordinator, real brokers and known bugs."""

import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fencepost.conformance.zoo.classic.bugs import COORDINATOR_BUGS
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckStatus
from tests.acceptance.framework import (
    ROOT,
    Check,
    Figure,
    MeasurementError,
    at_least,
    at_most,
    exactly,
    without_threshold,
)
from tests.acceptance.mock_findings import DECIDED_BY_A_RACE, DEVIATIONS_OF, KNOWN_CRASHES, KNOWN_FAILURES
from tests.acceptance.source_causes import compare_causes
from tests.support.bug_witnesses import WITNESSES, shown_by
from tests.support.readme import COMMANDS
from tests.targets.running import RunningTarget, load_target

SEEDS = (1, 2, 3)
BAD_INPUT = (
    "tests/adapters/test_serve_wire.py",
    "tests/adapters/test_wire_channel.py",
    "tests/adapters/test_wire_target.py",
    "tests/conformance/test_cli.py",
    "tests/conformance/test_profile.py",
    "tests/conformance/test_report_json.py",
    "tests/conformance/test_unusable.py",
    "tests/traces/test_trace_files.py",
)


@dataclass(frozen=True, slots=True)
class KitRun:
    """A run of the kit: its exit code, the seconds it took as its user sees them, and its report."""

    exit_code: int
    seconds: float
    report: dict[str, Any]

    def count(self, verdict: str) -> int:
        """How many requirements got the verdict."""
        return int(self.report["outcome"]["verdicts"][verdict])

    def unexplained_count(self) -> int:
        """How many requirements did not pass and have no reason."""
        rows = self.report["requirements"]
        return sum(row["verdict"] != "pass" and not row["note"] and not row["failures"] for row in rows)


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


# --- runs ----------------------------------------------------------------------------------------------------------


def expect_clean(run: KitRun, label: str) -> Iterator[Figure]:
    """Nothing is broken, nothing is left open."""
    yield exactly(f"{label}: fail", run.count("fail"), 0)
    yield exactly(f"{label}: inconclusive", run.count("inconclusive"), 0)
    yield exactly(f"{label}: exit code", run.exit_code, 0)
    yield without_threshold(f"{label}: pass", run.count("pass"))


def check_bundled(folder: Path) -> Iterator[Figure]:
    """The bundled coordinator, in process."""
    run = run_test_command("bundled", folder)
    yield from expect_clean(run, "whole run")
    yield exactly("whole run: not passed without a reason", run.unexplained_count(), 0)
    yield at_most("whole run: seconds", run.seconds, 60)
    smoke = run_test_command("bundled", folder, "--smoke")
    yield from expect_clean(smoke, "smoke")
    yield at_most("smoke: seconds", smoke.seconds, 15)


def check_tcp(folder: Path) -> Iterator[Figure]:
    """The bundled coordinator behind sockets: as its command serves it, and with bounds in reach and restarts."""
    command = [sys.executable, "-m", "fencepost", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, env=command_environment(), stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            run = run_test_command(f"kafka://{server.stdout.readline().strip()}", folder)
        finally:
            server.kill()
    yield from expect_clean(run, "fencepost serve")
    yield without_threshold("fencepost serve: seconds", run.seconds)
    with running_target("serve", folder) as address:
        run = run_test_command(address, folder, *profile_option("serve"), run_folder=folder / "run")
    yield from expect_clean(run, "in reach, with restarts")
    yield without_threshold("in reach, with restarts: seconds", run.seconds)


def check_kafka(name: str, folder: Path) -> Iterator[Figure]:
    """Apache Kafka, with several seeds."""
    with running_target(name, folder) as address:
        for seed in SEEDS:
            traces = folder / f"traces {seed}"
            options = [*profile_option(name), "--seed", str(seed), "--traces", str(traces)]
            run = run_test_command(address, folder, *options, run_folder=folder / "run")
            what = f"seed {seed}"
            yield exactly(f"{what}: fail", run.count("fail"), 0)
            yield at_least(f"{what}: pass", run.count("pass"), 240)
            yield exactly(f"{what}: not passed without a reason", run.unexplained_count(), 0)
            yield at_most(f"{what}: seconds", run.seconds, 300)
            standings = count_check_results(traces)
            share = 100 * standings[CheckStatus.INCONCLUSIVE] / max(1, standings.total())
            yield at_most(f"{what}: inconclusive checks in %", round(share, 2), 1)
            yield without_threshold(f"{what}: checks", standings.total())
            yield without_threshold(f"{what}: inconclusive requirements", run.count("inconclusive"))


def count_check_results(traces: Path) -> Counter[CheckStatus]:
    """What became of every check in saved traces."""
    found: Counter[CheckStatus] = Counter()
    for trace in traces.iterdir():
        header, events = open_trace(trace)
        found.update(mark.status for mark in judge(header, events).check_results)
    return found


def describe_causes(label: str, run: KitRun, deviations_of: Mapping[str, Sequence[str]]) -> Iterator[Figure]:
    """The figures that compare the causes of a report with those by the source of its target."""
    found = compare_causes((cause["requirements"] for cause in run.report["causes"]), deviations_of)
    yield without_threshold(f"{label}causes as reported", found.reported)
    yield without_threshold(f"{label}causes by source", found.by_source)
    yield without_threshold(f"{label}merged falsely", "; ".join(found.false_merges) or "none")
    yield without_threshold(f"{label}one cause told as several", "; ".join(found.missed_merges) or "none")


def check_mock(folder: Path) -> Iterator[Figure]:
    """librdkafka's mock cluster, which is known to fail."""
    with running_target("mock", folder) as address:
        run = run_test_command(address, folder, *profile_option("mock"), run_folder=folder / "run")
    failed = [row for row in run.report["requirements"] if row["verdict"] == "fail"]
    failures = [failure for row in failed for failure in row["failures"]]
    ids = {row["id"] for row in failed}
    yield at_least("requirements that fail", len(failed), 30)
    yield exactly("those that are not known to", join_ids(ids - KNOWN_FAILURES.keys()), "none")
    yield exactly("those known to that do not", join_ids(KNOWN_FAILURES.keys() - ids - {*DECIDED_BY_A_RACE}), "none")
    yield exactly(
        "crashes",
        join_ids(row["id"] for row in failed if row["id"] in KNOWN_CRASHES and is_crash(row)),
        join_ids(KNOWN_CRASHES),
    )
    yield from describe_causes("", run, DEVIATIONS_OF)
    yield exactly("failures that were not replayed", sum(not failure["replayed"] for failure in failures), 0)
    yield exactly("failures without a schedule", sum(not failure["schedule"] for failure in failures), 0)
    yield exactly("exit code", run.exit_code, 1)
    yield without_threshold("seconds", run.seconds)


def join_ids(ids: Iterable[str]) -> str:
    """Requirements in a line."""
    return ", ".join(sorted(ids)) or "none"


def is_crash(row: dict[str, Any]) -> bool:
    """The requirement fails by an answer that never came, for the connection was closed."""
    return any("connection was closed" in failure["observed"] for failure in row["failures"])


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


def check_alterations(folder: Path) -> Iterator[Figure]:
    """An altered answer fails the requirements that it is evidence of, and no others."""
    yield from expect_passing(run_tests(folder, ["tests/conformance/test_alterations.py"]))


def check_faults(folder: Path) -> Iterator[Figure]:
    """Bugs of real coordinators, put back into the bundled one, each on a scenario that shows it."""
    begun, worked, found = time.monotonic(), time.process_time(), 0
    for bug in COORDINATOR_BUGS.values():
        scenario, requirement = WITNESSES[bug.id]
        if requirement in shown_by(bug, scenario):
            found += 1
            yield without_threshold(bug.id, f"{requirement} in {scenario}")
        else:
            yield Figure(bug.id, "not found", requirement, False)
    yield at_least("faults found", found, 20)
    yield exactly("faults not found", len(COORDINATOR_BUGS) - found, 0)
    yield at_most("seconds of one core", round(time.process_time() - worked, 1), 60)
    yield without_threshold("seconds", round(time.monotonic() - begun, 1))
    tests = run_tests(folder, ["tests/conformance/test_zoo.py"], "-k", "test_circumstances_alone_are_no_bug")
    yield exactly("coordinators without faults that are blamed", tests.failed, 0)


def check_bad_input(folder: Path) -> Iterator[Figure]:
    """Targets, traces, profiles, frames and arguments that cannot be used."""
    yield from expect_passing(run_tests(folder, BAD_INPUT))


# --- the rest ------------------------------------------------------------------------------------------------------


def check_benchmark(folder: Path) -> Iterator[Figure]:
    """The judge on long traces of a busy group."""
    file = folder / "benchmark.json"
    command = [sys.executable, "-m", "tests.benchmarks.judge", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, env=command_environment(), stdout=subprocess.DEVNULL)
    if not file.exists():
        raise MeasurementError(f"tests.benchmarks.judge: exit code {done.returncode}")
    figures = json.loads(file.read_text())
    for order, events, rate in (("total", 1_000_000, 20_000), ("intervals", 1, 2_000)):
        measured = figures[order]
        yield at_least(f"{order}: events", measured["events"], events)
        yield at_least(f"{order}: events a second", measured["events_per_second"], rate)
        yield exactly(f"{order}: faults and doubts", measured["faults"] + measured["inconclusive"], 0)
        yield without_threshold(f"{order}: MiB at most", measured["peak_mib"])
        yield without_threshold(f"{order}: MiB that the second half adds", measured["grown_mib_in_second_half"])
        yield exactly(f"{order}: memory is flat", "yes" if measured["flat"] else "no", "yes")


def check_readme(folder: Path) -> Iterator[Figure]:
    """The first command of the README, in a copy of the checkout and a fresh environment."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    copy, venv = folder / "copy", folder / "venv"
    for name in filter(None, tracked.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env = variables | {"PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    begun = time.monotonic()
    done = subprocess.run(["bash", "-c", " && ".join(COMMANDS[:2])], cwd=copy, env=env, capture_output=True, text=True)
    yield exactly("exit code of " + " && ".join(COMMANDS[:2]), done.returncode, 0)
    last = done.stdout.splitlines()[-1:] or done.stderr.splitlines()[-1:] or [""]
    yield without_threshold("its last line", last[0])
    yield without_threshold("seconds, with the download", round(time.monotonic() - begun, 1))


CHECKS = (
    Check("bundled", "the bundled coordinator passes, quickly", check_bundled),
    Check("tcp", "so does it over TCP", check_tcp),
    Check("kafka4", "Apache Kafka 4.x passes, whatever the order", partial(check_kafka, "kafka4")),
    Check("kafka3", "Apache Kafka 3.9.x passes, whatever the order", partial(check_kafka, "kafka3")),
    Check("alterations", "every altered answer is found and blamed on the right requirement", check_alterations),
    Check("mock", "a loose imitation fails many requirements", check_mock),
    Check("faults", "known faults of real coordinators are found", check_faults),
    Check("benchmark", "the judge keeps up with long traces in little memory", check_benchmark),
    Check("bad-input", "what cannot be used is refused with one clear line", check_bad_input),
    Check("readme", "the first command of the README works in a fresh environment", check_readme),
)
