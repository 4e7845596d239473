"""Selects requirements of a catalogue by shell patterns of their ids."""

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.catalogue.spelling import unknown_id_message
from fencepost.model.errors import FencepostError


class UnknownRequirement(FencepostError):
    """A pattern matches no requirement; the message is one clear line."""


def select_requirements(
    catalogue: Collection[Requirement], patterns: Sequence[str] = (), excluded: Sequence[str] = ()
) -> tuple[Requirement, ...]:
    """The requirements whose ids match a pattern and no excluded one, in the order of the catalogue; without patterns
    all but those. Raises `UnknownRequirement` for a pattern that no id matches, and if nothing is left."""
    chosen = matching_ids(catalogue, patterns or ("*",)) - matching_ids(catalogue, excluded)
    if not chosen:
        raise UnknownRequirement("nothing is left to test: every requirement asked for is excluded")
    return tuple(requirement for requirement in catalogue if requirement.id in chosen)


def matching_ids(catalogue: Collection[Requirement], patterns: Sequence[str]) -> set[str]:
    """The ids that match one of the patterns, such as "JOIN-29" or "JOIN-*". Raises `UnknownRequirement` for a pattern
    that no id matches."""
    ids = [requirement.id for requirement in catalogue]
    found: set[str] = set()
    for pattern in patterns:
        matching = [id for id in ids if fnmatchcase(id, pattern)]
        if not matching:
            raise UnknownRequirement(unknown_id_message(pattern, ids))
        found.update(matching)
    return found
