"""Async code in threads of its own, for tests and scripts that block."""

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, suppress
from typing import Any, TypeVar

from fencepost.conformance.events import RunEvent

T = TypeVar("T")
TIMEOUT_S = 30.0
"""How long a context manager may take to be entered or left."""


def start_in_thread(main: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine in a thread of its own, which holds up neither the caller nor the end of the process."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(asyncio.run(main))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="fencepost", daemon=True).start()
    return outcome


def in_thread(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a thread of its own, as the caller may have an event loop running."""
    return start_in_thread(main).result()


@contextmanager
def enter_in_thread(make: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Enter the context manager that `make` makes on an event loop in a thread, and leave it there at the end of the
    block; gives what it gives, and raises what it raises."""
    entered: Future[T] = Future()
    ends: Future[None] = Future()

    async def live() -> None:
        async with make() as given:
            entered.set_result(given)
            await asyncio.wrap_future(ends)

    work = start_in_thread(live())
    either: tuple[Future[Any], ...] = (entered, work)
    wait(either, TIMEOUT_S, FIRST_COMPLETED)
    if not entered.done():
        work.result(0)
    try:
        yield entered.result(0)
    finally:
        ends.set_result(None)
        work.result(TIMEOUT_S)


def iterate_in_thread(start: Callable[[], AsyncGenerator[RunEvent, None]]) -> Generator[RunEvent, None, None]:
    """The events of a run that goes on in a thread of its own; closing the generator ends the run."""
    events: queue.SimpleQueue[RunEvent | BaseException | None] = queue.SimpleQueue()
    loop = asyncio.new_event_loop()

    async def forward() -> None:
        try:
            async with aclosing(start()) as found:
                async for event in found:
                    events.put(event)
        except Exception as error:
            events.put(error)
        finally:
            events.put(None)

    work = loop.create_task(forward())

    def run_loop() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(asyncio.wait([work]))

    thread = threading.Thread(target=run_loop, name="fencepost run", daemon=True)
    thread.start()
    try:
        while (event := events.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event
    finally:
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(work.cancel)
        thread.join()
