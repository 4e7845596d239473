"""Sequence diagrams as text for a terminal: a column for each sender, its requests and responses at the right."""

from collections.abc import Sequence

from fencepost.conformance.diagrams.phases import PhaseSpan
from fencepost.conformance.diagrams.sequence import SequenceDiagram, Step, StepKind, format_duration
from fencepost.conformance.reports.layout import escape_unprintable

_TIME = 11
"""The width of the column of times."""
_MAX_LANE = 8
"""The width of the column of a sender at most."""
_SENT, _ANSWERED = (
    ("\N{BOX DRAWINGS LIGHT HORIZONTAL}", "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"),
    (
        "\N{BOX DRAWINGS LIGHT QUADRUPLE DASH HORIZONTAL}",
        "\N{BLACK LEFT-POINTING SMALL TRIANGLE}",
    ),
)


def to_text(diagram: SequenceDiagram, phases: Sequence[PhaseSpan] = ()) -> list[str]:
    """The lines of a diagram, with the phases of the group where they begin."""
    width = min(_MAX_LANE, max(map(len, diagram.lanes), default=0) + 2)
    begins = {phase.first: phase for phase in phases}
    heads = "".join(f"{fit_column(lane, width):<{width}}" for lane in diagram.lanes)
    lines = [f"{'':{_TIME}}{heads}{diagram.target}".rstrip()]
    if diagram.omitted:
        lines.append(f"{'':{_TIME}}({diagram.omitted} earlier steps are left out)")
    for place, step in enumerate(diagram.steps):
        if pause := diagram.pause_before(place):
            lines.append(f"{'':{_TIME}}({format_duration(pause)} later)")
        if (phase := begins.get(place)) is not None:
            generation = f", generation {phase.generation}" if phase.generation > 0 else ""
            lines.append(f"{'':{_TIME}}[{phase.phase}{generation}]")
        lines.append(step_line(step, len(diagram.lanes), width))
    return [escape_unprintable(line) for line in lines]


def step_line(step: Step, lanes: int, width: int) -> str:
    """A request or a response as an arrow in the column of its sender, with its time before and its text after it."""
    time = f"{step.time:>{_TIME - 5}} ms  "
    if step.kind is StepKind.FAULT:
        return f"{time}{'*' * (lanes * width - 1)} {step.text}"
    reach = lanes * width - step.lane * width - 1
    line = (_SENT if step.kind is StepKind.REQUEST else _ANSWERED)[0]
    arrow = line * (reach - 1) + _SENT[1] if step.is_to_coordinator else _ANSWERED[1] + line * (reach - 1)
    text = f"{step.times} times {step.text}" if step.times > 1 and step.kind is StepKind.REQUEST else step.text
    wrong = "   <-- WRONG" if step.is_wrong else ""
    return f"{time}{' ' * (step.lane * width)}{arrow} {text}{wrong}"


def fit_column(name: str, width: int) -> str:
    """A name that fits into its column."""
    return name if len(name) < width else name[: width - 1]
