"""Passes that rest on an ambiguous source: the two coordinators of Apache Kafka differ, and a target takes a side."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from fencepost.conformance.results import RequirementResult, Verdict
from fencepost.model.catalogue.classic.differences import DIFFERENCES, describe_side


def common_decisions(decisions_by_trace: Iterable[Mapping[str, bool]]) -> dict[str, bool]:
    """The sides that all traces take which take one; they may be of several targets."""
    sides: dict[str, set[bool]] = {}
    for decisions in decisions_by_trace:
        for name, side in decisions.items():
            sides.setdefault(name, set()).add(side)
    return {name: True in found for name, found in sides.items() if len(found) == 1}


def note_ambiguities(
    results: Iterable[RequirementResult], decisions: Mapping[str, bool]
) -> Iterator[RequirementResult]:
    """The results, a pass with the sides that were taken where its requirement leaves them open."""
    sides: dict[str, list[str]] = {}
    for name in sorted(decisions.keys() & DIFFERENCES.keys(), key=lambda name: DIFFERENCES[name].id):
        sides.setdefault(DIFFERENCES[name].requirement, []).append(describe_side(name, decisions[name]))
    for result in results:
        if result.verdict is Verdict.PASS and not result.note and result.id in sides:
            yield replace(result, note=f"ambiguous in the sources: {'; '.join(sides[result.id])}")
        else:
            yield result
