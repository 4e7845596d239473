"""The JSON report as classes. Their fields are its fields; what follows from others is checked when it is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from fencepost.conformance.analysis.causes import find_causes
from fencepost.conformance.provenance import Kit, Provenance, describe_kit
from fencepost.conformance.reports.text import outcome_line
from fencepost.conformance.reports.typed_json import Count, Seconds
from fencepost.conformance.results import (
    Coverage,
    Ending,
    Failure,
    Remark,
    Report,
    RequirementResult,
    RuleCoverage,
    Scope,
    TargetFacts,
    Verdict,
)
from fencepost.model.catalogue.requirement import Level, Requirement, Tier
from fencepost.traces.history.timeline import TraceHistory

REPORT_VERSION: Final = 2


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
    """What is wrong with the target, and the requirements that fail by it."""

    title: str
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequirementEntry:
    """A requirement in the words of the catalogue, and the verdict on it.

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
    requirements = report.specification.requirements
    return ReportDocument(
        fencepost=REPORT_VERSION,
        kit=report.kit or describe_kit(report.specification),
        subject=subject_of(report),
        target=report.target,
        outcome=describe_outcome(report),
        tiers=count_tiers(report),
        causes=tuple(RootCause(cause.title, cause.requirements) for cause in find_causes(report.results)),
        requirements=tuple(make_entry(result, requirements[result.id]) for result in report.results),
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


def subject_of(report: Report) -> Subject:
    """What the requirements of a report are about."""
    return next((each for each in get_args(Subject) if each == report.specification.subject), "coordinator")


def describe_outcome(report: Report) -> Outcome:
    """What came of the run."""
    verdicts = {str(verdict): count for verdict, count in report.summary().items()}
    code: Literal[0, 1, 2, 3] = report.exit_code().value
    return Outcome(code, outcome_line(report), report.scope, report.checked_count(), verdicts)


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


def make_entry(result: RequirementResult, requirement: Requirement) -> RequirementEntry:
    """A result with the words of its requirement."""
    return RequirementEntry(
        id=result.id,
        level=requirement.level,
        tier=requirement.tier,
        needs=requirement.needs,
        title=requirement.title,
        sentence=requirement.sentence,
        source=requirement.source,
        since="" if requirement.since is None else str(requirement.since),
        verdict=result.verdict,
        note=result.note,
        remark=result.remark,
        causes=result.causes,
        checks=result.checks,
        failures=result.failures,
        more_failures=result.more_failures or None,
    )
