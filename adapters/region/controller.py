"""The region as running tasks: two for each operator, and the controller that takes all operators together."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

from fencepost.adapters.region.kafka import CommitFailed, Downstream, MakeConsumer, PositionLost
from fencepost.adapters.region.operator import JobControl, OperatorPart, Polling, RegionOperator

# The two threads of an operator, as tasks: the event thread owns the Kafka client, the process thread submits.


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


# The region: it drains, checkpoints and resets all operators together, and launches a PE anew that has died.


class RegionMode(StrEnum):
    """What the region is doing."""

    RUN = "run"
    DRAIN = "drain"
    CHECKPOINT = "checkpoint"
    RESET = "reset"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RegionSettings:
    """Times in seconds."""

    checkpoint_period: float = 1.0
    reset_timeout: float = 180.0
    relaunch: float = 0.5
    max_attempts: int = 5
    """Resets that may follow one another without a checkpoint."""
    max_poll_records: int = 500
    tuple_seconds: float = 0.001
    """How long a submission takes."""


@dataclass(frozen=True, slots=True)
class RegionCheckpoint:
    """What a reset restores; number 0 is the initial state."""

    number: int
    parts: dict[str, OperatorPart]
    downstream: Downstream


@dataclass(eq=False, slots=True)
class RegionProgram:
    """A job of one region with these operators."""

    names: tuple[str, ...]
    make_consumer: MakeConsumer
    settings: RegionSettings = RegionSettings()
    downstream: Downstream = field(default_factory=Downstream)
    mode: RegionMode = RegionMode.RUN
    resets: int = 0
    attempts: int = 0
    control: JobControl = field(init=False)
    last: RegionCheckpoint = field(init=False)
    operators: dict[str, OperatorThreads] = field(default_factory=dict)
    _closed: set[str] = field(default_factory=set)
    _permits: asyncio.Condition = field(default_factory=asyncio.Condition)
    _held: set[str] = field(default_factory=set)
    _requested: asyncio.Event = field(default_factory=asyncio.Event)
    _launches: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.control = JobControl(frozenset(self.names))
        self.last = RegionCheckpoint(0, {}, self.downstream.copy())

    async def run(self) -> None:
        """Run until cancelled, or until the region has failed."""
        for name in self.names:
            self._launch(name, Polling.FULL)
        try:
            while self.mode is not RegionMode.FAILED:
                try:
                    async with asyncio.timeout(self.settings.checkpoint_period):
                        await self._requested.wait()
                except TimeoutError:
                    await self._checkpoint()
                else:
                    await self._reset()
        finally:
            for task in self._launches:
                task.cancel()
            await asyncio.gather(*(operator.kill() for operator in self.operators.values()))

    # -- operators ------------------------------------------------------------------------------------------------

    def _launch(self, name: str, polling: Polling) -> None:
        operator = RegionOperator(
            name,
            self.control,
            self.make_consumer,
            self.request_reset,
            max_poll_records=self.settings.max_poll_records,
            polling=polling,
        )
        self.operators[name] = OperatorThreads(operator, self, self.control.disconnect)

    def crash(self, name: str) -> None:
        """An operator's PE dies. It comes back, and waits for a reset before it polls."""
        threads = self.operators.pop(name, None)
        if threads is not None:
            self.request_reset()
            task = asyncio.create_task(self._relaunch(threads))
            self._launches.add(task)
            task.add_done_callback(self._launches.discard)

    async def _relaunch(self, threads: OperatorThreads) -> None:
        await threads.kill()
        await asyncio.sleep(self.settings.relaunch)
        self._launch(threads.operator.name, Polling.OFF)

    def request_reset(self) -> None:
        """Reset the region; while it resets, once more after that (H07)."""
        self._requested.set()

    async def _on_all(self, ask: Callable[[OperatorThreads], Coroutine[Any, Any, None]]) -> None:
        """Ask every operator at once; OperatorDied if one is down or dies."""
        if self.operators.keys() != set(self.names):
            raise OperatorDied
        try:
            async with asyncio.TaskGroup() as group:
                for operator in self.operators.values():
                    group.create_task(ask(operator))
        except ExceptionGroup as deaths:  # operators raise nothing else
            raise OperatorDied from deaths

    # -- permits --------------------------------------------------------------------------------------------------

    async def submit(self, operator: RegionOperator) -> None:
        """Take the operator's next message under a permit, not before (H03), and submit it."""
        if operator.name in self._closed:
            async with self._permits:
                await self._permits.wait_for(lambda: operator.name not in self._closed)
        if not operator.take():
            return
        self._held.add(operator.name)
        try:
            await asyncio.sleep(self.settings.tuple_seconds)
            message = operator.submit()
            if message is not None:
                self.downstream.take(message, self.control.variables[message.partition])
        finally:
            self._held.discard(operator.name)
            if self._closed:
                async with self._permits:
                    self._permits.notify_all()

    async def _close(self, names: Iterable[str]) -> None:
        """No submission by these from now on; those under way end first."""
        closing = set(names)
        async with self._permits:
            self._closed |= closing
            await self._permits.wait_for(lambda: not closing & self._held)

    async def _open(self) -> None:
        async with self._permits:
            self._closed.clear()
            self._permits.notify_all()

    # -- checkpoint and reset -------------------------------------------------------------------------------------

    async def _checkpoint(self) -> None:
        """Drain all, then have all write; any refusal, failure or request for a reset meanwhile voids it."""
        parts: dict[str, OperatorPart] = {}

        async def drain(threads: OperatorThreads) -> None:
            name = threads.operator.name
            try:
                await self._close((name,))
                await threads.ask(threads.operator.drain)
            except CommitFailed:
                self.crash(name)
                raise OperatorDied(name) from None

        async def write(threads: OperatorThreads) -> None:
            part = await threads.ask(threads.operator.checkpoint)
            if part is not None:
                parts[part.name] = part

        async def resume(threads: OperatorThreads) -> None:
            await threads.ask(partial(do_now, threads.operator.resume))

        try:
            self.mode = RegionMode.DRAIN
            await self._on_all(drain)
            self.mode = RegionMode.CHECKPOINT
            await self._on_all(write)
            if parts.keys() != set(self.names) or self._requested.is_set():
                self.request_reset()
                return
            self.control.retire(self.last.number)
            self.last = RegionCheckpoint(self.last.number + 1, parts, self.downstream.copy())
            self.attempts = 0
            await self._on_all(resume)
        except OperatorDied:
            self.request_reset()
            return
        self.mode = RegionMode.RUN
        await self._open()

    async def _reset(self) -> None:
        """Reset every operator to the last checkpoint. Every attempt counts, forced or not (H12)."""
        self.attempts += 1
        if self.attempts > self.settings.max_attempts:
            self.mode = RegionMode.FAILED
            return
        self.mode = RegionMode.RESET
        self.resets += 1
        self._requested.clear()
        await self._close(self.names)
        self.downstream = self.last.downstream.copy()
        try:
            async with asyncio.timeout(self.settings.reset_timeout):
                await self._await_launches()
                await self._on_all(self._reset_operator)
        except (OperatorDied, TimeoutError):
            self.request_reset()
            return
        if not self._requested.is_set():
            self.mode = RegionMode.RUN
            await self._open()

    async def _await_launches(self) -> None:
        while self._launches:
            await asyncio.wait(set(self._launches))

    async def _reset_operator(self, threads: OperatorThreads) -> None:
        operator = threads.operator
        part = self.last.parts.get(operator.name)
        await threads.ask(partial(operator.reset, self.last.number, part))


async def do_now(work: Callable[[], None]) -> None:
    """Do something that waits for nothing."""
    work()
