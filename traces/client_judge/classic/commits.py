"""What is known of the commits of a driven client."""

from dataclasses import dataclass, field

from fencepost.model.assignors.group import TopicPartition
from fencepost.traces.events import Event
from fencepost.traces.operations import Operation


@dataclass(slots=True)
class Commits:
    """What is known of the commits of a driven client. Times in milliseconds."""

    periodic: tuple[int, int] | None = None
    """When the last commit came that nobody asked for, and its generation."""
    gap: tuple[Operation, int] | None = None
    """The last such commit, and how long after the one before it it came; it may still be one before JoinGroup."""
    preparing: int | None = None
    """When the last commit came since the client was told of a rebalance, if it has not revoked or joined since."""
    begun: int | None = None
    """When the first one came since there is a reason to join, if it has not joined since."""
    returned: frozenset[TopicPartition] = frozenset()
    """The partitions of which records were returned since then."""
    failed: Operation | None = None
    """The last commit before JoinGroup, if it got an error that may pass."""
    highest: dict[TopicPartition, int] = field(default_factory=dict)
    """The offsets behind the last records that were ever returned."""
    in_callback: Event | None = None
    """The callback that commits, if its commit has not come."""

    def has_waited(self, time: int, limit: int) -> bool:
        """Whether the client has tried to commit before it joins for so long, and may give it up."""
        return self.begun is not None and time - self.begun >= limit
