"""An expedition: many hunts, a few at a time, each in a process that can be lost."""

import multiprocessing
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.pool import Pool
from typing import TypeVar

from fencepost.conformance.reports.progress import Progress
from fencepost.conformance.zoo.equivalence import find_difference
from fencepost.conformance.zoo.faulty import FaultyCoordinator, faulty_coordinator, match_patterns
from fencepost.conformance.zoo.hunt import HuntResult, HuntTask, run_hunt
from fencepost.conformance.zoo.results import ResultTable, result_row
from fencepost.conformance.zoo.strategies import HYPOTHESIS, SCHEDULES, STRATEGIES, WALK

EQUIVALENT = "equivalent: no answer differs from the shipped coordinator's"
SURVIVES = "answers differ in {where}, and nothing was seen broken"
NOTHING_FOUND = "nothing was seen broken"
Result = TypeVar("Result")
MAX_MEMORY_BYTES = 4 << 30
"""How many bytes a process may take: a mutant that only ever grows has to end somewhere."""


@dataclass(slots=True)
class HuntPlan:
    """What is hunted, and how: seeds for schedules and for baselines, seconds for each hunt, hunts at a time, and by
    which methods of the kit."""

    patterns: tuple[str, ...] = ("BUG-*",)
    seeds: int = 3
    baseline_seeds: int = 0
    seconds: float = 60.0
    jobs: int = 1
    strategies: tuple[str, ...] = STRATEGIES
    hunt_results: dict[str, list[HuntResult]] = field(default_factory=dict)
    differences: dict[str, str] = field(default_factory=dict)
    """Where a mutant answers otherwise than the shipped coordinator; "" if nowhere."""

    def tasks(self, coordinator: FaultyCoordinator) -> Iterator[HuntTask]:
        """The hunts of one specimen by schedules and by the baselines."""
        if SCHEDULES in self.strategies:
            for seed in range(1, self.seeds + 1):
                yield HuntTask(coordinator.name, SCHEDULES, seed, self.seconds)
        for seed in range(1, self.baseline_seeds + 1):
            for method in (HYPOTHESIS, WALK):
                yield HuntTask(coordinator.name, method, seed, self.seconds)

    def fallback_tasks(self, coordinator: FaultyCoordinator) -> Iterator[HuntTask]:
        """What is tried where no schedule found anything."""
        for method in self.strategies:
            if method != SCHEDULES:
                yield HuntTask(coordinator.name, method, 0, self.seconds)

    def run(self, show: Callable[[Progress], None]) -> ResultTable:
        """Hunt everything; Ctrl-C ends it early, with what was found so far. Raises `UnknownFaultyCoordinator`.

        A mutant that the first seed does not find is compared with the shipped coordinator before it is hunted on.
        """
        hunted = match_patterns(self.patterns)
        self.hunt_results = {each.name: [] for each in hunted}
        cut_short = True
        with suppress(KeyboardInterrupt), multiprocessing.get_context("spawn").Pool(self.jobs, prepare_process) as pool:
            tasks = sorted((task for each in hunted for task in self.tasks(each)), key=task_order)
            self.run_hunts(pool, [task for task in tasks if is_first(task)], show)
            self.compare(pool, [each.name for each in self.not_found(hunted) if each.mutant], show)
            self.run_hunts(
                pool, [task for task in tasks if not is_first(task) and not self.is_equivalent(task.name)], show
            )
            self.run_hunts(pool, [task for each in self.not_found(hunted) for task in self.fallback_tasks(each)], show)
            cut_short = False
        rows = tuple(
            result_row(each, self.hunt_results[each.name], self.reason_not_found(each.name))
            for each in hunted
            if not cut_short or is_found(self.hunt_results[each.name]) or self.is_equivalent(each.name)
        )
        return ResultTable(self.seeds, self.baseline_seeds, self.seconds, rows, cut_short)

    def run_hunts(self, pool: Pool, tasks: Sequence[HuntTask], show: Callable[[Progress], None]) -> None:
        """Do some hunts."""
        for find in with_progress(
            "hunts", pool.imap_unordered(run_hunt, tasks), len(tasks), lambda find: find.task.name, show
        ):
            self.hunt_results[find.task.name].append(find)

    def compare(self, pool: Pool, names: Sequence[str], show: Callable[[Progress], None]) -> None:
        """Look where some mutants answer otherwise than the shipped coordinator."""
        compared = zip(names, pool.imap(find_difference_of, names), strict=True)
        self.differences |= with_progress("comparisons", compared, len(names), lambda pair: pair[0], show)

    def not_found(self, coordinators: Sequence[FaultyCoordinator]) -> list[FaultyCoordinator]:
        """What was not found yet and can be."""
        return [
            each
            for each in coordinators
            if not is_found(self.hunt_results[each.name]) and not self.is_equivalent(each.name)
        ]

    def is_equivalent(self, name: str) -> bool:
        """It is a mutant that was seen to answer as the shipped coordinator does."""
        return self.differences.get(name) == ""

    def reason_not_found(self, name: str) -> str:
        """Why nothing was seen of a specimen."""
        if name not in self.differences:
            return NOTHING_FOUND
        return SURVIVES.format(where=self.differences[name]) if self.differences[name] else EQUIVALENT


def with_progress(
    what: str,
    results: Iterable[Result],
    total: int,
    name: Callable[[Result], str],
    show: Callable[[Progress], None],
) -> Iterator[Result]:
    """Results as they come, with the progress shown."""
    begun = time.monotonic()
    for done, result in enumerate(results, 1):
        show(Progress(done, total, time.monotonic() - begun, current=name(result), unit=what))
        yield result


def task_order(task: HuntTask) -> tuple[str, int]:
    """Hunts with the same schedules come together, so that what they share is at hand."""
    return task.strategy, task.seed


def is_first(task: HuntTask) -> bool:
    """The hunt is the first by the kit's own schedules."""
    return task.strategy == SCHEDULES and task.seed == 1


def prepare_process() -> None:
    """Make a process ready for hunts: Ctrl-C is for the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


def is_found(finds: Sequence[HuntResult]) -> bool:
    """The kit found it; a baseline does not count."""
    return any(find.is_found and find.task.strategy not in (HYPOTHESIS, WALK) for find in finds)


def find_difference_of(name: str) -> str:
    """See `find_difference`."""
    return find_difference(faulty_coordinator(name))
