"""The one place where a `Report` is made: from runs, from recorded traces, from rows of the pipeline, from reports."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fencepost.conformance.analysis.aggregation import (
    RequirementFindings,
    ViolationStatus,
    classify,
    explain_missing_checks,
    requirement_verdict,
    rule_coverage,
)
from fencepost.conformance.analysis.causes import resolve_causes, schedule_length
from fencepost.conformance.analysis.failures import Origin, build_failure, keep_excerpts
from fencepost.conformance.analysis.older_kafka import describe_older_kafka
from fencepost.conformance.analysis.reference_differences import note_ambiguities
from fencepost.conformance.analysis.root_cause import RootCauses
from fencepost.conformance.analysis.trace_totals import TraceSummary, TraceTotals
from fencepost.conformance.results import (
    Coverage,
    Ending,
    Failure,
    Report,
    RequirementResult,
    RuleCoverage,
    Scope,
    Verdict,
)
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.model.catalogue.specification import Specification
from fencepost.traces.verdict import UNCLASSIFIED, CheckResult, CheckStatus, violations_in


@dataclass(frozen=True, slots=True)
class Consequence:
    """A violation in a trace that follows from those of `causes`; `replayed` if a replay showed it again."""

    trace: str
    causes: frozenset[str]
    replayed: bool

    def describe(self) -> str:
        """Why the requirement has not passed, though the cause did not fail."""
        shown = f"violated in {self.trace}{', and again when it was replayed' if self.replayed else ''}"
        if self.causes:
            return f"{shown}; that may follow from {', '.join(sorted(self.causes))}, which no replay confirmed"
        return f"{shown}; it holds wherever a scenario looks at it"


class ReportBuilder:
    """Collects findings in any order and makes a report of them.

    The report has a result for each of `requirements`, by default all of the specification; `left_out` gives the reason
    why a run does not exercise some of them, and `deviations` the declared deviations, both by requirement; those that
    are `not_told` depend on a setting that is not known, so that they are unsupported whatever was seen.
    `kafka_release` is the release of Apache Kafka that the target's versions are those of, if it is known.
    """

    def __init__(
        self,
        requirements: Iterable[str] | None = None,
        left_out: Mapping[str, str] | None = None,
        deviations: Mapping[str, str] | None = None,
        specification: Specification = DEFAULT_SPECIFICATION,
        not_told: frozenset[str] = frozenset(),
        kafka_release: str = "",
    ) -> None:
        self.specification = specification
        self.kafka_release = kafka_release
        chosen = specification.requirements if requirements is None else requirements
        self.findings = {id: RequirementFindings() for id in chosen}
        self.left_out = left_out or {}
        self.deviations = deviations or {}
        self.not_told = not_told
        self.totals = TraceTotals()
        """The sums over recorded traces, and how the runs or traces decide the reference differences."""
        self.rules: list[Mapping[str, int]] = []
        self.undecided: list[str] = []
        self.unclassified: list[Failure] = []
        self.consequences: dict[str, list[Consequence]] = {}
        """The violations that follow from others, by requirement."""

    def add_runs(
        self,
        runs: Sequence[ScenarioRun],
        confirmed: Mapping[str, frozenset[str]],
        origin_of: Callable[[ScenarioRun], Origin],
    ) -> None:
        """Add all runs on a target: causes are looked for among them. For `confirmed` see `classify`."""
        causes = RootCauses(runs, self.specification)
        for run in runs:
            origin = origin_of(run)
            for violation in violations_in(run.verdict):
                if violation.requirement not in self.findings and violation.requirement != UNCLASSIFIED:
                    continue
                status, note = classify(violation, run, causes, confirmed, origin.trace)
                if status is ViolationStatus.CONFIRMED:
                    failure = build_failure(
                        run.events,
                        violation,
                        origin,
                        replayed=True,
                        header=run.header,
                        specification=self.specification,
                    )
                    self.add_failure(violation.requirement, failure)
                    continue
                if violation.requirement in self.findings:
                    self.findings[violation.requirement].add_violation(status, note)
                elif status is ViolationStatus.UNCONFIRMED:
                    self.undecided.append(f"a violation that no requirement speaks of: {note}")
                if status is ViolationStatus.CONSEQUENCE:
                    again = violation.requirement in confirmed.get(run.scenario.name, ())
                    trace = Consequence(origin.trace, causes.causes_of(violation, run) or frozenset(), again)
                    self.consequences.setdefault(violation.requirement, []).append(trace)
            self.add_checks(
                replace(check, note=causes.rename_blocking(check.note, run)) for check in run.verdict.check_results
            )
            explain_missing_checks(self.findings, run, causes)

    def add_trace(self, summary: TraceSummary) -> None:
        """Add the counts of a recorded trace."""
        self.totals.add_trace([summary], self.specification.rules)

    def add_failure(self, requirement: str, failure: Failure) -> None:
        """Add a violation that was confirmed."""
        if requirement == UNCLASSIFIED:
            self.unclassified.append(failure)
        elif requirement in self.findings:
            self.findings[requirement].add_failure(failure)

    def show_failure(self, requirement: str, failure: Failure) -> None:
        """Add a violation that the counts of its trace include already."""
        if requirement == UNCLASSIFIED:
            self.unclassified.append(failure)
        elif requirement in self.findings:
            self.findings[requirement].failures.append(failure)

    def add_checks(self, checks: Iterable[CheckResult]) -> None:
        """Add the results of checks; failed ones count as violations elsewhere."""
        for check in checks:
            if check.status is not CheckStatus.FAIL:
                self.add_check(check.requirement, check.status, check.note)

    def add_check(self, requirement: str, status: CheckStatus, note: str, times: int = 1) -> None:
        """Add the result of so many checks."""
        if requirement in self.findings:
            self.findings[requirement].add_check(status, note, times)

    def violated_ids(self) -> set[str]:
        """The requirements that the recorded traces added so far violate."""
        return self.totals.violations.keys() & self.findings.keys()

    def build(
        self,
        *,
        schedules: int,
        events: int,
        seconds: float,
        target: Mapping[str, str] | None = None,
        seed: int = 0,
        cut_short: bool = False,
        coverage: Coverage | None = None,
        scope: Scope = Scope.TRACES,
        ended: Ending | None = None,
    ) -> Report:
        """The report on everything added. Call it once. Without a `target` the traces name it; a run that `ended` early
        is cut short."""
        self._count_totals()
        older = describe_older_kafka(self.specification.requirements, self.kafka_release)
        nothing = RequirementFindings()
        results = self._doubt_passes(
            [
                replace(
                    requirement_verdict(
                        id, findings if id not in self.not_told else nothing, self.left_out, self.deviations, older
                    ),
                    more_failures=self._count_more_failures(id),
                )
                for id, findings in self.findings.items()
            ],
            ended,
        )
        return Report(
            target=target if target is not None else self.totals.describe_target(),
            seed=seed,
            results=tuple(
                keep_excerpts(
                    note_ambiguities(resolve_causes(results), self.totals.common_decisions(), self.specification)
                )
            ),
            rules=rule_coverage([*self.rules, self.totals.rules], self.specification.rules),
            schedules=schedules,
            events=events,
            seconds=round(seconds, 3),
            cut_short=cut_short or ended is not None or bool(self.undecided),
            coverage=coverage,
            undecided=tuple(self.undecided),
            ended=ended,
            scope=scope,
            specification=self.specification,
            unclassified=distinct_failures(self.unclassified),
        )

    def note_unplayed(self, requirements: Iterable[str], ended: Ending) -> None:
        """Note of the requirements of scenarios that were not played why that is."""
        for requirement in requirements:
            self.add_check(requirement, CheckStatus.NOT_OBSERVED, f"not played: {ended.reason}")

    def _doubt_passes(self, results: list[RequirementResult], ended: Ending | None) -> list[RequirementResult]:
        """The results, inconclusive instead of passed where a violation was seen whose cause did not fail: if a replay
        showed it again, or the run was cut short before one could."""
        failed = {result.id for result in results if result.failures}
        doubts = {
            id: next((each for each in found if not each.causes & failed and (each.replayed or ended)), None)
            for id, found in self.consequences.items()
        }
        return [
            replace(result, verdict=Verdict.INCONCLUSIVE, note=doubt.describe())
            if result.verdict is Verdict.PASS and (doubt := doubts.get(result.id)) is not None
            else result
            for result in results
        ]

    def _count_more_failures(self, id: str) -> int:
        """How many violations the recorded traces have beside the failures that are shown."""
        shown = len(self.findings[id].failures)
        return max(0, self.totals.violations[id] - shown) if shown else 0

    def _count_totals(self) -> None:
        """Count the violations of recorded traces. A rule that explained responses counts as a passed check of its
        requirements, except for those that the trace violates."""
        for status, counts in ((CheckStatus.FAIL, self.totals.violations), (CheckStatus.PASS, self.totals.passes)):
            for id, times in counts.items():
                if id in self.findings:
                    self.findings[id].counts[status] += times


def distinct_failures(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """The shortest failure of each kind, in the order in which the kinds were met."""
    shortest: dict[str, Failure] = {}
    for failure in failures:
        known = shortest.setdefault(failure.kind, failure)
        if schedule_length(failure) < schedule_length(known):
            shortest[failure.kind] = failure
    return tuple(shortest.values())


VERDICT_PRECEDENCE = (
    Verdict.FAIL,
    Verdict.KNOWN,
    Verdict.PASS,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_OBSERVED,
    Verdict.UNSUPPORTED,
)
"""Of several verdicts on a requirement the first in this order counts: what passed once and never failed passes."""


def merge_reports(reports: Sequence[Report]) -> Report:
    """One report of several on the same target; its seed is that of the first. Raises `ValueError` without reports."""
    if not reports:
        raise ValueError("there are no reports to merge")
    by_id: dict[str, list[RequirementResult]] = {}
    rules: dict[str, RuleCoverage] = {}
    for report in reports:
        for result in report.results:
            by_id.setdefault(result.id, []).append(result)
        for name, rule in report.rules.items():
            seen = rules[name].seen if name in rules else 0
            rules[name] = RuleCoverage(seen + rule.seen, rule.requirements)
    return replace(
        reports[0],
        results=tuple(keep_excerpts(map(merge_results, by_id.values()))),
        rules=rules,
        schedules=sum(report.schedules for report in reports),
        events=sum(report.events for report in reports),
        seconds=round(sum(report.seconds for report in reports), 3),
        cut_short=any(report.cut_short for report in reports),
        ended=next((report.ended for report in reports if report.ended is not None), None),
        coverage=None,
        unclassified=distinct_failures(failure for report in reports for failure in report.unclassified),
        idle_findings=tuple(finding for report in reports for finding in report.idle_findings),
    )


def merge_results(results: Sequence[RequirementResult]) -> RequirementResult:
    """One result of several on the same requirement."""
    first = min(results, key=lambda result: VERDICT_PRECEDENCE.index(result.verdict))
    failures = tuple(failure for result in results for failure in result.failures)
    more = sum(result.more_failures for result in results)
    return replace(first, checks=sum(result.checks for result in results), failures=failures, more_failures=more)
