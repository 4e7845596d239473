"""The specifications of runs and reports: of the modules that every command loads, the only one of this package that
names protocols."""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module

from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.catalogue.selection import select_requirements
from fencepost.model.catalogue.specification import Specification
from fencepost.model.classic.catalogue import CLASSIC
from fencepost.model.classic.catalogue.client import CLASSIC_CLIENT

DEFAULT_SPECIFICATION = CLASSIC
CLIENT_SPECIFICATION = CLASSIC_CLIENT
"""The requirements of clients."""
OTHERS = {
    "push coordinator": "fencepost.model.push.rules.PUSH",
    "consistent region": "fencepost.model.region.rules.REGION",
}
"""The specifications of other protocols, each imported when it is asked for, by the subject of its requirements."""


@cache
def specification_named(subject: str) -> Specification:
    """The specification whose requirements are about this subject. Raises KeyError if there is none."""
    for each in (DEFAULT_SPECIFICATION, CLIENT_SPECIFICATION):
        if each.subject == subject:
            return each
    module, _, name = OTHERS[subject].rpartition(".")
    found: Specification = getattr(import_module(module), name)
    return found


def all_specifications() -> tuple[Specification, ...]:
    """The specifications of all protocols, coordinators and clients of the default one first."""
    return (DEFAULT_SPECIFICATION, CLIENT_SPECIFICATION, *map(specification_named, OTHERS))


def select_from_all(patterns: Sequence[str]) -> tuple[Requirement, ...]:
    """The requirements of all specifications whose ids match a pattern; all of them without patterns. Raises
    `UnknownRequirement` for a pattern that no id matches."""
    return select_from(all_specifications(), patterns)


def select_from(specifications: Iterable[Specification], patterns: Sequence[str]) -> tuple[Requirement, ...]:
    """As `select_from_all`, among the requirements of these specifications."""
    return select_requirements([each for one in specifications for each in one.requirements.values()], patterns)


def specification_of(requirement: Requirement) -> Specification:
    """The specification that has a requirement."""
    return next(each for each in all_specifications() if requirement.id in each.requirements)


def needs_of(id: str) -> tuple[str, ...]:
    """The capabilities without which a requirement cannot be tested. Raises KeyError for an unknown id."""
    if id in DEFAULT_SPECIFICATION.requirements:
        return DEFAULT_SPECIFICATION.requirements[id].needs
    return next(each.requirements[id].needs for each in all_specifications() if id in each.requirements)
