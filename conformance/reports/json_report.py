"""The report as JSON: written by `--json` and read back by later commands."""

import json
from collections.abc import Sequence
from typing import Any

from fencepost.conformance.provenance import describe_kit
from fencepost.conformance.reports.document import REPORT_VERSION, ReportDocument, RequirementEntry, make_document
from fencepost.conformance.reports.typed_json import FormError, from_plain, schema_of, to_plain, to_text
from fencepost.conformance.results import Report, RequirementResult
from fencepost.conformance.specification import specification_named
from fencepost.model.catalogue.specification import Specification
from fencepost.model.errors import FencepostError
from fencepost.traces.history.timeline import TraceHistory

DERIVED_FIELDS = ("outcome", "tiers", "causes")
"""The fields of a report that follow from others."""


class ReportError(FencepostError):
    """A text is not a report; the message is one clear line."""


def to_json(report: Report, histories: Sequence[TraceHistory] | None = None) -> str:
    """The report as indented JSON text that ends in a newline, with the histories of groups if there are any. Equal
    reports give equal texts."""
    return to_text(to_plain(make_document(report, histories)))


def report_schema() -> str:
    """The JSON Schema of reports, as indented JSON text that ends in a newline."""
    return to_text(schema_of(ReportDocument, f"Fencepost report, version {REPORT_VERSION}"))


def from_json(text: str, specification: Specification | None = None) -> Report:
    """The report that `to_json` wrote, without histories; its requirements are those of the specification, or of the
    one for its subject.

    Raises `ReportError` for anything else, and says where it is wrong.
    """
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"not JSON: {error}") from None
    version = plain.get("fencepost") if isinstance(plain, dict) else None
    if type(version) is not int or version != REPORT_VERSION:
        raise ReportError(f"not a Fencepost report of version {REPORT_VERSION}")
    try:
        document = from_plain(ReportDocument, plain)
    except FormError as error:
        raise ReportError(str(error)) from None
    if "name" not in document.target:
        raise ReportError("target.name is missing")
    report = report_of(document, specification or specification_named(document.subject))
    check_derived(document, make_document(report), is_own=report.kit is None)
    return report


def report_of(document: ReportDocument, specification: Specification) -> Report:
    """The report of a document. Raises `ReportError` for a requirement that the specification lacks, or has twice."""
    results: dict[str, RequirementResult] = {}
    for number, entry in enumerate(document.requirements):
        if entry.id not in specification.requirements:
            raise ReportError(f"requirements[{number}].id: there is no requirement {entry.id!r}")
        if entry.id in results:
            raise ReportError(f"requirements[{number}].id: {entry.id} is there twice")
        results[entry.id] = result_of(entry)
    return Report(
        target=document.target,
        seed=document.seed,
        results=tuple(results.values()),
        rules=document.rules,
        schedules=document.schedules,
        events=document.events,
        seconds=document.seconds,
        cut_short=document.cut_short,
        coverage=document.coverage,
        undecided=document.undecided,
        ended=document.ended,
        scope=document.outcome.scope,
        specification=specification,
        unclassified=document.unclassified,
        facts=document.facts,
        idle_findings=document.idle_findings,
        provenance=document.provenance,
        kit=None if document.kit == describe_kit(specification) else document.kit,
        members=members_of(document),
    )


def members_of(document: ReportDocument) -> Report | None:
    """The report on members in a document, None if it has none. Raises as `report_of`."""
    members = document.members
    return None if members is None else report_of(members, specification_named(members.subject))


def result_of(entry: RequirementEntry) -> RequirementResult:
    """The verdict of an entry."""
    return RequirementResult(
        entry.id,
        entry.verdict,
        entry.note,
        entry.checks,
        entry.failures,
        entry.causes,
        entry.remark,
        entry.more_failures or 0,
    )


def check_derived(document: ReportDocument, expected: ReportDocument, *, is_own: bool) -> None:
    """Raises `ReportError` if something in the document does not follow from the rest of it.

    Another release of the kit, of which the document is not its own, may word things otherwise and sort them into other
    tiers.
    """
    given, wanted = _derived(document, is_own), _derived(expected, is_own)
    for name in DERIVED_FIELDS:
        if given[name] != wanted[name]:
            raise ReportError(f"{name}: does not agree with the rest of the report")
    for number, (entry, other) in enumerate(zip(document.requirements, expected.requirements, strict=True)):
        if is_own and entry != other:
            raise ReportError(f"requirements[{number}]: {entry.id} is not worded as in the catalogue")


def _derived(document: ReportDocument, is_own: bool) -> dict[str, Any]:
    derived = {name: to_plain(getattr(document, name)) for name in DERIVED_FIELDS}
    if not is_own:
        derived["outcome"]["headline"] = derived["tiers"] = None
    return derived
