"""From the findings of all traces to one verdict for each requirement."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fencepost.conformance.analysis.root_cause import Blame, Violation, violations
from fencepost.conformance.execution.play import Played
from fencepost.conformance.results import Failure, RequirementResult, RuleCoverage, Verdict
from fencepost.conformance.scenario.selection import Selection
from fencepost.model.classic.rules import RULES
from fencepost.traces.events import Event, Kind
from fencepost.traces.judge.diagnosis.wording import observed, shown
from fencepost.traces.verdict import Standing

NOT_AGAIN = "failed once and not when it was replayed, see {}"
NOT_REPLAYED_HERE = "what was replayed of it is explained by another violation"
NOT_REPLAYED = "failed once, see {}; the run was cut short before it could be replayed"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a trace is found, and the command that runs its schedule again ("" if there is none)."""

    trace: str
    replay: str


@dataclass(slots=True)
class Findings:
    """Everything that all traces say of one requirement."""

    standings: Counter[Standing] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    notes: dict[Standing, str] = field(default_factory=dict)
    """Of each standing the first note."""
    unsupported: list[str] = field(default_factory=list)
    unsettled: str = ""
    """A violation was seen that nothing explains and that is no failure: why it is none."""

    def weigh(self, standing: Standing, note: str) -> None:
        """Count a piece of evidence."""
        self.standings[standing] += 1
        if note:
            self.notes.setdefault(standing, note)

    def note(self, standing: Standing) -> str:
        """What is said of evidence that stands so."""
        return self.notes.get(standing, "")

    def fail(self, failure: Failure) -> None:
        """Count a violation."""
        self.standings[Standing.FAIL] += 1
        self.failures.append(failure)


def results(
    selection: Selection,
    runs: Sequence[Played],
    confirmed: Mapping[str, frozenset[str]],
    known: Mapping[str, str],
    origin: Callable[[Played], Origin],
) -> tuple[RequirementResult, ...]:
    """One result for each requirement asked for. `confirmed` has what broke again when a scenario was replayed."""
    findings: dict[str, Findings] = {requirement.id: Findings() for requirement in selection.wanted}
    settled = frozenset[str]().union(*confirmed.values())
    blame = Blame(runs)
    for played in runs:
        again = confirmed.get(played.scenario.name)
        for violation in violations(played.verdict):
            if violation.requirement not in findings:
                continue
            found = findings[violation.requirement]
            behind = blame.behind(violation, played)
            if behind:
                found.weigh(Standing.INCONCLUSIVE, behind)
            elif again is not None and violation.requirement in again:
                found.fail(failure(played.events, violation, origin(played), replayed=True))
            elif violation.requirement in settled:
                found.weigh(Standing.FAIL, NOT_REPLAYED_HERE)
            else:
                doubt = (NOT_REPLAYED if again is None else NOT_AGAIN).format(origin(played).trace)
                found.unsettled = found.unsettled or doubt
                found.weigh(Standing.INCONCLUSIVE, doubt)
        for mark in played.verdict.evidence:
            if mark.requirement in findings and mark.standing is not Standing.FAIL:
                findings[mark.requirement].weigh(mark.standing, mark.note)
        unplayed(findings, played)
    return tuple(
        decide(requirement.id, findings[requirement.id], selection.left_out, known) for requirement in selection.wanted
    )


def unplayed(findings: Mapping[str, Findings], played: Played) -> None:
    """A scenario that ended early leaves its requirements without evidence: say why."""
    shown_ids = {mark.requirement for mark in played.verdict.evidence}
    astray = (fault for fault in played.verdict.faults if not fault.waived or "generation" not in fault.fields)
    blocking = sorted({each for fault in astray for each in fault.requirements})
    for each in played.scenario.requirements:
        if each in shown_ids or each not in findings:
            continue
        if played.unsupported:
            findings[each].unsupported.append(played.unsupported)
        elif played.blocked:
            reason = f"{played.blocked}, after {', '.join(blocking)} was violated" if blocking else played.blocked
            findings[each].weigh(Standing.INCONCLUSIVE, reason)


def decide(id: str, found: Findings, left_out: Mapping[str, str], known: Mapping[str, str]) -> RequirementResult:
    """The verdict on a requirement."""
    counts = found.standings
    checks = counts[Standing.PASS] + counts[Standing.UNUSUAL] + counts[Standing.FAIL] + counts[Standing.INCONCLUSIVE]
    if found.failures:
        failures = tuple(found.failures)
        if id in known:
            return RequirementResult(id, Verdict.KNOWN, known[id], checks, failures)
        return RequirementResult(id, Verdict.FAIL, found.note(Standing.FAIL), checks, failures)
    if counts[Standing.FAIL] or found.unsettled:
        return RequirementResult(id, Verdict.INCONCLUSIVE, found.unsettled or found.note(Standing.FAIL), checks)
    if counts[Standing.UNUSUAL]:
        return RequirementResult(id, Verdict.PASS, f"unusual: {found.note(Standing.UNUSUAL)}", checks)
    if counts[Standing.PASS]:
        return RequirementResult(id, Verdict.PASS, "", checks)
    if counts[Standing.INCONCLUSIVE]:
        return RequirementResult(id, Verdict.INCONCLUSIVE, found.note(Standing.INCONCLUSIVE), checks)
    if counts[Standing.NOT_OBSERVED]:
        return RequirementResult(id, Verdict.NOT_OBSERVED, found.note(Standing.NOT_OBSERVED), checks)
    if found.unsupported:
        return RequirementResult(id, Verdict.UNSUPPORTED, found.unsupported[0], checks)
    reason = left_out.get(id, "")
    return RequirementResult(id, Verdict.UNSUPPORTED if reason else Verdict.NOT_OBSERVED, reason, checks)


def failure(events: Sequence[Event], violation: Violation, origin: Origin, *, replayed: bool) -> Failure:
    """A violation with the schedule that shows it."""
    sequence, fault, note = violation.sequence, violation.fault, violation.note
    return Failure(
        trace=origin.trace,
        step=sequence,
        observed=fault.observed if fault is not None else f"{answer_to(events, sequence)} ({note})",
        allowed=fault.allowed if fault is not None else (note,),
        guard=fault.guard if fault is not None else "",
        schedule=schedule(events, sequence),
        replay=origin.replay,
        replayed=replayed,
    )


def answer_to(events: Sequence[Event], sequence: int) -> str:
    """The answer to a request, in words."""
    for event in events:
        if event.kind is Kind.ANSWER and event.of == sequence:
            return observed(event.body)
    return "no answer"


def schedule(events: Sequence[Event], last: int) -> tuple[str, ...]:
    """The requests of a trace up to one of them, a line each."""
    lines = []
    for event in events:
        if event.kind is Kind.REQUEST and event.sequence <= last:
            who = f"{event.member}: " if event.member else ""
            lines.append(f"at {event.time} ms {who}{event.api} v{event.version} {brief(event)}")
        elif event.kind is Kind.FAULT and event.sequence <= last:
            lines.append(f"at {event.time} ms {event.api}")
    return tuple(lines)


BRIEF = ("member_id", "group_instance_id", "generation_id", "generation_id_or_member_epoch", "session_timeout_ms")


def brief(event: Event) -> str:
    """The fields of a request that matter most."""
    return ", ".join(f"{name}={shown(event.body[name])}" for name in BRIEF if event.body.get(name) is not None)


def coverage(counts: Iterable[Mapping[str, int]]) -> dict[str, RuleCoverage]:
    """How often each rule of the model explained what was seen."""
    seen: Counter[str] = Counter()
    for each in counts:
        seen.update(each)
    return {name: RuleCoverage(seen[name], rule.requirements) for name, rule in RULES.items()}
