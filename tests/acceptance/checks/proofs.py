"""The bars of the formal core: what is proved and how quickly, the agreement of the engines, mutants, the search."""

import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost.model.explore.classic.state_layout import Bounds, Setting, plain
from fencepost.model.proofs.classic import kernel_proofs
from fencepost.model.proofs.draining import theorems
from fencepost.model.proofs.obligations import Lemma, findings
from fencepost.model.proofs.solver import LIMIT_MS
from tests.acceptance import mutant_verdicts
from tests.acceptance.checks.conformance import environment
from tests.acceptance.framework import ROOT, Bar, Figure, Unmeasured, at_least, at_most, exactly, told
from tests.model.proofs.agreement import Agreement, Disagreement, agree

SEEDS = range(20)
SLOTS = PARTITIONS = 3
GOOD = {"proved", "false, as it should be"}


@dataclass(frozen=True, slots=True)
class Proved:
    """A run of `fencepost prove`: its exit code, seconds of the clock and of the one core it uses, and its report."""

    exit_code: int
    seconds: float
    core_seconds: float
    report: dict[str, Any]


def prove(seed: int, folder: Path) -> Proved:
    """Run `fencepost prove` in the size of the bar."""
    file = folder / "proof.json"
    file.unlink(missing_ok=True)
    size = ["--slots", str(SLOTS), "--partitions", str(PARTITIONS)]
    command = [sys.executable, "-m", "fencepost", "prove", *size, "--seed", str(seed), "--json", str(file)]
    begun, worked = time.monotonic(), core_seconds_of_commands()
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    seconds, worked = time.monotonic() - begun, core_seconds_of_commands() - worked
    if not file.exists():
        raise Unmeasured(f"fencepost prove: exit code {done.returncode}")
    print(f"    seed {seed}: {seconds:.0f} s, {worked:.0f} s of one core", file=sys.stderr, flush=True)
    return Proved(done.returncode, seconds, worked, json.loads(file.read_text()))


def core_seconds_of_commands() -> float:
    """What the commands run so far have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def all_theorems(folder: Path) -> Iterator[Figure]:
    """Everything that `fencepost prove` proves."""
    runs = [prove(seed, folder) for seed in SEEDS]
    verdicts = Counter(theorem["verdict"] for run in runs for theorem in run.report["theorems"])
    yield told("solver seeds", len(runs))
    yield told("theorems in each run, false wordings included", len(runs[0].report["theorems"]))
    yield exactly("theorems not settled as they should be", sum(verdicts[one] for one in verdicts.keys() - GOOD), 0)
    yield exactly("exit codes", ", ".join(sorted({str(run.exit_code) for run in runs})), "0")
    yield at_most("seconds of one core, slowest seed", round(max(run.core_seconds for run in runs), 1), 60)
    yield told("seconds of one core, quickest seed", round(min(run.core_seconds for run in runs), 1))
    yield told("seconds of the clock, slowest seed", round(max(run.seconds for run in runs), 1))
    yield longest_query(run.report["longest_query_seconds"] for run in runs)


def longest_query(seconds: Iterable[float]) -> Figure:
    """The longest query of all."""
    return at_most("seconds of the longest query", round(max(seconds), 3), LIMIT_MS / 1000)


def lemmas(every: Callable[[], Iterable[Lemma]], limit: float) -> Iterator[Figure]:
    """Lemmas with each solver seed, quick enough together."""
    slowest, longest, wrong, count = 0.0, 0.0, 0, 0
    for seed in SEEDS:
        begun = time.process_time()
        found = list(findings(every(), seed))
        slowest = max(slowest, time.process_time() - begun)
        longest = max(longest, max(one.longest for one in found))
        wrong += sum(not one.as_expected for one in found)
        count = len(found)
    yield told("solver seeds", len(SEEDS))
    yield told("lemmas", count)
    yield exactly("lemmas not settled as they should be, vacuous ones included", wrong, 0)
    yield at_most("seconds of one core, slowest seed", round(slowest, 2), limit)
    yield longest_query([longest])


def kernel(folder: Path) -> Iterator[Figure]:
    """The theorems for any number of members, partitions and generations; every action is enabled."""
    yield from lemmas(kernel_proofs.lemmas, 5)


def polling(folder: Path) -> Iterator[Figure]:
    """The theorems about draining."""
    yield from lemmas(theorems.lemmas, 1)


DYNAMIC, STATIC = plain(), plain(instance="one")
EAGER, OF_TWO = plain(cooperative=False), plain(names=("range", "sticky"))
TWO = Setting((DYNAMIC, DYNAMIC), heartbeats=False)
ONE_GENERATION = Bounds(ids=2, generations=1, requests=2, slots=2)
INSTANCES = (
    ("a member", Setting((DYNAMIC,)), Bounds(2, 2, 4, 2)),
    ("a static member", Setting((STATIC,)), Bounds(2, 2, 4, 2)),
    ("two members", TWO, ONE_GENERATION),
    ("two members, one of them static", replace(TWO, members=(DYNAMIC, STATIC)), ONE_GENERATION),
    (
        "a member and an eager one, room for one",
        replace(TWO, members=(DYNAMIC, EAGER), max_group_size=1),
        ONE_GENERATION,
    ),
    ("a member with two protocols and partitions", Setting((OF_TWO,), partitions=2), Bounds(2, 2, 3, 1)),
)


def agreement(folder: Path) -> Iterator[Figure]:
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
        yield told(f"states: {name}", found.states - before)
    yield at_least("states", found.states, 100_000)
    yield exactly("instances in which the engines disagree", disagreements, 0)
    yield told("transitions", found.transitions)
    yield told("different handler calls", found.calls)
    yield told("symbolic paths that admitted some of them", found.paths)
    yield told("seconds of one core", round(time.process_time() - worked, 1))
    yield told("seconds", round(time.monotonic() - begun, 1))


def search(folder: Path) -> Iterator[Figure]:
    """The explorer beside Spin on an equivalent model, in the same run."""
    file = folder / "search.json"
    command = [sys.executable, "-m", "tests.benchmarks.explore", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL)
    if not file.exists():
        raise Unmeasured(f"tests.benchmarks.explore: exit code {done.returncode}")
    for number, row in enumerate(json.loads(file.read_text())):
        what = ", ".join(f"{value} {name}" for name, value in row["instance"].items())
        spin, full, reduced = row["spin"], row["full"], row["reduced"]
        if number == 0:
            yield at_least(f"{what}: states of the full search", full["states"], 1_000_000)
            yield at_most(f"{what}: its seconds of one core", round(full["seconds"], 2), 10)
        yield exactly(f"{what}: states of the full search, as Spin counts them", full["states"], spin["states"])
        yield told(f"{what}: states of the reduced search", reduced["states"])
        yield told(f"{what}: seconds of Spin, without compiling", round(spin["seconds"], 2))
        yield told(f"{what}: seconds of the full search", round(full["seconds"], 2))
        yield told(f"{what}: seconds of the reduced search", round(reduced["seconds"], 2))
        yield told(f"{what}: Spin takes so many times as long as the full search", row["like_for_like"])
        yield at_least(f"{what}: and as the reduced search", row["ahead"], 1)


BARS = (
    Bar("theorems", f"all theorems at {SLOTS} slots x {PARTITIONS} partitions, with any solver seed", all_theorems),
    Bar("parametric", "the kernel for any number of members, partitions and generations", kernel),
    Bar("draining", "draining for any number of partitions, records and any max.poll.records", polling),
    Bar("agreement", "three engines, one set of transitions", agreement),
    Bar(
        "mutants", "every mutant of the core is refuted, found by a tour, or shown equivalent", mutant_verdicts.measure
    ),
    Bar("search", "the explorer exhausts large instances, ahead of Spin", search),
)
