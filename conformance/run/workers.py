"""Worker processes, which end with the pool that they belong to, and with the process that made it.

A worker may hang, allocate without end, or be minutes into a task. It ignores Ctrl-C, which the command handles, and a
thread in it waits for the end of a pipe whose other end the pool holds. The system closes that one too when the
command is killed, so that no worker outlives it.

Traces are judged in workers, so that members do not miss their heartbeats meanwhile. Who judges what: `play_scenario`
judges where it plays unless it is given a judge function; a `ScenarioPool` has its runs judged by the function it was
made with; a pool made without one leaves its runs unjudged, and whoever takes them judges them (`ConcurrentEngine` does
so while the next schedules are played).
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar

from fencepost.conformance.run.play import JudgeFunction
from fencepost.model.errors import FencepostError
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

# -- worker processes -------------------------------------------------------------------------------------------------

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
        """Start the processes now instead of with the first tasks.

        Signals that end the command wait meanwhile: one in the middle of a start would leave a process behind that
        nobody knows. The processes begin with these signals blocked, too, until they are prepared.
        """
        if sys.platform == "win32":
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
        try:
            for _ in range(self.processes):
                self.executor.submit(ignore_interrupts)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def end(self) -> None:
        """End the processes, whatever they are at, and drop all work."""
        self._lifeline.close()
        for process in list((self.executor._processes or {}).values()):
            process.kill()  # one in the middle of a long C call, or that is starting, does not get to its thread
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
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
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


# -- judging in processes beside the run ------------------------------------------------------------------------------

JUDGE_PROCESSES = 2
"""How many processes judge, and generate random schedules."""


class JudgePool:
    """Processes that judge traces. `executor` also takes other work that would hold up the run."""

    def __init__(self, processes: int = JUDGE_PROCESSES) -> None:
        self.workers = WorkerPool(processes)
        self.executor = self.workers.executor

    def start(self) -> None:
        """Start the processes now instead of with the first trace."""
        self.workers.start()

    async def judge(self, header: Header, events: tuple[Event, ...]) -> TraceVerdict:
        """Return the verdict on a trace. A `JudgeFunction`."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, judge, header, events)

    def judge_with(self, decisions: Mapping[str, bool]) -> JudgeFunction:
        """A judge function for random schedules: reference differences are decided already, and search is eager."""
        work = partial(judge, decisions=dict(decisions), eager=True)

        async def judge_schedule(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            return await asyncio.get_running_loop().run_in_executor(self.executor, work, header, events)

        return judge_schedule

    def close(self) -> None:
        """End the processes, whatever they are at, and drop all work: a trace may take minutes to judge."""
        self.workers.end()
