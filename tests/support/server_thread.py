"""Async context managers that are entered in a thread, for clients that block."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

T = TypeVar("T")
TIMEOUT_S = 10


@contextmanager
def enter_in_thread(make: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Enter the context manager that `make` makes, in an event loop in a thread, and leave it at the end of the block;
    gives what it gives."""
    entered: Future[T] = Future()
    stop: Future[None] = Future()

    async def live() -> None:
        try:
            async with make() as given:
                entered.set_result(given)
                await asyncio.wrap_future(stop)
        except BaseException as error:
            if not entered.done():
                entered.set_exception(error)

    thread = threading.Thread(target=asyncio.run, args=(live(),), daemon=True)
    thread.start()
    try:
        yield entered.result(TIMEOUT_S)
    finally:
        stop.set_result(None)
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
