"""The region: it drains, checkpoints and resets all operators together, and launches a PE anew that has died."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fencepost.adapters.bundled.region.downstream import Downstream
from fencepost.adapters.bundled.region.job_control import JobControl, OperatorPart
from fencepost.adapters.bundled.region.memory_kafka import CommitFailed, MemoryKafka
from fencepost.adapters.bundled.region.operator import OperatorDied, RegionOperator

TUPLE_SECONDS = 0.001


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
    kafka: MemoryKafka
    settings: RegionSettings = RegionSettings()
    downstream: Downstream = field(default_factory=Downstream)
    mode: RegionMode = RegionMode.RUN
    resets: int = 0
    attempts: int = 0
    control: JobControl = field(init=False)
    last: RegionCheckpoint = field(init=False)
    operators: dict[str, RegionOperator] = field(default_factory=dict)
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
            self._launch(name, polls=True)
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

    def _launch(self, name: str, polls: bool) -> None:
        self.operators[name] = RegionOperator(
            name, self, self.control, self.kafka, self.settings.max_poll_records, polls
        )

    def crash(self, name: str) -> None:
        """An operator's PE dies. It comes back, and waits for a reset before it polls."""
        operator = self.operators.pop(name, None)
        if operator is not None:
            self.request_reset()
            task = asyncio.create_task(self._relaunch(operator))
            self._launches.add(task)
            task.add_done_callback(self._launches.discard)

    async def _relaunch(self, operator: RegionOperator) -> None:
        await operator.kill()
        await asyncio.sleep(self.settings.relaunch)
        self._launch(operator.name, polls=False)

    def request_reset(self) -> None:
        """Reset the region; while it resets, once more after that (H07)."""
        self._requested.set()

    async def _on_all(self, ask: Callable[[RegionOperator], Coroutine[Any, Any, None]]) -> None:
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
        async with self._permits:
            await self._permits.wait_for(lambda: operator.name not in self._closed)
            if not operator.queue:
                return
            message = operator.queue.popleft()
            self._held.add(operator.name)
        try:
            await asyncio.sleep(TUPLE_SECONDS)
            if message.partition in operator.offsets:  # H10: revoked since
                self.downstream.take(message, self.control.variables[message.partition])
                operator.offsets[message.partition] = message.offset + 1
        finally:
            self._held.discard(operator.name)
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

        async def drain(operator: RegionOperator) -> None:
            try:
                await self._close((operator.name,))
                await operator.ask(operator.drain)
            except CommitFailed:
                self.crash(operator.name)
                raise OperatorDied(operator.name) from None

        async def write(operator: RegionOperator) -> None:
            part = await operator.ask(operator.checkpoint)
            if part is not None:
                parts[operator.name] = part

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
            await self._on_all(lambda operator: operator.ask(operator.resume))
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

    async def _reset_operator(self, operator: RegionOperator) -> None:
        part = self.last.parts.get(operator.name)
        await operator.ask(lambda: operator.reset(self.last.number, part))
