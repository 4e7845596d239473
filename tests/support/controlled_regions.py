"""Regions with their controller at a Kafka over the network: the holes of the page that are the controller's."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from fencepost.adapters.region.controller import OperatorThreads, RegionMode, RegionProgram, RegionSettings
from fencepost.adapters.region.operator import OperatorState
from tests.support.region_job import LOOK_SECONDS
from tests.support.region_steps import RECORDS, WAITING, Schedule, SteppedRegion, consumer_of

MAX_ATTEMPTS = 5
SETTINGS = RegionSettings(
    checkpoint_period=300.0, max_attempts=MAX_ATTEMPTS, relaunch=0.1, max_poll_records=1, tuple_seconds=0.0
)
"""No checkpoint is made in a schedule."""
LOOKS = 1_200
"""After so many looks what was waited for will not come."""
SETTLED_LOOKS = 40
"""So many looks long nothing has changed if nothing will."""
TWICE = "records come twice"
ENDLESS = f"more than {MAX_ATTEMPTS} resets without a checkpoint"


class HeldRegion(RegionProgram):
    """A region in which the reset of one operator waits until it is let go."""

    def __init__(self, region: SteppedRegion) -> None:
        super().__init__(tuple(region.names), region.group.make_consumer, SETTINGS)
        self.held, self.free = "", asyncio.Event()

    async def _reset_operator(self, threads: OperatorThreads) -> None:
        if threads.operator.name == self.held:
            await self.free.wait()
        await super()._reset_operator(threads)

    def state_of(self, name: str) -> OperatorState | None:
        """The state of an operator; None while it is down."""
        threads = self.operators.get(name)
        return None if threads is None else threads.operator.state

    def has_fetched(self, *names: str) -> bool:
        """Whether these operators have fetched since they were launched or reset."""
        return all(self.state_of(name) is OperatorState.RECORDS_FETCHED for name in names)

    def is_through(self) -> bool:
        """Whether downstream has got all records."""
        return sum(self.downstream.next.values()) == RECORDS

    async def reaches(self, holds: Callable[[], bool], looks: int = LOOKS) -> bool:
        """Whether something holds, or the region has failed, at one of so many looks, with time between them."""
        for _ in range(looks):
            if self.mode is RegionMode.FAILED or holds():
                return True
            await asyncio.sleep(LOOK_SECONDS)
        return False

    async def reset_without(self, name: str, other: str, cause: Callable[[], None]) -> None:
        """The region is reset for some cause, and an operator's reset waits; another one is reset, and fetches."""
        before = self.resets
        self.held = name
        self.free.clear()
        cause()
        assert await self.reaches(lambda: self.resets > before)
        assert await self.reaches(lambda: self.state_of(other) is OperatorState.RESET_COMPLETE)
        assert await self.reaches(lambda: self.has_fetched(other))


@asynccontextmanager
async def running(region: HeldRegion) -> AsyncIterator[HeldRegion]:
    """Run a region, whose operators have all fetched at the beginning."""
    task = asyncio.create_task(region.run())
    try:
        assert await region.reaches(lambda: region.has_fetched(*region.names))
        yield region
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def in_hand_at_reset(region: SteppedRegion) -> str:
    """H03: the process thread has a message when the region is reset again, because a PE downstream fails twice."""
    async with running(HeldRegion(region)) as job:
        assert await job.reaches(job.is_through)
        before = job.resets
        await job.reset_without("B", "A", job.request_reset)
        await job.reaches(lambda: job.operators["A"].operator.hand is not None, looks=3)
        job.request_reset()
        job.free.set()
        assert await job.reaches(lambda: job.resets > before + 1 and job.mode is RegionMode.RUN)
        assert await job.reaches(job.is_through)
        return TWICE if job.downstream.duplicates else ""


async def request_in_reset(region: SteppedRegion) -> str:
    """H07: an operator that was reset already requests a reset while the region waits for another operator's."""
    async with running(HeldRegion(region)) as job:
        await job.reset_without("B", "A", lambda: job.crash("B"))
        consumer_of(job.operators["A"].operator).enforce_rebalance()
        assert await job.reaches(lambda: job.state_of("A") is OperatorState.RESET_PENDING)
        job.free.set()
        assert await job.reaches(lambda: job.mode is RegionMode.RUN)
        is_reset = await job.reaches(lambda: job.state_of("A") is not OperatorState.RESET_PENDING, SETTLED_LOOKS)
        return "" if is_reset else WAITING


async def resets_without_end(region: SteppedRegion) -> str:
    """H12: an operator dies, and another one, which has fetched, is revoked when it comes back, again and again."""
    async with running(HeldRegion(region)) as job:
        while job.mode is not RegionMode.FAILED and job.resets <= 2 * MAX_ATTEMPTS:
            due = job.resets + 2
            await job.reset_without("B", "A", lambda: job.crash("B"))
            job.free.set()
            assert await job.reaches(lambda due=due: job.resets >= due and job.has_fetched("A", "B"))  # type: ignore[misc]
        return "" if job.resets <= MAX_ATTEMPTS else ENDLESS


CONTROLLED: Mapping[str, tuple[Schedule, str]] = {
    "take_before_permit": (in_hand_at_reset, TWICE),
    "forget_request": (request_in_reset, WAITING),
    "forget_attempts": (resets_without_end, ENDLESS),
}
"""As `region_steps.SCHEDULES`."""
