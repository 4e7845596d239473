"""Kafka as an operator sees it, a stand-in for it in this process, and the operators downstream of the region."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

# What an operator needs of a Kafka consumer, and what the consumer calls back.


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


class Listener(Protocol):
    """What is called inside a poll."""

    def on_revoked(self) -> None:
        """All partitions are revoked, or were lost."""

    def on_assigned(self, partitions: frozenset[Partition]) -> None:
        """These are the partitions now."""


class KafkaConsumer(Protocol):
    """A consumer with an eager assignor that commits nothing by itself."""

    async def take_records(self, limit: int) -> list[Message]:
        """Callbacks, then at most so many records; 0 keeps the membership alone. Raises `PositionLost`."""

    def seek(self, offsets: Offsets) -> None:
        """Fetch these partitions, which are assigned, from these offsets on."""

    async def commit(self, offsets: Offsets) -> None:
        """Commit in one request for all partitions. Raises `CommitFailed` if one fails."""

    async def is_member(self) -> bool:
        """Whether the group has this member in its present generation, as the group says."""

    def abandon(self) -> None:
        """Its process has died: the group learns of it when its session is over."""


MakeConsumer: TypeAlias = Callable[[Listener], KafkaConsumer]
"""Makes a consumer of the group for a listener."""


# A stand-in for Kafka in this process: logs, committed offsets and one group with eager rebalances and sessions.


POLL_SECONDS = 0.01


@dataclass(eq=False, slots=True)
class MemoryKafka:
    """The ends of the logs, and a group whose rebalance is over once every member has joined it."""

    ends: Offsets
    session_seconds: float = 1.0
    committed: Offsets = field(default_factory=dict)
    members: list["MemoryConsumer"] = field(default_factory=list)
    generation: int = 0
    """The rebalance that is under way or was the last one."""
    joined: set["MemoryConsumer"] = field(default_factory=set)
    """The members that are in it."""

    def make_consumer(self, listener: Listener) -> "MemoryConsumer":
        """A consumer of the group."""
        return MemoryConsumer(self, listener)

    def rebalance(self) -> None:
        """Every member must join again."""
        self.generation += 1
        self.joined.clear()

    def add_partition(self, partition: Partition) -> None:
        """Add a partition; Kafka divides them anew."""
        self.ends[partition] = 0
        self.rebalance()

    def expel(self, member: "MemoryConsumer") -> None:
        """End a membership; the member learns of it in its next poll."""
        if member in self.members:
            self.members.remove(member)
            self.rebalance()

    def is_stable(self) -> bool:
        """Whether all members have joined."""
        return bool(self.members) and set(self.members) == self.joined

    def share_of(self, member: "MemoryConsumer") -> frozenset[Partition]:
        """The partitions of a member, dealt out in turn."""
        return frozenset(sorted(self.ends)[self.members.index(member) :: len(self.members)])


@dataclass(eq=False, slots=True)
class MemoryConsumer:
    """A consumer of the group. Fetches are not checked against the generation, commits are."""

    kafka: MemoryKafka
    listener: Listener
    positions: Offsets = field(default_factory=dict)
    generation: int = -1
    """The rebalance that it has joined; -1 if none."""
    has_assignment: bool = False

    async def take_records(self, limit: int) -> list[Message]:
        """As `KafkaConsumer.take_records`."""
        await asyncio.sleep(POLL_SECONDS)
        self._follow_group()
        return self._fetch(limit) if self.has_assignment else []

    def _follow_group(self) -> None:
        if self not in self.kafka.members:
            self._give_up()
            self.kafka.members.append(self)
            self.kafka.rebalance()
        if self.generation != self.kafka.generation:
            self._give_up()
            self.generation = self.kafka.generation
            self.kafka.joined.add(self)
        if self.kafka.is_stable() and not self.has_assignment:
            self.has_assignment = True
            self.listener.on_assigned(self.kafka.share_of(self))

    def _give_up(self) -> None:
        if self.has_assignment:
            self.listener.on_revoked()
        self.has_assignment = False
        self.positions = {}

    def _fetch(self, limit: int) -> list[Message]:
        found: list[Message] = []
        for partition, position in sorted(self.positions.items()):
            end = min(self.kafka.ends[partition], position + limit - len(found))
            found += [Message(partition, offset) for offset in range(position, end)]
            self.positions[partition] = max(position, end)
        return found

    def seek(self, offsets: Offsets) -> None:
        """As `KafkaConsumer.seek`."""
        self.positions = dict(offsets)

    async def commit(self, offsets: Offsets) -> None:
        """As `KafkaConsumer.commit`."""
        if not await self.is_member():
            raise CommitFailed
        self.kafka.committed |= offsets

    async def is_member(self) -> bool:
        """As `KafkaConsumer.is_member`: no rebalance is under way either."""
        return self in self.kafka.members and self.generation == self.kafka.generation and self.has_assignment

    def abandon(self) -> None:
        """As `KafkaConsumer.abandon`."""
        asyncio.get_running_loop().call_later(self.kafka.session_seconds, self.kafka.expel, self)


# The operators downstream of the region, as one program that counts the tuples it gets.


@dataclass(slots=True)
class Downstream:
    """The next offset and the number of tuples of each partition so far: the state that a reset restores."""

    next: Offsets = field(default_factory=dict)
    taken: Offsets = field(default_factory=dict)
    duplicates: int = 0
    gaps: int = 0

    def take(self, message: Message, first: int) -> None:
        """Process a tuple of a partition that begins at `first`."""
        partition, offset = message.partition, message.offset
        due = self.next.get(partition, first)
        self.duplicates += offset < due
        self.gaps += offset > due
        self.next[partition] = max(due, offset + 1)
        self.taken[partition] = self.taken.get(partition, 0) + 1

    def copy(self) -> "Downstream":
        """The state, apart from this one."""
        return Downstream(dict(self.next), dict(self.taken), self.duplicates, self.gaps)
