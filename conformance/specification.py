"""The specifications of all protocols, and the requirements in them, by subject, by id and by pattern."""

from collections.abc import Mapping, Sequence
from functools import cache

from fencepost.model.catalogue.requirement import Requirement, select_requirements
from fencepost.model.catalogue.specification import Hole, Specification
from fencepost.model.protocols import default_protocol, load_part, registered_protocols

DEFAULT_SPECIFICATION: Specification
CLIENT_SPECIFICATION: Specification
DEFAULT_SPECIFICATION, CLIENT_SPECIFICATION = map(load_part, default_protocol().specifications.values())


@cache
def specification_named(subject: str) -> Specification:
    """The specification whose requirements are about this subject. Raises KeyError if there is none."""
    own = default_protocol().specifications
    found: Specification = load_part((own if subject in own else _places())[subject])
    return found


def all_specifications() -> tuple[Specification, ...]:
    """The specifications of all protocols, coordinators and clients of the default one first."""
    return tuple(map(specification_named, _places()))


def _places() -> dict[str, str]:
    entries = registered_protocols().values()
    return {subject: place for entry in entries for subject, place in entry.specifications.items()}


def select_from_all(patterns: Sequence[str]) -> tuple[Requirement, ...]:
    """The requirements of all specifications whose ids match a pattern; all of them without patterns. Raises
    `UnknownRequirement` for a pattern that no id matches."""
    return select_requirements([each for one in all_specifications() for each in one.requirements.values()], patterns)


def specification_of(requirement: Requirement) -> Specification:
    """The specification that has a requirement."""
    return next(each for each in all_specifications() if requirement.id in each.requirements)


def needs_of(id: str) -> tuple[str, ...]:
    """The capabilities without which a requirement cannot be tested. Raises KeyError for an unknown id."""
    if id in DEFAULT_SPECIFICATION.requirements:
        return DEFAULT_SPECIFICATION.requirements[id].needs
    return next(each.requirements[id].needs for each in all_specifications() if id in each.requirements)


def holes_that_break(requirement: Requirement) -> tuple[Hole, ...]:
    """The holes, in the text that a protocol was read from, that break a requirement."""
    subject = specification_of(requirement).subject
    entry = next(each for each in registered_protocols().values() if subject in each.specifications)
    holes: Mapping[str, Hole] = load_part(entry.holes) if entry.holes else {}
    return tuple(hole for hole in holes.values() if requirement.id in hole.requirements)
