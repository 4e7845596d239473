"""Selects requirements of a catalogue by shell patterns of their ids, and suggests an id where nothing matches."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from fencepost.model.catalogue.requirement import Requirement
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


def suggest_id(pattern: str, ids: Collection[str]) -> str:
    """The id or pattern that one that matches nothing may stand for: its family is spelled right, and its number has
    two digits. "" if there is none."""
    family, _, number = pattern.partition("-")
    families = dict.fromkeys(id.rpartition("-")[0] for id in ids)
    for meant in get_close_matches(family.upper(), families, 1):
        guess = f"{meant}-{number.zfill(2) if number.isdecimal() else number or '*'}"
        if any(fnmatchcase(id, guess) for id in ids):
            return guess
    return ""


def unknown_id_message(pattern: str, ids: Collection[str]) -> str:
    """One line on a pattern that no id matches: what was meant, or the nearest id and its family."""
    guess = suggest_id(pattern, ids)
    if guess:
        return f"no requirement matches {pattern!r}; did you mean {guess!r}?"
    (near,) = get_close_matches(pattern.upper(), ids, n=1, cutoff=0)
    family = near.partition("-")[0]
    return f"no requirement matches {pattern!r}; try an id like {near} or a pattern like '{family}-*'"
