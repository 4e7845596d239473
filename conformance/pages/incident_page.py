"""The history of groups as one self-contained HTML page, with the report on the traces at its end."""

from collections.abc import Iterator, Sequence

from fencepost.conformance.diagrams.svg import clean
from fencepost.conformance.diagrams.timeline import draw_timeline
from fencepost.conformance.pages import sections
from fencepost.conformance.pages.elements import element, fold, section, table
from fencepost.conformance.pages.html_page import embed_json, make_page
from fencepost.conformance.reports.history_words import HistoryWords, words_of
from fencepost.conformance.reports.incident_words import (
    Clock,
    MemberNames,
    count_of,
    departure_words,
    describe_cause,
    format_span,
    group_summary,
    history_headline,
    longest_first,
    names_in,
    rebalance_heading,
    rebalance_sentences,
)
from fencepost.conformance.reports.json_report import to_json
from fencepost.conformance.reports.text import outcome_line
from fencepost.conformance.results import Report
from fencepost.traces.history.timeline import GroupTimeline, MemberSpan, TimelineRebalance, TraceHistory

MAX_GROUPS = 10
"""How many groups are told in full."""
MAX_OPEN = 3
"""How many of them are not folded, and have drawings of their longest rebalances."""
MAX_REBALANCES = 20
MAX_DRAWN = 3
"""How many rebalances of a group have a drawing of their own."""
MIN_DRAWN_MS = 10
"""A rebalance that took less has nothing to draw."""
MAX_MEMBERS = 50
"""How many members, present and past, are in the table of a group."""
MAX_GROUP_ROWS = 500
STATE_COLUMNS = ("GROUP", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
TIME_COLUMNS = ("longest", "in all")
MEMBER_COLUMNS = ("CONSUMER-ID", "GROUP-INSTANCE-ID", "#PARTITIONS", "came", "went", "why")
OFFSET_COLUMNS = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID")
GroupRow = tuple[TraceHistory, GroupTimeline]


def to_incident_html(histories: Sequence[TraceHistory], report: Report) -> str:
    """The page. Equal histories and reports give equal pages."""
    groups = groups_by_severity(histories)
    headline = history_headline(histories)
    sources = [(clean(each.path), clean(source_words(each))) for each in histories[:MAX_GROUPS]]
    rest = len(histories) - len(sources)
    pairs = [(path, told) for path, told in sources] + ([("", f"and {rest} more traces")] if rest else [])
    head = f"<header><h1>{clean(headline)}</h1>{trace_list(pairs)}</header>"
    body = [
        head,
        groups_section(groups, sum(each.other_groups for each in histories)),
        *(group_section(pair, number) for number, pair in enumerate(groups[:MAX_GROUPS])),
        limits_section(histories),
        verdict_section(report, words_of(histories).question),
    ]
    page = "\n".join(filter(None, body))
    return make_page(f"Fencepost: {headline}", f"<main>{page}</main>{embed_json(to_json(report))}")


def groups_by_severity(histories: Sequence[TraceHistory]) -> list[GroupRow]:
    """The groups with their traces: those with a rebalance that is not over first, then by the longest rebalance."""
    pairs = [(history, timeline) for history in histories for timeline in history.groups]
    return sorted(pairs, key=lambda pair: (pair[1].open_rebalance is None, -pair[1].longest))


def source_words(history: TraceHistory) -> str:
    """Where a history comes from."""
    start = Clock(history.began).start()
    seen = f"{count_of(history.events, 'event')} in {format_span(history.duration)}"
    return f"{words_of([history]).seen_by[history.kind]}, {seen}{f' from {start}' if start else ''}"


def trace_list(pairs: Sequence[tuple[str, str]]) -> str:
    """The traces in a list."""
    return "<ul>" + "".join(f"<li>{f'<b>{path}</b>: ' if path else ''}{told}</li>" for path, told in pairs) + "</ul>"


def groups_section(groups: Sequence[GroupRow], others: int) -> str:
    """All groups in a table, with the columns of Kafka's own tool."""
    rows = (group_cells(pair, number) for number, pair in enumerate(groups[:MAX_GROUP_ROWS]))
    words = words_of([history for history, _ in groups[:1]])
    more = max(0, len(groups) - MAX_GROUP_ROWS) + others
    told = f"<p>{count_of(more, 'more group')} with shorter {words.change}s are left out.</p>" if more else ""
    columns = (*STATE_COLUMNS, f"{words.change}s", *TIME_COLUMNS)
    return section("groups", "Groups at the end", table(columns, rows, aria_label="groups"), told)


def group_cells(pair: GroupRow, number: int) -> list[str]:
    """A group's row: name, protocol, state, members, and the number and times of its rebalances."""
    history, timeline = pair
    name = clean(timeline.group) or "(empty id)"
    return [
        f'<a href="#group-{number}">{name}</a>' if number < MAX_GROUPS else name,
        clean(timeline.protocol or "-"),
        clean(words_of([history]).state(timeline.phase)),
        str(len(timeline.members)) if timeline.phase else "-",
        f"{timeline.rebalance_count:,}",
        format_span(timeline.longest) if timeline.rebalance_count else "-",
        format_span(timeline.rebalance_time) if timeline.rebalance_count else "-",
    ]


def group_section(pair: GroupRow, number: int) -> str:
    """A group: its timeline, its rebalances in words, its members and its offsets."""
    history, timeline = pair
    names, clock, words = names_in(timeline), Clock(history.began), words_of([history])
    title, summary = f"Group {timeline.group}", group_summary(timeline, words)
    drawn = draw_timeline(timeline, names, clock, f"Timeline of {title}", words=words)
    drawing = scroll_box(drawn, f"timeline of {title}")
    content = [
        f"<p>{clean(summary)}.</p>",
        "".join(f"<p>From {clean(clock.time(time))} on {clean(limit)}.</p>" for time, limit in timeline.limits),
        drawing,
        legend(words),
        *rebalance_blocks(timeline, names, clock, words, MAX_DRAWN if number < MAX_OPEN else 0),
        members_block(timeline, names, clock),
        offsets_block(timeline, names),
    ]
    inner = "".join(content)
    shown = inner if number < MAX_OPEN else fold(summary, inner)
    return section(f"group-{number}", title, shown)


def scroll_box(content: str, label: str) -> str:
    """A drawing in a box that scrolls by itself."""
    return element("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)


def legend(words: HistoryWords) -> str:
    """What the signs in the drawing mean."""
    return (
        "<p class='soft'>● a member came, ‖ it left or was replaced, ✕ it was removed; a hollow bar is the time "
        f"for which a {words.change} waited for it.</p>"
    )


def rebalance_blocks(
    timeline: GroupTimeline, names: MemberNames, clock: Clock, words: HistoryWords, drawn: int
) -> Iterator[str]:
    """The rebalances, the longest first; the first `drawn` with a drawing of their own."""
    shown = longest_first(timeline)[:MAX_REBALANCES]
    for number, rebalance in enumerate(shown):
        told = " ".join(rebalance_sentences(rebalance, timeline.last, names, words))
        heading = f"{clock.time(rebalance.began)}: {rebalance_heading(rebalance, timeline.last, words)}"
        drawing = rebalance_drawing(rebalance, timeline, names, clock, words) if number < drawn else ""
        yield fold(heading, f"<p>{clean(told)}</p>", drawing, is_open=number == 0)
    if len(shown) < timeline.rebalance_count:
        yield f"<p>{count_of(timeline.rebalance_count - len(shown), f'shorter {words.change}')} not told.</p>"


def rebalance_drawing(
    rebalance: TimelineRebalance, timeline: GroupTimeline, names: MemberNames, clock: Clock, words: HistoryWords
) -> str:
    """The drawing of one rebalance, with a little of what was before and after; "" of a momentary one."""
    if rebalance.duration(timeline.last) < MIN_DRAWN_MS:
        return ""
    margin = max(1, rebalance.duration(timeline.last) // 10)
    end = timeline.last if rebalance.ended is None else rebalance.ended
    window = (max(timeline.first, rebalance.began - margin), min(timeline.last, end + margin))
    title = f"The {words.change} at {clock.time(rebalance.began)}"
    return scroll_box(draw_timeline(timeline, names, clock, title, window, words), title)


def members_block(timeline: GroupTimeline, names: MemberNames, clock: Clock) -> str:
    """The members, present ones first."""
    owned: dict[str, int] = {}
    for partition in timeline.partitions:
        if partition.owner is not None:
            owned[partition.owner] = owned.get(partition.owner, 0) + 1
    members = [*timeline.members, *reversed(timeline.past_members)]
    rows = (member_cells(member, owned, names, clock) for member in members[:MAX_MEMBERS])
    more = len(members) - MAX_MEMBERS
    gone = departure_words(timeline, names)
    told = f"<p>{clean(gone)}.</p>" if gone else ""
    told += f"<p>{count_of(more, 'more member')} not told.</p>" if more > 0 else ""
    title = f"{count_of(len(timeline.members), 'member')}, {sum(count for _, count in timeline.departures)} went"
    return fold(title, told, table(MEMBER_COLUMNS, rows, aria_label="members")) if members else ""


def member_cells(member: MemberSpan, owned: dict[str, int], names: MemberNames, clock: Clock) -> list[str]:
    """A member's row: its ids, its partitions, the times of its stay, and the cause of its end."""
    return [
        clean(member.member),
        clean(member.instance or "-"),
        str(owned.get(member.member, "-")) if member.until is None else "-",
        clean(clock.time(member.since)) if member.since is not None else "before",
        clean(clock.time(member.until)) if member.until is not None else "-",
        clean(describe_cause(member.end, names)) if member.end is not None else "",
    ]


def offsets_block(timeline: GroupTimeline, names: MemberNames) -> str:
    """The offsets, with the columns of Kafka's own tool."""
    if not timeline.partitions:
        return ""
    rows = []
    for each in timeline.partitions:
        numbers = ("-" if number is None else str(number) for number in (each.committed, each.log_end, each.lag))
        rows.append([clean(each.topic), str(each.partition), *numbers, clean(each.owner or "-")])
    more = timeline.partition_count - len(timeline.partitions)
    told = f"<p>{count_of(more, 'more partition')} not told.</p>" if more else ""
    title = f"{count_of(timeline.partition_count, 'partition')}"
    return fold(title, table(OFFSET_COLUMNS, rows, aria_label="offsets"), told)


def limits_section(histories: Sequence[TraceHistory]) -> str:
    """What the traces do not show."""
    limits = dict.fromkeys(limit for history in histories for limit in history.limits)
    items = "".join(f"<li>{clean(limit)}</li>" for limit in limits)
    return section("limits", "What is not shown", f"<ul>{items}</ul>" if items else "")


def verdict_section(report: Report, question: str) -> str:
    """The report on the traces: what the protocol says of them."""
    outcome = section("verdict", question, f"<p>{clean(outcome_line(report))}</p>")
    return "\n".join(filter(None, (outcome, sections.detail_sections(report))))
