"""Real breaches of the statements of the proof: runs from the start that end in one, searched for breadth first.

A counterexample to induction begins in a state that may never come about. What is found here did come about: each step
of the way is a call of the same handlers.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fencepost.model.classic.core.state import Group
from fencepost.model.classic.theorems.ghost_state import Process
from fencepost.model.classic.theorems.statements import Statement
from fencepost.model.explore.classic.group_search import Told, retold
from fencepost.model.explore.classic.history import with_past
from fencepost.model.explore.classic.state_layout import Bounds, Setting, plain
from fencepost.model.explore.search import PlainSearch, Pulse
from fencepost.model.explore.transition_tables import Tables

LIMIT = 100_000
"""How many states are looked at in each instance, if it has so many."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A small world to search in."""

    name: str
    setting: Setting
    bounds: Bounds


INSTANCES = (
    Instance("one member", Setting((plain(),)), Bounds(ids=2, generations=2, requests=5, slots=1)),
    Instance("one static member", Setting((plain(instance="one"),)), Bounds(ids=2, generations=2, requests=5, slots=1)),
    Instance("two members", Setting((plain(), plain()), heartbeats=False), Bounds(2, 2, 4, 2)),
    Instance(
        "two members, one of them static",
        Setting((plain(), plain(instance="one")), heartbeats=False),
        Bounds(ids=3, generations=2, requests=4, slots=2),
    ),
)
"""Tried in this order: a story with fewer members is easier to follow."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A run from the start after which a statement does not hold; no run in this instance is shorter."""

    statement: str
    instance: Instance
    steps: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Hunt:
    """What was found, the shortest first, and how many states were looked at."""

    breaches: tuple[Breach, ...]
    states: int

    def of(self, statement: str) -> Breach | None:
        """The breach of this statement, if one was found."""
        return next((breach for breach in self.breaches if breach.statement == statement), None)


def hunt(
    statements: Iterable[Statement],
    limit: int = LIMIT,
    progress: Callable[[str, int, int], None] = lambda doing, number, total: None,
) -> Hunt:
    """Search for a real breach of each statement; `progress` is told of each search, its number and how many at most.

    Statements that ask for the same kinds of past are searched for together.
    """
    kinds: dict[frozenset[type], list[Statement]] = {}
    for one in statements:
        kinds.setdefault(frozenset(one.about) - {Group, Process}, []).append(one)
    found: dict[str, Breach] = {}
    states = number = 0
    for together in kinds.values():
        for instance in INSTANCES:
            number += 1
            missing = [one for one in together if one.id not in found]
            if missing:
                names = ", ".join(one.id for one in missing)
                progress(f"real breach of {names}: {instance.name}", number, len(kinds) * len(INSTANCES))
                breaches, looked_at = searched(missing, instance, limit)
                found |= {breach.statement: breach for breach in breaches}
                states += looked_at
    return Hunt(tuple(sorted(found.values(), key=lambda breach: len(breach.steps))), states)


def searched(statements: Sequence[Statement], instance: Instance, limit: int) -> tuple[list[Breach], int]:
    """A shortest breach of each statement, if there is one in the instance, and how many states were looked at."""
    search = PlainSearch(Tables(with_past(instance.setting, instance.bounds, statements)), limit)
    wanted = {one.id for one in statements}

    def missing(pulse: Pulse) -> bool:
        return not wanted <= {finding.name for finding in search.result.findings}

    result = search.run(missing)
    found = [finding for finding in result.findings if finding.name in wanted]
    return [Breach(one.name, instance, retold(result.tables, one)) for one in found], result.states
