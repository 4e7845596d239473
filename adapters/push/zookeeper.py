"""What the push coordinator asks of ZooKeeper, and a stand-in for it in this process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

Partition = tuple[str, str]
"""A topic, and a partition's name, which contains the id of its broker."""


class Zookeeper(Protocol):
    """The paths that the push coordinator uses, with watches and sessions: `MemoryZookeeper`, or a real ensemble."""

    @property
    def topics(self) -> Mapping[str, list[str]]:
        """The partitions of topics."""

    @property
    def offsets(self) -> Mapping[str, Mapping[Partition, int]]:
        """The recorded offsets by group; current at the coordinator alone."""

    @property
    def addresses(self) -> Mapping[int, tuple[str, int]]:
        """The live brokers."""

    @property
    def coordinator(self) -> int | None:
        """The broker that holds the coordinator path."""

    def begin_session(self, broker: int, address: tuple[str, int], on_lost: Callable[[], None]) -> None:
        """Begin the session of a broker that is reached at this address; tell it once when the session is over."""

    def end_session(self, broker: int) -> None:
        """End the session of a broker, which is not told: its nodes go, and watches fire."""

    def watch_topics(self, broker: int, on_change: Callable[[str], None]) -> None:
        """Tell a broker of each topic that is new or has a new partition, while its session lasts."""

    def elect(self, broker: int, on_elected: Callable[[int], None]) -> None:
        """Make the coordinator path once there is none, and tell the broker the number of its election."""

    def write_offsets(self, group: str, election: int, offsets: dict[Partition, int]) -> bool:
        """Record offsets, unless another broker was elected since; whether they were taken."""

    async def write_owners(self, group: str, election: int, owners: dict[Partition, str]) -> bool:
        """Record the owners, unless another broker was elected since; whether they are recorded."""


@dataclass(slots=True)
class MemoryZookeeper:
    """The coordinator path (ephemeral), the partitions of topics, and owners and offsets by group (persistent)."""

    topics: dict[str, list[str]] = field(default_factory=dict)
    owners: dict[str, dict[Partition, str]] = field(default_factory=dict)
    offsets: dict[str, dict[Partition, int]] = field(default_factory=dict)
    addresses: dict[int, tuple[str, int]] = field(default_factory=dict)
    coordinator: int | None = None
    elections: int = 0
    _candidates: dict[int, Callable[[int], None]] = field(default_factory=dict)
    _topic_watches: dict[int, Callable[[str], None]] = field(default_factory=dict)

    def begin_session(self, broker: int, address: tuple[str, int], on_lost: Callable[[], None]) -> None:
        """Begin the session of a broker. None is lost but by `end_session`."""
        self.addresses[broker] = address

    def end_session(self, broker: int) -> None:
        """End the session of a broker: if it was the coordinator, the first candidate is elected."""
        self.addresses.pop(broker, None)
        self._topic_watches.pop(broker, None)
        self._candidates.pop(broker, None)
        if self.coordinator == broker:
            self.coordinator = None
            if self._candidates:
                first = next(iter(self._candidates))
                self.elect(first, self._candidates.pop(first))

    def watch_topics(self, broker: int, on_change: Callable[[str], None]) -> None:
        """Tell a broker of each topic that is new or has a new partition."""
        self._topic_watches[broker] = on_change

    def elect(self, broker: int, on_elected: Callable[[int], None]) -> None:
        """Make the coordinator path at once if there is none, else when it is gone."""
        if self.coordinator is not None:
            self._candidates[broker] = on_elected
            return
        self.coordinator = broker
        self.elections += 1
        on_elected(self.elections)

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

    async def write_owners(self, group: str, election: int, owners: dict[Partition, str]) -> bool:
        """Record the owners, unless another broker was elected since."""
        if election != self.elections or self.coordinator is None:
            return False
        self.owners[group] = owners
        return True
