"""One report out of the rows that the pipeline's workers wrote: that of `fencepost judge` on the same traces.

Workers fold the rows of some traces into a `ReportPart`. Parts add up, and their size does not depend on the number of
traces.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from fencepost.conformance.analysis.causes import schedule_length
from fencepost.conformance.analysis.report_builder import ReportBuilder, TraceSummary, TraceTotals
from fencepost.conformance.analysis.trace_report import MemberChecks, MemberFindings, describe_unreadable
from fencepost.conformance.reports.typed import from_plain
from fencepost.conformance.results import Ending, EndKind, Failure, Provenance, Report
from fencepost.conformance.specification import DEFAULT_SPECIFICATION, specification_named
from fencepost.model.catalogue.specification import Specification
from fencepost.traces.files.trace_files import TraceError
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.judge_corpus import UNREADABLE, FoundInShard
from fencepost.traces.verdict import UNCLASSIFIED, CheckStatus

MAX_SHOWN_FAILURES = 20
"""How many failures of a requirement the report has, the shortest ones; all are counted."""
MAX_HELD_FAILURES = 10_000
"""How many failures are held before the longer ones are dropped."""
MAX_OPEN_LINES = 1_000
"""How many places where a judge gave up, and how many files that could not be read, the report names."""
MAX_HELD_RANKS = 500
"""How many more than are named are held before they are sorted."""
REPORT_KINDS = ("verdict", "check", "inconclusive", UNREADABLE, "failure", "members", "member-failure")
"""The kinds of findings that a report is made of."""
T = TypeVar("T")
Rank: TypeAlias = tuple[Any, ...]
"""The place of a finding in the order in which `fencepost judge` has them."""


@dataclass(frozen=True, slots=True)
class FailureOfGroup:
    """A failure of a requirement in a group, with its rank."""

    requirement: str
    rank: Rank
    failure: Failure
    group: str | None = None


def shortest_failures(failures: Iterable[FailureOfGroup], limit: int) -> list[FailureOfGroup]:
    """The `limit` shortest failures of each requirement, by rank; of unclassified violations the first and the shortest
    of each kind, which are all that a report shows of them."""
    found: dict[Hashable, list[FailureOfGroup]] = {}
    kept: list[FailureOfGroup] = []
    for each in sorted(failures, key=lambda each: each.rank):
        kind = each.failure.kind if each.requirement == UNCLASSIFIED else None
        found.setdefault((each.requirement, kind), []).append(each)
    for alike in found.values():
        if alike[0].requirement == UNCLASSIFIED:
            shortest = min(alike, key=lambda each: schedule_length(each.failure))
            kept += [alike[0]] if shortest is alike[0] else [alike[0], shortest]
        else:
            kept += nsmallest(limit, alike, key=lambda each: schedule_length(each.failure))
    return sorted(kept, key=lambda each: each.rank)


@dataclass(slots=True)
class FirstFound(Generic[T]):
    """The first of what was found, `limit` at the most, and how many there are in all."""

    limit: int
    count: int = 0
    held: list[tuple[Rank, T]] = field(default_factory=list)
    """With their ranks."""

    def add(self, found: Iterable[tuple[Rank, T]], count: int) -> None:
        """Add `count` more, of which these are the first; no two have the same rank."""
        self.count += count
        self.held += found
        if len(self.held) > MAX_HELD_RANKS + 2 * self.limit:
            self.held = nsmallest(self.limit, self.held, key=itemgetter(0))

    def first(self) -> list[T]:
        """The first, in order."""
        return [each for _, each in nsmallest(self.limit, self.held, key=itemgetter(0))]


def open_lines(lines: FirstFound[str], what: str) -> list[str]:
    """The first lines; `what` names those that are left out."""
    texts = lines.first()
    more = lines.count - len(texts)
    return [*texts, f"and {more:,} more {what}: the findings name them"] if more else texts


class CheckCount(NamedTuple):
    """How often a check of a requirement had a status; the first note, with its rank."""

    times: int
    rank: Rank = ()
    note: str = ""


class FindingRow(NamedTuple):
    """A finding with its rank. Traces are in the order of their paths."""

    rank: tuple[Path, int, int]
    value: dict[str, Any]


@dataclass(slots=True)
class ReportPart:
    """What a report says of some traces of a corpus."""

    files: int = 0
    """The number of trace files, those included that could not be read."""
    judged: int = 0
    events: int = 0
    subjects: set[str] = field(default_factory=set)
    """What the requirements are about that the traces are held to; of traces of one protocol there is one."""
    totals: TraceTotals = field(default_factory=TraceTotals)
    checks: dict[tuple[str, CheckStatus], CheckCount] = field(default_factory=dict)
    failures: list[FailureOfGroup] = field(default_factory=list)
    members: MemberFindings = field(default_factory=MemberFindings)
    member_failures: list[FailureOfGroup] = field(default_factory=list)
    doubts: FirstFound[str] = field(default_factory=lambda: FirstFound(MAX_OPEN_LINES))
    """Where a judge gave up."""
    errors: FirstFound[str] = field(default_factory=lambda: FirstFound(MAX_OPEN_LINES))
    """Files that could not be read, or not to their end."""

    def add_trace(self, trace: str, findings: Iterable[FoundInShard]) -> None:
        """Add the findings in all shards of a trace. Of a trace with a malformed message only that is told, as by
        `fencepost judge`."""
        rows: dict[str, list[FindingRow]] = {kind: [] for kind in REPORT_KINDS}
        path = Path(trace)
        for each in findings:
            value = json.loads(each.value)
            rank = value["rank"] if each.kind.endswith("failure") else (each.bucket, value.get("rank", 0))
            rows[each.kind].append(FindingRow((path, *rank), value))
        verdicts, unreadable = rows["verdict"], rows[UNREADABLE]
        self.files += sum(row.value["files"] for row in (*verdicts, *unreadable))
        malformed = [row for row in unreadable if row.value["malformed"]]
        told = [min(malformed, key=lambda row: row.rank[2])] if malformed else unreadable
        errors = [(row.rank, str(TraceError(trace, row.value["line"], row.value["reason"]))) for row in told]
        self.errors.add(errors, len(errors))
        if malformed:
            return
        self.judged += sum(row.value["files"] for row in verdicts)
        self.events += sum(row.value["events"] for row in verdicts)
        if verdicts:
            parts = [read_summary(row.value) for row in sorted(verdicts, key=attrgetter("rank"))]
            subject = verdicts[0].value["subject"]
            self.subjects.add(subject)
            self.totals.add_trace(parts, specification_named(subject).rules)
        doubts = [((path, row.value["reason"]), f"{trace}: {row.value['reason']}") for row in rows["inconclusive"]]
        self.doubts.add(doubts, len(doubts))
        for row in rows["check"]:
            name = row.value["requirement"], CheckStatus(row.value["status"])
            self.add_check(name, CheckCount(1, row.rank, row.value["note"]))
        if rows["members"]:
            self.members.add_findings(read_members(row.value for row in rows["members"]))
        self.add_failures(ranked_failures(rows["failure"]), ranked_failures(rows["member-failure"]))

    def add_part(self, other: "ReportPart") -> None:
        """Add what a report says of other traces."""
        self.files += other.files
        self.judged += other.judged
        self.events += other.events
        self.subjects |= other.subjects
        self.totals.add_totals(other.totals)
        self.doubts.add(other.doubts.held, other.doubts.count)
        self.errors.add(other.errors.held, other.errors.count)
        for name, check in other.checks.items():
            self.add_check(name, check)
        self.members.add_findings(other.members)
        self.add_failures(other.failures, other.member_failures)

    def add_check(self, name: tuple[str, CheckStatus], check: CheckCount) -> None:
        """Add checks of a requirement with a status."""
        known = self.checks.get(name, CheckCount(0))
        noted = min((each for each in (known, check) if each.note), key=attrgetter("rank"), default=check)
        self.checks[name] = noted._replace(times=known.times + check.times)

    def add_failures(self, failures: Iterable[FailureOfGroup], by_members: Iterable[FailureOfGroup]) -> None:
        """Add failures, also those of members, and drop long ones if there are too many."""
        self.failures += failures
        self.member_failures += by_members
        if max(len(self.failures), len(self.member_failures)) > MAX_HELD_FAILURES:
            self.drop_long_failures()

    def drop_long_failures(self) -> None:
        """Keep those failures that the report shows."""
        self.failures = shortest_failures(self.failures, MAX_SHOWN_FAILURES)
        self.member_failures = shortest_failures(self.member_failures, MAX_SHOWN_FAILURES)

    def specification(self) -> Specification:
        """What the traces are held to. Raises `PipelineError` for traces of several protocols."""
        if len(self.subjects) > 1:
            told = f"its traces are about several subjects: {', '.join(sorted(self.subjects))}"
            raise PipelineError(f"a report is about one protocol, and {told}; put those of each in a corpus of its own")
        return specification_named(*self.subjects) if self.subjects else DEFAULT_SPECIFICATION

    def build_report(self, seconds: float, provenance: Provenance | None = None) -> Report:
        """The report on these traces; judging took so many seconds. Raises `PipelineError` for traces of several
        protocols."""
        builder = ReportBuilder(specification=self.specification())
        builder.totals.add_totals(self.totals)
        for (requirement, status), check in self.checks.items():
            builder.add_check(requirement, status, check.note, check.times)
        for each in shortest_failures(self.failures, MAX_SHOWN_FAILURES):
            builder.show_failure(each.requirement, each.failure)
        builder.undecided += open_lines(self.doubts, "places where the judge gave up")
        builder.undecided += (f"not judged: {error}" for error in open_lines(self.errors, "files"))
        ended = None
        if self.errors.count:
            reason = describe_unreadable(self.errors.count, self.files, self.errors.first()[0])
            ended = Ending(EndKind.QUARANTINED, reason, seconds)
        report = builder.build(
            schedules=self.judged,
            events=self.events,
            seconds=seconds,
            cut_short=self.judged < self.files,
            ended=ended,
        )
        by_members = shortest_failures(self.member_failures, MAX_SHOWN_FAILURES)
        shown = ((each.requirement, each.failure) for each in by_members)
        return replace(self.members.add_to(report, shown), provenance=provenance)


def ranked_failures(rows: Iterable[FindingRow]) -> Iterator[FailureOfGroup]:
    """The failures in rows."""
    for row in rows:
        yield FailureOfGroup(row.value["requirement"], row.rank, from_plain(Failure, row.value["failure"]))


def read_members(values: Iterable[Mapping[str, Any]]) -> MemberFindings:
    """The counts of members in the shards of a trace, as `FindingRows` writes them."""
    found = MemberFindings(1)
    for value in values:
        found.add_checks({id: MemberChecks(**told) for id, told in value.items()})
    return found


def read_summary(value: dict[str, Any]) -> TraceSummary:
    """The counts of a shard as `FindingRows` writes them."""
    return TraceSummary(
        value["source"], value["implementation"], value["rules"], value["violations"], value["decisions"]
    )
