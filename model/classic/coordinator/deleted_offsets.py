"""Offsets of open transactions that were deleted, with their group or by OffsetDelete.

The older coordinator of Apache Kafka writes no tombstone for them (`removeAllOffsets` and `removeOffsets` of its
`GroupMetadata` tell the log of committed offsets alone). So they are in the log, and a failover brings them back: as
pending offsets of a transaction that is still open, or as committed ones where it was committed since (DIV-22).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fencepost.model.classic.messages.requests import Offset, Partition
from fencepost.model.frozen import evolve, fast_frozen

PendingOffsets = Mapping[int, Mapping[Partition, Offset]]
"""Offsets that are not visible until their transaction is committed, by producer id."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class DeletedOffsets:
    """What was deleted while it was pending: in transactions that are open, and in those committed since."""

    pending: PendingOffsets = field(default_factory=dict)
    committed: Mapping[Partition, Offset] = field(default_factory=dict)


NOTHING_DELETED = DeletedOffsets()


def add_deleted(deleted: DeletedOffsets, before: PendingOffsets, after: PendingOffsets) -> DeletedOffsets:
    """The deleted offsets with those that were pending before a deletion and are not after it."""
    gone = {
        producer: {where: offset for where, offset in mine.items() if where not in after.get(producer, {})}
        for producer, mine in before.items()
    }
    if not any(gone.values()):
        return deleted
    pending = {
        producer: {**deleted.pending.get(producer, {}), **gone.get(producer, {})}
        for producer in (*deleted.pending, *(one for one in gone if one not in deleted.pending))
    }
    return evolve(deleted, pending={producer: mine for producer, mine in pending.items() if mine})


def end_deleted(deleted: DeletedOffsets, producer: int, *, committed: bool) -> DeletedOffsets:
    """The deleted offsets once the transaction of a producer has ended."""
    if producer not in deleted.pending:
        return deleted
    pending = {other: mine for other, mine in deleted.pending.items() if other != producer}
    mine = deleted.pending[producer] if committed else {}
    return DeletedOffsets(pending, {**deleted.committed, **mine})


def overwrite_deleted(deleted: DeletedOffsets, producer: int | None, partitions: Iterable[Partition]) -> DeletedOffsets:
    """The deleted offsets once the log has later ones of these partitions: of a producer, or committed ones (None)."""
    over = set(partitions)
    if deleted == NOTHING_DELETED or not over:
        return deleted
    if producer is None:
        return evolve(deleted, committed={where: one for where, one in deleted.committed.items() if where not in over})
    mine = {where: one for where, one in deleted.pending.get(producer, {}).items() if where not in over}
    rest = {other: offsets for other, offsets in deleted.pending.items() if other != producer}
    return evolve(deleted, pending={**rest, producer: mine} if mine else rest)
