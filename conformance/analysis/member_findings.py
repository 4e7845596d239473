"""What the members of recorded groups did, as results of a report beside those of their coordinator."""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from fencepost.conformance.analysis.client_schedule import MAX_STEPS, schedule_of
from fencepost.conformance.analysis.failures import excerpt_of
from fencepost.conformance.analysis.report_builder import ReportBuilder, TraceSummary
from fencepost.conformance.analysis.schedule_text import MemberLabels
from fencepost.conformance.recorded_members import RecordedMembers
from fencepost.conformance.results import Failure, Report
from fencepost.conformance.specification import CLIENT_SPECIFICATION
from fencepost.traces.client_judge.evidence import MemberViolation
from fencepost.traces.events import Header
from fencepost.traces.operations import Lookahead
from fencepost.traces.verdict import CheckStatus


@dataclass(frozen=True, slots=True)
class MemberChecks:
    """How often the members in a trace, or in a part of it, kept a requirement, and broke it; `remark` is the first one
    on how they keep it."""

    requirement: str
    passes: int
    unusual: int
    violations: int
    remark: str = ""


@dataclass(slots=True)
class MemberFindings:
    """The findings about members of all traces, in any order."""

    builder: ReportBuilder = field(
        default_factory=lambda: ReportBuilder(RecordedMembers.requirements, specification=CLIENT_SPECIFICATION)
    )
    recordings: set[Hashable] = field(default_factory=set)

    def add_trace(self, key: Hashable, source: str, checks: Mapping[str, MemberChecks]) -> None:
        """Add the counts of a trace, or of a part of it: parts of one trace have the same key."""
        self.recordings.add(key)
        violations = {each.requirement: each.violations for each in checks.values() if each.violations}
        self.builder.add_trace(key, TraceSummary(source, {}, {}, violations, {}))
        for each in checks.values():
            found = self.builder.findings[each.requirement]
            found.counts[CheckStatus.PASS] += each.passes
            if each.unusual:
                found.add_check(CheckStatus.UNUSUAL, each.remark)
                found.counts[CheckStatus.UNUSUAL] += each.unusual - 1

    def add_failure(self, requirement: str, failure: Failure) -> None:
        """Show a violation that the counts of its trace include."""
        self.builder.show_failure(requirement, failure)

    def add_to(self, report: Report) -> Report:
        """The report on coordinators, with that on members if a trace is a recording."""
        if not self.recordings:
            return report
        name = f"members of {report.target['name']}"
        members = self.builder.build(
            target={"name": name}, schedules=len(self.recordings), events=report.events, seconds=report.seconds
        )
        return replace(report, members=members)


def count_member_checks(members: RecordedMembers, violations: Mapping[str, int]) -> dict[str, MemberChecks]:
    """The counts of a trace by requirement; `violations` counts those that were found."""
    counts = members.checks
    return {
        id: MemberChecks(
            id, counts[id, CheckStatus.PASS], counts[id, CheckStatus.UNUSUAL], violations.get(id, 0), notes
        )
        for id in members.requirements
        if any(counts[id, each] for each in CheckStatus) or id in violations
        for notes in [members.notes.get(id, "")]
    }


def build_member_failure(header: Header, trace: str, found: MemberViolation) -> Failure:
    """A violation of a member in a trace, with its last requests as the schedule."""
    violation, labels = found.violation, MemberLabels(found.events)
    return Failure(
        trace=trace,
        step=violation.sequence,
        observed=labels.rename(violation.observed),
        allowed=(labels.rename(violation.expected),),
        guard="",
        schedule=tuple(schedule_of(found.events, violation.sequence, labels))[-MAX_STEPS:],
        title=f"{found.member} in group {found.group!r}: {violation.title}",
        state=labels.rename(violation.told),
        kind=f"{violation.requirement}: {violation.title}",
        excerpt=find_excerpt(header, found),
    )


def find_excerpt(header: Header, found: MemberViolation) -> str:
    """The last events of the member as a trace, "" if it is too long or does not show the violation."""
    text = excerpt_of(header, found.events)
    members = RecordedMembers(header)
    again = Counter(
        each.violation.requirement
        for moment in Lookahead(found.events).pair_operations()
        for each in members.on_event(moment.event, moment.operation)
    )
    return text if again[found.violation.requirement] else ""
