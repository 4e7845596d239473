"""The one place where a `Report` is made: from runs, from recorded traces, from rows of the pipeline, from reports."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from fencepost.conformance.analysis.causes import (
    describe_older_kafka,
    note_ambiguities,
    resolve_causes,
    schedule_length,
)
from fencepost.conformance.analysis.failures import SENDER_FIELDS, Origin, failure_in, field_values, keep_excerpts
from fencepost.conformance.analysis.root_cause import (
    BLOCKED_BY,
    Attribution,
    RootCauses,
    chargeable_requirements,
    find_root_causes,
)
from fencepost.conformance.results import (
    Coverage,
    Ending,
    Failure,
    Remark,
    RemarkKind,
    Report,
    RequirementResult,
    RuleCoverage,
    Scope,
    Verdict,
)
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import ScenarioRun, Subject
from fencepost.model.catalogue.specification import Rule, Specification
from fencepost.traces.events import Header, Kind
from fencepost.traces.verdict import PASSING, UNCLASSIFIED, CheckResult, CheckStatus, TraceVerdict, violations_in

# -- sums over recorded traces ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """Counts of a recorded trace, or of a part of it; `violations` counts by requirement."""

    source: str
    implementation: Mapping[str, str]
    rules: Mapping[str, int]
    violations: Mapping[str, int]
    decisions: Mapping[str, bool]


def summarize_trace(header: Header, verdict: TraceVerdict) -> TraceSummary:
    """The counts of a trace that was judged."""
    violations = Counter(violation.requirement for violation in violations_in(verdict))
    return TraceSummary(
        header.source, dict(header.implementation), dict(verdict.rules), dict(violations), dict(verdict.decisions)
    )


@dataclass(slots=True)
class TraceTotals:
    """The sums over some recorded traces, and what they have in common."""

    traces: int = 0
    source: str | None = None
    """The source of all; None if they differ, or there is no trace."""
    implementation: Mapping[str, str] = field(default_factory=dict)
    """What all say of the implementation."""
    rules: Counter[str] = field(default_factory=Counter)
    """How often each rule explained a response."""
    passes: Counter[str] = field(default_factory=Counter)
    """By requirement, how often one of its rules explained a response in a trace that does not violate it."""
    violations: Counter[str] = field(default_factory=Counter)
    sides: dict[str, frozenset[bool]] = field(default_factory=dict)
    """By reference difference, the sides that the traces are on."""

    def add_trace(self, parts: Sequence[TraceSummary], rules: Mapping[str, Rule]) -> None:
        """Add a trace, by the counts of all its parts."""
        violations = Counter[str]()
        for part in parts:
            violations.update(part.violations)
        for part in parts:
            self.rules.update(part.rules)
            for name, times in part.rules.items():
                for id in rules[name].requirements if name in rules else ():
                    if not violations[id]:
                        self.passes[id] += times
            self.add_decisions(part.decisions)
        self.violations.update(violations)
        self._add_names(1, parts[0].source, parts[0].implementation)

    def add_decisions(self, decisions: Mapping[str, bool]) -> None:
        """Add how a run or a trace decides the reference differences."""
        self._add_sides((name, frozenset((side,))) for name, side in decisions.items())

    def add_totals(self, others: "TraceTotals") -> None:
        """Add the sums over other traces."""
        self.rules.update(others.rules)
        self.passes.update(others.passes)
        self.violations.update(others.violations)
        self._add_sides(others.sides.items())
        if others.traces:
            self._add_names(others.traces, others.source, others.implementation)

    def common_decisions(self) -> dict[str, bool]:
        """The decisions that no two traces contradict each other on; the traces may be of several targets."""
        return {name: True in sides for name, sides in self.sides.items() if len(sides) == 1}

    def describe_target(self) -> dict[str, str]:
        """The source of the traces as "name", and what all of them say of the implementation."""
        name = self.source if self.source is not None else f"{self.traces} traces"
        return {"name": name, **{key: value for key, value in self.implementation.items() if key != "name"}}

    def _add_sides(self, sides: Iterable[tuple[str, frozenset[bool]]]) -> None:
        for name, found in sides:
            self.sides[name] = self.sides.get(name, frozenset()) | found

    def _add_names(self, traces: int, source: str | None, implementation: Mapping[str, str]) -> None:
        if self.traces:
            known = self.implementation.items()
            self.source = source if source == self.source else None
            self.implementation = {key: value for key, value in known if implementation.get(key) == value}
        else:
            self.source, self.implementation = source, dict(implementation)
        self.traces += traces


# -- the verdict on each requirement ----------------------------------------------------------------------------------

NO_NOTES: Mapping[str, str] = MappingProxyType({})
NOT_AGAIN = "failed once and not when it was replayed, see {}"
NOT_REPLAYED_HERE = "what was replayed of it is explained by another violation"
NOT_CHOSEN = "failed once, see {}, which was not replayed"
"""Of a violation that others were replayed for, or none."""
NOT_REPLAYED = "failed once, see {}; the run was cut short before it could be replayed"


def confirmed_requirements(confirmed: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The requirements that any replay violated."""
    return frozenset[str]().union(*confirmed.values())


Question: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""The API of a request, the scenario that sends it, and the ids of senders in it: what is asked in several versions."""


@dataclass(slots=True)
class RequirementFindings:
    """What all traces show of one requirement."""

    counts: Counter[CheckStatus] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    notes: dict[CheckStatus, str] = field(default_factory=dict)
    """The first note of each status."""
    unsupported: list[str] = field(default_factory=list)
    scenarios: int = 0
    """How many scenarios of the requirement were played."""
    shown: int = 0
    """How many of them ran to their end and saw the requirement kept."""
    given_up: list[str] = field(default_factory=list)
    """Why some of them could not go on to their end."""
    doubt: str = ""
    """Why a violation that nothing explains is no failure."""
    versions: dict[Question, dict[int, bool]] = field(default_factory=dict)
    """By question, whether every check of a response held in each version in which it was asked."""

    @property
    def undecided(self) -> str:
        """How many scenarios were given up, and why the first was; "" if none was."""
        if not self.given_up:
            return ""
        return f"{len(self.given_up)} of {self.scenarios} scenarios undecided: {self.given_up[0]}"

    def add_check(self, status: CheckStatus, note: str, times: int = 1) -> None:
        """Count `times` checks with this status."""
        self.counts[status] += times
        if note:
            self.notes.setdefault(status, note)

    @property
    def failing_versions(self) -> str:
        """In which versions of an API it fails, "" unless it holds in others."""
        told: dict[str, None] = {}
        for (api, *_), asked in self.versions.items():
            failing, holding = (
                [version for version, holds in sorted(asked.items()) if holds is wanted] for wanted in (False, True)
            )
            if failing and holding:
                told[f"{api} {join_numbers(failing)}, not {join_numbers(holding)}"] = None
        return f"fails in {'; '.join(told)}" if told else ""

    def note_for(self, status: CheckStatus) -> str:
        """The first note of a status, "" if there is none."""
        return self.notes.get(status, "")

    def add_failure(self, failure: Failure) -> None:
        """Count a violation."""
        self.counts[CheckStatus.FAIL] += 1
        self.failures.append(failure)


def join_numbers(numbers: Sequence[int]) -> str:
    """Rising numbers in words: runs of them as "v3 to v5"."""
    begins = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return ", ".join(
        f"v{begin}" if begin == end else f"v{begin} to v{end}" for begin, end in zip(begins, ends, strict=True)
    )


def note_versions(findings: Mapping[str, RequirementFindings], run: ScenarioRun) -> None:
    """Note in which versions of its requests the checks of a run held."""
    checks = [check for check in run.verdict.check_results if check.status in (CheckStatus.FAIL, *PASSING)]
    requests = {event.sequence: event for event in run.events if event.kind is Kind.REQUEST} if checks else {}
    for check in checks:
        if check.requirement in findings and check.sequence in requests:
            request = requests[check.sequence]
            senders = tuple((name, str(value)) for name, value in field_values(request.body, SENDER_FIELDS) if value)
            asked = findings[check.requirement].versions.setdefault((request.api, run.scenario.name, senders), {})
            holds = asked.get(request.version, True)
            asked[request.version] = holds and check.status is not CheckStatus.FAIL


def explain_missing_checks(findings: Mapping[str, RequirementFindings], run: ScenarioRun, causes: RootCauses) -> None:
    """Note that a scenario was played, and why it did not check all of its requirements if it ended early."""
    checks = run.verdict.check_results
    checked = {check.requirement for check in checks if check.status is not CheckStatus.INCONCLUSIVE}
    kept = {check.requirement for check in checks if check.status in PASSING}
    diverging = (each for each in run.verdict.violations if not each.tolerated or "generation" not in each.fields)
    blocking = {requirement for violation in diverging for requirement in causes.name_blocking(violation, run)}
    for requirement in run.scenario.requirements:
        if requirement not in findings:
            continue
        named = sorted(blocking | causes.presumed_by(requirement)) if blocking else ()
        reason = f"{run.blocked}, {BLOCKED_BY}{', '.join(named)}" if named else run.blocked
        found = findings[requirement]
        if run.blocked:
            found.given_up.append(reason)
        if not run.unsupported:
            found.scenarios += 1
        if not run.blocked:
            found.shown += requirement in kept
        if requirement in checked:
            continue
        if run.unsupported:
            found.unsupported.append(run.unsupported)
        elif run.blocked:
            found.add_check(CheckStatus.INCONCLUSIVE, reason)


KEPT_ALL_THE_SAME = "declared a deviation, and kept: take it out of [known]"


def requirement_verdict(
    id: str,
    found: RequirementFindings,
    left_out: Mapping[str, str],
    deviations: Mapping[str, str],
    older: Mapping[str, str] = NO_NOTES,
) -> RequirementResult:
    """The result for a requirement; a failure that `deviations` declare is `known`, `left_out` has the reasons of
    those that no scenario of the run exercises, and `older` the notes to failures that are those of an older Kafka."""
    counts = found.counts
    checks = (
        counts[CheckStatus.PASS]
        + counts[CheckStatus.UNUSUAL]
        + counts[CheckStatus.FAIL]
        + counts[CheckStatus.INCONCLUSIVE]
    )
    if found.failures:
        failures = tuple(found.failures)
        if id in deviations:
            return RequirementResult(id, Verdict.KNOWN, deviations[id], checks, failures)
        note = "; ".join(filter(None, (found.failing_versions, older.get(id, ""))))
        return RequirementResult(id, Verdict.FAIL, note, checks, failures)
    if counts[CheckStatus.FAIL] or found.doubt:
        return RequirementResult(id, Verdict.INCONCLUSIVE, found.doubt or found.note_for(CheckStatus.FAIL), checks)
    if found.given_up and not found.shown and not left_out.get(id):
        return RequirementResult(id, Verdict.INCONCLUSIVE, found.given_up[0], checks)
    if counts[CheckStatus.UNUSUAL] or counts[CheckStatus.PASS]:
        unusual = found.note_for(CheckStatus.UNUSUAL)
        remark = Remark(RemarkKind.UNUSUAL, unusual) if counts[CheckStatus.UNUSUAL] else None
        note = "; ".join(filter(None, (found.undecided, KEPT_ALL_THE_SAME if id in deviations else "")))
        return RequirementResult(id, Verdict.PASS, note, checks, remark=remark)
    # What follows from another violation says nothing of a requirement that the run does not exercise.
    if counts[CheckStatus.INCONCLUSIVE] and not left_out.get(id):
        return RequirementResult(id, Verdict.INCONCLUSIVE, found.note_for(CheckStatus.INCONCLUSIVE), checks)
    if counts[CheckStatus.NOT_OBSERVED]:
        return RequirementResult(id, Verdict.NOT_OBSERVED, found.note_for(CheckStatus.NOT_OBSERVED), checks)
    if found.unsupported:
        return RequirementResult(id, Verdict.UNSUPPORTED, found.unsupported[0], checks)
    reason = left_out.get(id, "")
    return RequirementResult(id, Verdict.UNSUPPORTED if reason else Verdict.NOT_OBSERVED, reason, checks)


def rule_coverage(counts: Iterable[Mapping[str, int]], rules: Mapping[str, Rule]) -> dict[str, RuleCoverage]:
    """How often each of the rules explained what was seen; `counts` has the numbers of several traces."""
    seen: Counter[str] = Counter()
    for each in counts:
        seen.update(each)
    return {name: RuleCoverage(seen[name], rule.requirements) for name, rule in rules.items()}


# -- the report -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Consequence:
    """A violation in a trace that follows from those of `causes`; `replayed` if a replay showed it again, `is_open` if
    a replay may still be wanted."""

    trace: str
    causes: frozenset[str]
    replayed: bool
    is_open: bool = True

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
    `kafka_release` is the release of Apache Kafka that the target's versions are those of, if it is known;
    `are_scenarios_replayed` says that all replays of scenarios were played that are wanted.
    """

    def __init__(
        self,
        requirements: Iterable[str] | None = None,
        left_out: Mapping[str, str] | None = None,
        deviations: Mapping[str, str] | None = None,
        specification: Specification = DEFAULT_SPECIFICATION,
        not_told: frozenset[str] = frozenset(),
        kafka_release: str = "",
        are_scenarios_replayed: bool = False,
    ) -> None:
        self.specification = specification
        self.kafka_release = kafka_release
        self.are_scenarios_replayed = are_scenarios_replayed
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
        subject: Subject,
        runs: Sequence[ScenarioRun],
        confirmed: Mapping[str, frozenset[str]],
        origin_of: Callable[[ScenarioRun, str], Origin],
    ) -> None:
        """Add all runs of a subject: causes are looked for among them. `confirmed` has, by scenario, the requirements
        that its replay violated."""
        requirements = {id: self.specification.requirements[id] for id in self.findings}
        chargeable = chargeable_requirements(requirements, self.left_out, self.not_told)
        causes = find_root_causes(subject, runs, chargeable)
        for run in runs:
            for each in causes.attributions_in(run):
                if each.requirement in self.findings or each.requirement == UNCLASSIFIED:
                    self.add_attribution(each, subject, confirmed, origin_of(run, each.requirement))
            if subject.is_watched:
                self.add_watched_run(run)
                continue
            self.add_checks(
                replace(check, note=causes.rename_blocking(check.note, run)) for check in run.verdict.check_results
            )
            note_versions(self.findings, run)
            explain_missing_checks(self.findings, run, causes)

    def add_attribution(
        self, each: Attribution, subject: Subject, confirmed: Mapping[str, frozenset[str]], origin: Origin
    ) -> None:
        """Add a violation that was seen once: a failure if the replay of its own scenario showed it again, and it
        follows from no other one."""
        id, name = each.requirement, each.run.scenario.name
        trace, again = origin.trace or name, confirmed.get(name)
        is_again = again is not None and id in again
        if not each.is_independent:
            is_open = not (self.are_scenarios_replayed and each.run.scenario.requirements)
            consequence = Consequence(trace, each.causes or frozenset(), is_again, is_open)
            self.consequences.setdefault(id, []).append(consequence)
            self.add_check(id, CheckStatus.INCONCLUSIVE, each.note)
        elif is_again:
            self.add_failure(id, failure_in(each.run, each.result, subject, origin, replayed=True))
        elif id in confirmed_requirements(confirmed):
            self.add_check(id, CheckStatus.FAIL, NOT_REPLAYED_HERE)
        else:
            not_replayed = NOT_CHOSEN if subject.is_watched else NOT_REPLAYED
            note = (not_replayed if again is None else NOT_AGAIN).format(trace)
            if id in self.findings:
                self.findings[id].doubt = self.findings[id].doubt or note
                self.add_check(id, CheckStatus.INCONCLUSIVE, note)
            else:
                self.undecided.append(f"a violation that no requirement speaks of: {note}")

    def add_watched_run(self, run: ScenarioRun) -> None:
        """Add what a run of a watched subject shows beside its violations: checks, and why some were not made. A
        requirement that is left out is not said to hold."""
        name = run.scenario.name
        if run.misconduct:
            self.undecided.append(f"{name}: {run.misconduct}")
        checks = run.verdict.check_results
        self.add_checks(each for each in checks if each.requirement not in self.left_out or each.status not in PASSING)
        shown = {check.requirement for check in checks} | run.verdict.violated | self.left_out.keys()
        if reason := run.blocked or run.not_shown:
            status = CheckStatus.INCONCLUSIVE if run.blocked else CheckStatus.NOT_OBSERVED
            for id in run.scenario.requirements:
                if id not in shown:
                    self.add_check(id, status, f"{name}: {reason}")

    def add_watched_schedules(self, kept: Iterable[str], undecided: Mapping[str, str]) -> None:
        """Add what random schedules show beside violations. What is unusual or open in one has not been played again,
        and is left out."""
        for id in sorted(set(kept) - self.left_out.keys()):
            self.add_check(id, CheckStatus.PASS, "")
        self.undecided += (f"{name}: {reason}" for name, reason in undecided.items())

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
        nothing, results = RequirementFindings(), []
        for id, found in self.findings.items():
            told = found if id not in self.not_told else nothing
            result = requirement_verdict(id, told, self.left_out, self.deviations, older)
            shown = len(found.failures)
            results.append(replace(result, more_failures=max(0, self.totals.violations[id] - shown) if shown else 0))
        results = self._doubt_passes(results, ended)
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
            if not self.left_out.get(requirement):
                self.add_check(requirement, CheckStatus.NOT_OBSERVED, f"not played: {ended.reason}")

    def _doubt_passes(self, results: list[RequirementResult], ended: Ending | None) -> list[RequirementResult]:
        """The results, inconclusive instead of passed where a violation was seen whose cause did not fail: if a replay
        showed it again, or the run was cut short before one could."""
        failed = {result.id for result in results if result.failures}
        doubts = {
            id: [each for each in found if not each.causes & failed and (each.replayed or (ended and each.is_open))]
            for id, found in self.consequences.items()
        }
        return [
            replace(result, verdict=Verdict.INCONCLUSIVE, note=doubt[0].describe())
            if result.verdict is Verdict.PASS and (doubt := doubts.get(result.id))
            else result
            for result in results
        ]

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
