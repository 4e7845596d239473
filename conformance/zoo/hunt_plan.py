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
from fencepost.conformance.zoo.equivalence import difference
from fencepost.conformance.zoo.faulty import Specimen, chosen, specimen
from fencepost.conformance.zoo.hunt import Find, Task, hunt
from fencepost.conformance.zoo.results import Table, row
from fencepost.conformance.zoo.strategies import HYPOTHESIS, METHODS, SCHEDULES, WALK

EQUIVALENT = "equivalent: no answer differs from the shipped coordinator's"
SURVIVES = "answers differ in {where}, and nothing was seen broken"
UNSEEN = "nothing was seen broken"
Result = TypeVar("Result")
MEMORY = 4 << 30
"""How many bytes a process may take: a mutant that only ever grows has to end somewhere."""


@dataclass(slots=True)
class Expedition:
    """What is hunted, and how: seeds for schedules and for baselines, seconds for each hunt, hunts at a time, and by
    which methods of the kit."""

    patterns: tuple[str, ...] = ("BUG-*",)
    seeds: int = 3
    baseline_seeds: int = 0
    seconds: float = 60.0
    jobs: int = 1
    methods: tuple[str, ...] = METHODS
    finds: dict[str, list[Find]] = field(default_factory=dict)
    differences: dict[str, str] = field(default_factory=dict)
    """Where a mutant answers otherwise than the shipped coordinator; "" if nowhere."""

    def tasks(self, hunted: Specimen) -> Iterator[Task]:
        """The hunts of one specimen by schedules and by the baselines."""
        if SCHEDULES in self.methods:
            for seed in range(1, self.seeds + 1):
                yield Task(hunted.name, SCHEDULES, seed, self.seconds)
        for seed in range(1, self.baseline_seeds + 1):
            for method in (HYPOTHESIS, WALK):
                yield Task(hunted.name, method, seed, self.seconds)

    def tasks_by_play(self, hunted: Specimen) -> Iterator[Task]:
        """What is tried where no schedule found anything."""
        for method in self.methods:
            if method != SCHEDULES:
                yield Task(hunted.name, method, 0, self.seconds)

    def run(self, show: Callable[[Progress], None]) -> Table:
        """Hunt everything; Ctrl-C ends it early, with what was found so far. Raises `UnknownSpecimen`.

        A mutant that the first seed does not find is compared with the shipped coordinator before it is hunted on.
        """
        hunted = chosen(self.patterns)
        self.finds = {each.name: [] for each in hunted}
        cut_short = True
        with suppress(KeyboardInterrupt), multiprocessing.get_context("spawn").Pool(self.jobs, prepare) as pool:
            tasks = sorted((task for each in hunted for task in self.tasks(each)), key=by_seed)
            self.hunt(pool, [task for task in tasks if is_first(task)], show)
            self.compare(pool, [each.name for each in self.missing(hunted) if each.mutant], show)
            self.hunt(pool, [task for task in tasks if not is_first(task) and not self.is_equivalent(task.name)], show)
            self.hunt(pool, [task for each in self.missing(hunted) for task in self.tasks_by_play(each)], show)
            cut_short = False
        rows = tuple(
            row(each, self.finds[each.name], self.reason(each.name))
            for each in hunted
            if not cut_short or is_found(self.finds[each.name]) or self.is_equivalent(each.name)
        )
        return Table(self.seeds, self.baseline_seeds, self.seconds, rows, cut_short)

    def hunt(self, pool: Pool, tasks: Sequence[Task], show: Callable[[Progress], None]) -> None:
        """Do some hunts."""
        for find in told("hunts", pool.imap_unordered(hunt, tasks), len(tasks), lambda find: find.task.name, show):
            self.finds[find.task.name].append(find)

    def compare(self, pool: Pool, names: Sequence[str], show: Callable[[Progress], None]) -> None:
        """Look where some mutants answer otherwise than the shipped coordinator."""
        compared = zip(names, pool.imap(where_different, names), strict=True)
        self.differences |= told("comparisons", compared, len(names), lambda pair: pair[0], show)

    def missing(self, hunted: Sequence[Specimen]) -> list[Specimen]:
        """What was not found yet and can be."""
        return [each for each in hunted if not is_found(self.finds[each.name]) and not self.is_equivalent(each.name)]

    def is_equivalent(self, name: str) -> bool:
        """It is a mutant that was seen to answer as the shipped coordinator does."""
        return self.differences.get(name) == ""

    def reason(self, name: str) -> str:
        """Why nothing was seen of a specimen."""
        if name not in self.differences:
            return UNSEEN
        return SURVIVES.format(where=self.differences[name]) if self.differences[name] else EQUIVALENT


def told(
    what: str,
    results: Iterable[Result],
    total: int,
    name: Callable[[Result], str],
    show: Callable[[Progress], None],
) -> Iterator[Result]:
    """Results as they come, with the progress shown."""
    begun = time.monotonic()
    for done, result in enumerate(results, 1):
        show(Progress(done, total, time.monotonic() - begun, doing=name(result), what=what))
        yield result


def by_seed(task: Task) -> tuple[str, int]:
    """Hunts with the same schedules come together, so that what they share is at hand."""
    return task.method, task.seed


def is_first(task: Task) -> bool:
    """The hunt is the first by the kit's own schedules."""
    return task.method == SCHEDULES and task.seed == 1


def prepare() -> None:
    """Make a process ready for hunts: Ctrl-C is for the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def is_found(finds: Sequence[Find]) -> bool:
    """The kit found it; a baseline does not count."""
    return any(find.found and find.task.method not in (HYPOTHESIS, WALK) for find in finds)


def where_different(name: str) -> str:
    """See `difference`."""
    return difference(specimen(name))
