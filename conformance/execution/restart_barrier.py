"""One restart of a target for many at once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class RestartBarrier:
    """Where all restart scenarios meet: the target is restarted once, when the last of them asks for it."""

    def __init__(self, expected: int, restart: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.expected = expected
        self.restart = restart
        self.arrived = 0
        self.started = False
        self.done = asyncio.Event()

    async def wait(self) -> None:
        """Wait for the restart."""
        self.arrived += 1
        await self.restart_if_complete()
        await self.done.wait()

    async def leave(self) -> None:
        """One is finished, or will not come."""
        self.expected -= 1
        await self.restart_if_complete()

    async def restart_if_complete(self) -> None:
        """Restart once everyone who is still to come is here."""
        if self.arrived and self.arrived >= self.expected and not self.started:
            self.started = True
            try:
                await self.restart()
            finally:
                self.done.set()
