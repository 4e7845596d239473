"""A series over the network: hundreds of groups at once, and one restart a season for all schedules that need it.

While a season is played the next one is drawn and the last one judged, in processes beside this one.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count as counting
from typing import TYPE_CHECKING

from fencepost.adapters.target import Description
from fencepost.conformance.analysis.root_cause import broken
from fencepost.conformance.execution.loop_lag import fair
from fencepost.conformance.execution.pacing import Pace
from fencepost.conformance.execution.play import Played
from fencepost.conformance.execution.saving import save_trace
from fencepost.conformance.schedules.classic.generation import Drawn, Ground
from fencepost.conformance.schedules.classic.interpreter import scenario_of
from fencepost.conformance.schedules.engine import Series
from fencepost.conformance.schedules.guidance import Order, drawn_for
from fencepost.conformance.schedules.restart_batch import Season
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.schedules.statistics import Outcome
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

if TYPE_CHECKING:
    from fencepost.conformance.run.remote import Remote

AT_ONCE = 400
"""How many schedules are in flight."""
TRIED_AT_ONCE = 40
"""How many shorter schedules are tried side by side."""


class RemoteSeries(Series):
    """Schedules on a Kafka address."""

    chunks = 30
    shrink_seconds = 90.0

    def __init__(
        self, remote: "Remote", description: Description, ground: Ground, count: int, decisions: dict[str, bool]
    ) -> None:
        super().__init__(ground, remote.plan.seed, count, decisions)
        self.remote = remote
        self.description = description
        self.replays = counting(1)
        remote.at_once = AT_ONCE
        remote.pace = Pace(remote.target.lag)
        remote.judge = partial(judge, decisions=decisions, likely=True)
        self.drawn: dict[str, Drawn] = {}
        self.last = Season(remote, description, self.judge_later)
        self.judging: list[asyncio.Task[None]] = []
        self.keep: Callable[[Outcome], None] = lambda outcome: None

    async def play(self, rounds: Iterator[list[Order]], keep: Callable[[Outcome], None]) -> None:
        """As `Series.play`."""
        self.remote.judging, self.keep = unjudged, keep
        drawing = self.drawing(next(rounds, []))
        try:
            while drawn := await drawing:
                drawing = self.drawing(next(rounds, []))
                await self.play_season(drawn)
            await self.last.end()
            await asyncio.gather(*self.judging)
        finally:
            self.remote.judging = self.remote.judged
            self.last.cancel()
            for each in (drawing, *self.judging):
                each.cancel()

    def drawing(self, orders: Sequence[Order]) -> "asyncio.Task[list[Drawn]]":
        """Have some chunks drawn."""
        return asyncio.create_task(self.draw(orders))

    async def draw(self, orders: Sequence[Order]) -> list[Drawn]:
        """The schedules of some chunks."""
        loop = asyncio.get_running_loop()
        chunks = await asyncio.gather(*(loop.run_in_executor(self.remote.judges, drawn_for, order) for order in orders))
        return [each for chunk in chunks for each in chunk]

    async def play_season(self, drawn: Sequence[Drawn]) -> None:
        """Play up to the restart, and wait for what the season before has left to be judged."""
        self.drawn.update((each.schedule.name, each) for each in drawn)
        before, left = self.last, self.judging
        self.judging = []
        self.last = Season(self.remote, self.description, self.judge_later)
        try:
            await self.last.play(drawn, before)
        finally:
            before.cancel()
        await asyncio.gather(*left)

    def judge_later(self, played: Played) -> None:
        """Have judged what was played, and go on."""
        self.judging.append(asyncio.create_task(self.judge(played)))

    async def judge(self, played: Played) -> None:
        """Judge what was played."""
        verdict = await self.remote.judged(played.header, played.events)
        judged = fair(replace(played, verdict=verdict))
        self.keep(Outcome.of(self.drawn.pop(played.scenario.name), judged))
        save_trace(self.remote.plan, judged)

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


async def unjudged(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
    """Nothing yet."""
    return TraceVerdict((), (), {}, events=len(events))
