"""What an operator needs of a Kafka consumer, and what the consumer calls back."""

from collections.abc import Callable
from dataclasses import dataclass
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
