"""The two threads of an operator, as tasks: the event thread owns the Kafka client, the process thread submits."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from fencepost.adapters.bundled.region.kafka_port import PositionLost
from fencepost.adapters.bundled.region.operator import Polling, RegionOperator

THROTTLE_SECONDS = 0.1
_log = logging.getLogger(__name__)


class OperatorDied(Exception):
    """The operator's PE went down before it did what the region asked for."""


class PermitPort(Protocol):
    """What the process thread asks of the region."""

    async def submit(self, operator: RegionOperator) -> None:
        """Submit the next message under a permit."""


@dataclass(frozen=True, slots=True)
class _Event:
    """What the event thread is to do, and who waits for it."""

    work: Callable[[], Coroutine[Any, Any, Any]]
    done: asyncio.Future[Any]


def settle(done: asyncio.Future[Any], work: asyncio.Task[Any]) -> None:
    """Pass on how the work ended, if anybody waits for it."""
    if done.done() or work.cancelled():
        return
    error = work.exception()
    if error is None:
        done.set_result(work.result())
    else:
        done.set_exception(error)


class OperatorThreads:
    """An operator that runs until it is killed. `disconnect` tells the control plane that it is gone."""

    def __init__(self, operator: RegionOperator, region: PermitPort, disconnect: Callable[[str], None]) -> None:
        self.operator = operator
        self._region, self._disconnect = region, disconnect
        self._has_messages = asyncio.Event()
        self._events: asyncio.Queue[_Event] = asyncio.Queue()
        self._tasks = [asyncio.create_task(self._handle_events()), asyncio.create_task(self._process())]

    async def ask(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Have the event thread do something; OperatorDied if it never will."""
        event = _Event(work, asyncio.get_running_loop().create_future())
        if self._tasks[0].done():
            raise OperatorDied(self.operator.name)
        self._events.put_nowait(event)
        try:
            await asyncio.wait((event.done, self._tasks[0]), return_when=asyncio.FIRST_COMPLETED)
            if not event.done.done():
                raise OperatorDied(self.operator.name)
            return event.done.result()
        finally:
            event.done.cancel()  # whoever asked waits no longer

    async def _handle_events(self) -> None:
        while True:
            if self.operator.polling is not Polling.OFF and self._events.empty():
                try:
                    await self._poll()
                except PositionLost as lost:  # a reset leads to the same place: the region fails, and is seen to
                    _log.error("operator %s: %s", self.operator.name, lost)
                    return
                continue
            event = await self._events.get()
            work = asyncio.create_task(event.work())
            event.done.add_done_callback(lambda _, work=work: work.cancel())  # type: ignore[misc]
            try:
                await asyncio.wait((work,))
            finally:
                work.cancel()
            settle(event.done, work)
            self._wake()

    async def _poll(self) -> None:
        operator = self.operator
        if operator.polling is Polling.THROTTLED:
            await asyncio.sleep(THROTTLE_SECONDS)
        operator.receive(await operator.consumer.take_records(operator.limit if operator.has_room() else 0))
        self._wake()

    def _wake(self) -> None:
        if self.operator.queue:
            self._has_messages.set()

    async def _process(self) -> None:
        while True:
            await self._has_messages.wait()
            if self.operator.queue:
                await self._region.submit(self.operator)
            else:
                self._has_messages.clear()

    async def kill(self) -> None:
        """The PE dies; its session at Kafka lives on for a while."""
        for task in self._tasks:
            task.cancel()
        self._disconnect(self.operator.name)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.operator.consumer.abandon()
