"""Real breaches of the statements of the proof: runs from the start that end in one, searched for breadth first.

A counterexample to induction begins in a state that may never come about. What is found here did come about: each step
of the way is a call of the same handlers.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fencepost.model.classic.core.state import Group
from fencepost.model.classic.theorems.ghost_state import Process
from fencepost.model.explore.classic.history import system_with_history
from fencepost.model.explore.classic.state_layout import Bounds, ModelConfig, untimed_member
from fencepost.model.explore.engine import PathStep, replay_path
from fencepost.model.explore.search import PlainSearch, SearchProgress
from fencepost.model.explore.transition_tables import TransitionTables
from fencepost.model.statement import Statement

MAX_STATES = 100_000
"""How many states are looked at in each instance, if it has so many."""


@dataclass(frozen=True, slots=True)
class ModelInstance:
    """A small world to search in."""

    name: str
    config: ModelConfig
    bounds: Bounds


INSTANCES = (
    ModelInstance("one member", ModelConfig((untimed_member(),)), Bounds(ids=2, generations=2, requests=5, slots=1)),
    ModelInstance(
        "one static member",
        ModelConfig((untimed_member(instance="one"),)),
        Bounds(ids=2, generations=2, requests=5, slots=1),
    ),
    ModelInstance(
        "two members", ModelConfig((untimed_member(), untimed_member()), heartbeats=False), Bounds(2, 2, 4, 2)
    ),
    ModelInstance(
        "two members, one of them static",
        ModelConfig((untimed_member(), untimed_member(instance="one")), heartbeats=False),
        Bounds(ids=3, generations=2, requests=4, slots=2),
    ),
)
"""Tried in this order: a story with fewer members is easier to follow."""


@dataclass(frozen=True, slots=True)
class ReachableViolation:
    """A run from the start after which a statement does not hold; no run in this instance is shorter."""

    statement: str
    instance: ModelInstance
    steps: tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class ViolationSearchResult:
    """What was found, the shortest first, and how many states were looked at."""

    violations: tuple[ReachableViolation, ...]
    states: int

    def violation_of(self, statement: str) -> ReachableViolation | None:
        """The breach of this statement, if one was found."""
        return next((breach for breach in self.violations if breach.statement == statement), None)


def find_violations(
    statements: Iterable[Statement],
    limit: int = MAX_STATES,
    progress: Callable[[str, int, int], None] = lambda doing, number, total: None,
) -> ViolationSearchResult:
    """Search for a real breach of each statement; `progress` is told of each search, its number and how many at most.

    Statements that ask for the same kinds of past are searched for together.
    """
    kinds: dict[frozenset[type], list[Statement]] = {}
    for one in statements:
        kinds.setdefault(frozenset(one.subjects) - {Group, Process}, []).append(one)
    found: dict[str, ReachableViolation] = {}
    states = number = 0
    for together in kinds.values():
        for instance in INSTANCES:
            number += 1
            missing = [one for one in together if one.id not in found]
            if missing:
                names = ", ".join(one.id for one in missing)
                progress(f"real breach of {names}: {instance.name}", number, len(kinds) * len(INSTANCES))
                breaches, looked_at = search_instance(missing, instance, limit)
                found |= {breach.statement: breach for breach in breaches}
                states += looked_at
    return ViolationSearchResult(tuple(sorted(found.values(), key=lambda breach: len(breach.steps))), states)


def search_instance(
    statements: Sequence[Statement], instance: ModelInstance, limit: int
) -> tuple[list[ReachableViolation], int]:
    """A shortest breach of each statement, if there is one in the instance, and how many states were looked at."""
    search = PlainSearch(TransitionTables(system_with_history(instance.config, instance.bounds, statements)), limit)
    wanted = {one.id for one in statements}

    def missing(progress: SearchProgress) -> bool:
        return not wanted <= {finding.name for finding in search.result.discoveries}

    result = search.run(missing)
    found = [finding for finding in result.discoveries if finding.name in wanted]
    return [ReachableViolation(one.name, instance, replay_path(result.tables, one)) for one in found], result.states
