"""The operators downstream of the region, as one program that counts the tuples it gets."""

from dataclasses import dataclass, field

from fencepost.adapters.bundled.region.memory_kafka import Message, Offsets


@dataclass(slots=True)
class Downstream:
    """The next offset of each partition and the values so far: the state that a reset restores."""

    next: Offsets = field(default_factory=dict)
    values: list[str] = field(default_factory=list)
    duplicates: int = 0
    gaps: int = 0

    def take(self, message: Message, first: int) -> None:
        """Process a tuple of a partition that begins at `first`."""
        due = self.next.get(message.partition, first)
        self.duplicates += message.offset < due
        self.gaps += message.offset > due
        self.next[message.partition] = max(due, message.offset + 1)
        self.values.append(message.value)

    def copy(self) -> "Downstream":
        """The state, apart from this one."""
        return Downstream(dict(self.next), list(self.values), self.duplicates, self.gaps)
