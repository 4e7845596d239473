"""Thresholds of random schedules: false alarms on correct coordinators, throughput, and mutated frames."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.acceptance.framework import (
    Check,
    Figure,
    at_least,
    at_most,
    exactly,
    without_threshold,
)
from tests.acceptance.runs import (
    KitRun,
    profile_option,
    run_test_command,
    running_target,
)
from tests.acceptance.schedule_batches import check_batches
from tests.support.frame_fuzzer import fuzz_codec, fuzz_server

FRAME_COUNT, FRAMES_SEED, MAX_GROWTH_MIB = 1_000_000, 1, 300
BUNDLED_SCHEDULES, THROUGHPUT_SCHEDULES = 10_000, 1_000


def run_schedules(name: str, schedules: int, seed: int, folder: Path) -> KitRun:
    """A run with a number of random schedules, on the bundled coordinator or a real target."""
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
