"""What is known of the commits of a driven client."""

from dataclasses import dataclass, field

from fencepost.model.assignors.group import TopicPartition
from fencepost.traces.events import Event, Operation


@dataclass(slots=True)
class UnawaitedCommit:
    """A commit that the application does not wait for."""

    command: Event
    operation: Operation | None = None
    """Its OffsetCommit, None as long as none came."""
    response: Event | None = None
    polls: int = 0
    """How often the application has polled since the response."""
    reports: int = 0


@dataclass(slots=True)
class RefusedCommit:
    """A periodic commit that got an error that may pass."""

    operation: Operation
    response: Event
    polls: int = 0
    """How many polls began after the longest backoff, none of which has committed."""


@dataclass(slots=True)
class Commits:
    """What is known of the commits of a driven client. Times in milliseconds."""

    periodic: tuple[int, int] | None = None
    """When the last commit came that nobody asked for, and its generation."""
    gap: tuple[Operation, int] | None = None
    """The last such commit, and how long after the one before it it came; it may still be one before JoinGroup."""
    refused: RefusedCommit | None = None
    """The last such commit, if it got an error that may pass and none came since."""
    preparing: int | None = None
    """When the last commit came since the client was told of a rebalance, if it has not revoked or joined since."""
    begun: int | None = None
    """When the first one came since there is a reason to join, if it has not joined since."""
    tried: tuple[int, int] | None = None
    """When the first and the last commit came since the client was told of a rebalance, if it has not joined since."""
    returned: frozenset[TopicPartition] = frozenset()
    """The partitions of which records were returned since then."""
    failed: Operation | None = None
    """The last commit before JoinGroup, if it got an error that may pass."""
    highest: dict[TopicPartition, int] = field(default_factory=dict)
    """The offsets behind the last records that were ever returned."""
    in_callback: Event | None = None
    """The callback that commits, if its commit has not come."""
    has_asked_in_callback: bool = False
    """A callback of the command under way has committed."""
    unawaited: dict[int, UnawaitedCommit] = field(default_factory=dict)
    """The commits that the application does not wait for, by the numbers of their commands."""
    answered: Event | None = None
    """The last response to an OffsetCommit that the application waits for."""

    def has_waited(self, time: int, limit: int) -> bool:
        """Whether the client has tried to commit before it joins for so long, and may give it up."""
        return self.begun is not None and time - self.begun >= limit
