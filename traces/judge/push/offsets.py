"""The offsets that the coordinator knows, as its consumers have reported them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fencepost.model.push.dialect import REPAIRED
from fencepost.model.push.offsets import OffsetTable, accept_offset
from fencepost.traces.events import Body
from fencepost.traces.judge.push.world import Partition


@dataclass(slots=True)
class GroupOffsets:
    """The offsets of one group. Before anything is reported, whatever a Start has is taken for what is recorded."""

    table: OffsetTable = field(default_factory=OffsetTable)
    owners: dict[Partition, int] = field(default_factory=dict)
    """The connection of the consumer that was told last to fetch a partition."""
    earlier: dict[Partition, list[tuple[int, int]]] = field(default_factory=dict)
    """Offsets before the newest, each with the moment when it was replaced."""
    has_failed_over: bool = False
    """A coordinator that kept offsets in memory may have lost the newest."""

    def on_start(self, connection: int, entries: Iterable[Body]) -> None:
        """A consumer is told where to begin."""
        for entry in entries:
            partition = (entry["topic"], entry["partition"])
            self.owners[partition] = connection
            if partition not in self.earlier:
                self.table, _ = accept_offset(self.table, partition, entry["offset"], True, REPAIRED)
                self.earlier[partition] = []

    def on_report(self, connection: int, entries: Iterable[Body], now: int) -> None:
        """A consumer says how far it is."""
        for entry in entries:
            partition = (entry["topic"], entry["partition"])
            before, is_owner = self.table.offset(partition), self.owners.get(partition) == connection
            if entry["offset"] != before and is_owner:
                self.table, _ = accept_offset(self.table, partition, entry["offset"], is_owner, REPAIRED)
                self.earlier.setdefault(partition, []).append((before, now))

    def wrong_offsets(self, entries: Iterable[Body], now: int, slack: int) -> Iterator[tuple[Partition, int, int]]:
        """The partitions of a Start whose offset is not the last one reported, with both."""
        for entry in entries:
            partition = (entry["topic"], entry["partition"])
            if partition not in self.earlier:
                continue
            newest = self.table.offset(partition)
            allowed = {old for old, until in self.earlier[partition] if self.has_failed_over or now <= until + slack}
            if entry["offset"] not in allowed | {newest}:
                yield partition, newest, entry["offset"]
