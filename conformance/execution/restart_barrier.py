"""One restart of a target for many at once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Gathering:
    """Where all restart scenarios meet: the target is restarted once, when the last of them asks for it."""

    def __init__(self, expected: int, restart: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.expected = expected
        self.restart = restart
        self.here = 0
        self.begun = False
        self.done = asyncio.Event()

    async def arrive(self) -> None:
        """Wait for the restart."""
        self.here += 1
        await self.go_if_all()
        await self.done.wait()

    async def leave(self) -> None:
        """One is finished, or will not come."""
        self.expected -= 1
        await self.go_if_all()

    async def go_if_all(self) -> None:
        """Restart once everyone who is still to come is here."""
        if self.here and self.here >= self.expected and not self.begun:
            self.begun = True
            try:
                await self.restart()
            finally:
                self.done.set()
