"""The phases of a group as a ring, with the transitions between them that schedules covered."""

from collections import Counter
from collections.abc import Iterator
from math import cos, hypot, pi, sin

from fencepost.conformance.reports.html import clean
from fencepost.conformance.results import Coverage

WIDTH, HEIGHT = 640, 380
RADIUS_X, RADIUS_Y = 230, 140
NODE_WIDTH, NODE_HEIGHT = 116, 44

LIFE = ("no group", "empty", "preparing", "completing", "stable")
"""The phases in the order of a group's life; others come after them."""

Arrow = tuple[str, str]


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
    parts = [
        f'<svg class="phases" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">',
        "<title>Transitions between the phases of the group</title>",
        f"<desc>{clean(describe(seen, missed))}</desc>",
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
    """So many places on an ellipse, the first one at the top."""
    for number in range(count):
        angle = 2 * pi * number / count - pi / 2
        yield WIDTH / 2 + RADIUS_X * cos(angle), HEIGHT / 2 + RADIUS_Y * sin(angle)


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


def describe(seen: Counter[Arrow], missed: Counter[Arrow]) -> str:
    """The arrows in words."""
    told = [f"{start} to {end} {seen[start, end]} times" for start, end in sorted(seen | missed)]
    return "; ".join(told)
