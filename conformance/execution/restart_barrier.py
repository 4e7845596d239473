"""One restart of a target for many scenarios."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class RestartBarrier:
    """A barrier for `expected` scenarios: the target is restarted once, when the last of them asks for it."""

    def __init__(self, expected: int, restart: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.expected = expected
        self.restart = restart
        self.arrived = 0
        self.started = False
        self.done = asyncio.Event()

    async def wait(self) -> None:
        """Wait until the target was restarted."""
        self.arrived += 1
        await self.restart_if_complete()
        await self.done.wait()

    async def leave(self) -> None:
        """Expect one scenario less: it is finished or failed."""
        self.expected -= 1
        await self.restart_if_complete()

    async def restart_if_complete(self) -> None:
        """Restart the target if all expected scenarios wait for it."""
        if self.arrived and self.arrived >= self.expected and not self.started:
            self.started = True
            try:
                await self.restart()
            finally:
                self.done.set()
