"""The search for a hole in the text of a protocol: until its property breaks, or nothing is left within the bounds."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Generic, TypeVar

from fencepost.model.explore.engine import explore_system, find_run, search_until_found
from fencepost.model.explore.search import NO_LIMIT, Exploration
from fencepost.model.explore.transition_system import TransitionSystem


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What came of it: the shortest run that breaks the property, empty if none does; how much was searched."""

    run: tuple[str, ...]
    states: int
    is_complete: bool
    """Everything within the bounds was searched."""
    seconds: float
    unit: str = "states"

    @property
    def is_broken(self) -> bool:
        """Whether the property breaks."""
        return bool(self.run)


Bounds = TypeVar("Bounds", bound=Hashable)
Dialect = TypeVar("Dialect")
FindBreak = Callable[[int], SearchOutcome]
"""Searches no more than so many states."""


@dataclass(frozen=True, slots=True)
class HoleSearch:
    """How a hole is found: its id in the catalogue, the property that breaks, what repairs it, and both searches."""

    id: str
    property: str
    """Its name in the specification, or a requirement's id."""
    sentence: str
    """What breaks."""
    repair: str
    """The values of the dialect that repair it."""
    bounds: str
    """What is searched, in words."""
    drafted: FindBreak
    repaired: FindBreak


def find_break(make_system: Callable[[], TransitionSystem], name: str) -> FindBreak:
    """The search for a break of a property, which ends once there is one."""

    def search(limit: int = NO_LIMIT) -> SearchOutcome:
        began = perf_counter()
        exploration = search_until_found(make_system(), (name,), limit)
        return outcome_of(exploration, name, perf_counter() - began)

    return search


Searched = dict[Hashable, Exploration]
"""The explorations so far: systems that several holes share are searched once."""


def search_all(
    make_system: Callable[[], TransitionSystem], name: str, key: Hashable = None, known: Searched | None = None
) -> FindBreak:
    """The search of everything for a break of a property; what `known` has under the key is not searched again."""

    def search(limit: int = NO_LIMIT) -> SearchOutcome:
        exploration = None if known is None else known.get((key, limit))
        if exploration is None:
            exploration, _ = explore_system(make_system(), limit=limit)
            if known is not None:
                known[key, limit] = exploration
        return outcome_of(exploration, name, exploration.seconds)

    return search


def outcome_of(exploration: Exploration, name: str, seconds: float) -> SearchOutcome:
    """The outcome for one property."""
    return SearchOutcome(find_run(exploration, name) or (), exploration.states, exploration.finished, seconds)


@dataclass(frozen=True, slots=True)
class HoleMaker(Generic[Bounds]):
    """Makes the searches for holes of one system, from the bounds with repairs undone and from those with all repairs.

    `sentences` are those of its properties, `describe` puts bounds into words.
    """

    make_system: Callable[[Bounds], TransitionSystem]
    sentences: Mapping[str, str]
    describe: Callable[[Bounds], str]
    known: Searched = field(default_factory=dict)

    def hole(self, id: str, name: str, repair: str, broken: Bounds, whole: Bounds) -> HoleSearch:
        """The searches for a break of this property."""
        return HoleSearch(
            id,
            name,
            self.sentences[name],
            repair,
            self.describe(whole),
            find_break(partial(self.make_system, broken), name),
            search_all(partial(self.make_system, whole), name, whole, self.known),
        )


def value_hole(
    id: str,
    name: str,
    sentence: str,
    repair: str,
    values: Callable[[Dialect], Iterable[str]],
    dialects: tuple[Dialect, Dialect],
    count: int,
    unit: str,
) -> HoleSearch:
    """The searches, as drafted and as repaired, for a value that does not survive: `values` yields those that do not,
    of `count` that it tries."""

    def find(dialect: Dialect) -> FindBreak:
        def search(limit: int = NO_LIMIT) -> SearchOutcome:
            began = perf_counter()
            found = tuple(islice(values(dialect), 1))
            return SearchOutcome(found, count, not found, perf_counter() - began, unit)

        return search

    return HoleSearch(id, name, sentence, repair, f"{count:,} {unit}", *map(find, dialects))
