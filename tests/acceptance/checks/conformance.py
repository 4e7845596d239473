"""The bars of the spine: scenarios, judge and reports on the bundled coordinator, real brokers and known faults."""

import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fencepost.conformance.zoo.classic.bugs import COORDINATOR
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import Standing
from tests.acceptance.framework import ROOT, Bar, Figure, Unmeasured, at_least, at_most, exactly, told
from tests.acceptance.mock_findings import CRASHES, FINDINGS
from tests.conformance.test_zoo import SHOWN, shown_by
from tests.targets.running import prepare
from tests.test_readme import COMMANDS

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
class Run:
    """A run of the kit: its exit code, the seconds it took as its user sees them, and its report."""

    exit_code: int
    seconds: float
    report: dict[str, Any]

    def count(self, verdict: str) -> int:
        """How many requirements got the verdict."""
        return int(self.report["summary"][verdict])

    def unexplained(self) -> int:
        """How many requirements did not pass and have no reason."""
        rows = self.report["requirements"]
        return sum(row["verdict"] != "pass" and not row["note"] and not row["failures"] for row in rows)


def test(target: str, folder: Path, *options: str, run_folder: Path | None = None) -> Run:
    """Run `fencepost test`."""
    file = folder / "report.json"
    file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "fencepost", "test", target, "--json", str(file), *options]
    begun = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=environment(run_folder), stdout=subprocess.PIPE, text=True)
    seconds = round(time.monotonic() - begun, 1)
    if not file.exists():
        raise Unmeasured(f"fencepost test {target}: exit code {done.returncode}")
    return Run(done.returncode, seconds, json.loads(file.read_text()))


def environment(run_folder: Path | None = None) -> dict[str, str]:
    """The variables of a command: this Python comes first, and targets live in their own folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path} | ({"FENCEPOST_RUN": str(run_folder)} if run_folder else {})


@contextmanager
def target(name: str, folder: Path) -> Iterator[str]:
    """A target of tests/targets, started with empty storage; gives its address."""
    running = prepare(name, folder / "run")
    try:
        running.start()
    except (pytest.skip.Exception, AssertionError) as reason:
        raise Unmeasured(" ".join(str(reason).split())) from None
    try:
        yield f"kafka://{running.bootstrap}"
    finally:
        running.kill()


def profile(name: str) -> list[str]:
    """The option that names a target's profile."""
    return ["--profile", f"tests/targets/{name}.toml"]


# --- runs ----------------------------------------------------------------------------------------------------------


def clean(run: Run, what: str) -> Iterator[Figure]:
    """Nothing is broken, nothing is left open."""
    yield exactly(f"{what}: fail", run.count("fail"), 0)
    yield exactly(f"{what}: inconclusive", run.count("inconclusive"), 0)
    yield exactly(f"{what}: exit code", run.exit_code, 0)
    yield told(f"{what}: pass", run.count("pass"))


def bundled(folder: Path) -> Iterator[Figure]:
    """The bundled coordinator, in process."""
    run = test("bundled", folder)
    yield from clean(run, "whole run")
    yield exactly("whole run: not passed without a reason", run.unexplained(), 0)
    yield at_most("whole run: seconds", run.seconds, 60)
    smoke = test("bundled", folder, "--smoke")
    yield from clean(smoke, "smoke")
    yield at_most("smoke: seconds", smoke.seconds, 15)


def tcp(folder: Path) -> Iterator[Figure]:
    """The bundled coordinator behind sockets: as its command serves it, and with bounds in reach and restarts."""
    command = [sys.executable, "-m", "fencepost", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            run = test(f"kafka://{server.stdout.readline().strip()}", folder)
        finally:
            server.kill()
    yield from clean(run, "fencepost serve")
    yield told("fencepost serve: seconds", run.seconds)
    with target("serve", folder) as address:
        run = test(address, folder, *profile("serve"), run_folder=folder / "run")
    yield from clean(run, "in reach, with restarts")
    yield told("in reach, with restarts: seconds", run.seconds)


def kafka(name: str, folder: Path) -> Iterator[Figure]:
    """Apache Kafka, with several seeds."""
    with target(name, folder) as address:
        for seed in SEEDS:
            traces = folder / f"traces {seed}"
            options = [*profile(name), "--seed", str(seed), "--traces", str(traces)]
            run = test(address, folder, *options, run_folder=folder / "run")
            what = f"seed {seed}"
            yield exactly(f"{what}: fail", run.count("fail"), 0)
            yield at_least(f"{what}: pass", run.count("pass"), 240)
            yield exactly(f"{what}: not passed without a reason", run.unexplained(), 0)
            yield at_most(f"{what}: seconds", run.seconds, 300)
            standings = evidence(traces)
            share = 100 * standings[Standing.INCONCLUSIVE] / max(1, standings.total())
            yield at_most(f"{what}: inconclusive checks in %", round(share, 2), 1)
            yield told(f"{what}: checks", standings.total())
            yield told(f"{what}: inconclusive requirements", run.count("inconclusive"))


def evidence(traces: Path) -> Counter[Standing]:
    """What became of every check in saved traces."""
    found: Counter[Standing] = Counter()
    for trace in traces.iterdir():
        header, events = open_trace(trace)
        found.update(mark.standing for mark in judge(header, events).evidence)
    return found


def mock(folder: Path) -> Iterator[Figure]:
    """librdkafka's mock cluster, which is known to fail."""
    with target("mock", folder) as address:
        run = test(address, folder, *profile("mock"), run_folder=folder / "run")
    failed = [row for row in run.report["requirements"] if row["verdict"] == "fail"]
    failures = [failure for row in failed for failure in row["failures"]]
    ids = {row["id"] for row in failed}
    yield at_least("requirements that fail", len(failed), 30)
    yield exactly("those that are not known to", listed(ids - FINDINGS.keys()), "none")
    yield exactly("those known to that do not", listed(FINDINGS.keys() - ids), "none")
    yield exactly(
        "crashes", listed(row["id"] for row in failed if row["id"] in CRASHES and crashed(row)), listed(CRASHES)
    )
    yield exactly("failures that were not replayed", sum(not failure["replayed"] for failure in failures), 0)
    yield exactly("failures without a schedule", sum(not failure["schedule"] for failure in failures), 0)
    yield exactly("exit code", run.exit_code, 1)
    yield told("seconds", run.seconds)


def listed(ids: Iterable[str]) -> str:
    """Requirements in a line."""
    return ", ".join(sorted(ids)) or "none"


def crashed(row: dict[str, Any]) -> bool:
    """The requirement fails by an answer that never came, for the connection was closed."""
    return any("connection was closed" in failure["observed"] for failure in row["failures"])


# --- tests ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tests:
    """A run of pytest, by test case."""

    passed: int
    failed: int
    skipped: int
    seconds: float


def run_tests(folder: Path, paths: Sequence[str], *options: str) -> Tests:
    """Run tests, showing their progress."""
    missing = [path for path in paths if not (ROOT / path).exists()]
    if missing:
        raise Unmeasured(f"{', '.join(missing)}: not there")
    file = folder / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={file}", *options, *paths]
    begun = time.monotonic()
    subprocess.run(command, cwd=ROOT, env=environment(folder / "run"))
    seconds = round(time.monotonic() - begun, 1)
    if not file.exists():
        raise Unmeasured("pytest left no report")
    cases = list(ElementTree.parse(file).iter("testcase"))
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    return Tests(len(cases) - failed - skipped, failed, skipped, seconds)


def passing(tests: Tests) -> Iterator[Figure]:
    """All tests pass, and there are some."""
    yield exactly("tests failed", tests.failed, 0)
    yield exactly("tests skipped", tests.skipped, 0)
    yield at_least("tests passed", tests.passed, 1)
    yield told("seconds", tests.seconds)


def alterations(folder: Path) -> Iterator[Figure]:
    """An altered answer fails the requirements that it is evidence of, and no others."""
    yield from passing(run_tests(folder, ["tests/conformance/test_alterations.py"]))


def faults(folder: Path) -> Iterator[Figure]:
    """Bugs of real coordinators, put back into the bundled one, each on a scenario that shows it."""
    begun, worked, found = time.monotonic(), time.process_time(), 0
    for bug in COORDINATOR.values():
        scenario, requirement = SHOWN[bug.number]
        if requirement in shown_by(bug, scenario):
            found += 1
            yield told(bug.number, f"{requirement} in {scenario}")
        else:
            yield Figure(bug.number, "not found", requirement, False)
    yield at_least("faults found", found, 20)
    yield exactly("faults not found", len(COORDINATOR) - found, 0)
    yield at_most("seconds of one core", round(time.process_time() - worked, 1), 60)
    yield told("seconds", round(time.monotonic() - begun, 1))
    tests = run_tests(folder, ["tests/conformance/test_zoo.py"], "-k", "test_circumstances_alone_are_no_bug")
    yield exactly("coordinators without faults that are blamed", tests.failed, 0)


def bad_input(folder: Path) -> Iterator[Figure]:
    """Targets, traces, profiles, frames and arguments that cannot be used."""
    yield from passing(run_tests(folder, BAD_INPUT))


# --- the rest ------------------------------------------------------------------------------------------------------


def benchmark(folder: Path) -> Iterator[Figure]:
    """The judge on long traces of a busy group."""
    file = folder / "benchmark.json"
    command = [sys.executable, "-m", "tests.benchmarks.judge", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL)
    if not file.exists():
        raise Unmeasured(f"tests.benchmarks.judge: exit code {done.returncode}")
    figures = json.loads(file.read_text())
    for order, events, rate in (("total", 1_000_000, 20_000), ("intervals", 1, 2_000)):
        measured = figures[order]
        yield at_least(f"{order}: events", measured["events"], events)
        yield at_least(f"{order}: events a second", measured["events_per_second"], rate)
        yield exactly(f"{order}: faults and doubts", measured["faults"] + measured["inconclusive"], 0)
        yield told(f"{order}: MiB at most", measured["peak_mib"])
        yield told(f"{order}: MiB that the second half adds", measured["grown_mib_in_second_half"])
        yield exactly(f"{order}: memory is flat", "yes" if measured["flat"] else "no", "yes")


def readme(folder: Path) -> Iterator[Figure]:
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
    yield told("its last line", last[0])
    yield told("seconds, with the download", round(time.monotonic() - begun, 1))


BARS = (
    Bar("bundled", "the bundled coordinator passes, quickly", bundled),
    Bar("tcp", "so does it over TCP", tcp),
    Bar("kafka4", "Apache Kafka 4.x passes, whatever the order", partial(kafka, "kafka4")),
    Bar("kafka3", "Apache Kafka 3.9.x passes, whatever the order", partial(kafka, "kafka3")),
    Bar("alterations", "every altered answer is found and blamed on the right requirement", alterations),
    Bar("mock", "a loose imitation fails many requirements", mock),
    Bar("faults", "known faults of real coordinators are found", faults),
    Bar("benchmark", "the judge keeps up with long traces in little memory", benchmark),
    Bar("bad-input", "what cannot be used is refused with one clear line", bad_input),
    Bar("readme", "the first command of the README works in a fresh environment", readme),
)
