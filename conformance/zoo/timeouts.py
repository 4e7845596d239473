"""Limits on how long something may work, for what would never come to an end by itself."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fencepost.adapters import bundled

REPEAT_SECONDS = 1.0
"""When to ring again: nobody hears what is raised in a callback of the collector's."""


class CpuLimitExceeded(SystemExit):
    """Time is up for good; `in_coordinator` says whether the coordinator was at work.

    No coordinator can swallow it, and neither does an event loop.
    """

    def __init__(self, inside: bool) -> None:
        super().__init__("time is up")
        self.in_coordinator = inside


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raises `CpuLimitExceeded` after so many seconds of work; limits may be nested. Only in the main thread of a
    process."""

    def expire(number: int, frame: FrameType | None) -> None:
        raise CpuLimitExceeded(is_in_coordinator(frame))

    begun = time.process_time()
    handler = signal.signal(signal.SIGPROF, expire)
    outer, _ = signal.setitimer(signal.ITIMER_PROF, seconds, REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        if outer:
            left = outer - (time.process_time() - begun)
            signal.setitimer(signal.ITIMER_PROF, max(left, 0.001), REPEAT_SECONDS)


def is_in_coordinator(frame: FrameType | None) -> bool:
    """Some module of the bundled coordinator, or of a copy of it, is being run."""
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(bundled.__name__):
            return True
        frame = frame.f_back
    return False
