"""The registry of interactions, the parts of a schedule, by family.

An interaction adds a few moves to a schedule, chosen by the state of the simulation. A schedule draws its interactions
from a few families only (swarm testing): what these have to do with each other then happens often.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import combinations

from fencepost.conformance.classic.schedules.draw import Draw
from fencepost.conformance.classic.schedules.schedule_builder import ScheduleBuilder
from fencepost.conformance.run.schedule import ScheduleScope

FAMILIES_PER_SCHEDULE = (3, 4, 4, 5)
MAX_WEIGHT = 4
"""A family is chosen in proportion to the number of its interactions, up to this one."""


class Family(StrEnum):
    """What interactions of a kind are about."""

    LOSSES = "losses"
    GENERATIONS = "generations"
    STATIC_MEMBERS = "static members"
    CLIENT_VERSIONS = "client versions"
    PERTURBATIONS = "perturbations"
    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"
    GROUPS = "groups"
    TIME = "time"
    RESTARTS = "restarts"
    CUTS = "cuts"


Condition = Callable[[ScheduleBuilder], bool]


@dataclass(frozen=True, slots=True)
class Interaction:
    """An interaction: its name, its family, the function that adds its moves, and when it is possible."""

    name: str
    family: Family
    add_moves: Callable[[ScheduleBuilder], None]
    is_possible: Condition


INTERACTIONS: dict[str, Interaction] = {}
"""All interactions by name, in the order of their registration."""


def interaction(
    family: Family, when: Condition = lambda builder: True
) -> Callable[[Callable[[ScheduleBuilder], None]], Callable[[ScheduleBuilder], None]]:
    """Register a function as an interaction of a family, possible `when` the condition holds."""

    def register(add_moves: Callable[[ScheduleBuilder], None]) -> Callable[[ScheduleBuilder], None]:
        name = add_moves.__name__
        INTERACTIONS[name] = Interaction(name, family, add_moves, when)
        return add_moves

    return register


@cache
def family_sets(families: tuple[Family, ...], size: int) -> tuple[tuple[Family, ...], ...]:
    """All sets of so many families: each pair of families is in as many of them as any other."""
    return tuple(combinations(families, size))


def choose_families(draw: Draw, scope: ScheduleScope) -> tuple[Family, ...]:
    """The families of one schedule, of those that the target allows."""
    excluded = {
        family
        for family, is_allowed in (
            (Family.TRANSACTIONS, scope.transactions),
            (Family.RESTARTS, scope.restarts),
            (Family.CUTS, scope.cuts),
        )
        if not is_allowed
    }
    allowed = tuple(family for family in Family if family not in excluded)
    return draw.choose(family_sets(allowed, draw.choose(FAMILIES_PER_SCHEDULE)))


def add_interaction(builder: ScheduleBuilder, families: Sequence[Family]) -> None:
    """Add the moves of one interaction, drawn from the families, in one of the groups."""
    builder.focus_group()
    builder.restore_group()
    possible: dict[Family, list[Interaction]] = {}
    for each in INTERACTIONS.values():
        if each.family in families and each.is_possible(builder):
            possible.setdefault(each.family, []).append(each)
    weighted = [family for family, each in possible.items() for _ in each[:MAX_WEIGHT]]
    if weighted:
        builder.draw.choose(possible[builder.draw.choose(weighted)]).add_moves(builder)
