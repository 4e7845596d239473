"""Thousands of random schedules on a real broker, in batches with seeds of their own.

A batch is a run of its own: its report and the traces of its failures stay in a folder. With the environment variable
FENCEPOST_BATCHES that folder outlasts the measurement, and a batch whose report is there is not played again: so the
batches can be played in several sittings. A batch that was cut short counts for the schedules that it played.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.acceptance.framework import Figure, at_least, at_most, exactly, without_threshold
from tests.acceptance.runs import profile_option, run_test_command, running_target

FOLDER_VARIABLE = "FENCEPOST_BATCHES"
BATCH_SCHEDULES = 500
BATCH_SEEDS = tuple(range(1, 11))
KAFKA_SCHEDULES = BATCH_SCHEDULES * len(BATCH_SEEDS)
MAX_UNDECIDED_PERCENT = 1

BatchReport = Mapping[str, Any]


def check_batches(name: str, folder: Path) -> Iterator[Figure]:
    """Random schedules on the broker of tests/targets/NAME.toml, restarts included, without the scenarios."""
    return describe_batches(play_batches(name, batch_folder(folder), folder))


def batch_folder(folder: Path) -> Path:
    """The folder in which batches are kept: the one that the environment names, or one in `folder`."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else folder / "batches"


def play_batches(name: str, kept: Path, folder: Path) -> list[BatchReport]:
    """The reports of all batches: those in the folder `kept`, and those that are played now and get there.

    Each batch has a broker of its own: Kafka 4 loses sight of what it stored if it restarts with much to load (see
    docs/explanation/kafka.md)."""
    files = {seed: kept / f"{name}-{seed}.json" for seed in BATCH_SEEDS}
    missing = {seed: file for seed, file in files.items() if not file.exists()}
    if missing:
        kept.mkdir(parents=True, exist_ok=True)
        for seed, file in missing.items():
            with running_target(name, folder) as address:
                traces = file.with_suffix("")
                traces.mkdir(exist_ok=True)
                options = ["--smoke", "--schedules", str(BATCH_SCHEDULES), "--seed", str(seed), "--save", str(traces)]
                run = run_test_command(address, folder, *profile_option(name), *options, run_folder=folder / "run")
                file.write_text(json.dumps(run.report))
    return [json.loads(file.read_text()) for file in files.values()]


def describe_batches(reports: Sequence[BatchReport]) -> Iterator[Figure]:
    """What the batches found together: nothing is blamed, hardly anything is left open."""
    coverages = [report["coverage"] or {"schedules": 0, "undecided": []} for report in reports]
    schedules = sum(coverage["schedules"] for coverage in coverages)
    failed = {row["id"] for report in reports for row in report["requirements"] if row["verdict"] == "fail"}
    undecided = sum(len(coverage["undecided"]) for coverage in coverages)
    yield at_least("schedules", schedules, KAFKA_SCHEDULES)
    yield exactly("requirements that fail", ", ".join(sorted(failed)) or "none", "none")
    yield exactly("violations that no requirement speaks of", sum(len(each["unclassified"]) for each in reports), 0)
    yield at_most("schedules left undecided in %", round(100 * undecided / max(1, schedules), 2), MAX_UNDECIDED_PERCENT)
    idle = [finding for report in reports for finding in report["idle_findings"]]
    yield without_threshold("what the broker did while idle", "; ".join(idle) or "nothing")
    yield without_threshold("batches cut short", sum(report["cut_short"] for report in reports))
    yield without_threshold("seconds", round(sum(report["seconds"] for report in reports), 1))
