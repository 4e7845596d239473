"""The history of groups as Markdown, for the summary of a job or for an incident's ticket."""

from collections.abc import Sequence

from fencepost.conformance.pages.incident_page import groups_by_severity
from fencepost.conformance.pages.markdown import escape
from fencepost.conformance.reports.history_words import words_of
from fencepost.conformance.reports.incident_words import (
    Clock,
    group_summary,
    history_headline,
    longest_first,
    names_in,
    rebalance_heading,
    rebalance_sentences,
)
from fencepost.traces.history.timeline import TraceHistory

MAX_GROUPS = 10
MAX_REBALANCES = 3
"""How many groups are told, and how many rebalances of each."""


def to_incident_markdown(histories: Sequence[TraceHistory], summary: str) -> str:
    """The histories as Markdown, followed by the summary of the report."""
    groups = groups_by_severity(histories)
    blocks = [f"## {escape(history_headline(histories))}"]
    for history, timeline in groups[:MAX_GROUPS]:
        names, clock, words = names_in(timeline), Clock(history.began), words_of([history])
        blocks.append(f"### {escape(f'Group {timeline.group}')}\n\n{escape(group_summary(timeline, words))}.")
        blocks += (
            f"- **{escape(clock.time(each.began))}** {escape(rebalance_heading(each, timeline.last, words))}. "
            + escape(" ".join(rebalance_sentences(each, timeline.last, names, words)))
            for each in longest_first(timeline)[:MAX_REBALANCES]
        )
    limits = dict.fromkeys(limit for history in histories for limit in history.limits)
    if limits:
        blocks.append("\n".join(["Not shown:", "", *(f"- {escape(limit)}" for limit in limits)]))
    return "\n\n".join([*blocks, summary])
