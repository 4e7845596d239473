"""What can be hunted: known bugs by their numbers, and mutants of the bundled coordinator by their names."""

import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial

from fencepost.adapters.bundled import classic
from fencepost.adapters.target import Target
from fencepost.conformance.execution.play import Judging, Played
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.schedules.falsify import Field
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.zoo.cache import Familiar, Watch
from fencepost.conformance.zoo.classic.bug import Bug
from fencepost.conformance.zoo.classic.bugs import COORDINATOR
from fencepost.conformance.zoo.classic.environments import PLAIN
from fencepost.conformance.zoo.crashing_target import MortalTarget
from fencepost.conformance.zoo.line_coverage import Line, changed_by
from fencepost.conformance.zoo.module_copies import load, source_of
from fencepost.conformance.zoo.mutation import Mutant, all_mutants, mutated
from fencepost.conformance.zoo.operators import OPERATORS
from fencepost.conformance.zoo.timeouts import Stuck, at_most
from fencepost.model.settings import Settings

PLAY_SECONDS = 5.0
"""How long a schedule may take under circumstances: some that clients saw have too many explanations to go through."""
MakeTarget = Callable[[Settings], Target]
GUARDS = frozenset({"always", "never", "comparison"})
"""Operators that make a guard or a comparison wrong."""
TIMED = ("timer", "arm", "cancel", "touch_session", "deadline", "delay", "schedule")
"""What names a timer: a statement about one left out, or a sum that makes a deadline."""
ELSEWHERE = frozenset(
    {"responses", "coordinator", "log", "messages", "records", "coordinator_state", "subscription", "topics"}
)
"""Modules that decide nothing: layouts, files, names."""
_COORDINATOR = f"{classic.__name__}.coordinator"


class UnknownSpecimen(Exception):
    """A pattern matches nothing that can be hunted; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class Specimen:
    """A wrong coordinator: its name, what it does, where that is from, and the requirements that forbid it (of a mutant
    none is known). `grace` is how many milliseconds late its timers may be."""

    name: str
    sentence: str
    source: str = ""
    breaks: tuple[str, ...] = ()
    grace: int = 0
    bug: Bug | None = None
    mutant: Mutant | None = None

    @property
    def changed(self) -> frozenset[Line] | None:
        """The lines that have to be run for it to make a difference; None if that cannot be told."""
        return changed_by(self.mutant) if self.mutant is not None else None

    @contextmanager
    def applied(self) -> Iterator[MakeTarget]:
        """For as long as this lasts, what makes targets makes wrong ones. Raises whatever a mutant raises that cannot
        even be loaded."""
        if self.bug is not None:
            with self.bug.applied():
                yield self.bug.circumstances.make_target
        elif self.mutant is not None:
            tree = mutated(source_of(self.mutant.module), self.mutant)
            module = load({self.mutant.module: tree}, [_COORDINATOR])[_COORDINATOR]
            yield partial(MortalTarget, make_coordinator=module.Coordinator)

    @contextmanager
    def field(self, watch: Watch, settings: Settings = BUNDLED_SETTINGS) -> Iterator[Field]:
        """Where it can be hunted, for as long as this lasts."""
        if self.bug is None:
            with self.applied() as make_target:
                target = partial(make_target, settings)
                yield Familiar(target, settings=settings, applied=nullcontext, watch=watch, changed=self.changed)
            return
        make = partial(self.bug.circumstances.make_target, settings)
        if self.bug.circumstances is PLAIN:
            yield Familiar(make, settings=settings, applied=self.bug.applied, watch=watch)
        else:
            yield Compared(make, self.grace, self.bug)


@dataclass(frozen=True, slots=True)
class Compared(Field):
    """A field for a bug that needs circumstances: what they do to a coordinator without it does not count."""

    bug: Bug | None = None

    def perform(self, schedule: Schedule, judging: Judging | None = None) -> Played:
        """As `Field.perform`, with the bug."""
        assert self.bug is not None
        with self.bug.applied():
            return Field.perform(self, schedule, judging)

    def broken(self, schedule: Schedule) -> frozenset[str]:
        """As `Field.broken`, but for what is seen without the bug too."""
        assert self.bug is not None
        try:
            with at_most(PLAY_SECONDS):
                found = Field.broken(self, schedule)
                if found:
                    with self.bug.circumstances.applied():
                        found -= Field(self.make_target, self.grace).broken(schedule)
        except Stuck:
            return frozenset()
        return found


def of_bug(bug: Bug) -> Specimen:
    """A known bug."""
    return Specimen(bug.number, bug.sentence, bug.source, bug.breaks, bug.circumstances.grace, bug=bug)


def is_systematic(mutant: Mutant) -> bool:
    """The mutant makes a guard, a comparison or a timer wrong."""
    if mutant.operator in GUARDS:
        return bool(mutant.function)
    if mutant.operator in ("statement", "sum"):
        return any(word in mutant.before.lower() for word in TIMED)
    return False


@cache
def systematic() -> tuple[Specimen, ...]:
    """Every guard, comparison and timer of the bundled coordinator made wrong, in the order of the source."""
    names = sorted(each.name for each in pkgutil.iter_modules(classic.__path__) if each.name not in ELSEWHERE)
    sources = {f"{classic.__name__}.{name}": source_of(f"{classic.__name__}.{name}") for name in names}
    operators = [one for one in OPERATORS if one.name in GUARDS | {"statement", "sum"}]
    chosen = [mutant for mutant in all_mutants(sources, operators) if is_systematic(mutant)]
    return tuple(Specimen(mutant.name, f"{mutant.operator} in line {mutant.line}", mutant=mutant) for mutant in chosen)


@cache
def known() -> dict[str, Specimen]:
    """The known bugs by their numbers."""
    return {each.name: each for each in map(of_bug, COORDINATOR.values())}


def specimen(name: str) -> Specimen:
    """The bug with this number, or the mutant with this name."""
    return known()[name] if name in known() else mutants()[name]


@cache
def mutants() -> dict[str, Specimen]:
    """The systematic mutants by their names."""
    return {each.name: each for each in systematic()}


def chosen(patterns: tuple[str, ...]) -> tuple[Specimen, ...]:
    """The specimens whose names fit one of the shell patterns. Raises `UnknownSpecimen`."""
    found: dict[str, Specimen] = {}
    for pattern in patterns:
        everything = known() if pattern.startswith("BUG") else {**known(), **mutants()}
        fitting = {name: one for name, one in everything.items() if fnmatchcase(name, pattern)}
        if not fitting:
            raise UnknownSpecimen(
                f"nothing in the zoo matches {pattern!r}; try a number like BUG-35 or a pattern like 'rounds.*'"
            )
        found |= fitting
    return tuple(found.values())
