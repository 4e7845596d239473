"""Sequence diagrams as Mermaid text, which code hosts draw in job summaries and in Markdown."""

import re
from collections.abc import Iterator

from fencepost.conformance.diagrams.sequence import SequenceDiagram, Step, StepKind, format_duration

COORDINATOR = "C"
_ARROWS = {StepKind.REQUEST: "->>", StepKind.RESPONSE: "-->>", StepKind.NO_RESPONSE: "--x"}
_SPECIAL = re.compile(r"[^\w .,=/()\[\]'+-]|\bend\b")
"""What Mermaid could take for syntax."""


def to_mermaid(diagram: SequenceDiagram) -> str:
    """The diagram as Mermaid text that ends in a newline."""
    lines = ["sequenceDiagram"]
    lines += (f"participant P{number} as {escape(lane)}" for number, lane in enumerate(diagram.lanes))
    lines.append(f"participant {COORDINATOR} as {diagram.target}")
    if diagram.omitted:
        lines.append(f"Note over {COORDINATOR}: {diagram.omitted} earlier steps are left out")
    for place, step in enumerate(diagram.steps):
        if pause := diagram.pause_before(place):
            lines.append(f"Note over {COORDINATOR}: {format_duration(pause)} later")
        lines += step_lines(step)
    return "\n    ".join(lines) + "\n"


def step_lines(step: Step) -> Iterator[str]:
    """The lines of a step."""
    text = escape(f"{step.times} times {step.text}" if step.times > 1 and step.kind is StepKind.REQUEST else step.text)
    if step.kind is StepKind.FAULT:
        yield f"Note over {COORDINATOR}: {text}"
        return
    member = f"P{step.lane}"
    source, target = (member, COORDINATOR) if step.is_to_coordinator else (COORDINATOR, member)
    yield f"{source}{_ARROWS[step.kind]}{target}: {'WRONG ' if step.is_wrong else ''}{text}"


def escape(text: str) -> str:
    """The text with everything as an entity code that is not plain."""
    return _SPECIAL.sub(lambda found: "".join(f"#{ord(each)};" for each in found[0]), text) or "#160;"
