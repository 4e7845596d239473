"""How fast the explorer is, beside Spin on an equivalent model written by hand (`group.pml`), in the same run.

Run with `python -m tests.benchmarks.explore`; sizes of one instance (`--members`, `--requests`, …), `--repeats` and
`--json FILE` are optional. Spin and the full search count the states of the same world: the counts have to be equal.
The reduced search finds whatever the full one does, in fewer states. Seconds are processor seconds of the one core that
each uses, the best of the repeats. What Spin needs to generate and compile its verifier is told apart and counted
nowhere else; running the handlers counts as part of the search.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from fencepost.model.classic.explore.group_system import group_system
from fencepost.model.classic.explore.state_layout import Bounds, ModelConfig, untimed_member
from fencepost.model.explore.engine import explore_system

MODEL = Path(__file__).with_name("group.pml")
COMPILER = ("gcc", "-O2", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c")
"""The world is one process, so that Spin's partial-order reduction has nothing to reduce."""
MAX_DEPTH = 10_000_000


class Unavailable(Exception):
    """A tool is missing or failed; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A world that both can explore: cooperative dynamic members, one partition, no heartbeats."""

    members: int = 2
    ids: int = 2
    generations: int = 2
    requests: int = 3
    slots: int = 2

    def __str__(self) -> str:
        bounds = (("member", self.members), ("id", self.ids), ("generation", self.generations))
        told = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in (*bounds, ("slot", self.slots))]
        return f"{', '.join(told)}, {self.requests} requests each"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One way to exhaust an instance. Processor seconds; `compiling` is for Spin alone."""

    states: int
    transitions: int
    seconds: float
    compiling: float = 0.0


@dataclass(frozen=True, slots=True)
class Row:
    """An instance, exhausted by Spin, by the full search like for like, and by the reduced search."""

    instance: Instance
    spin: Measurement
    full: Measurement
    reduced: Measurement

    @property
    def equal(self) -> bool:
        """Spin and the full search found equally many states."""
        return self.spin.states == self.full.states

    @property
    def like_for_like(self) -> float:
        """How many times as long as the full search Spin takes, not counting what it compiles."""
        return self.spin.seconds / self.full.seconds

    @property
    def ahead(self) -> float:
        """How many times as long as the reduced search Spin takes, not counting what it compiles."""
        return self.spin.seconds / self.reduced.seconds


INSTANCES = (Instance(), Instance(requests=4), Instance(members=3, generations=1, requests=2))
"""What is measured by default; the first is the like-for-like row of the threshold."""
SIZES = tuple(field.name for field in fields(Instance))
ProgressLine = Callable[[str], None]


def measure_instance(instance: Instance, repeats: int, say: ProgressLine) -> Row:
    """Exhaust an instance in the three ways. Raises `Unavailable` if Spin or the compiler is missing or fails."""
    with tempfile.TemporaryDirectory() as folder:
        say(f"{instance}: Spin generates and compiles its verifier")
        compiling = compile_verifier(instance, Path(folder))
        tried: list[tuple[Measurement, Measurement, Measurement]] = []
        for number in range(1, repeats + 1):
            say(f"{instance}: Spin, {number} of {repeats}")
            spin = run_verifier(Path(folder), compiling)
            say(f"{instance}: full search, {number} of {repeats}")
            full = measure_search(instance, reduced=False)
            say(f"{instance}: reduced search, {number} of {repeats}")
            tried.append((spin, full, measure_search(instance, reduced=True)))
    best = [min(ways, key=lambda one: one.seconds) for ways in zip(*tried, strict=True)]
    return Row(instance, *best)


def measure_search(instance: Instance, reduced: bool) -> Measurement:
    """Exhaust the instance with the explorer, which runs the shipped handlers."""
    setting = ModelConfig((untimed_member(),) * instance.members, heartbeats=False)
    bounds = Bounds(instance.ids, instance.generations, instance.requests, instance.slots)
    began = time.process_time()
    found, _ = explore_system(group_system(setting, bounds, reduced))
    seconds = time.process_time() - began
    if found.violations or not found.finished:
        raise Unavailable("the explorer found a violation: run fencepost explore to see it")
    return Measurement(found.states, found.transitions, seconds)


def compile_verifier(instance: Instance, folder: Path) -> float:
    """Make the verifier; how many processor seconds that took."""
    for tool, package in (("spin", "spin"), ("gcc", "gcc")):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is missing; on Debian: apt install {package}")
    sizes = [f"-D{name.upper()}={value}" for name, value in asdict(instance).items()]
    began = child_cpu_seconds()
    run_command(("spin", "-a", *sizes, str(MODEL)), folder)
    run_command(COMPILER, folder)
    return child_cpu_seconds() - began


def run_verifier(folder: Path, compiling: float) -> Measurement:
    """Run Spin's verifier, compiled in `folder` within `compiling` CPU seconds. Raises `Unavailable` on any error."""
    began = child_cpu_seconds()
    told = run_command(("./pan", f"-m{MAX_DEPTH}", "-w24"), folder)
    return parse_verifier_output(told, child_cpu_seconds() - began, compiling)


def parse_verifier_output(told: str, seconds: float, compiling: float) -> Measurement:
    """The counts in a verifier's output; `Unavailable` is raised unless it exhausted the model without errors."""
    counts: dict[str, int] = {}
    for line in told.splitlines():
        match line.split():
            case [number, "states,", "stored", *_]:
                counts["states"] = int(number)
            case [number, "transitions", *_]:
                counts["transitions"] = int(number)
            case [*_, "errors:", number]:
                counts["errors"] = int(number)
    if counts.get("errors") != 0 or "states" not in counts or "max search depth too small" in told:
        raise Unavailable(f"Spin's verifier did not exhaust the model: {' '.join(told.split())[:200]}")
    return Measurement(counts["states"], counts["transitions"], seconds, compiling)


def run_command(command: Sequence[str], folder: Path) -> str:
    """What a command prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"{command[0]} failed: {' '.join((done.stderr or done.stdout).split())[:200]}")
    return done.stdout


def child_cpu_seconds() -> float:
    """Processor seconds of the commands run so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def render_table(rows: Sequence[Row]) -> str:
    """The rows for people."""
    lines: list[str] = []
    for row in rows:
        lines.append(f"{row.instance}: counts {'equal' if row.equal else 'DIFFER'}")
        ways = (("Spin", row.spin), ("full search, like for like", row.full), ("reduced search", row.reduced))
        for name, way in ways:
            rate = f"{way.states / way.seconds:,.0f} states/s"
            told = f"  {name:27} {way.states:>10,} states {way.transitions:>11,} moves {way.seconds:7.2f} s {rate:>18}"
            lines.append(told + (f", and {way.compiling:.1f} s to compile" if way.compiling else ""))
        lines.append(f"  Spin takes {row.like_for_like:.1f} x the full search, {row.ahead:.1f} x the reduced search")
    return "\n".join(lines)


def to_json(rows: Sequence[Row]) -> str:
    """The rows for programs."""
    figures = [
        {**asdict(row), "equal": row.equal, "like_for_like": round(row.like_for_like, 2), "ahead": round(row.ahead, 2)}
        for row in rows
    ]
    return json.dumps(figures, indent=2) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 if all counts are equal and the reduced search is ahead, 1 if not, 2 if Spin is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    for size in SIZES:
        parser.add_argument(f"--{size}", type=int)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    sizes = {size: getattr(options, size) for size in SIZES if getattr(options, size) is not None}
    instances = [replace(Instance(), **sizes)] if sizes else INSTANCES
    rows: list[Row] = []
    try:
        for instance in instances:
            rows.append(
                measure_instance(instance, options.repeats, lambda line: print(line, file=sys.stderr, flush=True))
            )
            print(render_table(rows[-1:]), flush=True)
    except Unavailable as reason:
        print(f"explore: {reason}", file=sys.stderr)
        return 2
    if options.json is not None:
        options.json.write_text(to_json(rows))
    return 0 if all(row.equal and row.ahead > 1 for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
