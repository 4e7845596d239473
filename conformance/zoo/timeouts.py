"""Limits on how long something may work, for what would never come to an end by itself."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fencepost.adapters.bundled import classic

AGAIN_SECONDS = 1.0
"""When to ring again: nobody hears what is raised in a callback of the collector's."""


class Stuck(SystemExit):
    """Time is up for good; `inside` says whether the coordinator was at work.

    No coordinator can swallow it, and neither does an event loop.
    """

    def __init__(self, inside: bool) -> None:
        super().__init__("time is up")
        self.inside = inside


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises `Stuck` after so many seconds of work; limits may be nested. Only in the main thread of a process."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Stuck(in_coordinator(frame))

    begun = time.process_time()
    handler = signal.signal(signal.SIGPROF, ring)
    outer, _ = signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        if outer:
            left = outer - (time.process_time() - begun)
            signal.setitimer(signal.ITIMER_PROF, max(left, 0.001), AGAIN_SECONDS)


def in_coordinator(frame: FrameType | None) -> bool:
    """Some module of the bundled coordinator, or of a copy of it, is being run."""
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(classic.__name__):
            return True
        frame = frame.f_back
    return False
