"""Thresholds of the formal core: theorems proved, seconds, the agreement of the engines, mutants, the search."""

import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost.model.assignors.proofs import assignor_lemmas
from fencepost.model.classic.explore.state_layout import Bounds, ModelConfig, untimed_member
from fencepost.model.classic.proofs import kernel_proofs
from fencepost.model.classic.proofs.kernel_proofs import cooperative_lemmas, rebalance_lemmas
from fencepost.model.draining.proofs import draining_lemmas
from fencepost.model.proofs.induction import Lemma, findings
from tests.acceptance import fresh_breaks, mutant_verdicts
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
from tests.acceptance.runs import command_environment
from tests.model.proofs.agreement import Agreement, Disagreement, agree

SEEDS = range(20)
SLOTS = PARTITIONS = 3
SIZE = ("--slots", str(SLOTS), "--partitions", str(PARTITIONS))
LARGE_SIZE = ("--slots", "4", "--partitions", "4", "--protocols", "3")
LARGE_CORE_SECONDS = 360
"""Three minutes on two cores, which the events share."""
LONGEST_QUERY_SECONDS = 10
EXPECTED_VERDICTS = {"proved", "false, as it should be"}


@dataclass(frozen=True, slots=True)
class ProofRun:
    """A run of `fencepost prove`: its exit code, seconds of the clock and of the one core it uses, and
    its report."""

    exit_code: int
    seconds: float
    core_seconds: float
    report: dict[str, Any]


def run_prove_command(seed: int, folder: Path, size: Sequence[str] = SIZE) -> ProofRun:
    """Run `fencepost prove` in this size."""
    file = folder / "proof.json"
    file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "fencepost", "prove", *size, "--seed", str(seed), "--json", str(file)]
    begun, worked = time.monotonic(), children_cpu_seconds()
    done = subprocess.run(command, cwd=ROOT, env=command_environment(), capture_output=True, text=True)
    seconds, worked = time.monotonic() - begun, children_cpu_seconds() - worked
    if not file.exists():
        raise MeasurementError(f"fencepost prove: exit code {done.returncode}")
    print(f"    seed {seed}: {seconds:.0f} s, {worked:.0f} s of one core", file=sys.stderr, flush=True)
    return ProofRun(done.returncode, seconds, worked, json.loads(file.read_text()))


def children_cpu_seconds() -> float:
    """What the commands run so far have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def all_theorems(folder: Path) -> Iterator[Figure]:
    """Everything that `fencepost prove` proves."""
    runs = [run_prove_command(seed, folder) for seed in SEEDS]
    verdicts = Counter(theorem["verdict"] for run in runs for theorem in run.report["theorems"])
    yield without_threshold("solver seeds", len(runs))
    yield without_threshold("theorems in each run, false wordings included", len(runs[0].report["theorems"]))
    yield exactly(
        "theorems not settled as they should be", sum(verdicts[one] for one in verdicts.keys() - EXPECTED_VERDICTS), 0
    )
    yield exactly("exit codes", ", ".join(sorted({str(run.exit_code) for run in runs})), "0")
    yield at_most("seconds of one core, slowest seed", round(max(run.core_seconds for run in runs), 1), 60)
    yield without_threshold("seconds of one core, quickest seed", round(min(run.core_seconds for run in runs), 1))
    yield without_threshold("seconds of the clock, slowest seed", round(max(run.seconds for run in runs), 1))
    yield longest_query(run.report["longest_query_seconds"] for run in runs)


def check_large_size(folder: Path) -> Iterator[Figure]:
    """The theorems in the size of the next larger groups."""
    run = run_prove_command(0, folder, LARGE_SIZE)
    verdicts = Counter(theorem["verdict"] for theorem in run.report["theorems"])
    wrong = sum(verdicts[one] for one in verdicts.keys() - EXPECTED_VERDICTS)
    yield exactly("theorems not settled as they should be", wrong, 0)
    yield exactly("exit code", run.exit_code, 0)
    yield at_most("seconds of one core", round(run.core_seconds, 1), LARGE_CORE_SECONDS)
    yield without_threshold("seconds of the clock", round(run.seconds, 1))
    yield longest_query([run.report["longest_query_seconds"]])


def longest_query(seconds: Iterable[float]) -> Figure:
    """The longest query of all."""
    return at_most("seconds of the longest query", round(max(seconds), 3), LONGEST_QUERY_SECONDS)


def lemmas(all_lemmas: Callable[[], Iterable[Lemma]], limit: float) -> Iterator[Figure]:
    """Lemmas with each solver seed, quick enough together."""
    slowest, longest, wrong, count = 0.0, 0.0, 0, 0
    for seed in SEEDS:
        begun = time.process_time()
        found = list(findings(all_lemmas(), seed))
        slowest = max(slowest, time.process_time() - begun)
        longest = max(longest, max(one.longest for one in found))
        wrong += sum(not one.as_expected for one in found)
        count = len(found)
    yield without_threshold("solver seeds", len(SEEDS))
    yield without_threshold("lemmas", count)
    yield exactly("lemmas not settled as they should be, vacuous ones included", wrong, 0)
    yield at_most("seconds of one core, slowest seed", round(slowest, 2), limit)
    yield longest_query([longest])


def check_kernel(folder: Path) -> Iterator[Figure]:
    """The theorems for any number of members, partitions and generations; every action is enabled."""
    yield from lemmas(kernel_proofs.kernel_lemmas, 5)


def check_draining(folder: Path) -> Iterator[Figure]:
    """The theorems about draining."""
    yield from lemmas(draining_lemmas, 1)


DYNAMIC, STATIC = untimed_member(), untimed_member(instance="one")
EAGER, TWO_PROTOCOLS = untimed_member(cooperative=False), untimed_member(names=("range", "sticky"))
TWO_MEMBERS = ModelConfig((DYNAMIC, DYNAMIC), heartbeats=False)
ONE_GENERATION = Bounds(ids=2, generations=1, requests=2, slots=2)
INSTANCES = (
    ("a member", ModelConfig((DYNAMIC,)), Bounds(2, 2, 4, 2)),
    ("a static member", ModelConfig((STATIC,)), Bounds(2, 2, 4, 2)),
    ("two members", TWO_MEMBERS, ONE_GENERATION),
    ("two members, one of them static", replace(TWO_MEMBERS, members=(DYNAMIC, STATIC)), ONE_GENERATION),
    (
        "a member and an eager one, room for one",
        replace(TWO_MEMBERS, members=(DYNAMIC, EAGER), max_group_size=1),
        ONE_GENERATION,
    ),
    ("a member with two protocols and partitions", ModelConfig((TWO_PROTOCOLS,), partitions=2), Bounds(2, 2, 3, 1)),
)


def check_agreement(folder: Path) -> Iterator[Figure]:
    """The executable step, the symbolic relation and the explored graph, state by state."""
    begun, worked = time.monotonic(), time.process_time()
    found, disagreements = Agreement(), 0
    for name, setting, bounds in INSTANCES:
        before = found.states
        try:
            agree(setting, bounds, agreement=found)
        except Disagreement as reason:
            disagreements += 1
            yield Figure(name, str(reason).splitlines()[0][:200], "no disagreement", False)
        yield without_threshold(f"states: {name}", found.states - before)
    yield at_least("states", found.states, 100_000)
    yield exactly("instances in which the engines disagree", disagreements, 0)
    yield without_threshold("transitions", found.transitions)
    yield without_threshold("different handler calls", found.calls)
    yield without_threshold("symbolic paths that admitted some of them", found.paths)
    yield without_threshold("seconds of one core", round(time.process_time() - worked, 1))
    yield without_threshold("seconds", round(time.monotonic() - begun, 1))


def check_settling(folder: Path) -> Iterator[Figure]:
    """The theorems about how a group settles."""
    yield from lemmas(lambda: (*rebalance_lemmas(), *cooperative_lemmas()), 2)


def check_assignors(folder: Path) -> Iterator[Figure]:
    """The theorems about the assignors."""
    yield from lemmas(assignor_lemmas, 1)


CHECKS = (
    Check("theorems", f"all theorems at {SLOTS} slots x {PARTITIONS} partitions, with any solver seed", all_theorems),
    Check("large", "all theorems at 4 slots x 4 partitions x 3 protocols", check_large_size),
    Check("parametric", "the kernel for any number of members, partitions and generations", check_kernel),
    Check("settling", "a group settles, for any number of members and partitions", check_settling),
    Check("draining", "draining for any number of partitions, records and any max.poll.records", check_draining),
    Check("assignors", "balance and stickiness for any number of members, partitions and claims", check_assignors),
    Check("agreement", "three engines, one set of transitions", check_agreement),
    Check(
        "mutants",
        "every mutant of the core is refuted, found by a tour, or shown equivalent",
        mutant_verdicts.check_mutants,
    ),
    Check("breaks", "breaks that a seed drew are refuted, or explained", fresh_breaks.check_fresh_breaks),
)
