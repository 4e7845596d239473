"""Limits of processor time for code that may never end."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fencepost.adapters import bundled

REPEAT_SECONDS = 1.0
"""The interval of further alarms: an exception raised in a callback of the garbage collector is lost."""


class CpuLimitExceeded(SystemExit):
    """The limit is exceeded; `in_coordinator` is true if the coordinator was running.

    A `SystemExit`, which neither a coordinator nor an event loop swallows.
    """

    def __init__(self, inside: bool) -> None:
        super().__init__("time is up")
        self.in_coordinator = inside


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """A context that raises `CpuLimitExceeded` after these seconds of processor time; limits may be nested. Only in the
    main thread of a process."""

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
    """A module of a bundled coordinator, or a copy of one, is on the stack."""
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(bundled.__name__):
            return True
        frame = frame.f_back
    return False
