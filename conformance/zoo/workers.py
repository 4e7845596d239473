"""Worker processes for hunts and comparisons: a faulty coordinator may hang, or allocate without end."""

import multiprocessing
import resource
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from fencepost.model.errors import FencepostError

Task = TypeVar("Task")
Result = TypeVar("Result")
MAX_MEMORY_BYTES = 4 << 30
"""The memory limit of a worker process in bytes, for mutants that allocate without end."""


class WorkerEnded(FencepostError):
    """A worker process ended in the middle of a task; the message is one line and names the tasks under way."""

    def __init__(self, under_way: Iterable[str]) -> None:
        super().__init__(
            f"a worker process ended in the middle of {' or '.join(under_way)}: it was killed, or ran out of memory; "
            "try again with fewer --jobs"
        )


def prepare_process() -> None:
    """Prepare a worker process: it ignores Ctrl-C, and its memory is limited."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


@contextmanager
def worker_processes(jobs: int) -> Iterator[Executor]:
    """A pool of so many processes. What still runs at the end is ended, not awaited."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), prepare_process)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()


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
