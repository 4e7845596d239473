"""What happened to the groups of recorded traces as a document: the longest rebalances first, then the report."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fencepost.conformance.reports.document import (
    NEW_LINE,
    RICH_MEDIA,
    Block,
    Bullets,
    Diagram,
    Document,
    Fold,
    Headline,
    Medium,
    Only,
    Paragraph,
    Part,
    Section,
    Span,
    Style,
    Table,
    Text,
)
from fencepost.conformance.reports.incident_words import (
    MAX_NAMED,
    Clock,
    HistoryWords,
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
    words_of,
)
from fencepost.conformance.reports.report import describe_report, detail_sections
from fencepost.conformance.reports.timeline import draw_groups, draw_timeline, lively_window
from fencepost.conformance.reports.words import outcome_line
from fencepost.conformance.results import Report, Verdict
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.history.builder import GroupTimeline, MemberSpan, PartitionLag, TimelineRebalance, TraceHistory

MAX_GROUPS = 5
"""How many groups are told in full, and how many traces are named."""
MAX_OPEN = 3
"""How many of the groups are not folded, and have drawings of their longest rebalances."""
MAX_GROUP_LINES = 20
MAX_REBALANCES = 5
"""How many rebalances of a group are told everywhere; a page has the next ones folded away."""
MAX_FOLDED = 15
MAX_DRAWN = 3
"""How many rebalances of a group have a drawing of their own."""
MIN_DRAWN_MS = 10
"""A rebalance that took less has nothing to draw."""
SAME_SHARE = 0.8
"""From which share of the group's picture on a rebalance needs no picture of its own."""
MAX_PARTITIONS = 10
"""How many partitions are told everywhere, those that are furthest behind; a page has all of them."""
MAX_MEMBERS = 50
"""How many members, present and past, are in the table of a group."""
MAX_GROUP_ROWS = 500
MAX_MOMENTS = 1_000
"""How many moments a page has, those around the longest rebalances."""
STATE_COLUMNS = ("GROUP", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
TIME_COLUMNS = ("longest", "in all", "without an owner")
MOMENT_COLUMNS = ("time", "group", "what happened", "lines of the log")
MEMBER_COLUMNS = ("CONSUMER-ID", "GROUP-INSTANCE-ID", "#PARTITIONS", "came", "went", "why")
OFFSET_COLUMNS = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID")
"""The columns of `kafka-consumer-groups.sh --describe` that a trace can fill."""


@dataclass(frozen=True, slots=True)
class GroupStory:
    """The timeline of a group with its place among the groups, and with the words to tell it in."""

    place: int
    timeline: GroupTimeline
    names: MemberNames
    clock: Clock
    words: HistoryWords

    @property
    def title(self) -> str:
        """The name of the group."""
        return f"Group {self.timeline.group}"

    @property
    def summary(self) -> str:
        """The group in a line."""
        return group_summary(self.timeline, self.words)


def describe_incident(histories: Sequence[TraceHistory], report: Report) -> Document:
    """The document of the groups in some traces, with the report on the traces at its end."""
    title = f"Fencepost: {history_headline(histories)}"
    return Document(title, (*history_blocks(histories), *verdict_blocks(report, words_of(histories).question)))


def verdict_blocks(report: Report, question: str) -> Iterator[Block]:
    """What the protocol says of the traces: on a terminal a line if nothing is wrong, else the whole report."""
    outcome = outcome_line(report)
    if any(result.verdict is Verdict.FAIL for result in report.results) or report.unclassified:
        yield Only(Medium.TERMINAL, describe_report(report).blocks)
    else:
        yield Only(Medium.TERMINAL, (Headline(f"{outcome} Each requirement: fencepost judge TRACE."),))
    yield Only(RICH_MEDIA, (Section("verdict", question, (Paragraph(outcome),)), *detail_sections(report)))


def history_blocks(histories: Sequence[TraceHistory]) -> Iterator[Block]:
    """The groups: those with a rebalance that is not over first, then by the longest rebalance."""
    pairs = [
        (history, clock, timeline)
        for history, clock in ((each, Clock(each.began)) for each in histories)
        for timeline in history.groups
    ]
    pairs.sort(key=lambda found: (found[2].open_rebalance is None, -found[2].longest))
    stories = [
        GroupStory(place, timeline, names_in(timeline), clock, words_of([history]))
        for place, (history, clock, timeline) in enumerate(pairs)
    ]
    others = sum(history.other_groups for history in histories)
    yield Part("", (Headline(history_headline(histories)), Bullets(tuple(source_lines(histories)))))
    if stories:
        yield Only(Medium.PAGE, (groups_section(stories, others), *moments_sections(histories, stories)))
    for story in stories[:MAX_GROUPS]:
        fold = Fold.NEVER if story.place < MAX_OPEN else Fold.CLOSED
        part = Part(f"{story.title}: {story.summary}", tuple(group_blocks(story)), fold)
        yield Section(f"group-{story.place}", story.title, (part,))
    if rest := stories[MAX_GROUPS:]:
        lines = [f"{story.timeline.group}: {story.summary}" for story in rest[:MAX_GROUP_LINES]]
        more = len(rest) - len(lines) + others
        lines += [f"and {more:,} more"] if more else []
        yield Only(Medium.TERMINAL | Medium.SUMMARY, (Part("Other groups", (Bullets(tuple(lines)),)),))
    if limits := dict.fromkeys(limit for history in histories for limit in history.limits):
        which = "these traces do" if len(histories) > 1 else "this trace does"
        yield Section("limits", f"What {which} not show", tuple(map(Paragraph, limits)), is_titled=True)


def source_lines(histories: Sequence[TraceHistory]) -> Iterator[Text]:
    """Where the histories come from."""
    for history in histories[:MAX_GROUPS]:
        start = Clock(history.began).start()
        seen = f"{count_of(history.events, 'event')} in {format_span(history.duration)}"
        told = f": {words_of([history]).seen_by[history.kind]}, {seen}{f' from {start}' if start else ''}"
        yield Span(history.path, Style.STRONG), told
    if len(histories) > MAX_GROUPS:
        yield f"and {len(histories) - MAX_GROUPS} more traces"


def groups_section(stories: Sequence[GroupStory], others: int) -> Section:
    """All groups on one axis of time, and in a table with the columns of Kafka's own tool."""
    change = stories[0].words.change
    rows = tuple(map(group_cells, stories[:MAX_GROUP_ROWS]))
    table = Table("groups", (*STATE_COLUMNS, f"{change}s", *TIME_COLUMNS), rows)
    drawn = sorted((story.timeline for story in stories[:MAX_GROUP_LINES]), key=lambda each: lively_window(each)[0])
    picture = Diagram("all groups", partial(draw_groups, drawn, stories[0].clock, stories[0].words))
    is_one = len({story.clock for story in stories}) == 1 < len(stories)
    more = max(0, len(stories) - MAX_GROUP_ROWS) + others
    told = (Paragraph(f"{count_of(more, 'more group')} with shorter {change}s are left out."),) if more else ()
    owner = f"Without an owner: the share of the time in which the group was empty or in a {change}."
    legend = Paragraph(Span(owner, Style.SOFT))
    return Section("groups", "All groups", (*((picture,) if is_one else ()), table, legend, *told))


def moments_sections(histories: Sequence[TraceHistory], stories: Sequence[GroupStory]) -> Iterator[Section]:
    """All that happened to the groups in the order of time, to be searched by a time of day."""
    lines = {history.path: log_lines(history) for history in histories}
    found = [
        (time, story, what)
        for story in stories
        for rebalance in longest_first(story.timeline)[: MAX_REBALANCES + MAX_FOLDED]
        for time, what in moments_of(rebalance, story)
    ][:MAX_MOMENTS]
    found.sort(key=lambda each: each[0])
    paths = {id(timeline): history.path for history in histories for timeline in history.groups}
    rows: list[tuple[Text, ...]] = []
    for time, story, what in found:
        told = lines[paths[id(story.timeline)]].get((story.timeline.group, time), ())
        rows.append((story.clock.time(time), story.timeline.group, what, line_cell(told)))
    worst = longest_first(stories[0].timeline)
    if rows and worst:
        shown = MOMENT_COLUMNS if any(row[-1] for row in rows) else MOMENT_COLUMNS[:-1]
        cut = tuple(row[: len(shown)] for row in rows)
        around = stories[0].clock.time(worst[0].began)
        yield Section("moments", "What happened around", (Table("moments", shown, cut, around=around),))


def line_cell(lines: Sequence[str]) -> Text:
    """Lines of a log below each other in a cell."""
    spans = (span for line in lines[:MAX_NAMED] for span in (NEW_LINE, Span(line, Style.CODE)))
    return tuple(spans)[1:]


def moments_of(rebalance: TimelineRebalance, story: GroupStory) -> Iterator[tuple[int, str]]:
    """The times of a rebalance, with what happened then: its beginning, who came back or went, its phases."""
    names, words = story.names, story.words
    yield rebalance.began, f"A {words.change} begins: {describe_cause(rebalance.cause, names)}"
    for member, time in rebalance.back:
        yield time, f"{names.name(member)} joins"
    spans = {each.member: each for each in (*story.timeline.members, *story.timeline.past_members)}
    for member, cause in rebalance.gone:
        span = spans.get(member)
        if span is not None and span.until is not None and member not in rebalance.cause.members:
            yield span.until, f"{describe_cause(cause, names)}, and is no member any more"
    if rebalance.joined is not None:
        round = f": {words.round} {rebalance.generation}" if rebalance.generation is not None else ""
        yield rebalance.joined, f"The {words.phases[0].lower()} is over after {took(rebalance)}{round}"
    if rebalance.ended is not None:
        yield rebalance.ended, f"The {words.change} is over: {words.state(rebalance.phase)}"


def took(rebalance: TimelineRebalance) -> str:
    """How long the first phase of a rebalance took."""
    return format_span((rebalance.joined or rebalance.began) - rebalance.began)


def log_lines(history: TraceHistory) -> dict[tuple[str, int], tuple[str, ...]]:
    """What the lines of a log say of a group at a time, each with its number; nothing for a trace of something else."""
    found: dict[tuple[str, int], tuple[str, ...]] = {}
    for event in open_trace(Path(history.path))[1] if history.kind == "log" else ():
        body = event.body
        if (line := body.get("line")) is not None:
            told = " ".join(str(body[name]) for name in ("step", "member", "generation", "reason") if name in body)
            key = str(body.get("group")), event.time
            found[key] = (*found.get(key, ()), f"{line}: {told}")
    return found


def unowned_share(timeline: GroupTimeline) -> str:
    """The share of the time in which no member can have a partition: the group was empty, or in a rebalance."""
    since, until = lively_window(timeline)
    empty = (
        max(0, min(each.until, until) - max(each.since, since))
        for each in timeline.spans
        if each.phase in ("Empty", "Dead")
    )
    return f"{min(1.0, (timeline.rebalance_time + sum(empty)) / max(1, until - since)):.1%}"


def group_cells(story: GroupStory) -> tuple[Text, ...]:
    """A group's row: name, protocol, state, members, and the number and times of its rebalances."""
    timeline = story.timeline
    href = f"#group-{story.place}" if story.place < MAX_GROUPS else ""
    return (
        Span(timeline.group or "(empty id)", href=href),
        timeline.protocol or "-",
        story.words.state(timeline.phase),
        str(len(timeline.members)) if timeline.phase else "-",
        f"{timeline.rebalance_count:,}",
        format_span(timeline.longest) if timeline.rebalance_count else "-",
        format_span(timeline.rebalance_time) if timeline.rebalance_count else "-",
        unowned_share(timeline) if timeline.rebalance_count else "-",
    )


def group_blocks(story: GroupStory) -> Iterator[Block]:
    """A group: its drawing, its rebalances, its members and its offsets."""
    timeline, names, clock, change = story.timeline, story.names, story.clock, story.words.change
    legend = (
        "● a member came, ‖ it left or was replaced, ✕ it was removed; a hollow bar is the time for which a "
        f"{change} waited for it."
    )
    drawing = partial(draw_timeline, timeline, names, clock, f"Timeline of {story.title}", words=story.words)
    yield Only(Medium.PAGE, (Diagram(f"timeline of {story.title}", drawing), Paragraph(Span(legend, Style.SOFT))))
    ordered = longest_first(timeline)
    shown, folded = ordered[:MAX_REBALANCES], ordered[MAX_REBALANCES : MAX_REBALANCES + MAX_FOLDED]
    if len(shown) < timeline.rebalance_count:
        yield Paragraph(f"The longest {len(shown)}:")
    for number, rebalance in enumerate(shown):
        yield rebalance_part(story, rebalance, number)
    rest: tuple[Block, ...] = tuple(rebalance_part(story, each, MAX_DRAWN) for each in folded)
    if more := timeline.rebalance_count - len(shown) - len(folded):
        rest += (Paragraph(f"{count_of(more, f'shorter {change}')} not told."),)
    if rest:
        title = count_of(timeline.rebalance_count - len(shown), f"shorter {change}")
        yield Only(Medium.PAGE, (Part(title, rest, Fold.CLOSED),))
    if gone := departure_words(timeline):
        yield Paragraph(f"Members that went: {gone}.")
    for time, limit in timeline.limits:
        yield Paragraph(f"From {clock.time(time)} on {limit}.")
    yield Only(Medium.PAGE, tuple(member_parts(story)))
    yield from offset_blocks(story)


def rebalance_part(story: GroupStory, rebalance: TimelineRebalance, number: int) -> Part:
    """A rebalance in words, and with a drawing if it is one of the longest of its group."""
    timeline, words = story.timeline, story.words
    heading = f"{story.clock.time(rebalance.began)}  {rebalance_heading(rebalance, timeline.last, words)}"
    told = Paragraph(" ".join(rebalance_sentences(rebalance, timeline.last, story.names, words)))
    fold = Fold.OPEN if number == 0 else Fold.CLOSED
    if story.place >= MAX_OPEN or number >= MAX_DRAWN or rebalance.duration(timeline.last) < MIN_DRAWN_MS:
        return Part(heading, (told,), fold)
    margin = max(1, rebalance.duration(timeline.last) // 10)
    end = timeline.last if rebalance.ended is None else rebalance.ended
    window = (max(timeline.first, rebalance.began - margin), min(timeline.last, end + margin))
    whole = lively_window(timeline)
    if window[1] - window[0] > SAME_SHARE * (whole[1] - whole[0]):
        return Part(heading, (told,), fold)
    title = f"The {words.change} at {story.clock.time(rebalance.began)}"
    drawing = partial(draw_timeline, timeline, story.names, story.clock, title, window, words)
    return Part(heading, (told, Only(Medium.PAGE, (Diagram(title, drawing),))), fold)


def member_parts(story: GroupStory) -> Iterator[Part]:
    """The members, present ones first."""
    timeline = story.timeline
    owned = Counter(partition.owner for partition in timeline.partitions)
    members = [*timeline.members, *reversed(timeline.past_members)]
    if members:
        rows = tuple(member_cells(member, owned[member.member], story) for member in members[:MAX_MEMBERS])
        title = f"{count_of(len(timeline.members), 'member')}, {sum(count for _, count in timeline.departures)} went"
        more = len(members) - MAX_MEMBERS
        told = (Paragraph(f"{count_of(more, 'more member')} not told."),) if more > 0 else ()
        yield Part(title, (*told, Table("members", MEMBER_COLUMNS, rows)), Fold.CLOSED)


def member_cells(member: MemberSpan, owned: int, story: GroupStory) -> tuple[Text, ...]:
    """A member's row: its ids, its partitions, the times of its stay, and the cause of its end."""
    return (
        member.member,
        member.instance or "-",
        str(owned) if owned and member.until is None else "-",
        story.clock.time(member.since) if member.since is not None else "before",
        story.clock.time(member.until) if member.until is not None else "-",
        describe_cause(member.end, story.names) if member.end is not None else "",
    )


def offset_blocks(story: GroupStory) -> Iterator[Block]:
    """The partitions that are furthest behind, as Kafka's own tool shows them; a page has all, folded away."""
    timeline = story.timeline
    if not timeline.partitions:
        return
    behind = sorted(timeline.partitions, key=lambda each: -(each.lag or 0))[:MAX_PARTITIONS]
    yield Table("offsets", OFFSET_COLUMNS, tuple(offset_cells(each, story.names) for each in behind))
    if len(behind) < timeline.partition_count:
        yield Paragraph(f"and {timeline.partition_count - len(behind):,} more partitions")
    if len(behind) < len(timeline.partitions):
        rows = tuple(offset_cells(each, story.names) for each in timeline.partitions)
        title = count_of(len(rows), "partition")
        yield Only(Medium.PAGE, (Part(title, (Table("all offsets", OFFSET_COLUMNS, rows),), Fold.CLOSED),))


def offset_cells(partition: PartitionLag, names: MemberNames) -> tuple[Text, ...]:
    """The cells of a partition; what is not shown is a dash, as in Kafka's own tool."""
    numbers = (partition.committed, partition.log_end, partition.lag)
    owner = names.name(partition.owner) if partition.owner is not None else "-"
    told = ("-" if number is None else str(number) for number in numbers)
    return partition.topic, str(partition.partition), *told, owner
