"""Beginning no more at once than target and kit can keep up with: answers that are late for that are nobody's fault."""

import asyncio
from collections.abc import Awaitable, Callable

BUSY_FACTOR = 4
"""How many times as long as the quickest one an answer takes when there is enough to do."""
MIN_BUSY_SECONDS = 0.05
"""Answers that take no longer than this never show it."""
PAUSE_SECONDS = 0.05
MAX_WAIT_SECONDS = 2.0
"""How long a beginning is put off at most."""


async def zero_lag() -> float:
    """Nothing is waited for."""
    return 0.0


class Pacer:
    """Lets one after the other begin. `lag` tells how many seconds an answer takes at present."""

    def __init__(self, lag: Callable[[], Awaitable[float]] = zero_lag) -> None:
        self.lag = lag
        self.min_lag = float("inf")
        self.lock = asyncio.Lock()

    async def wait(self) -> None:
        """Wait for one's turn, and until there is little to do."""
        async with self.lock:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + MAX_WAIT_SECONDS
            while await self.is_busy() and loop.time() < deadline:
                await asyncio.sleep(PAUSE_SECONDS)

    async def is_busy(self) -> bool:
        """There is enough to do."""
        lag = await self.lag()
        self.min_lag = min(self.min_lag, lag)
        return lag > max(BUSY_FACTOR * self.min_lag, MIN_BUSY_SECONDS)
