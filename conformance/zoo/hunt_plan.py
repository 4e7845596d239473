"""Plans of many hunts, run in worker processes."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from fencepost.conformance.events import Progress
from fencepost.conformance.execution.workers import (
    MAX_MEMORY_BYTES,
    Result,
    Task,
    WorkerEnded,
    WorkerPool,
    run_tasks,
)
from fencepost.conformance.zoo.comparison import find_difference
from fencepost.conformance.zoo.faulty import FaultyCoordinator, faulty_coordinator, match_patterns
from fencepost.conformance.zoo.hunt import HuntResult, HuntTask, run_hunt
from fencepost.conformance.zoo.results import ResultRow, ResultTable, result_row
from fencepost.conformance.zoo.strategies import HYPOTHESIS, SCHEDULES, STRATEGIES, WALK

NO_DIFFERENCE = "no answer differs from the shipped coordinator's"
NOT_TOLD_APART = f"not told apart: {NO_DIFFERENCE}"
SURVIVES = "answers differ in {where}; no hunt found it"
NOTHING_FOUND = "nothing was seen broken"


@dataclass(slots=True)
class HuntPlan:
    """The hunts to run: patterns of names, numbers of seeds for schedules and for baselines, seconds for each hunt,
    worker processes, and the kit's strategies to use."""

    patterns: tuple[str, ...] = ("BUG-*",)
    seeds: int = 3
    baseline_seeds: int = 0
    seconds: float = 60.0
    jobs: int = 1
    strategies: tuple[str, ...] = STRATEGIES
    hunt_results: dict[str, list[HuntResult]] = field(default_factory=dict)
    differences: dict[str, str] = field(default_factory=dict)
    """By mutant, how its traces differ from the shipped coordinator's (`find_difference`); "" if they do not."""
    ended: str = ""
    """Why the hunts ended early, if not by Ctrl-C."""

    def tasks(self, coordinator: FaultyCoordinator) -> Iterator[HuntTask]:
        """The hunts of one faulty coordinator by schedules and by the baselines."""
        if SCHEDULES in self.strategies:
            for seed in range(1, self.seeds + 1):
                yield HuntTask(coordinator.name, SCHEDULES, seed, self.seconds)
        for seed in range(1, self.baseline_seeds + 1):
            for strategy in (HYPOTHESIS, WALK):
                yield HuntTask(coordinator.name, strategy, seed, self.seconds)

    def fallback_tasks(self, coordinator: FaultyCoordinator) -> Iterator[HuntTask]:
        """The hunts of one faulty coordinator that no schedule found."""
        for strategy in self.strategies:
            if strategy != SCHEDULES:
                yield HuntTask(coordinator.name, strategy, 0, self.seconds)

    def run(self, show: Callable[[Progress], None]) -> ResultTable:
        """Run all hunts; Ctrl-C, or a worker process that ends, ends them early, with the results so far. Raises
        `UnknownFaultyCoordinator`.

        A mutant that the first seed does not find is compared with the shipped coordinator before its other hunts.
        """
        coordinators = match_patterns(self.patterns)
        self.hunt_results = {each.name: [] for each in coordinators}
        cut_short = True
        try:
            with WorkerPool(self.jobs, MAX_MEMORY_BYTES) as pool:
                self.run_all(pool, coordinators, show)
            cut_short = False
        except KeyboardInterrupt:
            pass
        except WorkerEnded as error:
            self.ended = str(error)
        rows = tuple(
            result_row(each, self.hunt_results[each.name], self.reason_not_found(each.name))
            for each in coordinators
            if not cut_short or is_found(self.hunt_results[each.name]) or self.is_not_told_apart(each.name)
        )
        return ResultTable(self.seeds, self.baseline_seeds, self.seconds, rows, cut_short)

    def run_all(
        self, pool: Executor, coordinators: Sequence[FaultyCoordinator], show: Callable[[Progress], None]
    ) -> None:
        """Run all hunts and comparisons. Raises `WorkerEnded`."""
        tasks = sorted((task for each in coordinators for task in self.tasks(each)), key=task_order)
        self.run_hunts(pool, [task for task in tasks if is_first(task)], show)
        self.compare(pool, [each.name for each in self.not_found(coordinators) if each.mutant], show)
        self.run_hunts(
            pool, [task for task in tasks if not is_first(task) and not self.is_not_told_apart(task.name)], show
        )
        self.run_hunts(
            pool, [task for each in self.not_found(coordinators) for task in self.fallback_tasks(each)], show
        )

    def run_hunts(self, pool: Executor, tasks: Sequence[HuntTask], show: Callable[[Progress], None]) -> None:
        """Run some hunts."""
        results = run_tasks(pool, self.jobs, run_hunt, tasks, name_task)
        for task, result in with_progress("hunts", results, len(tasks), name_task, show):
            self.hunt_results[task.name].append(result)

    def compare(self, pool: Executor, names: Sequence[str], show: Callable[[Progress], None]) -> None:
        """Compare some mutants with the shipped coordinator."""
        compared = run_tasks(pool, self.jobs, find_difference_of, names, str)
        self.differences |= with_progress("comparisons", compared, len(names), str, show)

    def not_found(self, coordinators: Sequence[FaultyCoordinator]) -> list[FaultyCoordinator]:
        """The coordinators that no hunt found so far, without mutants that are not told apart."""
        return [
            each
            for each in coordinators
            if not is_found(self.hunt_results[each.name]) and not self.is_not_told_apart(each.name)
        ]

    def is_not_told_apart(self, name: str) -> bool:
        """The mutant was compared, and its traces equal the shipped coordinator's."""
        return self.differences.get(name) == ""

    def reason_not_found(self, name: str) -> str:
        """The reason why a faulty coordinator was not found."""
        if name not in self.differences:
            return NOTHING_FOUND
        return SURVIVES.format(where=self.differences[name]) if self.differences[name] else NOT_TOLD_APART


def with_progress(
    what: str,
    results: Iterator[tuple[Task, Result]],
    total: int,
    name: Callable[[Task], str],
    show: Callable[[Progress], None],
) -> Iterator[tuple[Task, Result]]:
    """The tasks with their results as they come; `show` gets the progress."""
    begun = time.monotonic()
    for done, (task, result) in enumerate(results, 1):
        show(Progress(done, total, time.monotonic() - begun, current=name(task), unit=what))
        yield task, result


def name_task(task: HuntTask) -> str:
    """The name of the faulty coordinator that is hunted."""
    return task.name


def task_order(task: HuntTask) -> tuple[str, int]:
    """A sort key that puts hunts with the same schedules together, so that they share the caches."""
    return task.strategy, task.seed


def is_first(task: HuntTask) -> bool:
    """The hunt is the one by the kit's own schedules with seed 1."""
    return task.strategy == SCHEDULES and task.seed == 1


def is_found(results: Sequence[HuntResult]) -> bool:
    """One of the kit's strategies found it; baselines do not count."""
    return any(result.is_found and result.task.strategy not in (HYPOTHESIS, WALK) for result in results)


def is_not_told_apart(row: ResultRow) -> bool:
    """The mutant of this row was compared with the shipped coordinator, and no difference was found."""
    return row.reason.endswith(NO_DIFFERENCE)


def find_difference_of(name: str) -> str:
    """See `find_difference`."""
    return find_difference(faulty_coordinator(name))
