"""A stand-in for Kafka in this process: logs, committed offsets and one group with eager rebalances and sessions."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

Partition = tuple[str, int]
Offsets = dict[Partition, int]
POLL_SECONDS = 0.01


class CommitFailed(Exception):
    """The member that commits is not one of the group's present generation."""


@dataclass(frozen=True, slots=True)
class Message:
    """A record with its place."""

    partition: Partition
    offset: int
    value: str


class Listener(Protocol):
    """What is called inside a poll."""

    def on_revoked(self) -> None:
        """All partitions are revoked, or were lost."""

    def on_assigned(self, partitions: frozenset[Partition]) -> None:
        """These are the partitions now."""


@dataclass(eq=False, slots=True)
class MemoryKafka:
    """The logs, and a group whose rebalance is over once every member has joined it."""

    logs: dict[Partition, list[str]]
    session_seconds: float = 1.0
    committed: Offsets = field(default_factory=dict)
    members: list["MemoryConsumer"] = field(default_factory=list)
    generation: int = 0
    """The rebalance that is under way or was the last one."""
    joined: set["MemoryConsumer"] = field(default_factory=set)
    """The members that are in it."""

    def rebalance(self) -> None:
        """Every member must join again."""
        self.generation += 1
        self.joined.clear()

    def add_partition(self, partition: Partition) -> None:
        """Add a partition; Kafka divides them anew."""
        self.logs[partition] = []
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
        return frozenset(sorted(self.logs)[self.members.index(member) :: len(self.members)])


@dataclass(eq=False, slots=True)
class MemoryConsumer:
    """A consumer of the group. Fetches are not checked against the generation, commits are."""

    kafka: MemoryKafka
    listener: Listener
    positions: Offsets = field(default_factory=dict)
    generation: int = -1
    """The rebalance that it has joined; -1 if none."""
    has_assignment: bool = False

    async def poll(self, limit: int) -> list[Message]:
        """Callbacks, then at most so many records; 0 keeps the membership alone."""
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
            values = self.kafka.logs[partition][position : position + limit - len(found)]
            found += [Message(partition, position + index, value) for index, value in enumerate(values)]
            self.positions[partition] = position + len(values)
        return found

    def is_member(self) -> bool:
        """Whether the group has it in its present generation, and no rebalance is under way."""
        return self in self.kafka.members and self.generation == self.kafka.generation and self.has_assignment

    def commit(self, offsets: Offsets) -> None:
        """One request for all partitions."""
        if not self.is_member():
            raise CommitFailed
        self.kafka.committed |= offsets

    def abandon(self) -> None:
        """Its process has died: the group learns of it when its session is over."""
        asyncio.get_running_loop().call_later(self.kafka.session_seconds, self.kafka.expel, self)
