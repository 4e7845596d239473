"""A season: the schedules that one restart of a target is shared by.

Those that need no restart are played first, at the same time as the ends of those of the season before that do; those
that do begin so late that none of them waits long for the others, for members that wait are soon members no more.
"""

import asyncio
from collections.abc import Sequence

from fencepost.conformance.execution.pool import RunCallback, ScenarioPool
from fencepost.conformance.execution.restart_barrier import RestartBarrier
from fencepost.conformance.schedules.protocol import TargetScheduleProtocol
from fencepost.conformance.schedules.schedule import GeneratedSchedule

Tasks = list[asyncio.Task[None]]


def start_delays(generated: Sequence[GeneratedSchedule]) -> list[int]:
    """How many milliseconds after the others each has to begin, for all to be ready for the restart together."""
    lasts = max((each.restart_at or each.duration for each in generated), default=0)
    return [lasts - each.restart_at if each.restart_at else 0 for each in generated]


class RestartBatch:
    """Some schedules on a target that can be restarted."""

    def __init__(self, protocol: TargetScheduleProtocol, pool: ScenarioPool, on_run: RunCallback) -> None:
        self.protocol = protocol
        self.pool = pool
        self.on_run = on_run
        self.after_restart: Tasks = []
        """Those that go on after the restart."""

    async def play(self, generated: Sequence[GeneratedSchedule], previous: "RestartBatch") -> None:
        """Play them up to the restart; `previous` has to end until then."""
        meeting = RestartBarrier(1 + sum(each.restart_at > 0 for each in generated), self.pool.target.restart)
        late = zip(generated, start_delays(generated), strict=True)
        self.after_restart = [
            asyncio.create_task(self.play_delayed(each, delay, meeting)) for each, delay in late if each.restart_at
        ]
        calm = [self.protocol.scenario_of(each.schedule) for each in generated if not each.restart_at]
        await self.pool.play_concurrently(calm, "run", self.on_run)
        await previous.finish()
        await meeting.leave()
        if self.after_restart:
            await meeting.done.wait()
            await self.pool.check_restart(meeting)

    async def play_delayed(self, generated: GeneratedSchedule, delay: int, barrier: RestartBarrier) -> None:
        """One that needs the restart."""
        await asyncio.sleep(delay / 1000)
        await self.pool.pacer.wait()
        await self.pool.play_with_restart(self.protocol.scenario_of(generated.schedule), "run", self.on_run, barrier)

    async def finish(self) -> None:
        """Wait for those that go on after the restart."""
        await asyncio.gather(*self.after_restart)

    def cancel(self) -> None:
        """Give up what goes on."""
        for each in self.after_restart:
            each.cancel()
