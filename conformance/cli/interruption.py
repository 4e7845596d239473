"""Signals: Ctrl-C, SIGTERM and SIGHUP end a command as far as it has come, also where the process began with SIGINT
ignored (`nohup`, a job in the background of a script)."""

import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_Handler = Callable[[int, FrameType | None], Any]
MAX_REQUESTS = 2
"""So many signals ask a run to end; the next one ends it where it is."""
BROKEN_OFF = "broken off by a third signal: no report has what was judged"
"""The message of the `KeyboardInterrupt` for that one."""


def ending_signals() -> list[signal.Signals]:
    """The signals that end a command. SIGHUP is none where it is ignored, as `nohup` has it."""
    found = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        found.append(hangup)
    return found


@contextmanager
def handle_signals(handler: _Handler) -> Iterator[None]:
    """Have `handler` get the signals that end a command; elsewhere than in the main thread nothing changes."""
    before: dict[signal.Signals, Any] = {}
    try:
        for each in ending_signals():
            before[each] = signal.signal(each, handler)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old if old is not None else signal.SIG_DFL)


def raise_interrupt(number: int, frame: FrameType | None) -> None:
    """A signal handler that raises `KeyboardInterrupt`, as Python's own does for Ctrl-C."""
    raise KeyboardInterrupt


def run_interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end. The first two signals cancel it, with a `StopRequest` that names the signal as the
    message. Raises `KeyboardInterrupt` if it was cancelled without a result, and at once for the third signal."""
    import asyncio

    try:
        return asyncio.run(_cancel_on_signals(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _cancel_on_signals(work: Coroutine[Any, Any, T]) -> T:
    import asyncio

    from fencepost.conformance.results import EndKind
    from fencepost.conformance.run.ending import StopRequest

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    seen = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > MAX_REQUESTS:
            raise KeyboardInterrupt(BROKEN_OFF)
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        loop.call_soon_threadsafe(task.cancel, StopRequest(EndKind.INTERRUPTED, f"interrupted by {name}"))

    with handle_signals(handle):
        return await work
