"""One restart of a target for many scenarios."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fencepost.adapters.target import TargetError


class RestartBarrier:
    """A barrier for `expected` scenarios: the target is restarted once, when the last of them asks for it."""

    def __init__(self, expected: int, restart: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.expected = expected
        self.restart = restart
        self.arrived = 0
        self.started = False
        self.done = asyncio.Event()
        self.error: TargetError | None = None
        """Why the target could not be restarted."""

    async def wait(self) -> None:
        """Wait until the target was restarted. Raises `TargetError` if it could not be."""
        self.arrived += 1
        await self.restart_if_complete()
        await self.done.wait()
        if self.error is not None:
            raise TargetError(str(self.error))

    async def leave(self) -> None:
        """Expect one scenario less: it is finished or failed."""
        self.expected -= 1
        await self.restart_if_complete()

    async def restart_if_complete(self) -> None:
        """Restart the target if all expected scenarios wait for it; all of them get to know if it fails."""
        if self.arrived and self.arrived >= self.expected and not self.started:
            self.started = True
            try:
                await self.restart()
            except TargetError as error:
                self.error = error
            finally:
                self.done.set()
