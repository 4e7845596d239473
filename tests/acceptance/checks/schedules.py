"""The bars of random schedules: what they find in wrong coordinators, that they blame no right one, and how fast."""

import glob
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from fencepost.conformance.zoo.hunt_plan import EQUIVALENT
from fencepost.conformance.zoo.results import MUTANTS as RECORD
from fencepost.conformance.zoo.results import Row, Table, from_json, recorded
from fencepost.conformance.zoo.strategies import HYPOTHESIS, REMARKS, SCENARIOS, SCHEDULES, TOURS, WALK
from tests.acceptance.checks.conformance import Run, environment, profile, target, test
from tests.acceptance.framework import ROOT, Bar, Figure, Unmeasured, at_least, at_most, exactly, told
from tests.support.frame_fuzzer import hail, read_all

SEEDS, MUTANT_SEEDS, BASELINE_SEEDS = 20, 3, 1
SECONDS = 60
BUGS, MUTANTS = "BUG-*", "[a-z]*"
"""What is hunted, by name: mutants are called by their modules."""
FRAMES, FRAMES_SEED, GROWTH_MIB = 1_000_000, 1, 300
BUNDLED_SCHEDULES, KAFKA_SCHEDULES, PACE_SCHEDULES = 10_000, 2_000, 1_000


def hunted(folder: Path, patterns: Sequence[str], seeds: int, baseline_seeds: int, *more: str) -> Table:
    """What `fencepost zoo` found; it goes into the record."""
    file = folder / "zoo.json"
    options = ["--seeds", str(seeds), "--baseline-seeds", str(baseline_seeds), "--seconds", str(SECONDS), "--record"]
    command = [sys.executable, "-m", "fencepost", "zoo", "--only", *patterns, *more, *options, "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL)
    if not file.exists():
        raise Unmeasured(f"fencepost zoo: exit code {done.returncode}")
    return from_json(file.read_text())


def zoo(folder: Path) -> Iterator[Figure]:
    """Known bugs, each with many seeds, beside the baselines in the same run."""
    table = hunted(folder, [BUGS], SEEDS, BASELINE_SEEDS)
    caught = [row for row in table.rows if row.found_by]
    drawn = [row.hunts[SCHEDULES] for row in caught if row.found_by == SCHEDULES]
    yield exactly("bugs hunted", len(table.rows), 57)
    yield at_least("bugs found", len(caught), 55)
    yield told("of them by random schedules", len(drawn))
    yield told("of them with every seed", sum(hunts.found == hunts.of for hunts in drawn))
    if drawn:
        yield at_most("median seconds of one core to find", median(each.median_seconds for each in drawn), 5)
        yield at_most("median requests after shrinking", median(each.median_requests for each in drawn), 12)
        yield told("median schedules to find", median(each.median_schedules for each in drawn))
    for row in table.rows:
        if row.found_by != SCHEDULES:
            yield told(f"{row.name} by", f"{row.found_by} {' '.join(row.shortest)}" if row.found_by else row.reason)
    yield from share(SCHEDULES, "random schedules", table.rows)
    for method, title in ((HYPOTHESIS, "plain Hypothesis"), (WALK, "random walk")):
        yield from share(method, title, table.rows)
        yield from beside(method, title, table.rows)


def share(method: str, title: str, rows: tuple[Row, ...]) -> Iterator[Figure]:
    """How many of the hunts found something: what can be compared, whatever the number of seeds."""
    tried = [row.hunts[method] for row in rows]
    hunts = sum(each.of for each in tried)
    yield told(f"{title}: hunts", hunts)
    yield told(f"{title}: found something in %", round(100 * sum(each.found for each in tried) / max(1, hunts), 1))


def beside(method: str, title: str, rows: tuple[Row, ...]) -> Iterator[Figure]:
    """What a baseline found of the same bugs."""
    good = [row.hunts[method] for row in rows if row.hunts[method].found]
    yield told(f"{title}: bugs found", f"{len(good)} of {len(rows)}")
    if good:
        yield told(f"{title}: median seconds of one core", median(hunts.median_seconds for hunts in good))
        yield told(f"{title}: median requests", median(hunts.median_requests for hunts in good))


def mutants(folder: Path) -> Iterator[Figure]:
    """Each guard, each comparison and each timer of the bundled coordinator made wrong."""
    if os.environ.get("FENCEPOST_MUTANTS") == "rest":
        rest = [glob.escape(row.name) for row in recorded(RECORD).rows if row.found_by != SCHEDULES]
        hunted(folder, rest, MUTANT_SEEDS, 0, "--by", SCENARIOS, TOURS, REMARKS)
        rows = recorded(RECORD).rows
        yield told("hunts by random schedules are those on record; hunted by other means now", len(rest))
    else:
        rows = hunted(folder, [MUTANTS], MUTANT_SEEDS, 0).rows
    same = [row for row in rows if row.reason == EQUIVALENT]
    caught = [row for row in rows if row.found_by]
    share = 100 * len(caught) / max(1, len(rows) - len(same))
    yield told("mutants", len(rows))
    yield told("equivalent, as far as a bounded comparison shows", len(same))
    yield at_least("found of the others in %", round(share, 1), 95)
    yield told("of them by random schedules", sum(row.found_by == SCHEDULES for row in caught))
    yield told("of them not seen broken, but told to be unusual", sum(row.found_by == REMARKS for row in caught))
    for row in rows:
        if not row.found_by and row not in same:
            yield told(row.name, row.reason)


def scheduled(name: str, schedules: int, seed: int, folder: Path) -> Run:
    """A run with so many random schedules, on the bundled coordinator or a real target."""
    options = ["--schedules", str(schedules), "--seed", str(seed)]
    if name == "bundled":
        return test(name, folder, *options)
    with target(name, folder) as address:
        return test(address, folder, *profile(name), *options, run_folder=folder / "run")


def right(name: str, schedules: int, folder: Path) -> Iterator[Figure]:
    """A right coordinator under random schedules, restarts included: nothing is blamed, hardly anything left open."""
    run = scheduled(name, schedules, 1, folder)
    coverage = run.report["coverage"]
    yield at_least("schedules", coverage["schedules"], schedules)
    yield exactly("requirements that fail", run.count("fail"), 0)
    share = 100 * len(coverage["undecided"]) / max(1, coverage["schedules"])
    yield at_most("schedules left undecided in %", round(share, 2), 1)
    yield told("seconds", run.seconds)


def pace(name: str, least: int, folder: Path) -> Iterator[Figure]:
    """How many schedules a minute, scenarios included."""
    run = scheduled(name, PACE_SCHEDULES, 2, folder)
    yield at_least("schedules a minute", round(60 * run.report["coverage"]["schedules"] / run.seconds), least)


def mutated_frames(folder: Path) -> Iterator[Figure]:
    """Mutated frames against the server and the codec."""
    begun = time.process_time()
    read_all(FRAMES_SEED, FRAMES)
    yield at_least("mutated frames that the codec read", FRAMES, FRAMES)
    yield told("microseconds of one core for each", round(1e6 * (time.process_time() - begun) / FRAMES))
    storm = hail(FRAMES_SEED, FRAMES)
    yield at_least("mutated frames that the server looked at", storm.frames, FRAMES)
    yield told("of them answered", storm.answered)
    yield exactly("crashes, hangs and errors of its own", len(storm.trouble), 0)
    for trouble in storm.trouble:
        yield told("trouble", trouble)
    yield at_most("MiB that the server grew by", round(storm.most - storm.before, 1), GROWTH_MIB)
    yield told("seconds that the slowest connection took", round(storm.slowest, 2))


BARS = (
    Bar("zoo", "known bugs are found quickly, and shown in few requests", zoo),
    Bar("mutants", "nearly every small fault is found", mutants),
    Bar("false-alarms", "the bundled coordinator is not blamed", partial(right, "bundled", BUNDLED_SCHEDULES)),
    Bar("false-alarms-kafka4", "Apache Kafka 4.x is not blamed", partial(right, "kafka4", KAFKA_SCHEDULES)),
    Bar("false-alarms-kafka3", "Apache Kafka 3.9.x is not blamed", partial(right, "kafka3", KAFKA_SCHEDULES)),
    Bar("mutated-frames", "a million mutated frames do no harm", mutated_frames),
    Bar("throughput", "schedules in process", partial(pace, "bundled", 1_000)),
    Bar("throughput-kafka4", "schedules against a real broker", partial(pace, "kafka4", 300)),
)
