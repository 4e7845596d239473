"""The verdict on each requirement, aggregated from scenario runs, replays and recorded traces."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType

from fencepost.conformance.analysis.root_cause import BLOCKED_BY, RootCauses
from fencepost.conformance.results import Failure, Remark, RemarkKind, RequirementResult, RuleCoverage, Verdict
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.model.catalogue.specification import Rule
from fencepost.traces.verdict import CheckResult, CheckStatus

NO_NOTES: Mapping[str, str] = MappingProxyType({})
NOT_AGAIN = "failed once and not when it was replayed, see {}"
NOT_REPLAYED_HERE = "what was replayed of it is explained by another violation"
NOT_REPLAYED = "failed once, see {}; the run was cut short before it could be replayed"


class ViolationStatus(Enum):
    """What a violation that was seen once is worth."""

    CONFIRMED = auto()
    """The replay of this scenario showed it again."""
    CONFIRMED_ELSEWHERE = auto()
    """The replay of another scenario violated the same requirement."""
    CONSEQUENCE = auto()
    """It follows from another violation."""
    UNCONFIRMED = auto()
    """No replay has shown it again."""


def classify(
    violation: CheckResult,
    run: ScenarioRun,
    causes: RootCauses,
    confirmed: Mapping[str, frozenset[str]],
    trace: str,
) -> tuple[ViolationStatus, str]:
    """The status of a violation and the note that explains it ("" for a confirmed one).

    `confirmed` has, by scenario, the requirements that its replay violated; `trace` names the run's trace.
    """
    replayed = confirmed.get(run.scenario.name)
    cause = causes.cause_of(violation, run)
    if cause:
        return ViolationStatus.CONSEQUENCE, cause
    if replayed is not None and violation.requirement in replayed:
        return ViolationStatus.CONFIRMED, ""
    if violation.requirement in confirmed_requirements(confirmed):
        return ViolationStatus.CONFIRMED_ELSEWHERE, NOT_REPLAYED_HERE
    return ViolationStatus.UNCONFIRMED, (NOT_REPLAYED if replayed is None else NOT_AGAIN).format(trace)


def confirmed_requirements(confirmed: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The requirements that any replay violated."""
    return frozenset[str]().union(*confirmed.values())


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
    given_up: list[str] = field(default_factory=list)
    """Why some of them could not go on to their end."""
    doubt: str = ""
    """Why a violation that nothing explains is no failure."""

    @property
    def undecided(self) -> str:
        """How many scenarios were given up, and why the first was; "" if none was."""
        if not self.given_up:
            return ""
        return f"{len(self.given_up)} of {self.scenarios} scenarios undecided: {self.given_up[0]}"

    def add_check(self, status: CheckStatus, note: str, times: int = 1) -> None:
        """Count the result of so many checks."""
        self.counts[status] += times
        if note:
            self.notes.setdefault(status, note)

    def note_for(self, status: CheckStatus) -> str:
        """The first note of a status, "" if there is none."""
        return self.notes.get(status, "")

    def add_failure(self, failure: Failure) -> None:
        """Count a violation."""
        self.counts[CheckStatus.FAIL] += 1
        self.failures.append(failure)

    def add_violation(self, status: ViolationStatus, note: str) -> None:
        """Count a violation that is not confirmed in its own scenario."""
        if status is ViolationStatus.CONFIRMED_ELSEWHERE:
            self.add_check(CheckStatus.FAIL, note)
            return
        if status is ViolationStatus.UNCONFIRMED:
            self.doubt = self.doubt or note
        self.add_check(CheckStatus.INCONCLUSIVE, note)


def explain_missing_checks(findings: Mapping[str, RequirementFindings], run: ScenarioRun, causes: RootCauses) -> None:
    """Note that a scenario was played, and why it did not check all of its requirements if it ended early."""
    checked = {check.requirement for check in run.verdict.check_results}
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
        if requirement in checked:
            continue
        if run.unsupported:
            found.unsupported.append(run.unsupported)
        elif run.blocked:
            found.add_check(CheckStatus.INCONCLUSIVE, reason)


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
        return RequirementResult(id, Verdict.FAIL, older.get(id, ""), checks, failures)
    if counts[CheckStatus.FAIL] or found.doubt:
        return RequirementResult(id, Verdict.INCONCLUSIVE, found.doubt or found.note_for(CheckStatus.FAIL), checks)
    if counts[CheckStatus.UNUSUAL]:
        remark = Remark(RemarkKind.UNUSUAL, found.note_for(CheckStatus.UNUSUAL))
        return RequirementResult(id, Verdict.PASS, found.undecided, checks, remark=remark)
    if counts[CheckStatus.PASS]:
        return RequirementResult(id, Verdict.PASS, found.undecided, checks)
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
