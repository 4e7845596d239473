"""How late the kit itself is: what a busy machine does to it must not be blamed on a target."""

import asyncio
from collections import deque
from dataclasses import replace

from fencepost.conformance.analysis.root_cause import broken, held
from fencepost.conformance.execution.play import Played
from fencepost.traces.verdict import TraceVerdict

TICK_SECONDS = 0.02
LEAST_SECONDS = 0.1
"""Less is nothing to remember."""
REMEMBERED = 10_000
SHARE = 0.5
"""How much of the grace that a target is granted the kit may use up itself."""


class Lateness:
    """Watches the event loop, and remembers when it did late what was due."""

    def __init__(self) -> None:
        self.seen: deque[tuple[float, float]] = deque(maxlen=REMEMBERED)
        """When, and how late, in seconds."""

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            now = loop.time()
            if now - due >= LEAST_SECONDS:
                self.seen.append((now, now - due))

    def worst(self, since: float) -> int:
        """The most milliseconds that anything was late from this time on."""
        return round(1000 * max((late for at, late in self.seen if at >= since), default=0.0))


def fair(played: Played) -> Played:
    """What was played, with nothing said about the target if the kit was so late that it may be why something fails."""
    if played.late <= SHARE * played.header.grace or not broken(played):
        return played
    note = f"the kit itself was {played.late} ms late, so it can blame nobody: this machine is too busy"
    nothing = TraceVerdict((), (), {}, inconclusive=(note,), events=len(played.events))
    return replace(played, verdict=nothing, blocked=note)


def undecided(played: Played) -> bool:
    """It shows neither all it was written for nor a violation, as where members were given up in a stall."""
    missing = not held([played]).issuperset(played.scenario.requirements)
    return missing and not played.unsupported and not played.crashed and not broken(played)
