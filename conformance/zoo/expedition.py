"""An expedition: many hunts, a few at a time, each in a process that can be lost."""

import multiprocessing
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.pool import Pool

from fencepost.conformance.progress import Progress
from fencepost.conformance.zoo.hunting import HYPOTHESIS, SCENARIOS, SCHEDULES, TOURS, WALK, Find, Task, hunt
from fencepost.conformance.zoo.lockstep import difference
from fencepost.conformance.zoo.record import Table, row
from fencepost.conformance.zoo.specimens import Specimen, chosen, specimen

EQUIVALENT = "equivalent: no answer differs from the shipped coordinator's"
SURVIVES = "answers differ in {where}, and nothing was seen broken"
UNSEEN = "nothing was seen broken"
MEMORY = 4 << 30
"""How many bytes a process may take: a mutant that only ever grows has to end somewhere."""


@dataclass(slots=True)
class Expedition:
    """What is hunted, and how: seeds for schedules and for baselines, seconds for each hunt, hunts at a time."""

    patterns: tuple[str, ...] = ("BUG-*",)
    seeds: int = 3
    baseline_seeds: int = 0
    seconds: float = 60.0
    jobs: int = 1
    finds: dict[str, list[Find]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def tasks(self, hunted: Specimen) -> Iterator[Task]:
        """The hunts of one specimen."""
        for seed in range(1, self.seeds + 1):
            yield Task(hunted.name, SCHEDULES, seed, self.seconds)
        for seed in range(1, self.baseline_seeds + 1):
            for method in (HYPOTHESIS, WALK):
                yield Task(hunted.name, method, seed, self.seconds)

    def tasks_by_play(self, hunted: Specimen) -> Iterator[Task]:
        """What is tried where no schedule found anything."""
        for method in (SCENARIOS, TOURS):
            yield Task(hunted.name, method, 0, self.seconds)

    def run(self, progress: Callable[[Progress], None]) -> Table:
        """Hunt everything; Ctrl-C ends it early, with what was found so far. Raises `UnknownSpecimen`."""
        hunted = chosen(self.patterns)
        self.finds = {each.name: [] for each in hunted}
        cut_short = True
        with suppress(KeyboardInterrupt), multiprocessing.get_context("spawn").Pool(self.jobs, prepare) as pool:
            tasks = [task for each in hunted for task in self.tasks(each)]
            self.hunt(pool, sorted(tasks, key=lambda task: (task.method, task.seed)), progress)
            missed = [each for each in hunted if not is_found(self.finds[each.name])]
            self.hunt(pool, [task for each in missed for task in self.tasks_by_play(each)], progress)
            unseen = [each.name for each in missed if not is_found(self.finds[each.name])]
            self.reasons = dict(zip(unseen, pool.imap(why, unseen), strict=True))
            cut_short = False
        rows = tuple(
            row(each, self.finds[each.name], self.reasons.get(each.name, "")) for each in hunted if self.is_done(each)
        )
        return Table(self.seeds, self.baseline_seeds, self.seconds, rows, cut_short)

    def hunt(self, pool: Pool, tasks: Sequence[Task], progress: Callable[[Progress], None]) -> None:
        """Do some hunts."""
        begun = time.monotonic()
        for done, find in enumerate(pool.imap_unordered(hunt, tasks), 1):
            self.finds[find.task.name].append(find)
            progress(Progress(done, len(tasks), time.monotonic() - begun, doing=find.task.name, what="hunts"))

    def is_done(self, hunted: Specimen) -> bool:
        """It was found, or everything was tried in vain."""
        return is_found(self.finds[hunted.name]) or hunted.name in self.reasons


def prepare() -> None:
    """Make a process ready for hunts: Ctrl-C is for the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def is_found(finds: Sequence[Find]) -> bool:
    """The kit found it; a baseline does not count."""
    return any(find.found and find.task.method not in (HYPOTHESIS, WALK) for find in finds)


def why(name: str) -> str:
    """Why nothing was seen of a specimen."""
    hunted = specimen(name)
    if hunted.mutant is None:
        return UNSEEN
    where = difference(hunted)
    return SURVIVES.format(where=where) if where else EQUIVALENT
