"""Virtual time: an event loop whose clock jumps to the next timer as soon as nothing is left to do."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlock(RuntimeError):
    """Every task waits and no scheduled callback could wake one; the message names the tasks."""


class VirtualClock(asyncio.BaseEventLoop):
    """An event loop on virtual time: deterministic, as fast as its callbacks, and without input or output.

    Time starts at 0 and moves only when all callbacks that are due have run, straight to the next scheduled one.
    Where the next one does not exist, `Deadlock` is raised out of the run. Threads and sockets cannot be used.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seconds = 0.0
        self._selector = _ClockSelector(self)

    def time(self) -> float:
        """The virtual time in seconds."""
        return self._seconds

    @property
    def milliseconds(self) -> int:
        """The virtual time in whole milliseconds."""
        return round(self._seconds * 1000)

    def jump(self, seconds: float) -> None:
        """Advance the time by `seconds`, in whole nanoseconds: sums of fractions do not drift."""
        self._seconds = round(self._seconds + seconds, 9)

    # What BaseEventLoop leaves to loops with real input and output.

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: the selector has no events."""

    def _write_to_self(self) -> None:
        """Do nothing: the selector never blocks."""


class _ClockSelector:
    """A selector that advances the clock by a timeout instead of waiting for it."""

    def __init__(self, loop: VirtualClock) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            tasks = sorted(task.get_name() for task in asyncio.all_tasks(self._loop))
            raise Deadlock(
                f"at {self._loop.milliseconds} ms nothing is scheduled, and what these tasks wait for "
                f"will never come: {', '.join(tasks)}"
            )
        self._loop.jump(max(timeout, 0.0))
        return []


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a `VirtualClock` of its own. Raises `Deadlock`, and what the coroutine raises.

    A run takes milliseconds, of which `asyncio.Runner` would need a tenth to have Ctrl-C cancel the coroutine.
    """
    loop = VirtualClock()
    try:
        return loop.run_until_complete(main)
    finally:
        try:
            _cancel_tasks(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


def _cancel_tasks(loop: VirtualClock) -> None:
    """Cancel the tasks that are left, and let them end."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left))


async def run_virtual_in_thread(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a `VirtualClock` in a thread of its own, so that the running loop is not held up by it."""
    return await run_in_thread(lambda: run_virtual(main))


async def run_in_thread(work: Callable[[], T]) -> T:
    """Do some work in a thread of its own.

    When cancelled, the thread is left to itself: it holds up neither the caller nor the end of the process.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[..., None], value: object) -> None:
        if not outcome.done():
            settle(value)

    def run() -> None:
        settle: Callable[..., None]
        value: object
        try:
            settle, value = outcome.set_result, work()
        except BaseException as error:
            settle, value = outcome.set_exception, error
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(tell, settle, value)

    threading.Thread(target=run, name="virtual time", daemon=True).start()
    return await outcome
