"""Plans of many hunts, run in worker processes."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from fencepost.conformance.events import Progress
from fencepost.conformance.run.workers import MAX_MEMORY_BYTES, Result, Task, WorkerEnded, WorkerPool, run_tasks
from fencepost.conformance.zoo.fault import Fault
from fencepost.conformance.zoo.hunt import HuntResult, HuntTask
from fencepost.conformance.zoo.registry import find_difference, hunts_for, match_patterns, run_hunt
from fencepost.conformance.zoo.results import ResultRow, ResultTable, result_row
from fencepost.conformance.zoo.strategies import BASELINES, GROUPS, STRATEGIES

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

    def tasks(self, fault: Fault[Any]) -> Iterator[HuntTask]:
        """The hunts for one fault by its plainest strategy and by the baselines."""
        hunts = hunts_for(fault)
        if hunts.strategies[0] in (*self.strategies, GROUPS):
            for seed in range(1, self.seeds + 1):
                yield HuntTask(fault.id, hunts.strategies[0], seed, self.seconds)
        for seed in range(1, self.baseline_seeds + 1):
            for strategy in hunts.baselines:
                yield HuntTask(fault.id, strategy, seed, self.seconds)

    def fallback_tasks(self, fault: Fault[Any]) -> Iterator[HuntTask]:
        """The hunts for one fault that its plainest strategy did not find."""
        for strategy in hunts_for(fault).strategies[1:]:
            if strategy in self.strategies:
                yield HuntTask(fault.id, strategy, 0, self.seconds)

    def run(self, show: Callable[[Progress], None]) -> ResultTable:
        """Run all hunts; Ctrl-C, or a worker process that ends, ends them early, with the results so far. Raises
        `UnknownFault`.

        A mutant that the first seed does not find is compared with the shipped coordinator before its other hunts.
        """
        faults = match_patterns(self.patterns)
        self.hunt_results = {each.id: [] for each in faults}
        cut_short = True
        try:
            with WorkerPool(self.jobs, MAX_MEMORY_BYTES) as pool:
                self.run_all(pool, faults, show)
            cut_short = False
        except KeyboardInterrupt:
            pass
        except WorkerEnded as error:
            self.ended = str(error)
        rows = tuple(
            result_row(each, self.hunt_results[each.id], self.reason_not_found(each.id))
            for each in faults
            if not cut_short or is_found(self.hunt_results[each.id]) or self.is_not_told_apart(each.id)
        )
        return ResultTable(self.seeds, self.baseline_seeds, self.seconds, rows, cut_short)

    def run_all(self, pool: Executor, faults: Sequence[Fault[Any]], show: Callable[[Progress], None]) -> None:
        """Run all hunts and comparisons. Raises `WorkerEnded`."""
        tasks = [task for each in faults for task in self.tasks(each)]
        tasks.sort(key=lambda task: (task.strategy, task.seed))  # those with the same schedules share the caches
        self.run_hunts(pool, [task for task in tasks if is_first(task)], show)
        self.compare(pool, [each.id for each in self.not_found(faults) if each.mutant], show)
        self.run_hunts(
            pool, [task for task in tasks if not is_first(task) and not self.is_not_told_apart(task.name)], show
        )
        self.run_hunts(pool, [task for each in self.not_found(faults) for task in self.fallback_tasks(each)], show)

    def run_hunts(self, pool: Executor, tasks: Sequence[HuntTask], show: Callable[[Progress], None]) -> None:
        """Run some hunts."""
        results = run_tasks(pool, self.jobs, run_hunt, tasks, name_task)
        for task, result in with_progress("hunts", results, len(tasks), name_task, show):
            self.hunt_results[task.name].append(result)

    def compare(self, pool: Executor, names: Sequence[str], show: Callable[[Progress], None]) -> None:
        """Compare some mutants with the shipped coordinator."""
        compared = run_tasks(pool, self.jobs, find_difference, names, str)
        self.differences |= with_progress("comparisons", compared, len(names), str, show)

    def not_found(self, faults: Sequence[Fault[Any]]) -> list[Fault[Any]]:
        """The faults that no hunt found so far, without mutants that are not told apart."""
        return [
            each for each in faults if not is_found(self.hunt_results[each.id]) and not self.is_not_told_apart(each.id)
        ]

    def is_not_told_apart(self, name: str) -> bool:
        """The mutant was compared, and its traces equal the shipped coordinator's."""
        return self.differences.get(name) == ""

    def reason_not_found(self, name: str) -> str:
        """The reason why a fault was not found."""
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
    """The name of the fault that is hunted."""
    return task.name


def is_first(task: HuntTask) -> bool:
    """The hunt is the first one by the kit's plainest strategy."""
    return task.strategy not in BASELINES and task.seed == 1


def is_found(results: Sequence[HuntResult]) -> bool:
    """One of the kit's strategies found it; baselines do not count."""
    return any(result.is_found and result.task.strategy not in BASELINES for result in results)


def is_not_told_apart(row: ResultRow) -> bool:
    """The mutant of this row was compared with the shipped coordinator, and no difference was found."""
    return row.reason.endswith(NO_DIFFERENCE)
