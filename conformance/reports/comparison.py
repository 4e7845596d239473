"""The comparison of two targets: a page of text, and JSON."""

import json
from dataclasses import asdict

from fencepost.conformance.analysis.comparison import DifferenceKind, TargetComparison, TargetDifference
from fencepost.conformance.reports.document import Bullets, Document, Paragraph, Part
from fencepost.conformance.reports.text import render_text
from fencepost.conformance.results import ExitCode

FORMAT_VERSION = 1
MAX_SHOWN = 12
"""How many differences of a kind are shown."""
TITLES = {
    DifferenceKind.FAULT: "Faults: one of them breaks a requirement",
    DifferenceKind.VERSION: "Versions: of APIs, or of Kafka's releases",
    DifferenceKind.LATITUDE: "Latitude: the protocol leaves it open",
}
OUTCOMES = {
    ExitCode.CONFORMANT: "NO FAULT that the other has not.",
    ExitCode.VIOLATION: "DIFFERENT: one breaks what the other keeps.",
    ExitCode.INCONCLUSIVE: "INCONCLUSIVE: something was left undecided.",
}


def render_comparison(comparison: TargetComparison, *, width: int | None = None) -> str:
    """The differences, a line for each, for a terminal of this width."""
    one, other = comparison.one.report, comparison.other.report
    blocks: list[Part | Paragraph] = [
        Paragraph(f"A: {comparison.one.name}, {one.schedules} schedules"),
        Paragraph(f"B: {comparison.other.name}, {other.schedules} schedules"),
    ]
    for kind, title in TITLES.items():
        found = comparison.of_kind(kind)
        if found:
            more = [f"and {len(found) - MAX_SHOWN} more"] if len(found) > MAX_SHOWN else []
            blocks.append(Part(title, (Bullets((*map(describe_difference, found[:MAX_SHOWN]), *more)),)))
    if comparison.undecided:
        blocks.append(Paragraph(f"Undecided on one of them: {len(comparison.undecided)} requirements"))
    blocks.append(Paragraph(OUTCOMES[comparison.exit_code()]))
    return render_text(Document("", tuple(blocks)), width=width)


def describe_difference(difference: TargetDifference) -> str:
    """A difference in a line."""
    seen = f" ({difference.times} times, as in {difference.where})" if difference.times > 1 else ""
    seen = seen or (f" (in {difference.where})" if difference.where else "")
    return f"{difference.subject} {difference.title}: A {difference.one}; B {difference.other}{seen}"


def comparison_to_json(comparison: TargetComparison) -> str:
    """The comparison as a JSON object, which ends in a newline."""
    document = {
        "fencepost_comparison": FORMAT_VERSION,
        "targets": [dict(comparison.one.report.target), dict(comparison.other.report.target)],
        "exit_code": int(comparison.exit_code()),
        "differences": [asdict(each) for each in comparison.differences],
        "undecided": list(comparison.undecided),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
