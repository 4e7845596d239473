"""Ctrl-C is for the run: the processes beside it go on until the run ends them."""

import signal
import sys
from concurrent.futures import ProcessPoolExecutor


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def start_workers(pool: ProcessPoolExecutor, processes: int = 1) -> None:
    """Start the processes of a pool, with Ctrl-C held off until they have come so far as to ignore it."""
    if sys.platform == "win32":
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for _ in range(processes):
            pool.submit(ignore_interrupts)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
