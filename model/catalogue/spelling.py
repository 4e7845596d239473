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


def unknown_id_message(kind: str, pattern: str, ids: Collection[str], example: str) -> str:
    """One line on a pattern that no id of a kind of requirements matches; `example` says what would."""
    guess = suggest_id(pattern, ids)
    remedy = f"did you mean {guess!r}?" if guess else f"try {example}"
    return f"no {kind} matches {pattern!r}; {remedy}"
