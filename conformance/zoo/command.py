"""`fencepost zoo`: hunt everything that is asked for, and say what was found, how fast and how short."""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from fencepost.conformance.progress import Progress, ProgressDisplay
from fencepost.conformance.results import Exit
from fencepost.conformance.zoo.hunting import HYPOTHESIS, SCENARIOS, SCHEDULES, TOURS, WALK, Find, Task, hunt
from fencepost.conformance.zoo.lockstep import difference
from fencepost.conformance.zoo.record import FILE, Row, Table, lost, merged, recorded, row, to_json
from fencepost.conformance.zoo.specimens import Specimen, chosen, specimens
from fencepost.conformance.zoo.table import lines, markdown

EQUIVALENT = "equivalent: no answer differs from the shipped coordinator's"
SURVIVES = "answers differ in {where}, and nothing was seen broken"
UNSEEN = "nothing was seen broken"


@dataclass(frozen=True, slots=True)
class Expedition:
    """What is hunted, and how: seeds for schedules and for baselines, seconds for each hunt, hunts at a time."""

    patterns: tuple[str, ...] = ("BUG-*",)
    seeds: int = 3
    baseline_seeds: int = 1
    seconds: float = 60.0
    jobs: int = 1

    def tasks(self, specimen: Specimen) -> Iterator[Task]:
        """The hunts of one specimen."""
        for seed in range(1, self.seeds + 1):
            yield Task(specimen.name, SCHEDULES, seed, self.seconds)
        for seed in range(1, self.baseline_seeds + 1):
            for method in (HYPOTHESIS, WALK):
                yield Task(specimen.name, method, seed, self.seconds)

    def tasks_by_play(self, specimen: Specimen) -> Iterator[Task]:
        """What is tried where no schedule found anything."""
        for method in (SCENARIOS, TOURS):
            yield Task(specimen.name, method, 0, self.seconds)

    def run(self, progress: Callable[[Progress], None]) -> Table:
        """Hunt everything."""
        animals = chosen(self.patterns)
        finds: dict[str, list[Find]] = {each.name: [] for each in animals}
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.jobs, mp_context=context) as pool:
            self.hunt(pool, [task for each in animals for task in self.tasks(each)], finds, progress)
            missed = [each for each in animals if not is_found(finds[each.name])]
            self.hunt(pool, [task for each in missed for task in self.tasks_by_play(each)], finds, progress)
            unseen = [each.name for each in missed if not is_found(finds[each.name])]
            reasons = dict(zip(unseen, pool.map(why, unseen), strict=True))
        rows = tuple(row(each, finds[each.name], reasons.get(each.name, "")) for each in animals)
        return Table(self.seeds, self.baseline_seeds, self.seconds, rows)

    def hunt(
        self,
        pool: ProcessPoolExecutor,
        tasks: Sequence[Task],
        finds: dict[str, list[Find]],
        progress: Callable[[Progress], None],
    ) -> None:
        """Do some hunts, a few at a time."""
        begun = time.monotonic()
        for done, future in enumerate(as_completed([pool.submit(hunt, task) for task in tasks]), 1):
            find = future.result()
            finds[find.task.name].append(find)
            progress(Progress(done, len(tasks), time.monotonic() - begun, doing=find.task.name, what="hunts"))


def is_found(finds: Sequence[Find]) -> bool:
    """The kit found it; a baseline does not count."""
    return any(find.found and find.task.method not in (HYPOTHESIS, WALK) for find in finds)


def why(name: str) -> str:
    """Why nothing was seen of a specimen."""
    if specimens()[name].mutant is None:
        return UNSEEN
    where = difference(specimens()[name])
    return SURVIVES.format(where=where) if where else EQUIVALENT


def is_equivalent(row: Row) -> bool:
    """The mutant is no other program."""
    return row.reason == EQUIVALENT


def add_arguments(parser: argparse.ArgumentParser, count: Callable[[str], int]) -> None:
    """The options of the command."""
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        nargs="+",
        action="extend",
        default=[],
        help="bugs such as BUG-35 or 'BUG-0*', or mutants such as 'rounds.*' (default: all bugs)",
    )
    parser.add_argument("--seeds", metavar="N", type=count, default=3, help="hunts of each by schedules (default: 3)")
    parser.add_argument(
        "--baseline-seeds", metavar="N", type=int, default=0, help="hunts of each by either baseline (default: 0)"
    )
    parser.add_argument("--seconds", metavar="S", type=count, default=60, help="longest hunt in seconds (default: 60)")
    parser.add_argument("--jobs", metavar="N", type=count, default=os.cpu_count() or 1, help="hunts at a time")
    parser.add_argument("--json", metavar="F", type=Path, help="write the table as JSON")
    parser.add_argument("--record", action="store_true", help="make what was found the record")


def run(options: argparse.Namespace, show: Callable[[str], None]) -> int:
    """Do what the command line asks; 1 if something that is recorded as found is not found any more."""
    patterns = tuple(options.only) or ("BUG-*",)
    expedition = Expedition(patterns, options.seeds, options.baseline_seeds, options.seconds, options.jobs)
    display = ProgressDisplay(sys.stderr, live=sys.stderr.isatty())
    try:
        table = expedition.run(display)
    finally:
        display.close()
    show("\n".join(lines(table)) + "\n")
    if options.json is not None:
        options.json.write_text(to_json(table), encoding="utf-8")
    missing = lost(recorded(), table)
    if missing:
        show(f"Recorded as found, and not found this time: {', '.join(missing)}\n")
    if options.record:
        write(merged(recorded(), table))
    return Exit.VIOLATION if missing else Exit.CONFORMANT


def write(table: Table) -> None:
    """Make this the record."""
    FILE.write_text(to_json(table), encoding="utf-8")
    FILE.with_suffix(".md").write_text(markdown(table), encoding="utf-8")
