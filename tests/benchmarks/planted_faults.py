"""How many planted faults random schedules find, and how fast; with `--old TREE` beside the generator of another tree.

Run with `python -m tests.benchmarks.planted_faults`. Each fault is put alone into the bundled coordinator, and the
schedules of each seed are played until one shows a violation; a trace that is the same as without the fault is not
judged. Seconds are processor seconds of one core, those of generation shared out evenly. The other tree is a checkout
of this repository; the faults are those of this one.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.falsify import Bench
from fencepost.conformance.run.schedule import Schedule, ScheduleScope
from fencepost.conformance.subject import ScenarioRun
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

BATCH_SIZE = 20
PROTOCOL = ClassicSchedules(ScheduleScope(BUNDLED_SETTINGS, cuts=True))
BENCH = Bench(PROTOCOL, partial(InProcessTarget, BUNDLED_SETTINGS))
FAULTS_FILE = Path(__file__).parents[1] / "conformance" / "schedules" / "planted_faults.py"


@dataclass(frozen=True, slots=True)
class Hunts:
    """The hunts of one fault: how many seeds found it, the schedules that took, and the seconds of all hunts."""

    fault: str
    found: int
    schedules: tuple[int, ...]
    seconds: float


def load_faults() -> dict[str, Any]:
    """The faults by name, whatever tree the generator is of."""
    spec = spec_from_file_location("planted_faults", FAULTS_FILE)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    faults: dict[str, Any] = module.FAULTS
    return faults


def generate(seed: int, count: int) -> list[Schedule]:
    """The schedules of a seed."""
    batches = range(-(-count // BATCH_SIZE))
    found = [each.schedule for batch in batches for each in PROTOCOL.generate(seed, batch, BATCH_SIZE)]
    return found[:count]


async def leave_unjudged(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
    """No verdict on a trace."""
    return TraceVerdict((), (), {})


def play(schedule: Schedule) -> ScenarioRun:
    """Play a schedule, and do not judge it."""
    return BENCH.play(schedule, leave_unjudged)


def is_violated(schedule: Schedule, usual: tuple[Event, ...]) -> bool:
    """Whether the schedule shows a violation. A trace as `usual` with the shipped coordinator needs no judge."""
    run = play(schedule)
    return run.events != usual and bool(replace(run, verdict=judge(run.header, run.events)).verdict.violated)


def first_failing(schedules: Sequence[Schedule], usual: Sequence[tuple[Event, ...]]) -> int:
    """The number of the first schedule that shows a violation, 0 if none does."""
    numbered = enumerate(zip(schedules, usual, strict=True), 1)
    return next((number for number, (schedule, events) in numbered if is_violated(schedule, events)), 0)


def measure(names: Sequence[str], seeds: int, count: int) -> list[Hunts]:
    """The hunts of each fault."""
    faults, begun = load_faults(), time.process_time()
    schedules = [generate(seed, count) for seed in range(1, seeds + 1)]
    each_schedule = (time.process_time() - begun) / (seeds * count)
    usual = [[play(schedule).events for schedule in each] for each in schedules]
    hunts: list[Hunts] = []
    for name in names or list(faults):
        begun = time.process_time()
        with faults[name].activate():
            numbers = tuple(map(first_failing, schedules, usual))
        played = sum(number or count for number in numbers)
        seconds = time.process_time() - begun + played * each_schedule
        hunts.append(Hunts(name, sum(map(bool, numbers)), numbers, round(seconds, 2)))
    return hunts


def measure_tree(tree: Path, arguments: Sequence[str]) -> list[Hunts]:
    """The same with the generator of another tree, in a process of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(tree / ".src"), str(tree)))}
    command = [sys.executable, str(Path(__file__).resolve()), *arguments, "--json", "-"]
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return [Hunts(**{**row, "schedules": tuple(row["schedules"])}) for row in json.loads(done.stdout)]


def print_table(columns: dict[str, list[Hunts]], seeds: int) -> None:
    """Print a line for each fault and one for all."""
    for rows in zip(*columns.values(), strict=True):
        told = "  ".join(f"{hunts.found} of {seeds}, {hunts.seconds:6.1f} s" for hunts in rows)
        print(f"{rows[0].fault:45}  {told}")
    for name, column in columns.items():
        found, hunts = sum(each.found for each in column), len(column) * seeds
        seconds = sum(each.seconds for each in column)
        print(f"{name}: {found} of {hunts} hunts in {seconds:.0f} s, {60 * found / seconds:.1f} found a minute")


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.planted_faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="FAULT", help="the faults (default: all)")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="hunts of each fault (default: 5)")
    parser.add_argument("--schedules", type=int, default=60, metavar="N", help="schedules of a hunt (default: 60)")
    parser.add_argument("--old", type=Path, metavar="TREE", help="a checkout with another generator")
    parser.add_argument("--json", metavar="F", help="write the hunts to this file (-: to standard output alone)")
    options = parser.parse_args(arguments)
    hunts = measure(options.names, options.seeds, options.schedules)
    text = json.dumps([asdict(each) for each in hunts])
    if options.json == "-":
        print(text)
        return 0
    if options.json:
        Path(options.json).write_text(text)
    columns = {"this tree": hunts}
    if options.old is not None:
        extent = [*options.names, "--seeds", str(options.seeds), "--schedules", str(options.schedules)]
        columns["old tree"] = measure_tree(options.old.resolve(), extent)
    print_table(columns, options.seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
