"""Starting scenarios no faster than target and kit respond: delays from overload are not the target's fault."""

import asyncio
from collections.abc import Awaitable, Callable

BUSY_FACTOR = 4
"""A target is busy when a response takes this many times as long as the quickest one."""
MIN_BUSY_SECONDS = 0.05
"""A target with responses within this time is never busy."""
PAUSE_SECONDS = 0.05
MAX_WAIT_SECONDS = 2.0
"""The longest delay of a start."""


async def zero_lag() -> float:
    """A response time of 0 s, for a target that is never busy."""
    return 0.0


class Pacer:
    """Starts scenarios one after the other. `lag` measures how many seconds a response takes at present."""

    def __init__(self, lag: Callable[[], Awaitable[float]] = zero_lag) -> None:
        self.lag = lag
        self.min_lag = float("inf")
        self.lock = asyncio.Lock()

    async def wait(self) -> None:
        """Wait for the turn, and until the target is not busy, `MAX_WAIT_SECONDS` at most."""
        async with self.lock:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + MAX_WAIT_SECONDS
            while await self.is_busy() and loop.time() < deadline:
                await asyncio.sleep(PAUSE_SECONDS)

    async def is_busy(self) -> bool:
        """Responses take much longer than the quickest one so far."""
        lag = await self.lag()
        self.min_lag = min(self.min_lag, lag)
        return lag > max(BUSY_FACTOR * self.min_lag, MIN_BUSY_SECONDS)
