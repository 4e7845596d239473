"""The region: it drains, checkpoints and resets all operators together, and launches a PE anew that has died."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from fencepost.adapters.bundled.region.downstream import Downstream
from fencepost.adapters.bundled.region.job_control import JobControl, OperatorPart
from fencepost.adapters.bundled.region.kafka_port import CommitFailed, MakeConsumer
from fencepost.adapters.bundled.region.operator import Polling, RegionOperator
from fencepost.adapters.bundled.region.threads import OperatorDied, OperatorThreads


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
