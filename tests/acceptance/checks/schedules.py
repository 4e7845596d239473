"""Thresholds of random schedules: bugs found in faulty coordinators, false alarms on correct ones, throughput."""

import glob
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.zoo.hunt_plan import is_not_told_apart
from fencepost.conformance.zoo.results import MUTANT_RESULTS as RECORD
from fencepost.conformance.zoo.results import ResultRow, ResultTable, from_json, load_results
from fencepost.conformance.zoo.strategies import HYPOTHESIS, REMARKS, SCENARIOS, SCHEDULES, TOURS, WALK
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
from tests.acceptance.runs import (
    KitRun,
    command_environment,
    profile_option,
    run_test_command,
    running_target,
)
from tests.acceptance.schedule_batches import check_batches
from tests.support.frame_fuzzer import fuzz_codec, fuzz_server

SEEDS, MUTANT_SEEDS, BASELINE_SEEDS = 20, 3, 1
HUNT_SECONDS = 60
BUGS, MUTANTS = tuple(COORDINATOR_BUGS), "[a-z]*"
"""What is hunted, by name: mutants are called by their modules."""
FRAME_COUNT, FRAMES_SEED, MAX_GROWTH_MIB = 1_000_000, 1, 300
BUNDLED_SCHEDULES, THROUGHPUT_SCHEDULES = 10_000, 1_000


def run_hunts(folder: Path, patterns: Sequence[str], seeds: int, baseline_seeds: int, *more: str) -> ResultTable:
    """What `fencepost zoo` found; it goes into the record."""
    file = folder / "zoo.json"
    options = [
        "--seeds",
        str(seeds),
        "--baseline-seeds",
        str(baseline_seeds),
        "--seconds",
        str(HUNT_SECONDS),
        "--record",
    ]
    command = [sys.executable, "-m", "fencepost", "zoo", "--only", *patterns, *more, *options, "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, env=command_environment(), stdout=subprocess.DEVNULL)
    if not file.exists():
        raise MeasurementError(f"fencepost zoo: exit code {done.returncode}")
    return from_json(file.read_text())


def check_zoo(folder: Path) -> Iterator[Figure]:
    """Known bugs, each with many seeds, beside the baselines in the same run."""
    table = run_hunts(folder, BUGS, SEEDS, BASELINE_SEEDS)
    caught = [row for row in table.rows if row.found_by]
    drawn = [row.hunts[SCHEDULES] for row in caught if row.found_by == SCHEDULES]
    yield exactly("bugs hunted", len(table.rows), 57)
    yield at_least("bugs found", len(caught), 55)
    yield without_threshold("of them by random schedules", len(drawn))
    yield without_threshold("of them with every seed", sum(hunts.found == hunts.of for hunts in drawn))
    if drawn:
        yield at_most("median seconds of one core to find", median(each.median_seconds for each in drawn), 5)
        yield at_most("median requests after shrinking", median(each.median_requests for each in drawn), 12)
        yield without_threshold("median schedules to find", median(each.median_schedules for each in drawn))
    for row in table.rows:
        if row.found_by != SCHEDULES:
            yield without_threshold(
                f"{row.name} by", f"{row.found_by} {' '.join(row.shortest)}" if row.found_by else row.reason
            )
    yield from hit_rate(SCHEDULES, "random schedules", table.rows)
    for method, title in ((HYPOTHESIS, "plain Hypothesis"), (WALK, "random walk")):
        yield from hit_rate(method, title, table.rows)
        yield from baseline_figures(method, title, table.rows)


def hit_rate(method: str, title: str, rows: tuple[ResultRow, ...]) -> Iterator[Figure]:
    """The number of hunts by `method`, and the percentage that found a bug, comparable between numbers of seeds."""
    tried = [row.hunts[method] for row in rows]
    hunts = sum(each.of for each in tried)
    yield without_threshold(f"{title}: hunts", hunts)
    yield without_threshold(
        f"{title}: found something in %", round(100 * sum(each.found for each in tried) / max(1, hunts), 1)
    )


def baseline_figures(method: str, title: str, rows: tuple[ResultRow, ...]) -> Iterator[Figure]:
    """What a baseline found of the same bugs."""
    good = [row.hunts[method] for row in rows if row.hunts[method].found]
    yield without_threshold(f"{title}: bugs found", f"{len(good)} of {len(rows)}")
    if good:
        yield without_threshold(f"{title}: median seconds of one core", median(hunts.median_seconds for hunts in good))
        yield without_threshold(f"{title}: median requests", median(hunts.median_requests for hunts in good))


def check_mutants(folder: Path) -> Iterator[Figure]:
    """Each guard, each comparison and each timer of the bundled coordinator made wrong."""
    if os.environ.get("FENCEPOST_MUTANTS") == "rest":
        rest = [glob.escape(row.name) for row in load_results(RECORD).rows if row.found_by != SCHEDULES]
        run_hunts(folder, rest, MUTANT_SEEDS, 0, "--by", SCENARIOS, TOURS, REMARKS)
        rows = load_results(RECORD).rows
        yield without_threshold("hunts by random schedules are those on record; hunted by other means now", len(rest))
    else:
        rows = run_hunts(folder, [MUTANTS], MUTANT_SEEDS, 0).rows
    same = [row for row in rows if is_not_told_apart(row)]
    caught = [row for row in rows if row.found_by]
    share = 100 * len(caught) / max(1, len(rows) - len(same))
    yield without_threshold("mutants", len(rows))
    yield without_threshold("not told apart by the comparison", len(same))
    yield at_least("found of the others in %", round(share, 1), 95)
    yield without_threshold("of them by random schedules", sum(row.found_by == SCHEDULES for row in caught))
    yield without_threshold(
        "of them not seen broken, but told to be unusual", sum(row.found_by == REMARKS for row in caught)
    )
    for row in rows:
        if not row.found_by and row not in same:
            yield without_threshold(row.name, row.reason)


def run_schedules(name: str, schedules: int, seed: int, folder: Path) -> KitRun:
    """A run with so many random schedules, on the bundled coordinator or a real target."""
    options = ["--schedules", str(schedules), "--seed", str(seed)]
    if name == "bundled":
        return run_test_command(name, folder, *options)
    with running_target(name, folder) as address:
        return run_test_command(address, folder, *profile_option(name), *options, run_folder=folder / "run")


def check_false_alarms(name: str, schedules: int, folder: Path) -> Iterator[Figure]:
    """A right coordinator under random schedules, restarts included: nothing is blamed, hardly anything left open."""
    run = run_schedules(name, schedules, 1, folder)
    coverage = run.report["coverage"]
    yield at_least("schedules", coverage["schedules"], schedules)
    yield exactly("requirements that fail", run.count("fail"), 0)
    share = 100 * len(coverage["undecided"]) / max(1, coverage["schedules"])
    yield at_most("schedules left undecided in %", round(share, 2), 1)
    yield without_threshold("seconds", run.seconds)


def check_throughput(name: str, least: int, folder: Path) -> Iterator[Figure]:
    """How many schedules a minute, scenarios included."""
    run = run_schedules(name, THROUGHPUT_SCHEDULES, 2, folder)
    yield at_least("schedules a minute", round(60 * run.report["coverage"]["schedules"] / run.seconds), least)


def check_mutated_frames(folder: Path) -> Iterator[Figure]:
    """Mutated frames against the server and the codec."""
    begun = time.process_time()
    fuzz_codec(FRAMES_SEED, FRAME_COUNT)
    yield at_least("mutated frames that the codec read", FRAME_COUNT, FRAME_COUNT)
    yield without_threshold(
        "microseconds of one core for each", round(1e6 * (time.process_time() - begun) / FRAME_COUNT)
    )
    storm = fuzz_server(FRAMES_SEED, FRAME_COUNT)
    yield at_least("mutated frames that the server looked at", storm.frames, FRAME_COUNT)
    yield without_threshold("of them answered", storm.answered)
    yield exactly("crashes, hangs and errors of its own", len(storm.problems), 0)
    for trouble in storm.problems:
        yield without_threshold("trouble", trouble)
    yield at_most("MiB that the server grew by", round(storm.peak_mib - storm.initial_mib, 1), MAX_GROWTH_MIB)
    yield without_threshold("seconds that the slowest connection took", round(storm.slowest_seconds, 2))


CHECKS = (
    Check("zoo", "known bugs are found quickly, and shown in few requests", check_zoo),
    Check("mutants", "nearly every small fault is found", check_mutants),
    Check(
        "false-alarms",
        "the bundled coordinator is not blamed",
        partial(check_false_alarms, "bundled", BUNDLED_SCHEDULES),
    ),
    Check("false-alarms-kafka4", "Apache Kafka 4.x is not blamed", partial(check_batches, "kafka4")),
    Check("false-alarms-kafka3", "Apache Kafka 3.9.x is not blamed", partial(check_batches, "kafka3")),
    Check("mutated-frames", "a million mutated frames do no harm", check_mutated_frames),
    Check("throughput", "schedules in process", partial(check_throughput, "bundled", 1_000)),
    Check("throughput-kafka4", "schedules against a real broker", partial(check_throughput, "kafka4", 300)),
)
