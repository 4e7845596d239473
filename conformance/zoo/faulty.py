"""Faulty coordinators: known bugs by their numbers, and mutants of the bundled coordinator by their names."""

import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial

from fencepost.adapters.bundled import classic
from fencepost.adapters.target import Target
from fencepost.conformance.execution.play import JudgeFunction
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.conformance.schedules.bench import Bench
from fencepost.conformance.schedules.classic.protocol import ClassicSchedules
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.scope import ScheduleScope
from fencepost.conformance.zoo.cache import CachedBench, CpuClock
from fencepost.conformance.zoo.classic.bug import Bug
from fencepost.conformance.zoo.classic.bugs import COORDINATOR_BUGS
from fencepost.conformance.zoo.classic.crashing_target import CrashingTarget
from fencepost.conformance.zoo.classic.environments import PLAIN
from fencepost.conformance.zoo.line_coverage import Line, lines_changed_by
from fencepost.conformance.zoo.mutation.module_copies import load_changed, source_of
from fencepost.conformance.zoo.mutation.mutants import Mutant, all_mutants, apply_mutant
from fencepost.conformance.zoo.mutation.operators import OPERATORS
from fencepost.conformance.zoo.timeouts import CpuLimitExceeded, cpu_limit
from fencepost.model.settings import Settings

MAX_PLAY_SECONDS = 5.0
"""The seconds of one core for a schedule in an environment: some traces of clients take the judge too long."""
BUNDLED_SCHEDULES = ClassicSchedules(ScheduleScope(BUNDLED_SETTINGS))
"""The kit's own schedules for the bundled coordinator, whole or faulty."""
MakeTarget = Callable[[Settings], Target]
GUARD_OPERATORS = frozenset({"always", "never", "comparison"})
"""Operators that change a guard or a comparison."""
TIMER_WORDS = ("timer", "arm", "cancel", "touch_session", "deadline", "delay", "schedule")
"""Words by which a statement or a sum is about a timer."""
EXCLUDED_MODULES = frozenset(
    {"responses", "coordinator", "log", "messages", "records", "coordinator_state", "subscription", "topics"}
)
"""Modules without decisions: layouts, files, names."""
_COORDINATOR = f"{classic.__name__}.coordinator"


class UnknownFaultyCoordinator(Exception):
    """A pattern matches no faulty coordinator; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class FaultyCoordinator:
    """A faulty coordinator: a bug or a mutant, with the sentence that describes it, its source, and the requirements
    that forbid it (unknown for a mutant). `grace` is how many milliseconds late its timers may be."""

    name: str
    sentence: str
    source: str = ""
    breaks: tuple[str, ...] = ()
    grace: int = 0
    bug: Bug | None = None
    mutant: Mutant | None = None

    @property
    def changed_lines(self) -> frozenset[Line] | None:
        """The lines that a trace must run to be affected by the fault; None if they are unknown."""
        return lines_changed_by(self.mutant) if self.mutant is not None else None

    @contextmanager
    def activate(self) -> Iterator[MakeTarget]:
        """A context that gives a function which makes faulty targets. Raises any exception of a mutant while it is
        loaded."""
        if self.bug is not None:
            with self.bug.activate():
                yield self.bug.environment.make_target
        elif self.mutant is not None:
            tree = apply_mutant(source_of(self.mutant.module), self.mutant)
            module = load_changed({self.mutant.module: tree}, [_COORDINATOR])[_COORDINATOR]
            yield partial(CrashingTarget, make_coordinator=module.Coordinator)

    @contextmanager
    def bench(self, clock: CpuClock, settings: Settings = BUNDLED_SETTINGS) -> Iterator[Bench]:
        """A context that gives a bench on which the coordinator is hunted."""
        if self.bug is None:
            with self.activate() as make_target:
                target = partial(make_target, settings)
                yield CachedBench(
                    BUNDLED_SCHEDULES,
                    target,
                    settings=settings,
                    activate=nullcontext,
                    clock=clock,
                    changed_lines=self.changed_lines,
                )
            return
        make = partial(self.bug.environment.make_target, settings)
        if self.bug.environment is PLAIN:
            yield CachedBench(BUNDLED_SCHEDULES, make, settings=settings, activate=self.bug.activate, clock=clock)
        else:
            yield ComparingBench(BUNDLED_SCHEDULES, make, self.grace, bug=self.bug)


@dataclass(frozen=True, slots=True)
class ComparingBench(Bench):
    """A bench for a bug that needs an environment: violations that the environment alone causes do not count."""

    bug: Bug | None = None

    def play(self, schedule: Schedule, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """As `Bench.play`, with the bug."""
        assert self.bug is not None
        with self.bug.activate():
            return Bench.play(self, schedule, judge_trace)

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """As `Bench.violated_by`, without the requirements that are violated without the bug too."""
        assert self.bug is not None
        try:
            with cpu_limit(MAX_PLAY_SECONDS):
                found = Bench.violated_by(self, schedule)
                if found:
                    with self.bug.environment.activate():
                        found -= Bench(self.protocol, self.make_target, self.grace).violated_by(schedule)
        except CpuLimitExceeded:
            return frozenset()
        return found


def from_bug(bug: Bug) -> FaultyCoordinator:
    """The faulty coordinator of a known bug."""
    return FaultyCoordinator(bug.number, bug.sentence, bug.source, bug.breaks, bug.environment.grace, bug=bug)


def is_systematic(mutant: Mutant) -> bool:
    """The mutant changes a guard, a comparison or a timer."""
    if mutant.operator in GUARD_OPERATORS:
        return bool(mutant.function)
    if mutant.operator in ("statement", "sum"):
        return any(word in mutant.before.lower() for word in TIMER_WORDS)
    return False


@cache
def systematic_mutants() -> tuple[FaultyCoordinator, ...]:
    """The mutants of every guard, comparison and timer of the bundled coordinator, in the order of the source."""
    names = sorted(each.name for each in pkgutil.iter_modules(classic.__path__) if each.name not in EXCLUDED_MODULES)
    sources = {f"{classic.__name__}.{name}": source_of(f"{classic.__name__}.{name}") for name in names}
    operators = [one for one in OPERATORS if one.name in GUARD_OPERATORS | {"statement", "sum"}]
    chosen = [mutant for mutant in all_mutants(sources, operators) if is_systematic(mutant)]
    return tuple(
        FaultyCoordinator(mutant.name, f"{mutant.operator} in line {mutant.line}", mutant=mutant) for mutant in chosen
    )


@cache
def known_bugs() -> dict[str, FaultyCoordinator]:
    """The known bugs by their numbers."""
    return {each.name: each for each in map(from_bug, COORDINATOR_BUGS.values())}


def faulty_coordinator(name: str) -> FaultyCoordinator:
    """The bug with this number, or the mutant with this name."""
    return known_bugs()[name] if name in known_bugs() else mutants_by_name()[name]


@cache
def mutants_by_name() -> dict[str, FaultyCoordinator]:
    """The systematic mutants by their names."""
    return {each.name: each for each in systematic_mutants()}


def match_patterns(patterns: tuple[str, ...]) -> tuple[FaultyCoordinator, ...]:
    """The faulty coordinators whose names match one of the shell patterns. Raises `UnknownFaultyCoordinator`."""
    found: dict[str, FaultyCoordinator] = {}
    for pattern in patterns:
        everything = known_bugs() if pattern.startswith("BUG") else {**known_bugs(), **mutants_by_name()}
        fitting = {name: one for name, one in everything.items() if fnmatchcase(name, pattern)}
        if not fitting:
            raise UnknownFaultyCoordinator(
                f"nothing in the zoo matches {pattern!r}; try a number like BUG-35 or a pattern like 'rounds.*'"
            )
        found |= fitting
    return tuple(found.values())
