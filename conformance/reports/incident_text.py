"""The history of groups as plain text, for an operator: the longest rebalances first."""

from collections.abc import Iterator, Sequence

from fencepost.conformance.reports.history_words import words_of
from fencepost.conformance.reports.incident_words import (
    Clock,
    MemberNames,
    count_of,
    departure_words,
    format_span,
    group_summary,
    history_headline,
    longest_first,
    names_in,
    rebalance_heading,
    rebalance_sentences,
)
from fencepost.conformance.reports.layout import escape_unprintable, wrap_text
from fencepost.conformance.reports.text import outcome_line, render_report
from fencepost.conformance.results import Report, Verdict
from fencepost.traces.history.timeline import GroupTimeline, PartitionLag, TraceHistory

MAX_GROUPS = 5
"""How many groups are told in full."""
MAX_GROUP_LINES = 20
MAX_REBALANCES = 5
MAX_PARTITIONS = 10
LAG_COLUMNS = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID")
"""The columns of `kafka-consumer-groups.sh --describe` that a trace can fill."""


def render_histories(histories: Sequence[TraceHistory]) -> str:
    """The histories as text that ends in a newline."""
    blocks = ["\n".join([*wrap_text("", history_headline(histories), "  "), *map(source_line, histories[:MAX_GROUPS])])]
    told = sorted(
        ((history, timeline) for history in histories for timeline in history.groups),
        key=lambda pair: (pair[1].open_rebalance is None, -pair[1].longest),
    )
    blocks += (group_block(history, timeline) for history, timeline in told[:MAX_GROUPS])
    rest = told[MAX_GROUPS:]
    if rest:
        lines = [f"  {group_line(*each)}" for each in rest[:MAX_GROUP_LINES]]
        more = len(rest) - len(lines) + sum(history.other_groups for history in histories)
        blocks.append("\n".join(["Other groups", *lines, *([f"  and {more:,} more"] if more else [])]))
    blocks.append(limits_block(histories))
    return "\n\n".join(filter(None, blocks)) + "\n"


def source_line(history: TraceHistory) -> str:
    """Where a history comes from."""
    clock = Clock(history.began)
    since = f" from {clock.start()}" if clock.start() else ""
    seen = f"{count_of(history.events, 'event')} in {format_span(history.duration)}{since}"
    return escape_unprintable(f"  {history.path}: {words_of([history]).seen_by[history.kind]}, {seen}")


def group_line(history: TraceHistory, timeline: GroupTimeline) -> str:
    """A group in a line."""
    return escape_unprintable(f"{timeline.group}: {group_summary(timeline, words_of([history]))}")


def group_block(history: TraceHistory, timeline: GroupTimeline) -> str:
    """A group with its longest rebalances, who went, and its offsets."""
    names, clock, words = names_in(timeline), Clock(history.began), words_of([history])
    lines = wrap_text("", f"Group {group_line(history, timeline)}", "  ")
    shown = longest_first(timeline)[:MAX_REBALANCES]
    if len(shown) < timeline.rebalance_count:
        lines.append(f"  The longest {len(shown)}:")
    for rebalance in shown:
        heading = rebalance_heading(rebalance, timeline.last, words)
        lines += wrap_text("  ", f"{clock.time(rebalance.began)}  {heading}", "    ")
        lines += wrap_text("    ", " ".join(rebalance_sentences(rebalance, timeline.last, names, words)), "    ")
    gone = departure_words(timeline, names)
    if gone:
        lines += wrap_text("  ", f"Members that went: {gone}.", "    ")
    lines += (each for time, limit in timeline.limits for each in limit_lines(clock.time(time), limit))
    lines += lag_lines(timeline, names)
    return "\n".join(lines)


def limit_lines(time: str, limit: str) -> list[str]:
    """What is not shown of a group from a time on."""
    return wrap_text("  ", f"From {time} on {limit}.", "    ")


def lag_lines(timeline: GroupTimeline, names: MemberNames) -> Iterator[str]:
    """The partitions that are furthest behind, as Kafka's own tool shows them."""
    if not timeline.partitions:
        return
    behind = sorted(timeline.partitions, key=lambda each: -(each.lag or 0))[:MAX_PARTITIONS]
    rows = [LAG_COLUMNS, *(lag_cells(each, names) for each in behind)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(LAG_COLUMNS))]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if len(behind) < timeline.partition_count:
        yield f"  and {timeline.partition_count - len(behind):,} more partitions"


def lag_cells(partition: PartitionLag, names: MemberNames) -> tuple[str, ...]:
    """The cells of a partition; what is not shown is a dash, as in Kafka's own tool."""
    numbers = (partition.committed, partition.log_end, partition.lag)
    owner = names.name(partition.owner) if partition.owner is not None else "-"
    told = ("-" if number is None else str(number) for number in numbers)
    return escape_unprintable(partition.topic), str(partition.partition), *told, escape_unprintable(owner)


def limits_block(histories: Sequence[TraceHistory]) -> str:
    """What the traces do not show."""
    limits = dict.fromkeys(limit for history in histories for limit in history.limits)
    lines = [line for limit in limits for line in wrap_text("  ", limit, "    ")]
    which = "these traces do" if len(histories) > 1 else "this trace does"
    return "\n".join([f"What {which} not show", *lines]) if lines else ""


def render_verdict(report: Report, *, colour: bool = False) -> str:
    """What the protocol says of the traces: a line if nothing is wrong, else the whole report."""
    if any(result.verdict is Verdict.FAIL for result in report.results) or report.unclassified:
        return render_report(report, colour=colour)
    return f"{outcome_line(report)} Each requirement: fencepost judge TRACE.\n"
