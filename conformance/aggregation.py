"""From the findings of all traces to one verdict for each requirement."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fencepost.conformance.execution import Played
from fencepost.conformance.results import Failure, RequirementResult, RuleCoverage, Verdict
from fencepost.conformance.selection import Selection
from fencepost.model.rules import RULES
from fencepost.traces.events import Event, Kind
from fencepost.traces.judge.explanation import observed, shown
from fencepost.traces.judge.verdict import Evidence, Fault, Standing


@dataclass(slots=True)
class Findings:
    """Everything that all traces say of one requirement."""

    standings: Counter[Standing] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)
    unconfirmed: bool = False


def broken(played: Played) -> frozenset[str]:
    """The requirements that a trace shows violated, by marks and by the rules of faults that nothing marks."""
    marked = {mark.requirement for mark in played.verdict.evidence if mark.standing is Standing.FAIL}
    return frozenset(marked | {each for fault in unmarked(played) for each in fault.requirements})


def unmarked(played: Played) -> list[Fault]:
    """The faults that no mark claims."""
    claimed = {mark.sequence for mark in played.verdict.evidence if mark.standing is Standing.FAIL}
    return [fault for fault in played.verdict.faults if fault.sequence not in claimed]


def results(
    selection: Selection,
    runs: Sequence[Played],
    confirmed: Mapping[str, frozenset[str]],
    known: Mapping[str, str],
) -> tuple[RequirementResult, ...]:
    """One result for each requirement asked for. `confirmed` has what broke again when a scenario was replayed."""
    findings: dict[str, Findings] = {requirement.id: Findings() for requirement in selection.wanted}
    for played in runs:
        again = confirmed.get(played.scenario.name, frozenset())
        for mark in played.verdict.evidence:
            if mark.requirement in findings:
                weigh(findings[mark.requirement], played, mark, again)
        for fault in unmarked(played):
            for each in fault.requirements:
                if each in findings:
                    blame(findings[each], played, fault, each in again)
        unplayed(findings, played)
    return tuple(
        decide(requirement.id, findings[requirement.id], selection.left_out, known) for requirement in selection.wanted
    )


def weigh(found: Findings, played: Played, mark: Evidence, again: frozenset[str]) -> None:
    """Count a mark for its requirement."""
    if mark.standing is Standing.FAIL and mark.requirement not in again:
        found.standings[Standing.INCONCLUSIVE] += 1
        found.notes.append("failed once and not when it was replayed")
        return
    found.standings[mark.standing] += 1
    if mark.standing is Standing.FAIL:
        fault = next((one for one in played.verdict.faults if one.sequence == mark.sequence), None)
        found.failures.append(failure(played, mark.sequence, fault, mark.note))
    elif mark.note:
        found.notes.append(mark.note)


def blame(found: Findings, played: Played, fault: Fault, again: bool) -> None:
    """Count a fault that nothing marks."""
    if again:
        found.standings[Standing.FAIL] += 1
        found.failures.append(failure(played, fault.sequence, fault, ""))
    else:
        found.standings[Standing.INCONCLUSIVE] += 1
        found.notes.append("failed once and not when it was replayed")


def unplayed(findings: Mapping[str, Findings], played: Played) -> None:
    """A scenario that ended early leaves its requirements without evidence: say why."""
    shown_ids = {mark.requirement for mark in played.verdict.evidence}
    blocking = sorted({each for fault in played.verdict.faults for each in fault.requirements})
    for each in played.scenario.requirements:
        if each in shown_ids or each not in findings:
            continue
        if played.unsupported:
            findings[each].unsupported.append(played.unsupported)
        elif blocking:
            findings[each].notes.append("blocked by " + ", ".join(blocking))
            findings[each].standings[Standing.INCONCLUSIVE] += 1
        elif played.blocked:
            findings[each].notes.append(played.blocked)
            findings[each].standings[Standing.INCONCLUSIVE] += 1


def decide(id: str, found: Findings, left_out: Mapping[str, str], known: Mapping[str, str]) -> RequirementResult:
    """The verdict on a requirement."""
    counts = found.standings
    checks = counts[Standing.PASS] + counts[Standing.UNUSUAL] + counts[Standing.FAIL] + counts[Standing.INCONCLUSIVE]
    note = next(iter(found.notes), "")
    if counts[Standing.FAIL]:
        failures = tuple(found.failures)
        if id in known:
            return RequirementResult(id, Verdict.KNOWN, known[id], checks, failures)
        return RequirementResult(id, Verdict.FAIL, note, checks, failures)
    if counts[Standing.PASS] or counts[Standing.UNUSUAL]:
        unusual = "unusual: " + note if counts[Standing.UNUSUAL] and note else ""
        return RequirementResult(id, Verdict.PASS, unusual, checks)
    if counts[Standing.INCONCLUSIVE]:
        return RequirementResult(id, Verdict.INCONCLUSIVE, note, checks)
    if counts[Standing.NOT_OBSERVED]:
        return RequirementResult(id, Verdict.NOT_OBSERVED, note, checks)
    if found.unsupported:
        return RequirementResult(id, Verdict.UNSUPPORTED, found.unsupported[0], checks)
    reason = left_out.get(id, "")
    return RequirementResult(id, Verdict.UNSUPPORTED if reason else Verdict.NOT_OBSERVED, reason, checks)


def failure(played: Played, sequence: int, fault: Fault | None, note: str) -> Failure:
    """A violation with the schedule that shows it."""
    return Failure(
        trace=played.scenario.name,
        step=sequence,
        observed=fault.observed if fault is not None else f"{answer_to(played.events, sequence)} ({note})",
        allowed=fault.allowed if fault is not None else (note,),
        guard=fault.guard if fault is not None else "",
        schedule=schedule(played.events, sequence),
        replay=f"fencepost test TARGET --only {' '.join(played.scenario.requirements)}",
        replayed=True,
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


def coverage(runs: Iterable[Played]) -> dict[str, RuleCoverage]:
    """How often each rule of the model explained what was seen."""
    seen: Counter[str] = Counter()
    for played in runs:
        seen.update(played.verdict.rules)
    return {name: RuleCoverage(seen[name], rule.requirements) for name, rule in RULES.items()}
