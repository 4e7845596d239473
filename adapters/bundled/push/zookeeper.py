"""A stand-in for ZooKeeper in this process: the paths that the push coordinator uses, with watches and sessions."""

from collections.abc import Callable
from dataclasses import dataclass, field

Partition = tuple[str, str]
"""A topic, and a partition's name, which contains the id of its broker."""


@dataclass(slots=True)
class MemoryZookeeper:
    """The coordinator path (ephemeral), the partitions of topics, and owners and offsets by group (persistent)."""

    topics: dict[str, list[str]] = field(default_factory=dict)
    owners: dict[str, dict[Partition, str]] = field(default_factory=dict)
    offsets: dict[str, dict[Partition, int]] = field(default_factory=dict)
    addresses: dict[int, tuple[str, int]] = field(default_factory=dict)
    """The live brokers."""
    coordinator: int | None = None
    elections: int = 0
    _leader_watches: list[Callable[[], None]] = field(default_factory=list)
    _topic_watches: dict[int, Callable[[str], None]] = field(default_factory=dict)

    def elect(self, broker: int, on_vacant: Callable[[], None]) -> int | None:
        """Make the ephemeral node if there is none, and return the number of the election; else watch it, None."""
        if self.coordinator is not None:
            self._leader_watches.append(on_vacant)
            return None
        self.coordinator = broker
        self.elections += 1
        return self.elections

    def end_session(self, broker: int) -> None:
        """The session of a broker is over: its nodes go, and watches fire."""
        self.addresses.pop(broker, None)
        self._topic_watches.pop(broker, None)
        if self.coordinator == broker:
            self.coordinator = None
            watches, self._leader_watches = self._leader_watches, []
            for watch in watches:
                watch()

    def watch_topics(self, broker: int, on_change: Callable[[str], None]) -> None:
        """Tell a broker of each topic that is new or has a new partition."""
        self._topic_watches[broker] = on_change

    def add_partition(self, topic: str, partition: str) -> None:
        """Add a partition, and the topic if it is new."""
        self.topics.setdefault(topic, []).append(partition)
        for watch in list(self._topic_watches.values()):
            watch(topic)

    def write_offsets(self, group: str, election: int, offsets: dict[Partition, int]) -> bool:
        """Record offsets, unless another broker was elected since."""
        if election != self.elections or self.coordinator is None:
            return False
        self.offsets.setdefault(group, {}).update(offsets)
        return True

    def write_owners(self, group: str, election: int, owners: dict[Partition, str]) -> bool:
        """Record the owners, unless another broker was elected since."""
        if election != self.elections or self.coordinator is None:
            return False
        self.owners[group] = owners
        return True
