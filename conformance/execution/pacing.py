"""Beginning no more at once than target and kit can keep up with: answers that are late for that are nobody's fault."""

import asyncio
from collections.abc import Awaitable, Callable

BUSY = 4
"""How many times as long as the quickest one an answer takes when there is enough to do."""
LEAST_SECONDS = 0.05
"""Answers that take no longer than this never show it."""
PAUSE_SECONDS = 0.05
LONGEST_SECONDS = 2.0
"""How long a beginning is put off at most."""


async def no_lag() -> float:
    """Nothing is waited for."""
    return 0.0


class Pace:
    """Lets one after the other begin. `lag` tells how many seconds an answer takes at present."""

    def __init__(self, lag: Callable[[], Awaitable[float]] = no_lag) -> None:
        self.lag = lag
        self.quickest = float("inf")
        self.turn = asyncio.Lock()

    async def wait(self) -> None:
        """Wait for one's turn, and until there is little to do."""
        async with self.turn:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + LONGEST_SECONDS
            while await self.is_busy() and loop.time() < deadline:
                await asyncio.sleep(PAUSE_SECONDS)

    async def is_busy(self) -> bool:
        """There is enough to do."""
        lag = await self.lag()
        self.quickest = min(self.quickest, lag)
        return lag > max(BUSY * self.quickest, LEAST_SECONDS)
