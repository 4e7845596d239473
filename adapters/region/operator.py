"""An operator without its threads, what it needs of Kafka, and the job control plane that operators share."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

Partition: TypeAlias = tuple[str, int]
"""A topic, and the number of its partition."""
Offsets: TypeAlias = dict[Partition, int]


class CommitFailed(Exception):
    """The member that commits is not one of the group's present generation, or the commit had no answer."""


class PositionLost(Exception):
    """Kafka's log no longer has the offset that was sought (H15)."""


@dataclass(frozen=True, slots=True)
class Message:
    """A record's place."""

    partition: Partition
    offset: int


class KafkaConsumer(Protocol):
    """A consumer with an eager assignor that commits nothing by itself."""

    def seek(self, offsets: Offsets) -> None:
        """Fetch these partitions, which are assigned, from these offsets on."""

    def commit(self, offsets: Offsets) -> None:
        """Commit in one request for all partitions. Raises `CommitFailed` if one fails."""

    def is_member(self) -> bool:
        """Whether the group has this member in its present generation, as the group says."""


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


@dataclass(eq=False, slots=True)
class JobControl:
    """The variables are stored; the bean is not, and is empty after a restart. The job's names are fixed (H02)."""

    names: frozenset[str]
    variables: Offsets = field(default_factory=dict)
    """The first offset that the group has sought, by partition."""
    region: int | None = None
    """The index of the group's region, once an operator has connected."""
    _connected: dict[str, Callable[[], Contribution | None]] = field(default_factory=dict)
    """What each live operator has contributed to the reset that was its last."""
    _parts: dict[int, dict[str, OperatorPart]] = field(default_factory=dict)

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

    def retire(self, checkpoint: int) -> None:
        """Forget the merges of this checkpoint and of older ones."""
        self._parts = {one: parts for one, parts in self._parts.items() if one > checkpoint}

    def restart(self) -> None:
        """The control plane restarts: merges are lost, and all contribute again (H11), those too that have been reset:
        others may wait for them."""
        self._parts = {}
        for recall in self._connected.values():
            contribution = recall()
            if contribution is not None:
                self.contribute(*contribution)


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


class RegionOperator:
    """One life of an operator, from the launch of its PE to its death. `request_reset` has the region reset, at once or
    after the reset under way; `start_of` says where a partition without a control variable begins. `clock` tells
    seconds."""

    def __init__(
        self,
        name: str,
        control: JobControl,
        consumer: KafkaConsumer,
        request_reset: Callable[[], None],
        *,
        region: int,
        max_poll_records: int,
        polling: Polling,
        start_of: Callable[[Partition], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.consumer = consumer
        self.state = OperatorState.SUBSCRIBED
        self.queue: deque[Message] = deque()
        self.drained: deque[Message] = deque()
        self.hand: Message | None = None
        self.offsets: Offsets = {}
        self.seek_map: Offsets = {}
        self.polling = polling
        self.limit = max_poll_records
        self._control = control
        self._request_reset = request_reset
        self._start_of = start_of
        self._clock = clock
        self.drains = DrainTimes()
        self._unconfirmed: Offsets = {}
        """What was sought, of partitions of which nothing was fetched since."""
        self._assigned: frozenset[Partition] | None = None
        """None between a revocation and the assignment that follows it."""
        self._is_map_old = False
        self._contribution: Contribution | None = None
        control.connect(name, region, lambda: self._contribution)

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
        return self._control.first_offset(partition, self._start_of(partition)) if found is None else found

    def _clear(self) -> None:
        self.queue.clear()
        self.drained.clear()

    # -- what the region asks for ---------------------------------------------------------------------------------

    def drain(self) -> Offsets:
        """Stop polling, put the queue aside, commit; returns what was. Raises CommitFailed if one partition fails."""
        began = self._clock()
        self.polling = Polling.OFF
        self.drained.extend(self.queue)
        self.queue.clear()
        if self.offsets:
            self.consumer.commit(self.offsets)
        took = round(1_000 * (self._clock() - began))
        self.drains = DrainTimes(took, max(took, self.drains.longest))
        return dict(self.offsets)

    def checkpoint(self) -> OperatorPart | None:
        """The operator's part; None where it refuses: it awaits a reset or is not fully assigned (H04, H05)."""
        is_settled = self.offsets.keys() == (self._assigned or frozenset())
        if self.state is OperatorState.RESET_PENDING or not is_settled:
            return None
        if self._assigned is not None and not self.consumer.is_member():
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
