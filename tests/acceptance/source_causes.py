"""Causes by the source of a target, and how the causes of a report compare with them.

A deviation is one decision in the source that breaks requirements: what would be mended in one place. Each requirement
has first the deviation that has to be mended for its own sentence to hold, then others that shape its failure, such as
the line that gives the wrong response. So a report may hold two requirements for one cause if they share any deviation,
and has missed something if it tells those with the same first one apart.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deviation:
    """A decision in the source: the file and the function, and what is decided there."""

    place: str
    decision: str


@dataclass(frozen=True, slots=True)
class CauseComparison:
    """How causes as reported compare with those by source, for the requirements of which the source is known."""

    reported: int
    by_source: int
    false_merges: tuple[str, ...]
    """Causes as reported that hold requirements together that share no deviation."""
    missed_merges: tuple[str, ...]
    """Requirements with the same first deviation that are reported as several causes."""


def compare_causes(reported: Iterable[Collection[str]], deviations_of: Mapping[str, Sequence[str]]) -> CauseComparison:
    """Compare causes as reported, each given by its requirements, with the deviations of each requirement."""
    known = [tuple(id for id in cause if id in deviations_of) for cause in reported]
    causes = [cause for cause in known if cause]
    parts = {cause: split_by_deviation(cause, deviations_of) for cause in causes}
    places: dict[str, list[tuple[str, ...]]] = {}
    for cause in causes:
        for first in dict.fromkeys(deviations_of[id][0] for id in cause):
            places.setdefault(first, []).append(tuple(id for id in cause if deviations_of[id][0] == first))
    return CauseComparison(
        len(causes),
        len(places),
        tuple(" | ".join(map(", ".join, found)) for found in parts.values() if len(found) > 1),
        tuple(" | ".join(map(", ".join, found)) for found in places.values() if len(found) > 1),
    )


def split_by_deviation(cause: Iterable[str], deviations_of: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """The parts of a cause whose requirements share deviations, directly or by others between them."""
    parts: list[tuple[str, ...]] = []
    for id in cause:
        mine = set(deviations_of[id])
        joined = [part for part in parts if any(mine.intersection(deviations_of[other]) for other in part)]
        parts = [part for part in parts if part not in joined]
        parts.append((*(other for part in joined for other in part), id))
    return parts
