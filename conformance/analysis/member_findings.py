"""What the members of recorded groups did, as results of a report beside those of their coordinator."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fencepost.conformance.analysis.failures import Origin, build_failure, excerpt_of
from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.recorded_members import RecordedMembers, ShownViolation
from fencepost.conformance.results import Failure, Report
from fencepost.conformance.specification import CLIENT_SPECIFICATION
from fencepost.traces.events import Header, Lookahead
from fencepost.traces.verdict import CheckResult, CheckStatus


@dataclass(frozen=True, slots=True)
class MemberChecks:
    """How often members kept a requirement, in the usual way or not, and broke it; with the first remark on how they
    keep it."""

    passes: int = 0
    unusual: int = 0
    violations: int = 0
    remark: str = ""

    def with_checks(self, other: "MemberChecks") -> "MemberChecks":
        """Both together."""
        return MemberChecks(
            self.passes + other.passes,
            self.unusual + other.unusual,
            self.violations + other.violations,
            self.remark or other.remark,
        )


@dataclass(slots=True)
class MemberFindings:
    """What members did in some traces. Findings add up; `recordings` counts the traces that show members."""

    recordings: int = 0
    checks: dict[str, MemberChecks] = field(default_factory=dict)
    """By requirement."""

    def add_checks(self, checks: Mapping[str, MemberChecks]) -> None:
        """Add those of a trace, or of a part of it."""
        for id, each in checks.items():
            self.checks[id] = self.checks.get(id, MemberChecks()).with_checks(each)

    def add_findings(self, other: "MemberFindings") -> None:
        """Add those of other traces."""
        self.recordings += other.recordings
        self.add_checks(other.checks)

    def violated_ids(self) -> set[str]:
        """The requirements that members violate."""
        return {id for id, each in self.checks.items() if each.violations}

    def add_to(self, report: Report, failures: Iterable[tuple[str, Failure]]) -> Report:
        """The report on coordinators, with that on members if a trace shows any; `failures` are the violations to show,
        each with its requirement."""
        if not self.recordings:
            return report
        builder = ReportBuilder(RecordedMembers.requirements, specification=CLIENT_SPECIFICATION)
        for id, each in self.checks.items():
            found = builder.findings[id]
            found.counts.update({CheckStatus.PASS: each.passes, CheckStatus.FAIL: each.violations})
            if each.unusual:
                found.add_check(CheckStatus.UNUSUAL, each.remark)
                found.counts[CheckStatus.UNUSUAL] = each.unusual
        for id, failure in failures:
            builder.show_failure(id, failure)
        members = builder.build(
            target={"name": f"members of {report.target['name']}"},
            schedules=self.recordings,
            events=report.events,
            seconds=report.seconds,
        )
        counted = (
            replace(each, more_failures=max(0, self.checks[each.id].violations - len(each.failures)))
            if each.failures
            else each
            for each in members.results
        )
        return replace(report, members=replace(members, results=tuple(counted)))


def count_member_checks(members: RecordedMembers, violations: Mapping[str, int]) -> dict[str, MemberChecks]:
    """The counts of a trace by requirement; `violations` counts those that were found."""
    found: dict[str, MemberChecks] = {}
    for id in members.requirements:
        passes, unusual = (members.checks[id, status] for status in (CheckStatus.PASS, CheckStatus.UNUSUAL))
        if passes or unusual or id in violations:
            found[id] = MemberChecks(passes, unusual, violations.get(id, 0), members.notes.get(id, ""))
    return found


def build_member_failure(header: Header, trace: str, found: ShownViolation) -> Failure:
    """A violation of a member in a trace, with its last requests as the schedule."""
    violation, events = found
    result = CheckResult(violation.requirement, violation.sequence, CheckStatus.FAIL, violation=violation)
    return build_failure(events, result, Origin(trace, ""), replayed=False, excerpt=find_excerpt(header, found))


def find_excerpt(header: Header, found: ShownViolation) -> str:
    """The last events of the member as a trace, "" if it is too long or does not show the violation."""
    violation, events = found
    text = excerpt_of(header, events)
    members = RecordedMembers(header)
    again = Counter(
        each.requirement
        for moment in Lookahead(events).pair_operations()
        for each, _ in members.on_event(moment.event, moment.operation)
    )
    return text if again[violation.requirement] else ""
