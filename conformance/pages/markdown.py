"""The report as Markdown, for the summary of a job of continuous integration: diagrams are Mermaid."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fencepost.conformance.analysis.causes import Cause, find_causes
from fencepost.conformance.diagrams.excerpt import draw_excerpt, read_excerpt
from fencepost.conformance.diagrams.mermaid import to_mermaid
from fencepost.conformance.reports.comparison import NO_CHANGE, describe_changes, name_of
from fencepost.conformance.reports.document import count_tiers
from fencepost.conformance.reports.ending import describe_ending
from fencepost.conformance.reports.layout import escape_unprintable
from fencepost.conformance.reports.text import fold_ids, outcome_line
from fencepost.conformance.results import Failure, Report, RequirementResult, Verdict
from fencepost.model.catalogue.requirement import Requirement

MAX_SHOWN = 20
"""How many causes are shown with their diagrams: code hosts take a summary of 1 MiB at most."""
SPECIAL = re.compile(r"[<>&\"'|`*_\[\]~#@\\:!]")
"""Characters that Markdown or HTML could take for syntax."""
OPEN = (Verdict.INCONCLUSIVE, Verdict.KNOWN, Verdict.UNSUPPORTED, Verdict.NOT_OBSERVED)
"""The verdicts that are listed with their reasons, folded."""


def to_markdown(report: Report) -> str:
    """The report as Markdown text that ends in a newline."""
    blocks = [f"## {escape(outcome_line(report))}", target_line(report), tier_table(report)]
    if report.ended is not None:
        blocks.append(f"The run was cut short: {escape(describe_ending(report.ended))}")
    requirements, causes = report.specification.requirements, find_causes(report.results)
    by_id = {result.id: result for result in report.results}
    blocks += (cause_block(cause, requirements, by_id) for cause in causes[:MAX_SHOWN])
    if len(causes) > MAX_SHOWN:
        blocks.append(f"{len(causes) - MAX_SHOWN} more causes are in the report.")
    blocks += (fold("Violation that no requirement speaks of", failure_lines(each)) for each in report.unclassified)
    for verdict in OPEN:
        blocks += reason_block(verdict, [r for r in report.results if r.verdict is verdict], requirements)
    if report.members is not None:
        blocks += member_blocks(report.members)
    blocks.append(origin_line(report))
    return "\n\n".join(blocks) + "\n"


def member_blocks(members: Report) -> Iterator[str]:
    """What the members of recorded groups did wrong."""
    requirements, by_id = members.specification.requirements, {result.id: result for result in members.results}
    yield f"### {escape(members.target['name'].capitalize())}"
    yield escape(outcome_line(members))
    yield from (cause_block(cause, requirements, by_id) for cause in find_causes(members.results)[:MAX_SHOWN])


def to_comparison_markdown(old: Report, new: Report) -> str:
    """The report as Markdown text, with what changed since an older one; ends in a newline."""
    rows = [f"| {label} | {escape(ids)} |" for label, ids in describe_changes(old, new)]
    told = "\n".join(["| | requirements |", "|---|---|", *rows]) if rows else NO_CHANGE
    return f"{to_markdown(new)}\n### Since {escape(name_of(old))}\n\n{told}\n"


def target_line(report: Report) -> str:
    """The target in a line."""
    name = escape(report.target["name"])
    others = [f"{escape(key)} {escape(value)}" for key, value in report.target.items() if key != "name"]
    return f"Target: **{name}**" + (f" ({', '.join(others)})" if others else "")


def tier_table(report: Report) -> str:
    """How many requirements of each tier got each verdict."""
    rows = [["tier", "requirements", *map(str, Verdict)], ["---", *["---:"] * (len(Verdict) + 1)]]
    for tier, counts in count_tiers(report).items():
        rows.append([tier, str(sum(counts.values())), *(str(counts.get(str(verdict), 0)) for verdict in Verdict)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def cause_block(cause: Cause, requirements: Mapping[str, Requirement], results: Mapping[str, RequirementResult]) -> str:
    """A cause: the failure that shows it best and the requirements that it violates."""
    first, *others = cause.requirements
    shown = requirements[first]
    lines = [f"**{first}** {shown.level}: {escape(shown.sentence)}", f"Source: {escape(shown.source)}"]
    if results[first].comment:
        lines.append(f"Note: {escape(results[first].comment)}")
    if cause.failure is not None:
        lines += failure_lines(cause.failure)
    if others:
        lines.append(
            "Violated by the same: " + "; ".join(f"**{id}** {escape(requirements[id].title)}" for id in others)
        )
    return fold(f"{', '.join(cause.requirements[:4])}: {cause.title}", lines, is_open=True)


def failure_lines(failure: Failure) -> Iterator[str]:
    """A failure: the wrong fields, the false guard, the diagram or the schedule, and how to replay it."""
    if failure.differences:
        rows = [["field", "expected", "observed"], ["---", "---", "---"]]
        rows += [[escape(each.label), escape(each.expected), escape(each.observed)] for each in failure.differences]
        yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
    else:
        yield f"Observed: {escape(failure.observed)}"
    for label, text in (("False guard", failure.guard), ("State", failure.state)):
        if text:
            yield f"{label}: {escape(text)}"
    excerpt = read_excerpt(failure)
    if excerpt is not None:
        yield f"```mermaid\n{to_mermaid(draw_excerpt(excerpt, failure.step))}```"
    elif failure.schedule:
        yield "\n".join(f"{number}. {escape(step)}" for number, step in enumerate(failure.schedule, 1))
    if failure.replay:
        yield f"Replay: <code>{escape(failure.replay)}</code>"


def reason_block(
    verdict: Verdict, results: Sequence[RequirementResult], requirements: Mapping[str, Requirement]
) -> Iterator[str]:
    """The requirements with this verdict by their reasons, folded."""
    if not results:
        return
    by_reason: dict[str, list[str]] = {}
    for result in results:
        by_reason.setdefault(result.comment or str(verdict), []).append(result.id)
    lines = [f"- {escape(fold_ids(ids, requirements))}: {escape(reason)}" for reason, ids in by_reason.items()]
    yield fold(f"{len(results)} {verdict}", ["\n".join(lines)])


def origin_line(report: Report) -> str:
    """Where the report comes from."""
    words = [f"Fencepost, {len(report.results)} requirements, seed {report.seed}, {report.seconds:g} s"]
    if report.provenance is not None:
        words.append(f"started {report.provenance.started}")
        if report.provenance.plan is not None:
            words.append(f"<code>{escape(' '.join(report.provenance.plan.command))}</code>")
    return f"<sub>{', '.join(words)}</sub>"


def fold(title: str, lines: Iterable[str], *, is_open: bool = False) -> str:
    """A block that can be folded."""
    body = "\n\n".join(lines)
    return f"<details{' open' if is_open else ''}><summary>{escape(title)}</summary>\n\n{body}\n\n</details>"


def escape(text: str) -> str:
    """The text with nothing in it that Markdown or HTML would read."""
    return SPECIAL.sub(lambda found: f"&#{ord(found[0])};", escape_unprintable(text))
