"""The operators downstream of the region, as one program that counts the tuples it gets."""

from dataclasses import dataclass, field

from fencepost.adapters.bundled.region.kafka_port import Message, Offsets


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
