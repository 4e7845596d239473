"""The report as JSON: written by `--json`, and read back by later commands.

The fields of the classes are its fields; what follows from others is checked when it is read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from fencepost.conformance.analysis.causes import Harm, find_causes
from fencepost.conformance.reports.html import embedded_json
from fencepost.conformance.reports.typed import (
    Count,
    FormError,
    Seconds,
    from_plain,
    schema_of,
    to_plain,
    to_text,
)
from fencepost.conformance.reports.words import outcome_line
from fencepost.conformance.results import (
    Coverage,
    Ending,
    Failure,
    Kit,
    Provenance,
    Remark,
    Report,
    RequirementResult,
    RuleCoverage,
    Scope,
    TargetFacts,
    Verdict,
    describe_kit,
)
from fencepost.conformance.specification import specification_named
from fencepost.model.catalogue.requirement import Level, Tier
from fencepost.model.catalogue.specification import Specification
from fencepost.model.errors import FencepostError
from fencepost.traces.history.builder import TraceHistory

REPORT_VERSION: Final = 2
DERIVED_FIELDS = ("outcome", "tiers", "causes")
"""The fields of a report that follow from others."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run: the exit code of its command, the last line of its text, how much it set out to exercise, and
    how many requirements were checked and got each verdict."""

    exit: Literal[0, 1, 2, 3]
    headline: str
    scope: Scope
    checked: Count
    verdicts: Mapping[str, Count]


Subject = Literal["coordinator", "client", "push coordinator", "consistent region"]
"""What the requirements of a report are about."""


@dataclass(frozen=True, slots=True)
class RootCause:
    """What is wrong with the target, the requirements that fail by it, and the harm that it does."""

    title: str
    requirements: tuple[str, ...]
    harm: Harm | None


@dataclass(frozen=True, slots=True)
class RequirementEntry:
    """A requirement in the words of the catalogue, and the verdict on it.

    `links` has the addresses where sources can be read, by their names, or by files and methods that they stand for.
    `since` is the release of Apache Kafka that it holds from, "" if all of them. `note` gives the reason; `remark`
    tells of a requirement that is kept in an unusual way, or on which the sources differ; `causes` are the failed
    requirements that an inconclusive one follows from; `checks` counts the responses that were checked for it.
    """

    id: str
    level: Level
    tier: Tier
    needs: tuple[str, ...]
    title: str
    sentence: str
    source: str
    links: Mapping[str, str] | None
    since: str
    verdict: Verdict
    note: str
    remark: Remark | None
    causes: tuple[str, ...]
    checks: Count
    failures: tuple[Failure, ...]
    more_failures: int | None


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """A report of Fencepost.

    `subject` is what the requirements are about. `target` describes what was judged and has at least a "name".
    `provenance` tells how the report came about, `facts` what was known about the target, `ended` how the run ended
    early; they are left out where there is nothing to tell. `tiers` counts verdicts by tier. `unclassified` are
    violations that no requirement speaks of, `idle_findings` what the target did while it was idle; `undecided`
    tells what recorded traces leave open; `rules` are those of the model with how often each explained a response;
    `coverage` is there if random schedules were played; `members` is the report on the members of groups, by the
    requirements of clients, if the traces are recordings.
    """

    fencepost: Literal[2]
    kit: Kit
    subject: Subject
    target: Mapping[str, str]
    outcome: Outcome
    tiers: Mapping[str, Mapping[str, Count]]
    causes: tuple[RootCause, ...]
    requirements: tuple[RequirementEntry, ...]
    unclassified: tuple[Failure, ...]
    idle_findings: tuple[str, ...]
    undecided: tuple[str, ...]
    seed: int
    schedules: Count
    events: Count
    seconds: Seconds
    cut_short: bool
    ended: Ending | None
    provenance: Provenance | None
    facts: TargetFacts | None
    rules: Mapping[str, RuleCoverage]
    coverage: Coverage | None
    histories: tuple[TraceHistory, ...] | None
    members: "ReportDocument | None"


def make_document(report: Report, histories: Sequence[TraceHistory] | None = None) -> ReportDocument:
    """The document of a report, with the histories of groups that were told of its traces."""
    verdicts = {str(verdict): count for verdict, count in report.summary().items()}
    code: Literal[0, 1, 2, 3] = report.exit_code().value
    return ReportDocument(
        fencepost=REPORT_VERSION,
        kit=report.kit or describe_kit(report.specification),
        subject=next((each for each in get_args(Subject) if each == report.specification.subject), "coordinator"),
        target=report.target,
        outcome=Outcome(code, outcome_line(report), report.scope, report.checked_count(), verdicts),
        tiers=count_tiers(report),
        causes=tuple(RootCause(cause.title, cause.requirements, cause.harm) for cause in find_causes(report)),
        requirements=tuple(make_entry(result, report.specification) for result in report.results),
        unclassified=report.unclassified,
        idle_findings=report.idle_findings,
        undecided=report.undecided,
        seed=report.seed,
        schedules=report.schedules,
        events=report.events,
        seconds=report.seconds,
        cut_short=report.cut_short,
        ended=report.ended,
        provenance=report.provenance,
        facts=report.facts,
        rules=dict(sorted(report.rules.items())),
        coverage=report.coverage,
        histories=tuple(histories) if histories is not None else None,
        members=make_document(report.members) if report.members is not None else None,
    )


def count_tiers(report: Report) -> dict[str, dict[str, int]]:
    """How many requirements of each tier got each verdict; those of 0 are left out."""
    tiers: dict[str, dict[str, int]] = {}
    for result in report.results:
        counts = tiers.setdefault(str(report.specification.requirements[result.id].tier), {})
        counts[result.verdict] = counts.get(result.verdict, 0) + 1
    return {
        tier: {str(verdict): tiers[tier][verdict] for verdict in Verdict if verdict in tiers[tier]}
        for tier in Tier
        if tier in tiers
    }


def make_entry(result: RequirementResult, specification: Specification) -> RequirementEntry:
    """A result with the words of its requirement."""
    requirement = specification.requirements[result.id]
    return RequirementEntry(
        id=result.id,
        level=requirement.level,
        tier=requirement.tier,
        needs=requirement.needs,
        title=requirement.title,
        sentence=requirement.sentence,
        source=requirement.source,
        links={name: address for name, address in specification.links_of(result.id) if address} or None,
        since="" if requirement.since is None else str(requirement.since),
        verdict=result.verdict,
        note=result.note,
        remark=result.remark,
        causes=result.causes,
        checks=result.checks,
        failures=result.failures,
        more_failures=result.more_failures or None,
    )


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
    if text.startswith('{"fencepost_trace"'):
        raise ReportError("a trace, not a report; fencepost judge makes one of it")
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


def from_html(page: str) -> Report:
    """The report that a page contains. Raises `ReportError` for a page without one."""
    text = embedded_json(page)
    if text is None:
        raise ReportError("not a Fencepost report: the page contains none")
    return from_json(text)


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
    tiers and causes.
    """
    given, wanted = _derived(document, is_own), _derived(expected, is_own)
    for name in DERIVED_FIELDS:
        if given[name] != wanted[name]:
            raise ReportError(f"{name}: does not agree with the rest of the report")
    for number, (entry, other) in enumerate(zip(document.requirements, expected.requirements, strict=True)):
        if is_own and replace(entry, links=other.links) != other:
            raise ReportError(f"requirements[{number}]: {entry.id} is not worded as in the catalogue")


def _derived(document: ReportDocument, is_own: bool) -> dict[str, Any]:
    derived = {name: to_plain(getattr(document, name)) for name in DERIVED_FIELDS}
    if not is_own:
        derived["outcome"]["headline"] = derived["tiers"] = derived["causes"] = None
    return derived
