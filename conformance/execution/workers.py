"""Worker processes, which end with the pool that they belong to, and with the process that made it.

A worker may hang, allocate without end, or be minutes into a task. It ignores Ctrl-C, which the command handles, and a
thread in it waits for the end of a pipe whose other end the pool holds. The system closes that one too when the
command is killed, so that no worker outlives it.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar

from fencepost.model.errors import FencepostError

Task = TypeVar("Task")
Result = TypeVar("Result")
MAX_MEMORY_BYTES = 4 << 30
"""The memory limit in bytes of a worker process that runs mutants, which may allocate without end."""


class WorkerEnded(FencepostError):
    """A worker process ended in the middle of a task; the message is one line and names the tasks under way."""

    def __init__(self, under_way: Iterable[str]) -> None:
        super().__init__(
            f"a worker process ended in the middle of {' or '.join(under_way)}: it was killed, or ran out of memory; "
            "try again with fewer --jobs"
        )


class WorkerPool:
    """A number of processes behind an `executor`, each with a limit of memory in bytes if one is given.

    As a context it starts the processes, gives the executor, and ends the processes.
    """

    def __init__(self, processes: int, max_memory: int | None = None) -> None:
        context = get_context("spawn")
        self.processes = processes
        watched, self._lifeline = context.Pipe(duplex=False)
        self.executor = ProcessPoolExecutor(processes, context, prepare_worker, (watched, max_memory))

    def start(self) -> None:
        """Start the processes now instead of with the first tasks, with SIGINT blocked until they ignore it."""
        if sys.platform == "win32":
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for _ in range(self.processes):
                self.executor.submit(ignore_interrupts)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def end(self) -> None:
        """End the processes, whatever they are at, and drop all work."""
        self._lifeline.close()
        for process in list((self.executor._processes or {}).values()):
            process.terminate()  # a process in the middle of one long C call does not get to its thread
        self.executor.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Executor:
        self.start()
        return self.executor

    def __exit__(self, *error: object) -> None:
        self.end()


def ignore_interrupts() -> None:
    """Ignore SIGINT in this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def prepare_worker(watched: Connection, max_memory: int | None) -> None:
    """Prepare a worker process, which ends when the other end of `watched` is closed."""
    ignore_interrupts()
    threading.Thread(target=end_with, args=(watched,), daemon=True).start()
    if max_memory is not None:
        import resource  # Windows has none

        resource.setrlimit(resource.RLIMIT_AS, (max_memory, max_memory))


def end_with(watched: Connection) -> None:
    """End this process once the other end of `watched` is closed."""
    try:
        watched.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def run_tasks(
    pool: Executor, jobs: int, run: Callable[[Task], Result], tasks: Sequence[Task], name: Callable[[Task], str]
) -> Iterator[tuple[Task, Result]]:
    """Run the tasks in the pool, at most `jobs` at a time, and yield each with its result when that comes.

    Raises `WorkerEnded`.
    """
    left = iter(tasks)
    under_way: dict[Future[Result], Task] = {}
    try:
        while True:
            for task in islice(left, jobs - len(under_way)):
                under_way[pool.submit(run, task)] = task
            if not under_way:
                return
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                result = future.result()
                yield under_way.pop(future), result
    except BrokenProcessPool:
        raise WorkerEnded(map(name, under_way.values())) from None
