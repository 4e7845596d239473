"""How many planted faults random schedules find, and how fast.

Run with `python -m tests.benchmarks.planted_faults`. Each fault is put alone into the bundled coordinator, and the
schedules of each seed are played until one shows a violation; a trace that is the same as without the fault is not
judged. Seconds are processor seconds of one core, those of generation shared out evenly.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.classic.schedules.protocol import ClassicSchedules
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.falsify import target_bench
from fencepost.conformance.run.schedule import Schedule, ScheduleScope
from fencepost.conformance.subject import ScenarioRun
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict
from tests.conformance.schedules.planted_faults import FAULTS

BATCH_SIZE = 20
PROTOCOL = ClassicSchedules(ScheduleScope(BUNDLED_SETTINGS, cuts=True))
BENCH = target_bench(PROTOCOL, partial(InProcessTarget, BUNDLED_SETTINGS))


@dataclass(frozen=True, slots=True)
class Hunts:
    """The hunts of one fault: how many seeds found it, the schedules that took, and the seconds of all hunts."""

    fault: str
    found: int
    schedules: tuple[int, ...]
    seconds: float


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
    begun = time.process_time()
    schedules = [generate(seed, count) for seed in range(1, seeds + 1)]
    each_schedule = (time.process_time() - begun) / (seeds * count)
    usual = [[play(schedule).events for schedule in each] for each in schedules]
    hunts: list[Hunts] = []
    for name in names or list(FAULTS):
        begun = time.process_time()
        with FAULTS[name].activate():
            numbers = tuple(map(first_failing, schedules, usual))
        played = sum(number or count for number in numbers)
        seconds = time.process_time() - begun + played * each_schedule
        hunts.append(Hunts(name, sum(map(bool, numbers)), numbers, round(seconds, 2)))
    return hunts


def print_table(hunts: Sequence[Hunts], seeds: int) -> None:
    """Print a line for each fault and one for all."""
    for each in hunts:
        print(f"{each.fault:45}  {each.found} of {seeds}, {each.seconds:6.1f} s")
    found, seconds = sum(each.found for each in hunts), sum(each.seconds for each in hunts)
    print(f"{found} of {len(hunts) * seeds} hunts in {seconds:.0f} s, {60 * found / seconds:.1f} found a minute")


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.planted_faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="FAULT", help="the faults (default: all)")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="hunts of each fault (default: 5)")
    parser.add_argument("--schedules", type=int, default=60, metavar="N", help="schedules of a hunt (default: 60)")
    parser.add_argument("--json", type=Path, metavar="F", help="write the hunts to this file")
    options = parser.parse_args(arguments)
    hunts = measure(options.names, options.seeds, options.schedules)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in hunts]))
    print_table(hunts, options.seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
