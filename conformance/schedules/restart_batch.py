"""A season: the schedules that one restart of a target is shared by.

Those that need no restart are played first, at the same time as the ends of those of the season before that do; those
that do begin so late that none of them waits long for the others, for members that wait are soon members no more.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fencepost.adapters.target import Description
from fencepost.conformance.execution.play import Played
from fencepost.conformance.execution.restart_barrier import Gathering
from fencepost.conformance.schedules.classic.generation import Drawn
from fencepost.conformance.schedules.classic.interpreter import scenario_of

if TYPE_CHECKING:
    from fencepost.conformance.run.remote import Remote

Tasks = list[asyncio.Task[None]]


def delays(drawn: Sequence[Drawn]) -> list[int]:
    """How many milliseconds after the others each has to begin, for all to be ready for the restart together."""
    lasts = max((each.lead or each.length for each in drawn), default=0)
    return [lasts - each.lead if each.lead else 0 for each in drawn]


class Season:
    """Some schedules on a target that can be restarted."""

    def __init__(self, remote: "Remote", description: Description, keep: Callable[[Played], None]) -> None:
        self.remote = remote
        self.description = description
        self.keep = keep
        self.ends: Tasks = []
        """Those that go on after the restart."""

    async def play(self, drawn: Sequence[Drawn], before: "Season") -> None:
        """Play them up to the restart; `before` has to end until then."""
        meeting = Gathering(1 + sum(each.lead > 0 for each in drawn), self.remote.target.restart)
        late = zip(drawn, delays(drawn), strict=True)
        self.ends = [asyncio.create_task(self.late(each, delay, meeting)) for each, delay in late if each.lead]
        calm = [scenario_of(each.schedule) for each in drawn if not each.lead]
        await self.remote.play_company(calm, "run", self.description, self.keep)
        await before.end()
        await meeting.leave()
        if self.ends:
            await meeting.done.wait()

    async def late(self, drawn: Drawn, delay: int, meeting: "Gathering") -> None:
        """One that needs the restart."""
        await asyncio.sleep(delay / 1000)
        await self.remote.pace.wait()
        await self.remote.play_restarted(scenario_of(drawn.schedule), "run", self.description, self.keep, meeting)

    async def end(self) -> None:
        """Wait for those that go on after the restart."""
        await asyncio.gather(*self.ends)

    def cancel(self) -> None:
        """Give up what goes on."""
        for each in self.ends:
            each.cancel()
