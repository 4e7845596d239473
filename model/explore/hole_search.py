"""The search for one hole of a design: until its property breaks, or until nothing is left within the bounds."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import islice
from time import perf_counter

from fencepost.model.explore.engine import explore_system, replay_path
from fencepost.model.explore.search import NO_LIMIT, Exploration, PlainSearch, SearchProgress
from fencepost.model.explore.transition_system import TransitionSystem
from fencepost.model.explore.transition_tables import TransitionTables


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
        plain = PlainSearch(TransitionTables(make_system()), limit)

        def goes_on(progress: SearchProgress) -> bool:
            return not any(one.name == name for one in plain.result.discoveries)

        return outcome_of(plain.run(goes_on), name, perf_counter() - began)

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
    found = next((one for one in exploration.discoveries if one.name == name), None)
    run = () if found is None else tuple(step.label for step in replay_path(exploration.tables, found))
    return SearchOutcome(run, exploration.states, exploration.finished, seconds)


def search_values(values: Callable[[], Iterable[str]], count: int, unit: str) -> FindBreak:
    """The search for a value that does not survive: `values` yields those that do not, of `count` that it tries."""

    def search(limit: int = NO_LIMIT) -> SearchOutcome:
        began = perf_counter()
        found = tuple(islice(values(), 1))
        return SearchOutcome(found, count, not found, perf_counter() - began, unit)

    return search
