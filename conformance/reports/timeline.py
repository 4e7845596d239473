"""The history of a group as inline SVG: a band of phases, and the life of each member below it.

Places on the axis of time are percentages, so that a page can make a drawing as wide as it wants; text stays readable.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fencepost.conformance.reports.html import clean
from fencepost.conformance.reports.incident_words import (
    CLASSIC_WORDS,
    Clock,
    HistoryWords,
    MemberNames,
    describe_cause,
    format_span,
)
from fencepost.traces.history.builder import CauseKind, GroupTimeline, MemberSpan, TimelineRebalance

WIDTH = 960
"""The width where nothing else is wanted."""
AXIS_Y, BAND_Y, BAND_HEIGHT, ROW, FIRST_ROW = 14, 40, 26, 32, 92
MAX_MEMBERS = 20
"""How many members are drawn."""
MAX_WAITED = 20
"""Of how many rebalances, the longest, it is drawn for whom they waited."""
GROUP_ROW = 50
TICKS = 16
"""Of which a page shows as many as there is room for: every eighth, every fourth, or all."""
MIN_WIDTH = 0.1
"""The narrowest that a rebalance is drawn, in percent."""
ROOMY = 12.0
"""From which width on, in percent, a band has room for its label everywhere."""
MAX_NAME = 24
FAILURES = frozenset(
    {
        CauseKind.SESSION,
        CauseKind.NOT_BACK,
        CauseKind.NO_SYNC,
        CauseKind.UNKNOWN_TO_COORDINATOR,
        CauseKind.CLOSED,
        CauseKind.CRASHED,
    }
)
"""Ends of a membership that the member did not ask for."""


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Places times from `since` to `until`, in milliseconds, on the drawing."""

    since: int
    until: int

    def x(self, time: int) -> float:
        """The place of a time in percent; times outside are at the edges."""
        return 100 * (min(max(time, self.since), self.until) - self.since) / max(1, self.until - self.since)

    def shows(self, since: int, until: int) -> bool:
        """Whether any of this time is on the drawing."""
        return since <= self.until and until >= self.since


def draw_timeline(
    timeline: GroupTimeline,
    names: MemberNames,
    clock: Clock,
    title: str,
    window: tuple[int, int] | None = None,
    words: HistoryWords = CLASSIC_WORDS,
) -> str:
    """The timeline as an SVG element, of the whole history or of a window of it."""
    scale = TimeScale(*(window or lively_window(timeline)))
    members = shown_members(timeline, scale)
    rebalances = [each for each in timeline.rebalances if scale.shows(each.began, end_of(each, timeline))]
    drawn = members[:MAX_MEMBERS]
    height = FIRST_ROW + ROW * len(drawn) + (ROW if len(members) > len(drawn) else 0)
    parts = [
        *opening_elements(scale, clock, height, title, f"The {words.change}s follow in words."),
        *phase_elements(timeline, scale, words),
    ]
    for rebalance in rebalances:
        parts += rebalance_elements(rebalance, timeline, scale, height, words)
    waited = sorted(rebalances, key=lambda each: -each.duration(timeline.last))[:MAX_WAITED]
    for number, member in enumerate(drawn):
        parts += member_elements(member, waited, scale, names, FIRST_ROW + ROW * number)
    if len(members) > len(drawn):
        more = f"{len(members) - len(drawn)} more members are not drawn"
        parts.append(f'<text class="soft" y="{height - 7}">{more}</text>')
    return "".join([*parts, "</svg>"])


def draw_groups(timelines: Sequence[GroupTimeline], clock: Clock, words: HistoryWords = CLASSIC_WORDS) -> str:
    """The groups of a trace on one axis of time, as an SVG element: their rebalances, and who was settled when."""
    windows = [lively_window(each) for each in timelines]
    scale = TimeScale(min(since for since, _ in windows), max(until for _, until in windows))
    height = BAND_Y + GROUP_ROW * len(timelines)
    parts = list(opening_elements(scale, clock, height, "All groups", f"The groups with their {words.change}s."))
    for number, timeline in enumerate(timelines):
        y = BAND_Y + GROUP_ROW * number
        spans = [(span.phase, span.since, span.until) for span in timeline.spans if span.phase]
        spans += [("Preparing", each.began, end_of(each, timeline)) for each in timeline.rebalances]
        for phase, since, until in spans:
            if scale.shows(since, until):
                title = f"{timeline.group}: {words.band(phase)}, {format_span(until - since)}"
                parts += band("", phase, since, until, scale, title, y=y)
        parts.append(name_element(timeline.group, y))
    return "".join([*parts, "</svg>"])


def lively_window(timeline: GroupTimeline) -> tuple[int, int]:
    """The time in which something happened to the group: one that is empty or gone in the end is not drawn to there."""
    if timeline.members or timeline.open_rebalance is not None or not timeline.rebalances:
        return timeline.first, timeline.last
    begun = min(each.began for each in timeline.rebalances)
    over = max(end_of(each, timeline) for each in timeline.rebalances)
    over = max([over, *(each.until or 0 for each in timeline.past_members)])
    margin = max(1, (over - begun) // 10)
    return max(timeline.first, begun - margin), min(timeline.last, over + margin)


def end_of(rebalance: TimelineRebalance, timeline: GroupTimeline) -> int:
    """When a rebalance ended, or the trace."""
    return timeline.last if rebalance.ended is None else rebalance.ended


def shown_members(timeline: GroupTimeline, scale: TimeScale) -> list[MemberSpan]:
    """The members in the window: present ones first in the order of coming, then those that went, the last first."""
    past = [each for each in reversed(timeline.past_members) if scale.shows(each.since or 0, each.until or 0)]
    present = [each for each in timeline.members if (each.since or 0) <= scale.until]
    return [*present, *past]


def opening_elements(scale: TimeScale, clock: Clock, height: int, title: str, told: str) -> Iterator[str]:
    """The beginning of a drawing: what it is, and the axis of time. A page finds a time of day by the attributes."""
    zero = "" if clock.began is None else f' data-zero="{clock.time_of_day()}"'
    size = f'width="{WIDTH}" height="{height}" data-since="{scale.since}" data-until="{scale.until}"{zero}'
    yield f'<svg class="timeline" {size} role="img"><title>{clean(title)}</title><desc>{clean(told)}</desc>'
    ticks = min(TICKS, max(1, scale.until - scale.since))
    for number in range(ticks + 1):
        time = scale.since + (scale.until - scale.since) * number // ticks
        x = f"{scale.x(time):.2f}%"
        anchor = "start" if number == 0 else "end" if number == ticks else "middle"
        label = clean(clock.tick(time, scale.until - scale.since))
        kind = "" if number % 8 == 0 else " mid" if number % 4 == 0 else " fine"
        yield f'<line class="lane{kind}" x1="{x}" x2="{x}" y1="{AXIS_Y + 6}" y2="{height}"/>'
        yield f'<text class="time{kind}" x="{x}" y="{AXIS_Y}" text-anchor="{anchor}">{label}</text>'


def name_element(name: str, y: int) -> str:
    """A name at the left edge, above what is drawn at this height."""
    short = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
    return f'<text class="row-name" y="{y - 4}">{clean(short)}</text>'


def phase_elements(timeline: GroupTimeline, scale: TimeScale, words: HistoryWords) -> Iterator[str]:
    """The band of phases, without the rebalances."""
    yield name_element("group", BAND_Y)
    for span in timeline.spans:
        if span.phase and scale.shows(span.since, span.until):
            label = f"{words.band(span.phase)} {words.round_mark}{span.generation}"
            title = f"{label}, {format_span(span.until - span.since)}"
            yield from band(label, span.phase, span.since, span.until, scale, title)


def band(
    label: str, phase: str, since: int, until: int, scale: TimeScale, title: str, mark: str = "", y: int = BAND_Y
) -> Iterator[str]:
    """A part of a band of phases, with its label where there is room."""
    x, width = scale.x(since), max(MIN_WIDTH, scale.x(until) - scale.x(since))
    yield f'<svg x="{x:.2f}%" y="{y}" width="{width:.2f}%" height="{BAND_HEIGHT}"><title>{clean(title)}</title>'
    yield f'<rect class="phase-{clean(phase.lower())}{mark}" width="100%" height="100%"/>'
    if label:
        hidden = "" if width >= ROOMY else ' visibility="hidden"'
        yield f'<text class="phase-name" x="4" y="17"{hidden}>{clean(label)}</text>'
    yield "</svg>"


def rebalance_elements(
    rebalance: TimelineRebalance, timeline: GroupTimeline, scale: TimeScale, height: int, words: HistoryWords
) -> Iterator[str]:
    """A rebalance in the band, and a line down to the members where it began."""
    end = end_of(rebalance, timeline)
    joined = end if rebalance.joined is None else rebalance.joined
    mark = " stuck" if rebalance.ended is None else ""
    x = f"{scale.x(rebalance.began):.2f}%"
    yield f'<line class="began" x1="{x}" x2="{x}" y1="{BAND_Y}" y2="{height}"/>'
    first = words.band("Preparing")
    title = f"{first}, {format_span(joined - rebalance.began)}"
    yield from band(first, "Preparing", rebalance.began, joined, scale, title, mark)
    if rebalance.joined is not None and end > joined:
        label = f"{words.band('Completing')} {words.round_mark}{rebalance.generation}"
        title = f"{label}, {format_span(end - joined)}"
        yield from band(label, "Completing", joined, end, scale, title, mark)
    if rebalance.ended is None:
        place = f'x="{scale.x(end):.2f}%" y="{BAND_Y + BAND_HEIGHT + 14}" text-anchor="end"'
        yield f'<text class="stuck-label" {place}>not over</text>'


def member_elements(
    member: MemberSpan, rebalances: Sequence[TimelineRebalance], scale: TimeScale, names: MemberNames, y: int
) -> Iterator[str]:
    """The life of a member: dashed while a rebalance waits for it."""
    since = scale.since if member.since is None else member.since
    until = scale.until if member.until is None else member.until
    start, end = f"{scale.x(since):.2f}%", f"{scale.x(until):.2f}%"
    yield f'<g class="member"><title>{clean(member_title(member, names))}</title>'
    yield f'<line x1="{start}" x2="{end}" y1="{y}" y2="{y}"/>'
    for rebalance in rebalances:
        yield from waiting_elements(member, rebalance, scale, y)
    if member.since is not None and member.since >= scale.since:
        yield f'<circle cx="{start}" cy="{y}" r="4"/>'
    if member.until is not None and member.until <= scale.until:
        failed = member.end is not None and member.end.kind in FAILURES
        shape = "l8,8 m0,-8 l-8,8" if failed else "l0,8 m4,-8 l0,8"
        path = f'<path class="{"failed" if failed else "went"}" d="M-4,-4 {shape}"/>'
        yield f'<svg x="{end}" y="{y}" overflow="visible">{path}</svg>'
    yield f"{name_element(names.name(member.member), y - 4)}</g>"


def waiting_elements(member: MemberSpan, rebalance: TimelineRebalance, scale: TimeScale, y: int) -> Iterator[str]:
    """The time for which a rebalance waited for a member to join again."""
    came = member.since is not None and member.since >= rebalance.began
    gone = member.until is not None and member.until <= rebalance.began
    if came or gone or (not rebalance.back and rebalance.ended is not None):
        return
    limits = [each for each in (rebalance.joined, rebalance.ended, member.until) if each is not None]
    back = dict(rebalance.back).get(member.member)
    until = back if back is not None else min(limits, default=scale.until)
    start, end = scale.x(rebalance.began), scale.x(until)
    if end - start >= MIN_WIDTH:
        yield f'<rect class="awaited" x="{start:.2f}%" y="{y - 5}" width="{end - start:.2f}%" height="10"/>'


def member_title(member: MemberSpan, names: MemberNames) -> str:
    """A member in words, for a pointer over it and for a screen reader."""
    instance = f" (instance {member.instance})" if member.instance is not None else ""
    end = f": {describe_cause(member.end, names)}" if member.end is not None else ""
    return f"{member.member}{instance}{end}"
