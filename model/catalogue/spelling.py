"""Suggestions for a requirement id that nothing matches."""

from collections.abc import Collection
from difflib import get_close_matches
from fnmatch import fnmatchcase


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
