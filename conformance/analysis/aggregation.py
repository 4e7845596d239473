"""From the findings of all traces to one verdict for each requirement."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fencepost.conformance.analysis.root_cause import RequirementViolation, RootCauses, violations_in
from fencepost.conformance.results import Failure, RequirementResult, RuleCoverage, Verdict
from fencepost.conformance.scenario.scenario_run import ScenarioRun
from fencepost.conformance.scenario.selection import Selection
from fencepost.model.classic.rules import RULES
from fencepost.traces.events import Event, Kind
from fencepost.traces.judge.diagnosis.wording import format_observed, format_value
from fencepost.traces.verdict import CheckStatus

NOT_AGAIN = "failed once and not when it was replayed, see {}"
NOT_REPLAYED_HERE = "what was replayed of it is explained by another violation"
NOT_REPLAYED = "failed once, see {}; the run was cut short before it could be replayed"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a trace is found, and the command that runs its schedule again ("" if there is none)."""

    trace: str
    replay: str


@dataclass(slots=True)
class RequirementFindings:
    """Everything that all traces say of one requirement."""

    counts: Counter[CheckStatus] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    notes: dict[CheckStatus, str] = field(default_factory=dict)
    """Of each standing the first note."""
    unsupported: list[str] = field(default_factory=list)
    doubt: str = ""
    """A violation was seen that nothing explains and that is no failure: why it is none."""

    def add_check(self, standing: CheckStatus, note: str) -> None:
        """Count a piece of evidence."""
        self.counts[standing] += 1
        if note:
            self.notes.setdefault(standing, note)

    def note_for(self, standing: CheckStatus) -> str:
        """What is said of evidence that stands so."""
        return self.notes.get(standing, "")

    def add_failure(self, failure: Failure) -> None:
        """Count a violation."""
        self.counts[CheckStatus.FAIL] += 1
        self.failures.append(failure)


def requirement_results(
    selection: Selection,
    runs: Sequence[ScenarioRun],
    confirmed: Mapping[str, frozenset[str]],
    deviations: Mapping[str, str],
    origin: Callable[[ScenarioRun], Origin],
) -> tuple[RequirementResult, ...]:
    """One result for each requirement asked for. `confirmed` has what broke again when a scenario was replayed."""
    findings: dict[str, RequirementFindings] = {
        requirement.id: RequirementFindings() for requirement in selection.requirements
    }
    settled = frozenset[str]().union(*confirmed.values())
    blame = RootCauses(runs)
    for played in runs:
        again = confirmed.get(played.scenario.name)
        for violation in violations_in(played.verdict):
            if violation.requirement not in findings:
                continue
            found = findings[violation.requirement]
            behind = blame.cause_of(violation, played)
            if behind:
                found.add_check(CheckStatus.INCONCLUSIVE, behind)
            elif again is not None and violation.requirement in again:
                found.add_failure(build_failure(played.events, violation, origin(played), replayed=True))
            elif violation.requirement in settled:
                found.add_check(CheckStatus.FAIL, NOT_REPLAYED_HERE)
            else:
                doubt = (NOT_REPLAYED if again is None else NOT_AGAIN).format(origin(played).trace)
                found.doubt = found.doubt or doubt
                found.add_check(CheckStatus.INCONCLUSIVE, doubt)
        for mark in played.verdict.check_results:
            if mark.requirement in findings and mark.status is not CheckStatus.FAIL:
                findings[mark.requirement].add_check(mark.status, mark.note)
        explain_missing_checks(findings, played)
    return tuple(
        requirement_verdict(requirement.id, findings[requirement.id], selection.left_out, deviations)
        for requirement in selection.requirements
    )


def explain_missing_checks(findings: Mapping[str, RequirementFindings], run: ScenarioRun) -> None:
    """A scenario that ended early leaves its requirements without evidence: say why."""
    shown_ids = {mark.requirement for mark in run.verdict.check_results}
    astray = (fault for fault in run.verdict.violations if not fault.tolerated or "generation" not in fault.fields)
    blocking = sorted({each for fault in astray for each in fault.requirements})
    for each in run.scenario.requirements:
        if each in shown_ids or each not in findings:
            continue
        if run.unsupported:
            findings[each].unsupported.append(run.unsupported)
        elif run.blocked:
            reason = f"{run.blocked}, after {', '.join(blocking)} was violated" if blocking else run.blocked
            findings[each].add_check(CheckStatus.INCONCLUSIVE, reason)


def requirement_verdict(
    id: str, found: RequirementFindings, left_out: Mapping[str, str], deviations: Mapping[str, str]
) -> RequirementResult:
    """The verdict on a requirement."""
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
        return RequirementResult(id, Verdict.FAIL, found.note_for(CheckStatus.FAIL), checks, failures)
    if counts[CheckStatus.FAIL] or found.doubt:
        return RequirementResult(id, Verdict.INCONCLUSIVE, found.doubt or found.note_for(CheckStatus.FAIL), checks)
    if counts[CheckStatus.UNUSUAL]:
        return RequirementResult(id, Verdict.PASS, f"unusual: {found.note_for(CheckStatus.UNUSUAL)}", checks)
    if counts[CheckStatus.PASS]:
        return RequirementResult(id, Verdict.PASS, "", checks)
    if counts[CheckStatus.INCONCLUSIVE]:
        return RequirementResult(id, Verdict.INCONCLUSIVE, found.note_for(CheckStatus.INCONCLUSIVE), checks)
    if counts[CheckStatus.NOT_OBSERVED]:
        return RequirementResult(id, Verdict.NOT_OBSERVED, found.note_for(CheckStatus.NOT_OBSERVED), checks)
    if found.unsupported:
        return RequirementResult(id, Verdict.UNSUPPORTED, found.unsupported[0], checks)
    reason = left_out.get(id, "")
    return RequirementResult(id, Verdict.UNSUPPORTED if reason else Verdict.NOT_OBSERVED, reason, checks)


def build_failure(
    events: Sequence[Event], violation: RequirementViolation, origin: Origin, *, replayed: bool
) -> Failure:
    """A violation with the schedule that shows it."""
    sequence, fault, note = violation.sequence, violation.violation, violation.note
    return Failure(
        trace=origin.trace,
        step=sequence,
        observed=fault.observed if fault is not None else f"{describe_response(events, sequence)} ({note})",
        allowed=fault.allowed if fault is not None else (note,),
        guard=fault.guard if fault is not None else "",
        schedule=schedule_lines(events, sequence),
        replay=origin.replay,
        replayed=replayed,
    )


def describe_response(events: Sequence[Event], sequence: int) -> str:
    """The answer to a request, in words."""
    for event in events:
        if event.kind is Kind.RESPONSE and event.of == sequence:
            return format_observed(event.body)
    return "no answer"


def schedule_lines(events: Sequence[Event], last: int) -> tuple[str, ...]:
    """The requests of a trace up to one of them, a line each."""
    lines = []
    for event in events:
        if event.kind is Kind.REQUEST and event.sequence <= last:
            who = f"{event.member}: " if event.member else ""
            lines.append(f"at {event.time} ms {who}{event.api} v{event.version} {summarize_request(event)}")
        elif event.kind is Kind.FAULT and event.sequence <= last:
            lines.append(f"at {event.time} ms {event.api}")
    return tuple(lines)


SUMMARY_FIELDS = (
    "member_id",
    "group_instance_id",
    "generation_id",
    "generation_id_or_member_epoch",
    "session_timeout_ms",
)


def summarize_request(event: Event) -> str:
    """The fields of a request that matter most."""
    return ", ".join(
        f"{name}={format_value(event.body[name])}" for name in SUMMARY_FIELDS if event.body.get(name) is not None
    )


def rule_coverage(counts: Iterable[Mapping[str, int]]) -> dict[str, RuleCoverage]:
    """How often each rule of the model explained what was seen."""
    seen: Counter[str] = Counter()
    for each in counts:
        seen.update(each)
    return {name: RuleCoverage(seen[name], rule.requirements) for name, rule in RULES.items()}
