"""A run as a stream of its events, and consumers of the stream."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any

from fencepost.conformance.events import Progress, RunEvent, RunFinished
from fencepost.conformance.results import EndKind, Report
from fencepost.conformance.run.ending import StopRequest

Emit = Callable[[RunEvent], None]


async def stream_events(
    start: Callable[[Emit], Coroutine[Any, Any, object]], *savers: Callable[[RunEvent], None]
) -> AsyncGenerator[RunEvent, None]:
    """The events that a run emits, after each of `savers` had them. Raises what the run raises.

    When the consumer is cancelled the run is cancelled in its place, and the events that the run still emits follow:
    a run that is cut short reports what it has. So it does when a saver raises `OSError`, which then gets no more
    events. When the stream is closed the run is cancelled and awaited.
    """
    queue: asyncio.Queue[RunEvent | None] = asyncio.Queue()
    run = asyncio.create_task(start(queue.put_nowait))
    run.add_done_callback(lambda _: queue.put_nowait(None))
    left = list(savers)
    try:
        while True:
            try:
                event = await queue.get()
            except asyncio.CancelledError as error:
                run.cancel(*error.args)
                continue
            if event is None:
                break
            for saver in tuple(left):
                try:
                    saver(event)
                except OSError as error:
                    left.remove(saver)
                    told = f"cannot write {error.filename or 'a trace'}: {error.strerror or error}"
                    run.cancel(StopRequest(EndKind.HARNESS_FAILED, told))
            yield event
        await run
    finally:
        if not run.done():
            run.cancel()
            with suppress(asyncio.CancelledError):
                await run


async def consume(events: AsyncGenerator[RunEvent, None], *consumers: Callable[[RunEvent], None]) -> Report:
    """Hand every event to each of the consumers and return the report of the last one. A run that is cancelled once
    more when its report is there is not waited for."""
    report: Report | None = None
    try:
        async with aclosing(events) as stream:
            async for event in stream:
                for consumer in consumers:
                    consumer(event)
                if isinstance(event, RunFinished):
                    report = event.report
    except asyncio.CancelledError:
        if report is None:
            raise
    assert report is not None, "a run ends with its report or raises"
    return report


def progress_consumer(show: Callable[[Progress], None]) -> Callable[[RunEvent], None]:
    """A consumer that shows progress and nothing else."""

    def consume_progress(event: RunEvent) -> None:
        if isinstance(event, Progress):
            show(event)

    return consume_progress
