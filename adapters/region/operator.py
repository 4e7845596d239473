"""An operator without its threads, and the job control plane that operators share."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from fencepost.adapters.region.kafka import MakeConsumer, Message, Offsets, Partition, PositionLost

# The job control plane: control variables, and the bean of the group that merges checkpoints.


class WrongRegion(Exception):
    """The operator is in another region than its group."""


@dataclass(frozen=True, slots=True)
class OperatorPart:
    """An operator's part of a checkpoint: the offsets of what it is assigned over the map that it seeks by (H01)."""

    name: str
    names: frozenset[str]
    offsets: Offsets
    base: Offsets


Contribution = tuple[int, OperatorPart]
"""The number of a checkpoint, and an operator's part of it."""


def merge_parts(parts: Iterable[OperatorPart]) -> Offsets:
    """The union: what was assigned over the maps below, the highest offset where several have one."""
    below: Offsets = {}
    above: Offsets = {}
    for part in parts:
        for target, offsets in ((below, part.base), (above, part.offsets)):
            for partition, offset in offsets.items():
                target[partition] = max(offset, target.get(partition, 0))
    return below | above


def bean_name(group: str) -> str:
    """The name of a group's bean: the id itself, for a hash may be that of another one too (H17)."""
    return group


@dataclass(eq=False, slots=True)
class ControlPlane:
    """The beans of all groups, by name."""

    beans: dict[str, "JobControl"] = field(default_factory=dict)

    def bean(self, group: str, names: frozenset[str]) -> "JobControl":
        """The bean of a group, which is made for the first who asks; the names of its operators are in it."""
        found = self.beans.setdefault(bean_name(group), JobControl(frozenset()))
        found.names |= names
        return found


@dataclass(eq=False, slots=True)
class JobControl:
    """The variables are stored; the bean is not, and is empty after a restart. The job's names are fixed (H02)."""

    names: frozenset[str]
    variables: Offsets = field(default_factory=dict)
    """The first offset that the group has sought, by partition."""
    restarts: int = 0
    region: int | None = None
    """The index of the group's region, once an operator has connected."""
    _connected: dict[str, Callable[[], Contribution | None]] = field(default_factory=dict)
    """What each live operator has contributed to the reset that was its last."""
    _parts: dict[int, dict[str, OperatorPart]] = field(default_factory=dict)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def connect(self, name: str, region: int, recall: Callable[[], Contribution | None]) -> None:
        """Connect an operator; `recall` returns its last contribution. Raises `WrongRegion`."""
        if self.region not in (None, region):
            raise WrongRegion(f"operator {name} is in region {region}, and its group in region {self.region}")
        self.region = region
        self._connected[name] = recall

    def disconnect(self, name: str) -> None:
        """Disconnect an operator that is gone."""
        self._connected.pop(name, None)

    def first_offset(self, partition: Partition, start: int) -> int:
        """The control variable, made with this value if there is none: in one step (H08)."""
        return self.variables.setdefault(partition, start)

    def contribute(self, checkpoint: int, part: OperatorPart) -> None:
        """Add a part to the merge of a checkpoint, once for each operator."""
        self._parts.setdefault(checkpoint, {}).setdefault(part.name, part)

    def merge_if_complete(self, checkpoint: int) -> Offsets | None:
        """The merged map if all operators of the job have contributed; at once when it is asked for again (H06)."""
        parts = self._parts.get(checkpoint, {})
        return merge_parts(parts.values()) if parts.keys() == self.names else None

    async def merge(self, checkpoint: int, part: OperatorPart) -> Offsets:
        """Contribute, and wait until all operators of the job have, as long as the caller lets it (H16)."""
        async with self._news:
            self.contribute(checkpoint, part)
            self._news.notify_all()
            while (found := self.merge_if_complete(checkpoint)) is None:
                await self._news.wait()
            return found

    def retire(self, checkpoint: int) -> None:
        """Forget the merges of this checkpoint and of older ones."""
        self._parts = {one: parts for one, parts in self._parts.items() if one > checkpoint}

    async def restart(self) -> None:
        """The control plane restarts: merges are lost, and all contribute again (H11), those too that have been reset:
        others may wait for them."""
        async with self._news:
            self.restarts += 1
            self._parts = {}
            for recall in self._connected.values():
                contribution = recall()
                if contribution is not None:
                    self.contribute(*contribution)
            self._news.notify_all()


# An operator without its threads: what callbacks, polls, submissions, checkpoints and resets do to it.


QUEUED_POLLS = 100
"""The queue holds so many polls."""
START_POSITIONS = frozenset({"Beginning", "End", "Default", "Time"})
"""Where partitions may begin; Default is the committed offset."""


class OperatorState(StrEnum):
    """The states of the client, as the page names them."""

    SUBSCRIBED = "SUBSCRIBED"
    RECORDS_FETCHED = "RECORDS_FETCHED"
    RESET_PENDING = "CR_RESET_PENDING"
    RESET_COMPLETE = "RESET_COMPLETE"


class Polling(StrEnum):
    """How the event thread polls."""

    OFF = "off"
    THROTTLED = "throttled"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class DrainTimes:
    """Metrics: how long the last drain took, and the longest one, in milliseconds."""

    last: int = 0
    longest: int = 0


def start_at_beginning(partition: Partition) -> int:
    """The offset where a partition begins that nobody has read: 0."""
    return 0


class RegionOperator:
    """One life of an operator, from the launch of its PE to its death. `request_reset` has the region reset, at once or
    after the reset under way; `start_of` says where a partition without a control variable begins, `subscribed` which
    partitions there were at subscription, if that is known. `clock` tells seconds."""

    def __init__(
        self,
        name: str,
        control: JobControl,
        make_consumer: MakeConsumer,
        request_reset: Callable[[], None],
        *,
        region: int = 0,
        max_poll_records: int = 500,
        polling: Polling = Polling.FULL,
        start_of: Callable[[Partition], int] = start_at_beginning,
        subscribed: Collection[Partition] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.state = OperatorState.SUBSCRIBED
        self.queue: deque[Message] = deque()
        self.drained: deque[Message] = deque()
        self.hand: Message | None = None
        self.offsets: Offsets = {}
        self.seek_map: Offsets = {}
        self.polling = polling
        self.longest_queue = 0
        self.limit = max_poll_records
        self._control = control
        self._request_reset = request_reset
        self._start_of = start_of
        self._subscribed = subscribed
        self._clock = clock
        self.drains = DrainTimes()
        self._unconfirmed: Offsets = {}
        """What was sought, of partitions of which nothing was fetched since."""
        self._assigned: frozenset[Partition] | None = None
        """None between a revocation and the assignment that follows it."""
        self._is_map_old = False
        self._contribution: Contribution | None = None
        control.connect(name, region, lambda: self._contribution)
        self.consumer = make_consumer(self)

    # -- polls and submissions ------------------------------------------------------------------------------------

    def has_room(self) -> bool:
        """Whether the records of another poll fit into the queue."""
        return QUEUED_POLLS * self.limit - len(self.queue) >= self.limit

    def receive(self, messages: Iterable[Message]) -> None:
        """Queue what a poll has returned, unless a reset is awaited. Raises `PositionLost` if Kafka has gone on from
        another offset than the one that was sought (H15)."""
        before = len(self.queue)
        if self.state is not OperatorState.RESET_PENDING:
            found = tuple(messages)
            self._confirm(found)
            self.queue.extend(found)
        if len(self.queue) > before:
            self.state = OperatorState.RECORDS_FETCHED
            self.longest_queue = max(self.longest_queue, len(self.queue))

    def _confirm(self, messages: Iterable[Message]) -> None:
        for message in messages:
            sought = self._unconfirmed.pop(message.partition, message.offset)
            if message.offset != sought:
                topic, number = message.partition
                raise PositionLost(f"{topic}/{number} goes on at {message.offset}, and {sought} was sought")

    def take(self) -> bool:
        """Take the next message; the caller has a permit, and so the region runs (H03)."""
        if self.hand is not None or not self.queue:
            return False
        self.hand = self.queue.popleft()
        if self.polling is Polling.THROTTLED:
            self.polling = Polling.FULL
        return True

    def submit(self) -> Message | None:
        """Submit the message in hand, which is returned, or drop it: its partition was revoked meanwhile (H10)."""
        message, self.hand = self.hand, None
        if message is None or message.partition not in self.offsets or self.state is OperatorState.RESET_PENDING:
            return None
        self.offsets[message.partition] = message.offset + 1
        return message

    # -- callbacks, inside a poll ---------------------------------------------------------------------------------

    def on_revoked(self) -> None:
        """Ignored unless records were fetched; then the region is reset."""
        self._assigned = None
        self._clear()
        if self.state is OperatorState.RECORDS_FETCHED:
            self._await_reset()

    def on_assigned(self, partitions: frozenset[Partition]) -> None:
        """Seek what is assigned, unless a reset is awaited, which will; await one if nothing was revoked before (H09),
        or the map is old (H13)."""
        self._assigned = partitions
        self.offsets = {one: offset for one, offset in self.offsets.items() if one in partitions}
        if self.state is OperatorState.RECORDS_FETCHED or (partitions and self._is_map_old):
            self._clear()
            self._await_reset()
        if self.state is not OperatorState.RESET_PENDING:
            self._seek(partitions)

    def _await_reset(self) -> None:
        if self.state is not OperatorState.RESET_PENDING:
            self.state = OperatorState.RESET_PENDING
            self.polling = Polling.OFF
            self._request_reset()

    def _seek(self, partitions: Iterable[Partition]) -> None:
        self.offsets = {one: self._first_of(one) for one in partitions}
        self.seek_map |= self.offsets
        self._unconfirmed = dict(self.offsets)
        self.consumer.seek(self.offsets)

    def _first_of(self, partition: Partition) -> int:
        found = self.seek_map.get(partition)
        return self._control.first_offset(partition, self._start(partition)) if found is None else found

    def _start(self, partition: Partition) -> int:
        """Where a partition begins that nobody has read: one born after the subscription at its beginning (H14)."""
        is_new = self._subscribed is not None and partition not in self._subscribed
        return 0 if is_new else self._start_of(partition)

    def _clear(self) -> None:
        self.queue.clear()
        self.drained.clear()

    # -- what the region asks for ---------------------------------------------------------------------------------

    async def drain(self) -> Offsets:
        """Stop polling, put the queue aside, commit; returns what was. Raises CommitFailed if one partition fails."""
        began = self._clock()
        self.polling = Polling.OFF
        self.drained.extend(self.queue)
        self.queue.clear()
        if self.offsets:
            await self.consumer.commit(self.offsets)
        took = round(1_000 * (self._clock() - began))
        self.drains = DrainTimes(took, max(took, self.drains.longest))
        return dict(self.offsets)

    async def checkpoint(self) -> OperatorPart | None:
        """The operator's part; None where it refuses: it awaits a reset or is not fully assigned (H04, H05)."""
        is_settled = self.offsets.keys() == (self._assigned or frozenset())
        if self.state is OperatorState.RESET_PENDING or not is_settled:
            return None
        if self._assigned is not None and not await self.consumer.is_member():
            return None
        return OperatorPart(self.name, self._control.names, dict(self.offsets), dict(self.seek_map))

    def resume(self) -> None:
        """The checkpoint is complete: go on, at full speed."""
        if self.state is not OperatorState.RESET_PENDING:
            self.queue.extendleft(reversed(self.drained))
            self.drained.clear()
            self.polling, self._is_map_old = Polling.FULL, True

    def contribute(self, checkpoint: int, part: OperatorPart) -> None:
        """Send the own part of a checkpoint to the bean, and remember it in case the bean is lost."""
        self._contribution = (checkpoint, part)
        self._control.contribute(checkpoint, part)

    def reset_to(self, merged: Offsets) -> None:
        """Go back to a merged checkpoint, or to the initial state by an empty one."""
        self._clear()
        self.seek_map = self._control.variables | merged
        self.state, self._is_map_old = OperatorState.RESET_COMPLETE, False
        self._seek(self._assigned or frozenset())
        self.polling = Polling.THROTTLED

    async def reset(self, checkpoint: int, part: OperatorPart | None) -> None:
        """Go back to a checkpoint as soon as all have contributed to its merge; to the initial state without a part."""
        if part is None:
            self._contribution = None
            return self.reset_to({})
        self._contribution = (checkpoint, part)
        return self.reset_to(await self._control.merge(checkpoint, part))
