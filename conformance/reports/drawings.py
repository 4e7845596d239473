"""Sequence diagrams written down as SVG, as Mermaid for code hosts and as text, and the phases of a group as SVG.

Colours of the SVG come from the style sheet of the page by the classes of the elements.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import cos, hypot, pi, sin

from fencepost.conformance.reports.html import clean
from fencepost.conformance.reports.layout import escape_unprintable
from fencepost.conformance.reports.sequence import (
    PhaseSpan,
    SequenceDiagram,
    Step,
    StepKind,
    draw_excerpt,
    follow_phases,
    format_duration,
    read_excerpt,
)
from fencepost.conformance.results import Coverage, Failure

TIME_X = 54
BAND_X, BAND_WIDTH = 64, 108
COORDINATOR_X = 206
LANE_WIDTH = 130
TOP, ROW, PAUSE = 44, 30, 18
CHARACTER = 7.3
"""About the width of a character of a label."""
COORDINATOR = "C"
"""The participant of a Mermaid diagram that requests go to."""
ARROWS = {StepKind.REQUEST: "->>", StepKind.RESPONSE: "-->>", StepKind.NO_RESPONSE: "--x"}
SPECIAL = re.compile(r"[^\w .,=/()\[\]'+-]|\bend\b")
"""What Mermaid could take for syntax."""
TIME_WIDTH = 11
"""The width of the column of times."""
MAX_LANE_WIDTH = 8
"""The width of the column of a sender at most."""
SENT, ANSWERED = (
    ("\N{BOX DRAWINGS LIGHT HORIZONTAL}", "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"),
    (
        "\N{BOX DRAWINGS LIGHT QUADRUPLE DASH HORIZONTAL}",
        "\N{BLACK LEFT-POINTING SMALL TRIANGLE}",
    ),
)
RING_WIDTH, RING_HEIGHT = 640, 380
RADIUS_X, RADIUS_Y = 230, 140
NODE_WIDTH, NODE_HEIGHT = 116, 44

LIFE = ("no group", "empty", "preparing", "completing", "stable")
"""The phases in the order of a group's life; others come after them."""

Arrow = tuple[str, str]


# --- sequence diagrams --------------------------------------------------------------------------------------------


def to_svg(diagram: SequenceDiagram, phases: Sequence[PhaseSpan], title: str, description: str) -> str:
    """The diagram as an SVG element; `title` and `description` are read to those who do not see it."""
    rows = place_rows(diagram)
    height = (rows[-1] if rows else TOP) + ROW
    lanes = [COORDINATOR_X + LANE_WIDTH * (number + 1) for number in range(len(diagram.lanes))]
    longest = max((len(label_of(step)) for step in diagram.steps), default=0)
    width = max([lanes[-1] if lanes else 0, int(COORDINATOR_X + 14 + longest * CHARACTER)]) + 40
    parts = [
        f'<svg class="sequence" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{clean(title)}</title><desc>{clean(description)}</desc>",
        *phase_elements(phases, rows, height),
        *lane_elements((diagram.target, *diagram.lanes), [COORDINATOR_X, *lanes], height),
        *parked_elements(diagram, rows, height),
    ]
    for place, step in enumerate(diagram.steps):
        if pause := diagram.pause_before(place):
            parts.append(note(rows[place] - 20, f"⋯ {format_duration(pause)}"))
        if place == 0 or diagram.steps[place - 1].time != step.time:
            time = f'x="{TIME_X}" y="{rows[place]}" text-anchor="end">{step.time / 1000:.2f} s'
            parts.append(f'<text class="time" {time}</text>')
        parts += step_elements(step, rows[place], lanes)
    if diagram.omitted:
        parts.append(note(TOP - 8, f"{diagram.omitted} earlier steps are left out"))
    return "".join([*parts, "</svg>"])


def place_rows(diagram: SequenceDiagram) -> list[int]:
    """The height of each step's arrow."""
    rows: list[int] = []
    y = TOP
    for place in range(len(diagram.steps)):
        y += ROW + (PAUSE if diagram.pause_before(place) else 0)
        rows.append(y)
    return rows


def phase_elements(phases: Sequence[PhaseSpan], rows: Sequence[int], height: int) -> Iterator[str]:
    """The band of phases."""
    for span in phases:
        top = TOP if span.first == 0 else rows[span.first] - ROW // 2
        bottom = height if span.end >= len(rows) else rows[span.end] - ROW // 2
        name = span.phase.lower()
        size = f'width="{BAND_WIDTH}" height="{max(bottom - top, 2)}"'
        yield f'<rect class="phase phase-{clean(name)}" x="{BAND_X}" y="{top}" {size}/>'
        if bottom - top >= 16:
            label = f"{clean(span.phase)} g{span.generation}"
            yield f'<text class="phase-name" x="{BAND_X + 4}" y="{top + 13}">{label}</text>'


def lane_elements(names: Sequence[str], lanes: Sequence[int], height: int) -> Iterator[str]:
    """The names of the lanes and their lines."""
    for name, x in zip(names, lanes, strict=True):
        shown = name if len(name) <= 18 else f"{name[:17]}…"
        yield f'<text class="lane-name" x="{x}" y="18" text-anchor="middle">{clean(shown)}</text>'
        yield f'<line class="lane" x1="{x}" x2="{x}" y1="26" y2="{height}"/>'


def parked_elements(diagram: SequenceDiagram, rows: Sequence[int], height: int) -> Iterator[str]:
    """A bar on the coordinator's lane for each request that waits for its response while others come."""
    answers = {step.request: place for place, step in enumerate(diagram.steps) if step.kind is not StepKind.REQUEST}
    for place, step in enumerate(diagram.steps):
        if step.kind is not StepKind.REQUEST or answers.get(step.request) == place + 1:
            continue
        answered = answers.get(step.request)
        bottom = height if answered is None else rows[answered]
        x = COORDINATOR_X - 6 - 5 * (step.lane % 3)
        yield f'<rect class="parked" x="{x}" y="{rows[place]}" width="4" height="{bottom - rows[place]}"/>'


def step_elements(step: Step, y: int, lanes: Sequence[int]) -> Iterator[str]:
    """The arrow and the label of a step."""
    kind = "fault" if step.kind is StepKind.FAULT else step.kind.name.lower().replace("_", "-")
    classes = f"step {kind}{' wrong' if step.is_wrong else ''}"
    yield f'<g class="{classes}">'
    if step.kind is StepKind.FAULT:
        zigzag = " ".join(f"{COORDINATOR_X + dx},{y + dy}" for dx, dy in ((-10, 0), (-4, -5), (2, 5), (8, -5), (14, 0)))
        yield f'<polyline points="{zigzag}"/>'
    else:
        yield from arrow_elements(step, y, lanes[step.lane])
    x = COORDINATOR_X + (20 if step.kind is StepKind.FAULT else 12)
    yield f'<text x="{x}" y="{y - 6}">{clean(label_of(step))}</text></g>'


def note(y: int, text: str) -> str:
    """A remark between the steps."""
    return f'<text class="pause" x="{COORDINATOR_X + 10}" y="{y}">{clean(text)}</text>'


def arrow_elements(step: Step, y: int, lane: int) -> Iterator[str]:
    """The arrow between a member's lane and the coordinator's."""
    start, end = (lane, COORDINATOR_X) if step.is_to_coordinator else (COORDINATOR_X, lane)
    back = 7 if end < start else -7
    yield f'<line x1="{start}" y1="{y}" x2="{end}" y2="{y}"/>'
    if step.kind is StepKind.NO_RESPONSE:
        yield f'<path d="M{end - 5},{y - 5} l10,10 m0,-10 l-10,10"/>'
    else:
        yield f'<polygon points="{end},{y} {end + back},{y - 4} {end + back},{y + 4}"/>'


def label_of(step: Step) -> str:
    """The label of an arrow."""
    times = f"{step.times} × " if step.times > 1 and step.kind is StepKind.REQUEST else ""
    return f"{'✗ wrong: ' if step.is_wrong else ''}{times}{step.text}"


def draw_failure(failure: Failure, title: str) -> str:
    """The trace of a failure as SVG with the phases of the model; "" without a trace."""
    excerpt = read_excerpt(failure)
    if excerpt is None:
        return ""
    diagram = draw_excerpt(excerpt, failure.step)
    phases = follow_phases(*excerpt, diagram.steps)
    return to_svg(diagram, phases, f"Sequence diagram: {title}", "The schedule stands beside it as text.")


# --- Mermaid ------------------------------------------------------------------------------------------------------


def to_mermaid(diagram: SequenceDiagram, phases: Sequence[PhaseSpan] = ()) -> str:
    """The diagram as Mermaid text that ends in a newline, with the phases of the group where they begin."""
    begins = {phase.first: phase.title for phase in phases}
    lines = ["sequenceDiagram"]
    lines += (f"participant P{number} as {escape_mermaid(lane)}" for number, lane in enumerate(diagram.lanes))
    lines.append(f"participant {COORDINATOR} as {diagram.target}")
    if diagram.omitted:
        lines.append(f"Note over {COORDINATOR}: {diagram.omitted} earlier steps are left out")
    for place, step in enumerate(diagram.steps):
        if pause := diagram.pause_before(place):
            lines.append(f"Note over {COORDINATOR}: {format_duration(pause)} later")
        if title := begins.get(place):
            lines.append(f"Note over {COORDINATOR}: {escape_mermaid(title)}")
        lines += mermaid_lines(step)
    return "\n    ".join(lines) + "\n"


def mermaid_lines(step: Step) -> Iterator[str]:
    """The lines of a step."""
    text = escape_mermaid(
        f"{step.times} times {step.text}" if step.times > 1 and step.kind is StepKind.REQUEST else step.text
    )
    if step.kind is StepKind.FAULT:
        yield f"Note over {COORDINATOR}: {text}"
        return
    member = f"P{step.lane}"
    source, target = (member, COORDINATOR) if step.is_to_coordinator else (COORDINATOR, member)
    yield f"{source}{ARROWS[step.kind]}{target}: {'WRONG ' if step.is_wrong else ''}{text}"


def escape_mermaid(text: str) -> str:
    """The text with everything as an entity code that is not plain."""
    return SPECIAL.sub(lambda found: "".join(f"#{ord(each)};" for each in found[0]), text) or "#160;"


def draw_failure_as_mermaid(failure: Failure) -> str:
    """The trace of a failure as Mermaid text; "" without a trace."""
    excerpt = read_excerpt(failure)
    if excerpt is None:
        return ""
    diagram = draw_excerpt(excerpt, failure.step)
    return to_mermaid(diagram, follow_phases(*excerpt, diagram.steps))


# --- text ---------------------------------------------------------------------------------------------------------


def to_text(diagram: SequenceDiagram, phases: Sequence[PhaseSpan] = ()) -> list[str]:
    """The lines of a diagram, with the phases of the group where they begin."""
    width = min(MAX_LANE_WIDTH, max(map(len, diagram.lanes), default=0) + 2)
    begins = {phase.first: phase.title for phase in phases}
    heads = "".join(f"{lane if len(lane) < width else lane[: width - 1]:<{width}}" for lane in diagram.lanes)
    lines = [f"{'':{TIME_WIDTH}}{heads}{diagram.target}".rstrip()]
    if diagram.omitted:
        lines.append(f"{'':{TIME_WIDTH}}({diagram.omitted} earlier steps are left out)")
    for place, step in enumerate(diagram.steps):
        if pause := diagram.pause_before(place):
            lines.append(f"{'':{TIME_WIDTH}}({format_duration(pause)} later)")
        if title := begins.get(place):
            lines.append(f"{'':{TIME_WIDTH}}[{title}]")
        lines.append(step_line(step, len(diagram.lanes), width))
    return [escape_unprintable(line) for line in lines]


def step_line(step: Step, lanes: int, width: int) -> str:
    """A request or a response as an arrow in the column of its sender, with its time before and its text after it."""
    time = f"{step.time:>{TIME_WIDTH - 5}} ms  "
    if step.kind is StepKind.FAULT:
        return f"{time}{'*' * (lanes * width - 1)} {step.text}"
    reach = lanes * width - step.lane * width - 1
    line = (SENT if step.kind is StepKind.REQUEST else ANSWERED)[0]
    arrow = line * (reach - 1) + SENT[1] if step.is_to_coordinator else ANSWERED[1] + line * (reach - 1)
    text = f"{step.times} times {step.text}" if step.times > 1 and step.kind is StepKind.REQUEST else step.text
    wrong = "   <-- WRONG" if step.is_wrong else ""
    return f"{time}{' ' * (step.lane * width)}{arrow} {text}{wrong}"


# --- phases -------------------------------------------------------------------------------------------------------


def draw_coverage(coverage: Coverage) -> str:
    """The phases as an SVG element: the wider an arrow, the more often it was taken; dashed ones were missed."""
    seen, missed = Counter[Arrow](), Counter[Arrow]()
    found = {last_part(name) for name in (*coverage.transitions, *coverage.missed)}
    phases = [*(each for each in LIFE if each in found), *sorted(found.difference(LIFE))]
    for name, times in coverage.transitions.items():
        seen[arrow_of(name, phases)] += times
    for name in coverage.missed:
        missed[arrow_of(name, phases)] += 1
    places = dict(zip(phases, ring(len(phases)), strict=True))
    size = f'width="{RING_WIDTH}" height="{RING_HEIGHT}"'
    told = (f"{start} to {end} {seen[start, end]} times" for start, end in sorted(seen | missed))
    parts = [
        f'<svg class="phases" viewBox="0 0 {RING_WIDTH} {RING_HEIGHT}" {size} role="img">',
        "<title>Transitions between the phases of the group</title>",
        f"<desc>{clean('; '.join(told))}</desc>",
    ]
    for start, end in sorted(seen | missed):
        if start != end:
            width = 1 + min(5.0, seen[start, end] ** 0.4)
            kind = "seen" if seen[start, end] else "missed"
            label = f"{start} to {end}: taken {seen[start, end]} times, {missed[start, end]} kinds of it missed"
            parts.append(
                f'<path class="{kind}" d="{curve(places[start], places[end])}" stroke-width="{width:.1f}">'
                f"<title>{clean(label)}</title></path>"
            )
    for phase, (x, y) in places.items():
        parts += node(phase, x, y, seen[phase, phase])
    return "".join([*parts, "</svg>"])


def last_part(transition: str) -> str:
    """The phase that a transition leads to."""
    return transition.rpartition(" / ")[2]


def arrow_of(transition: str, phases: list[str]) -> Arrow:
    """The phases that a transition leads from and to."""
    start = transition.partition(" / ")[0]
    known = (phase for phase in phases if start.startswith(phase))
    return next(known, last_part(transition)), last_part(transition)


def ring(count: int) -> Iterator[tuple[float, float]]:
    """`count` places on an ellipse, the first one at the top."""
    for number in range(count):
        angle = 2 * pi * number / count - pi / 2
        yield RING_WIDTH / 2 + RADIUS_X * cos(angle), RING_HEIGHT / 2 + RADIUS_Y * sin(angle)


def curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A curve between two places, bent to its right, so that there and back are two curves; a head at its end."""
    (x, y), (u, v) = start, end
    length = hypot(u - x, v - y) or 1
    bend = 26
    middle = ((x + u) / 2 - (v - y) / length * bend, (y + v) / 2 + (u - x) / length * bend)
    reach = hypot(u - middle[0], v - middle[1]) or 1
    back = edge_share(u - middle[0], v - middle[1])
    tip = (u - (u - middle[0]) * back, v - (v - middle[1]) * back)
    dx, dy = (tip[0] - middle[0]) / reach, (tip[1] - middle[1]) / reach
    size = 9
    left = (tip[0] - size * (dx + dy * 0.6), tip[1] - size * (dy - dx * 0.6))
    right = (tip[0] - size * (dx - dy * 0.6), tip[1] - size * (dy + dx * 0.6))
    points = [f"{a:.1f},{b:.1f}" for a, b in (start, middle, tip, left, right)]
    return f"M{points[0]} Q{points[1]} {points[2]} M{points[3]} L{points[2]} L{points[4]}"


def edge_share(dx: float, dy: float) -> float:
    """Which share of a line that comes by (dx, dy) to the middle of a node lies inside of it."""
    across = NODE_WIDTH / 2 / abs(dx) if dx else 1.0
    down = NODE_HEIGHT / 2 / abs(dy) if dy else 1.0
    return min(across, down, 1.0)


def node(phase: str, x: float, y: float, stays: int) -> Iterator[str]:
    """A phase by its name, with how often a transition stayed in it."""
    left, top = x - NODE_WIDTH / 2, y - NODE_HEIGHT / 2
    yield f'<rect class="node" x="{left:.1f}" y="{top:.1f}" width="{NODE_WIDTH}" height="{NODE_HEIGHT}" rx="4"/>'
    yield f'<text x="{x:.1f}" y="{y - 3:.1f}" text-anchor="middle">{clean(phase)}</text>'
    yield f'<text class="soft" x="{x:.1f}" y="{y + 14:.1f}" text-anchor="middle">stays {stays}</text>'
