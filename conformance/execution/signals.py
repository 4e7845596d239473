"""Keeping Ctrl-C from worker processes: the run handles it and ends them."""

import signal
import sys
from concurrent.futures import ProcessPoolExecutor


def ignore_interrupts() -> None:
    """Ignore SIGINT in this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def start_workers(pool: ProcessPoolExecutor, processes: int = 1) -> None:
    """Start the processes of a pool, with SIGINT blocked until they ignore it."""
    if sys.platform == "win32":
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for _ in range(processes):
            pool.submit(ignore_interrupts)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
