"""Passes where the sources are ambiguous: the two coordinators of Apache Kafka differ, and a target is like one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from fencepost.conformance.results import Remark, RemarkKind, RequirementResult, Verdict
from fencepost.model.catalogue.specification import Specification


def note_ambiguities(
    results: Iterable[RequirementResult], decisions: Mapping[str, bool], specification: Specification
) -> Iterator[RequirementResult]:
    """The results; a pass of which nothing else is told gets a remark if its requirement is ambiguous and `decisions`
    has a side."""
    sides: dict[str, list[str]] = {}
    differences = specification.differences
    for name in sorted(decisions.keys() & differences.keys(), key=lambda name: differences[name].id):
        side = specification.describe_side(name, decisions[name])
        sides.setdefault(differences[name].requirement, []).append(side)
    for result in results:
        if result.verdict is Verdict.PASS and not result.comment and result.id in sides:
            yield replace(result, remark=Remark(RemarkKind.AMBIGUOUS, "; ".join(sides[result.id])))
        else:
            yield result
