"""What `fencepost pipeline judge` tells of a corpus besides the report: rebalances, lag, waits, what the queries found.

Workers fold the rows of some tables into an `Overview`. Overviews add up, and their size does not depend on the number
of rows.
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Any, TypeAlias

from fencepost.conformance.pipeline.merge import REPORT_KINDS, FirstFound, ReportPart
from fencepost.traces.history.builder import CauseKind
from fencepost.traces.pipeline.judge_corpus import FoundInShard
from fencepost.traces.pipeline.queries import EXAMINED, INVARIANTS, OFFSETS
from fencepost.traces.pipeline.results import Folding
from fencepost.traces.pipeline.story import REBALANCES

MAX_SHOWN = 5
"""How many rows of each kind are shown; the tables have all of them."""
Row: TypeAlias = Mapping[str, Any]
OVERVIEW_KINDS = (REBALANCES, OFFSETS, "longest-wait", "unowned", "owned-twice", EXAMINED, *INVARIANTS)
"""The tables that are looked at."""
STUCK = "stuck"
"""Rebalances that are not over, among those that are shown."""
INVARIANT_SENTENCES = {
    "one-leader": ("one leader per generation", "joins"),
    "no-stale-commit": ("no commit of a stale generation accepted", "accepted commits"),
    "one-owner": ("each partition owned at most once in a generation", "assignments"),
}
"""What each invariant says, and what it looks at."""


def place_of(kind: str) -> Callable[[Row], int]:
    """The place of a row among those of its kind: long rebalances, large lags and long waits are first."""
    return {
        REBALANCES: lambda row: -int(row["ms"]),
        STUCK: lambda row: -int(row["ms"]),
        OFFSETS: lambda row: -int(row["lag"]),
        "longest-wait": lambda row: -int(row["polls"]),
        "unowned": lambda row: -int(row["longest"]),
        "owned-twice": lambda row: -int(row["together"]),
    }.get(kind, lambda row: 0)


@dataclass(slots=True)
class Overview:
    """What is told of some traces of a corpus."""

    durations: Counter[int] = field(default_factory=Counter)
    """How many rebalances took so many milliseconds."""
    unknown_lags: int = 0
    known_lags: int = 0
    followed: int = 0
    """The number of partitions whose owners are known."""
    examined: Counter[str] = field(default_factory=Counter)
    """The number of responses that each invariant looked at, and of assignments that name no partition as `unnamed`."""
    rows: dict[str, FirstFound[Row]] = field(
        default_factory=lambda: {kind: FirstFound(MAX_SHOWN) for kind in (*OVERVIEW_KINDS, STUCK)}
    )
    """By kind: rebalances, stuck ones, lags above 0, waits, and violations of invariants."""

    def add(self, finding: FoundInShard) -> None:
        """Add a row of one of `OVERVIEW_KINDS`."""
        row, kind = json.loads(finding.value), finding.kind
        if kind == EXAMINED:
            self.examined.update(row)
            return
        if kind == REBALANCES:
            self.durations[row["ms"]] += row["is_over"]
            kind = kind if row["is_over"] else STUCK
        elif kind == OFFSETS:
            if not row["is_last"]:
                return
            self.known_lags += row["lag"] is not None
            self.unknown_lags += row["lag"] is None
            if not row["lag"]:
                return
        elif kind == "unowned":
            self.followed += 1
            if not row["unowned"]:
                return
        place = (place_of(kind)(row), finding.trace, row.get("sequence") or 0, finding.value)
        self.rows[kind].add([(place, row)], 1)

    def add_overview(self, other: "Overview") -> None:
        """Add what is told of other traces."""
        self.durations.update(other.durations)
        self.unknown_lags += other.unknown_lags
        self.known_lags += other.known_lags
        self.followed += other.followed
        self.examined.update(other.examined)
        for kind, rows in other.rows.items():
            self.rows[kind].add(rows.held, rows.count)

    @property
    def is_violated(self) -> bool:
        """Whether a query found a violation."""
        return any(self.rows[name].count for name in INVARIANTS)


def overview_lines(overview: Overview) -> list[str]:
    """Everything, in lines."""
    return [*rebalance_lines(overview), *stuck_lines(overview), *query_lines(overview)]


def query_lines(overview: Overview) -> list[str]:
    """What needs no judge, in lines."""
    return [*lag_lines(overview), *owner_lines(overview), *wait_lines(overview), *invariant_lines(overview)]


def rebalance_lines(overview: Overview) -> Iterator[str]:
    """How long rebalances take."""
    durations = +overview.durations
    if not durations:
        return
    half, most = (percentile(durations, share) for share in (0.5, 0.99))
    longest = f"the longest {max(durations)} ms"
    yield f"Rebalances: {durations.total()}, half within {half} ms, 99 % within {most} ms, {longest}"
    for each in overview.rows[REBALANCES].first():
        yield f"  {each['ms']} ms: {each['group']!r} to generation {each['generation']}{reason_of(each)}"


def reason_of(row: Row) -> str:
    """What began a rebalance, and whom it waited for, as far as the trace shows it."""
    began = "" if row["cause"] == CauseKind.NOT_SHOWN else f", {row['cause']}: {row['culprit'] or row['reason']}"
    return began + (f"; {row['held']}: {row['awaited']}, {row['held_ms']} ms" if row["awaited"] else "")


def percentile(numbers: Counter[int], share: float) -> int:
    """The number that this share of the numbers is not above; `numbers` says how many there are of each."""
    ordered = sorted(numbers)
    ranks = list(accumulate(numbers[each] for each in ordered))
    return ordered[bisect_right(ranks, int(share * (ranks[-1] - 1)))]


def stuck_lines(overview: Overview) -> Iterator[str]:
    """Rebalances that are not over, and who holds them up."""
    stuck = overview.rows[STUCK]
    if stuck.count:
        yield f"Rebalances that were not over at the end: {stuck.count}"
    for each in stuck.first():
        awaited = each["awaited"] or "nobody that is shown"
        yield f"  {each['group']!r} in {each['outcome']} since {each['time']} ms waits for {awaited}"


def lag_lines(overview: Overview) -> Iterator[str]:
    """How far groups are behind."""
    known, unknown = overview.known_lags, overview.unknown_lags
    if not known and not unknown:
        return
    behind = overview.rows[OFFSETS].first()
    told = f"unknown for {unknown}" if unknown else "known for all"
    most = f", at most {behind[0]['lag'] if behind else 0} records" if known else ""
    yield f"Lag of {known + unknown} partitions: {told}{most}"
    for each in behind:
        yield f"  {each['lag']} records: {each['group']!r}, {each['topic']}/{each['partition']}"


def owner_lines(overview: Overview) -> Iterator[str]:
    """How long partitions had no owner, and which had two at once."""
    if not overview.followed:
        return
    idle, twice = overview.rows["unowned"], overview.rows["owned-twice"]
    longest = f", at most {idle.first()[0]['longest']} ms at a stretch" if idle.count else ""
    yield f"Partitions without an owner for a while: {idle.count} of {overview.followed}{longest}"
    for each in idle.first():
        yield f"  {each['unowned']} ms in {each['stretches']} stretches: {each['group']!r}, {each['partition']}"
    if twice.count:
        yield f"Partitions that two members had at once: {twice.count} times"
    for each in twice.first():
        what = f"{each['group']!r}, {each['partition']}, {each['other']!r} and {each['member']!r}"
        yield f"  {each['together']} ms: {what} ({each['trace']}, event {each['sequence']})"


def wait_lines(overview: Overview) -> Iterator[str]:
    """How long buffered partitions wait."""
    for each in overview.rows["longest-wait"].first()[:1]:
        where = f"{each['partition']} at {each['member'] or each['connection']}"
        yield f"Longest wait of a buffered partition: {each['polls']} polls, {where}"


def invariant_lines(overview: Overview) -> Iterator[str]:
    """What the queries found."""
    yield "Invariants, queried"
    examined = overview.examined
    for name in INVARIANTS:
        sentence, unit = INVARIANT_SENTENCES[name]
        violations = overview.rows[name]
        found = f"{violations.count} violations" if violations.count else "holds" if examined[name] else "not looked at"
        unnamed = f"; {examined['unnamed']} name no partition" if name == "one-owner" and examined["unnamed"] else ""
        yield f"  {sentence}: {found} ({examined[name]} {unit} examined{unnamed})"
        for each in violations.first():
            yield f"    {each['group']!r} in generation {each['generation']}: {each['trace']}, event {each['sequence']}"


@dataclass(slots=True)
class CorpusSummary:
    """What is told of some traces of a corpus."""

    report: ReportPart = field(default_factory=ReportPart)
    overview: Overview = field(default_factory=Overview)


def summarize_rows(rows: Iterable[FoundInShard]) -> CorpusSummary:
    """The summary of rows of `REPORT_KINDS` and `OVERVIEW_KINDS`; those of a trace follow each other."""
    summary = CorpusSummary()

    def report_rows(mine: Iterator[FoundInShard]) -> Iterator[FoundInShard]:
        for row in mine:
            if row.kind in REPORT_KINDS:
                yield row
            else:
                summary.overview.add(row)

    for trace, mine in groupby(rows, key=attrgetter("trace")):
        summary.report.add_trace(trace, report_rows(mine))
    summary.report.drop_long_failures()
    return summary


def merge_summaries(summaries: Iterable[CorpusSummary]) -> CorpusSummary:
    """The summary of all traces."""
    merged = CorpusSummary()
    for each in summaries:
        merged.report.add_part(each.report)
        merged.overview.add_overview(each.overview)
    merged.report.drop_long_failures()
    return merged


SUMMARY = Folding((*REPORT_KINDS, *OVERVIEW_KINDS), summarize_rows, merge_summaries)
"""How the rows of a judged corpus become its summary."""
