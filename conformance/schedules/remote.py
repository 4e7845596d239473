"""A series over the network: hundreds of groups at once, and one restart a round for all schedules that need it."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count as counting
from typing import TYPE_CHECKING

from fencepost.adapters.target import Description
from fencepost.conformance.blame import broken
from fencepost.conformance.execution import Played
from fencepost.conformance.saving import save_trace
from fencepost.conformance.schedules.generation import Drawn, Ground
from fencepost.conformance.schedules.player import scenario_of
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.series import Series
from fencepost.conformance.schedules.steering import Order, drawn_for
from fencepost.conformance.schedules.tally import Outcome
from fencepost.traces.judge.judge import judge

if TYPE_CHECKING:
    from fencepost.conformance.remote_run import Remote

AT_ONCE = 240
"""How many schedules are in flight."""
TRIED_AT_ONCE = 40
"""How many shorter schedules are tried side by side."""


class RemoteSeries(Series):
    """Schedules on a Kafka address."""

    chunks = 15
    shrink_seconds = 90.0

    def __init__(
        self, remote: "Remote", description: Description, ground: Ground, count: int, decisions: dict[str, bool]
    ) -> None:
        super().__init__(ground, remote.plan.seed, count, decisions)
        self.remote = remote
        self.description = description
        self.replays = counting(1)
        remote.at_once = AT_ONCE
        remote.judge = partial(judge, decisions=decisions, likely=True)

    async def play(self, orders: Sequence[Order], keep: Callable[[Outcome], None]) -> None:
        """As `Series.play`."""
        loop = asyncio.get_running_loop()
        chunks = await asyncio.gather(*(loop.run_in_executor(self.remote.judges, drawn_for, order) for order in orders))
        drawn: dict[str, Drawn] = {each.schedule.name: each for chunk in chunks for each in chunk}

        def judged(played: Played) -> None:
            keep(Outcome.of(drawn[played.scenario.name], played))
            save_trace(self.remote.plan, played)

        await self.play_all([each.schedule for each in drawn.values()], "run", judged)

    async def play_all(self, schedules: Sequence[Schedule], attempt: str, keep: Callable[[Played], None]) -> None:
        """Play schedules side by side, then those that need a restart."""
        await self.remote.play_batch([scenario_of(each) for each in schedules], attempt, self.description, keep)

    async def replay(self, schedules: Sequence[Schedule]) -> list[Played]:
        """As `Series.replay`."""
        found: list[Played] = []
        attempt = f"replay-{next(self.replays)}"
        alike = [replace(each, name=f"{each.name}-{place}") for place, each in enumerate(schedules)]
        await self.play_all(alike, attempt, found.append)
        places = {each.name: place for place, each in enumerate(alike)}
        found.sort(key=lambda played: places[played.scenario.name])
        return [replace(each, scenario=scenario_of(one)) for each, one in zip(found, schedules, strict=True)]

    async def failing(self, candidates: Sequence[Schedule], requirement: str, deadline: float) -> list[int]:
        """As `Series.failing`, many at once."""
        for begin in range(0, len(candidates), TRIED_AT_ONCE):
            if time.monotonic() > deadline:
                break
            played = await self.replay(candidates[begin : begin + TRIED_AT_ONCE])
            found = [begin + place for place, each in enumerate(played) if requirement in broken(each)]
            if found:
                return found
        return []
