"""Random schedules alone on faults that nobody tuned them on: see `tests.acceptance.heldout_faults`."""

import asyncio
import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Description
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault
from fencepost.conformance.events import RunEvent, ScheduleFinished
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.subject import Selection, select_requirements
from fencepost.model.catalogue.requirement import Requirement
from tests.acceptance import framework
from tests.acceptance.framework import Check, Figure, MeasurementError, at_least, exactly, without_threshold
from tests.acceptance.heldout_faults.registry import FAULTS, WITNESSES

# --- Random schedules alone on a coordinator in this process: no scenarios, no tours.


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """What the random schedules of one seed found.

    `named` are the requirements that the report fails. `first` is the number of the first schedule that violates
    something and `seconds` when it was judged, both None without one; `total_seconds` includes shrinking. Seconds are
    those of one core.
    """

    seed: int
    named: tuple[str, ...]
    first: int | None
    seconds: float | None
    total_seconds: float

    @property
    def is_found(self) -> bool:
        """Whether the report of this seed blames the coordinator."""
        return bool(self.named)


class SchedulesOnlyRun(BundledRun):
    """A run on the bundled coordinator as it is in this process, without scenarios."""

    def select(self, requirements: Sequence[Requirement], description: Description) -> Selection:
        """All requirements, and no scenario."""
        return replace(super().select(requirements, description), scenarios=())


def run_schedules_only(seed: int, schedules: int) -> ScheduleRun:
    """Play so many random schedules of a seed, shrink and replay what they find, and return what the report says."""
    begun = time.process_time()
    played, found = 0, list[tuple[int, float]]()

    def watch(event: RunEvent) -> None:
        nonlocal played
        if isinstance(event, ScheduleFinished):
            played += 1
            if event.violated:
                found.append((played, time.process_time() - begun))

    run = SchedulesOnlyRun(
        Plan("bundled", seed=seed, schedules=schedules),
        Profile(),
        lambda settings: InProcessTarget(BUNDLED_SETTINGS),
        can_configure=False,
    )
    report = asyncio.run(run.run(select_requirements(()), watch))
    first, seconds = found[0] if found else (None, None)
    named = tuple(result.id for result in report.failed_results())
    return ScheduleRun(seed, named, first, seconds, time.process_time() - begun)


# --- Thresholds of random schedules alone on faults that nobody tuned them on: see `tests.acceptance.heldout_faults`.

SEEDS = (60_413, 217_645, 481_516, 708_392, 931_207)
"""Of these runs and of no other."""
SCHEDULES = 60
MIN_FOUND = 27
SHIPPED = "shipped"
SUMMARY = "found"
_FOUND, _OWN = "seeds that find it", "seeds that name a requirement of its own"


def run_fault(name: str, schedules: int, seed: int) -> ScheduleRun:
    """Run random schedules of a seed on the coordinator with this fault, or on the shipped one."""
    fault = next((fault for fault in FAULTS if fault.id == name), None)
    with fault.activate() if fault is not None else nullcontext():
        return run_schedules_only(seed, schedules)


def run_all_seeds(name: str) -> list[ScheduleRun]:
    """Run `run_fault` with every seed, a process for each; FENCEPOST_SCHEDULES overrides the number of schedules."""
    schedules = int(os.environ.get("FENCEPOST_SCHEDULES", SCHEDULES))
    with ProcessPoolExecutor(len(SEEDS), multiprocessing.get_context("fork")) as pool:
        return list(pool.map(partial(run_fault, name, schedules), SEEDS))


def check_shipped(folder: Path) -> Iterator[Figure]:
    """The shipped coordinator, with the same seeds."""
    runs = run_all_seeds(SHIPPED)
    yield exactly(
        "requirements that fail", ", ".join(sorted({id for run in runs for id in run.named})) or "none", "none"
    )
    yield exactly("schedules that violate something", sum(run.first is not None for run in runs), 0)
    yield without_threshold("median seconds of one core", median(run.total_seconds for run in runs))


def check_fault(fault: CoordinatorFault, folder: Path) -> Iterator[Figure]:
    """One fault, with every seed."""
    runs = run_all_seeds(fault.id)
    found = [run for run in runs if run.is_found]
    yield without_threshold(_FOUND, len(found))
    if found:
        yield without_threshold("median number of the first schedule", median(run.first or 0 for run in found))
        yield without_threshold("median seconds of one core until then", median(run.seconds or 0.0 for run in found))
        yield without_threshold(
            "median seconds of one core, shrinking included", median(run.total_seconds for run in found)
        )
        named = Counter(id for run in found for id in run.named)
        yield without_threshold("named, with seeds", ", ".join(f"{id} {seeds}" for id, seeds in named.most_common()))
        yield without_threshold(_OWN, sum(not set(fault.breaks).isdisjoint(run.named) for run in found))
    yield without_threshold("its own requirements", ", ".join(fault.breaks) or "none yet")
    if not_blamed := WITNESSES[fault.id].not_blamed:
        yield without_threshold("judge: not blamed yet", not_blamed)


def check_found(folder: Path) -> Iterator[Figure]:
    """All faults, from the results of the checks before. FENCEPOST_LABEL says what was measured, as in "baseline"."""
    file = framework.RESULTS / "heldout.json"
    entries = json.loads(file.read_text())["bars"] if file.exists() else {}
    if missing := [fault.id for fault in FAULTS if fault.id not in entries]:
        raise MeasurementError(f"{len(missing)} faults are not measured yet, the first is {missing[0]}")
    values = {fault.id: {each["what"]: each["value"] for each in entries[fault.id]["figures"]} for fault in FAULTS}
    seeds = {name: figures[_FOUND] for name, figures in values.items()}
    yield without_threshold("measured", os.environ.get("FENCEPOST_LABEL", "the generator as it is"))
    yield exactly("faults", len(FAULTS), 30)
    yield at_least("faults found with at least one seed", sum(map(bool, seeds.values())), MIN_FOUND)
    yield without_threshold(f"with all {len(SEEDS)} seeds", sum(count == len(SEEDS) for count in seeds.values()))
    yield without_threshold("runs that find something", f"{sum(seeds.values())} of {len(SEEDS) * len(FAULTS)}")
    yield without_threshold("runs that name a requirement of the fault's own", sum(own_runs(values)))
    yield from (without_threshold(kind, counts) for kind, counts in found_by_kind(seeds))
    yield without_threshold("not found", ", ".join(name for name, count in seeds.items() if not count) or "none")


def own_runs(values: dict[str, dict[str, Any]]) -> Sequence[int]:
    """For each fault the runs that name a requirement of its own."""
    return [figures.get(_OWN, 0) for figures in values.values()]


def found_by_kind(seeds: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Each kind of fault, with how many of its faults were found."""
    for kind in dict.fromkeys(witness.kind for witness in WITNESSES.values()):
        names = [fault.id for fault in FAULTS if WITNESSES[fault.id].kind == kind]
        yield kind, f"{sum(bool(seeds[name]) for name in names)} of {len(names)}"


CHECKS = (
    Check(SHIPPED, "the shipped coordinator is never blamed", check_shipped),
    *(Check(fault.id, fault.sentence, partial(check_fault, fault)) for fault in FAULTS),
    Check(SUMMARY, "faults of these kinds are found by random schedules alone", check_found),
)
