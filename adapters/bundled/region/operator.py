"""An operator: its event thread owns the Kafka client, its process thread submits; both are tasks here."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from fencepost.adapters.bundled.region.job_control import Contribution, JobControl, OperatorPart
from fencepost.adapters.bundled.region.memory_kafka import MemoryConsumer, MemoryKafka, Message, Offsets, Partition

THROTTLE_SECONDS = 0.1
QUEUED_POLLS = 100
"""The queue holds so many polls."""


class OperatorDied(Exception):
    """The operator's PE went down before it did what the region asked for."""


class OperatorState(StrEnum):
    """The states of the client, as the page names them."""

    SUBSCRIBED = "SUBSCRIBED"
    RECORDS_FETCHED = "RECORDS_FETCHED"
    RESET_PENDING = "CR_RESET_PENDING"
    RESET_COMPLETE = "RESET_COMPLETE"


class RegionPort(Protocol):
    """What an operator asks of its region."""

    def request_reset(self) -> None:
        """Reset the region, at once or after the reset under way."""

    async def submit(self, operator: "RegionOperator") -> None:
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


class RegionOperator:
    """One life of an operator, from the launch of its PE to its death."""

    def __init__(
        self, name: str, region: RegionPort, control: JobControl, kafka: MemoryKafka, max_poll_records: int, polls: bool
    ) -> None:
        self.name = name
        self.state = OperatorState.SUBSCRIBED
        self.consumer = MemoryConsumer(kafka, self)
        self.queue: deque[Message] = deque()
        self.has_messages = asyncio.Event()
        self.offsets: Offsets = {}
        self.seek_map: Offsets = {}
        self.longest_queue = 0
        self._region, self._control = region, control
        self._limit = max_poll_records
        self._drained: deque[Message] = deque()
        self._is_map_old = False
        self._contribution: Contribution | None = None
        control.connect(name, lambda: self._contribution)
        self._polls, self._is_throttled = polls, False
        self._events: asyncio.Queue[_Event] = asyncio.Queue()
        self._tasks = [asyncio.create_task(self._handle_events()), asyncio.create_task(self._process())]

    # -- the two threads ------------------------------------------------------------------------------------------

    async def ask(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Have the event thread do something; OperatorDied if it never will."""
        event = _Event(work, asyncio.get_running_loop().create_future())
        if self._tasks[0].done():
            raise OperatorDied(self.name)
        self._events.put_nowait(event)
        try:
            await asyncio.wait((event.done, self._tasks[0]), return_when=asyncio.FIRST_COMPLETED)
            if not event.done.done():
                raise OperatorDied(self.name)
            return event.done.result()
        finally:
            event.done.cancel()  # whoever asked waits no longer

    async def _handle_events(self) -> None:
        while True:
            if self._polls and self._events.empty():
                await self._poll()
                continue
            event = await self._events.get()
            work = asyncio.create_task(event.work())
            event.done.add_done_callback(lambda _, work=work: work.cancel())  # type: ignore[misc]
            try:
                await asyncio.wait((work,))
            finally:
                work.cancel()
            settle(event.done, work)

    async def _poll(self) -> None:
        if self._is_throttled:
            await asyncio.sleep(THROTTLE_SECONDS)
        room = QUEUED_POLLS * self._limit - len(self.queue)
        messages = await self.consumer.poll(self._limit if room >= self._limit else 0)
        if messages and self.state is not OperatorState.RESET_PENDING:
            self.state = OperatorState.RECORDS_FETCHED
            self.queue.extend(messages)
            self.longest_queue = max(self.longest_queue, len(self.queue))
            self.has_messages.set()

    async def _process(self) -> None:
        while True:
            await self.has_messages.wait()
            await self._region.submit(self)
            if not self.queue:
                self.has_messages.clear()

    async def kill(self) -> None:
        """The PE dies; its session at Kafka lives on for a while."""
        for task in self._tasks:
            task.cancel()
        self._control.disconnect(self.name)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.consumer.abandon()

    # -- callbacks, inside a poll ---------------------------------------------------------------------------------

    def on_revoked(self) -> None:
        """Ignored unless records were fetched or the seek map is old (H13); else the region is reset."""
        self._clear()
        if self.state is OperatorState.RECORDS_FETCHED or self._is_map_old:
            self._await_reset()

    def on_assigned(self, partitions: frozenset[Partition]) -> None:
        """Seek what is assigned, unless a reset is awaited, which will."""
        self.offsets = {one: offset for one, offset in self.offsets.items() if one in partitions}
        if partitions and self._is_map_old:
            self._await_reset()
        self.consumer.positions = {}
        if self.state is not OperatorState.RESET_PENDING:
            self._seek(partitions)

    def _await_reset(self) -> None:
        if self.state is not OperatorState.RESET_PENDING:
            self.state = OperatorState.RESET_PENDING
            self._polls = False
            self._region.request_reset()

    def _seek(self, partitions: frozenset[Partition]) -> None:
        self.offsets = {one: self._start_of(one) for one in partitions}
        self.consumer.positions = dict(self.offsets)

    def _start_of(self, partition: Partition) -> int:
        found = self.seek_map.get(partition)
        return self._control.first_offset(partition, 0) if found is None else found

    def _clear(self) -> None:
        self.queue.clear()
        self._drained.clear()
        self.has_messages.clear()

    def assigned_partitions(self) -> frozenset[Partition]:
        """The partitions that Kafka has assigned, and has not taken back."""
        consumer = self.consumer
        return consumer.kafka.share_of(consumer) if consumer.is_member() else frozenset()

    # -- what the region asks for; runs in the event thread -------------------------------------------------------

    async def drain(self) -> None:
        """Stop polling, put the queue aside, commit; CommitFailed if one partition's fails."""
        self._polls = False
        self._drained.extend(self.queue)
        self.queue.clear()
        self.has_messages.clear()
        if self.offsets:
            self.consumer.commit(self.offsets)

    async def checkpoint(self) -> OperatorPart | None:
        """The operator's part; None where it refuses: it awaits a reset or is not fully assigned (H04, H05)."""
        is_fit = self.state is not OperatorState.RESET_PENDING and self.offsets.keys() == self.assigned_partitions()
        if not is_fit or (self.consumer.has_assignment and not self.consumer.is_member()):
            return None
        return OperatorPart(self.name, dict(self.offsets), dict(self.seek_map))

    async def resume(self) -> None:
        """The checkpoint is complete: go on, at full speed."""
        if self.state is OperatorState.RESET_PENDING:
            return
        self.queue.extendleft(reversed(self._drained))
        self._drained.clear()
        self._polls, self._is_throttled, self._is_map_old = True, False, True
        if self.queue:
            self.has_messages.set()

    async def reset(self, checkpoint: int, part: OperatorPart | None) -> None:
        """Go back to the merged checkpoint, or to the initial state where there is none."""
        self._contribution = None if part is None else (checkpoint, part)
        merged = {} if part is None else await self._control.merge(checkpoint, part)
        self._polls = False
        self._clear()
        self.seek_map = self._control.variables | merged
        self.state, self._is_map_old = OperatorState.RESET_COMPLETE, False
        self._seek(self.assigned_partitions())
        self._polls, self._is_throttled = True, True
