"""Thresholds of swarms: many reference members on Apache Kafka, while some crash, freeze, close and are restarted."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from fencepost.conformance.results import ExitCode
from fencepost.conformance.swarm.plan import SwarmKind
from tests.acceptance.checks.conformance import command_environment, start_target
from tests.acceptance.framework import ROOT, Check, Figure, MeasurementError, at_least, exactly, without_threshold
from tests.targets.running import load_target

MEMBERS, PARTITIONS, EVENTS, SECONDS, SETTLE_SECONDS = 200, 200, 40, 120, 120
UPGRADE_SECONDS = 2 * SECONDS
SEED = 20_261_126
MEASURED = (ExitCode.CONFORMANT, ExitCode.VIOLATION, ExitCode.INCONCLUSIVE)


def run_swarm(kind: SwarmKind, folder: Path) -> dict[str, Any]:
    """The outcome of a swarm on Apache Kafka 4.x. Raises `MeasurementError`."""
    file = folder / "swarm.json"
    lasts = UPGRADE_SECONDS if kind is SwarmKind.UPGRADE else SECONDS
    with start_target(load_target("kafka4_large", folder / "run")) as target:
        words = ["swarm", target, "--kind", kind.value, "--members", str(MEMBERS), "--partitions", str(PARTITIONS)]
        words += ["--events", str(EVENTS), "--lasts", str(lasts), "--settle-seconds", str(SETTLE_SECONDS)]
        words += ["--seed", str(SEED), "--json", str(file)]
        command = [sys.executable, "-m", "fencepost", *words]
        done = subprocess.run(command, cwd=ROOT, env=command_environment(folder), stdout=subprocess.DEVNULL)
    if done.returncode not in MEASURED:
        raise MeasurementError(f"exit code {done.returncode}")
    outcome: dict[str, Any] = json.loads(file.read_text())
    return outcome


def check_swarm(kind: SwarmKind, folder: Path) -> Iterator[Figure]:
    """One owner at a time, no commit of a fenced member, every record; and how long partitions had no owner."""
    outcome = run_swarm(kind, folder)
    records, spans = outcome["records"], outcome["absences_ms"]
    rules = Counter(each["rule"] for each in outcome["violations"])
    yield without_threshold("members", outcome["members"])
    restarts = sum("upgrade of" in line for line in outcome["events"])
    if kind is SwarmKind.UPGRADE:
        yield exactly("restarts of an upgrade in two steps", restarts, 2 * MEMBERS)
    yield at_least("crashes, closes, freezes and lost connections", len(outcome["events"]) - restarts, EVENTS // 2)
    yield at_least("generations", outcome["generation"], 2)
    yield exactly("violations", ", ".join(sorted(rules)) or "none", "none")
    yield exactly("not settled", outcome["unsettled"] or "none", "none")
    yield exactly("records returned", records["returned"], records["written"])
    yield without_threshold("records returned again", records["again"])
    yield without_threshold("commits accepted", outcome["commits"]["accepted"])
    yield without_threshold("commits refused, of a generation that was over", outcome["commits"]["stale_refused"])
    first = outcome["first_owned_ms"].values()
    yield without_threshold("milliseconds until a partition had its first owner, median", round(median(first)))
    yield without_threshold("milliseconds until every partition had had an owner", max(first))
    every = [duration for durations in spans.values() for duration in durations]
    yield without_threshold("partitions that were without an owner", len(spans))
    yield without_threshold("times that a partition was without an owner", len(every))
    yield without_threshold("milliseconds without an owner, median", round(median(every)) if every else 0)
    yield without_threshold("milliseconds without an owner, longest", max(every, default=0))
    longest = max((sum(durations) for durations in spans.values()), default=0)
    yield without_threshold("milliseconds without an owner, of one partition in all", longest)
    yield without_threshold("seconds by which the kit was late", round(outcome["lag_seconds"], 1))


CHECKS = tuple(
    Check(
        kind.value,
        f"a swarm of {kind.value} members keeps its promises on Apache Kafka 4.x",
        partial(check_swarm, kind),
    )
    for kind in SwarmKind
)
