"""Offsets: what a consumer reports, what the coordinator records, where the next owner begins (draft, 9; Impr 1)."""

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.logic import Token
from fencepost.model.push.dialect import PushDialect


@fast_frozen
@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """A consumer's place in a partition: what was fetched, and up to where the application consumed."""

    fetched: int = 0
    consumed: int = 0


def reported_offset(position: PartitionPosition, dialect: PushDialect) -> int:
    """The offset in a response. The draft's "current offset" leaves open which; read as the fetched one it loses
    messages."""
    return position.consumed if dialect.offers_consumed else position.fetched


@fast_frozen
@dataclass(frozen=True, slots=True)
class OffsetTable:
    """What the coordinator knows of each partition: the offset and its owner. `unwritten` are not in ZooKeeper yet
    (the first improvement: a map in memory that is written now and then)."""

    recorded: tuple[tuple[Token, int], ...] = ()
    unwritten: tuple[tuple[Token, int], ...] = ()

    def offset(self, partition: Token) -> int:
        """The newest offset of a partition."""
        return dict(self.recorded + self.unwritten).get(partition, 0)


def accept_offset(
    table: OffsetTable, partition: Token, offset: int, is_owner: bool, dialect: PushDialect
) -> tuple[OffsetTable, str]:
    """The table after a report of a consumer, and the rule. Repaired: the owner alone reports."""
    if dialect.owner_alone_reports and not is_owner:
        return table, "offset.not-owner"
    pending: Mapping[Token, int] = dict(table.unwritten) | {partition: offset}
    return evolve(table, unwritten=tuple(sorted(pending.items()))), "offset.accepted"


def write_offsets(table: OffsetTable) -> OffsetTable:
    """The table once the batch is in ZooKeeper."""
    return OffsetTable(tuple(sorted((dict(table.recorded) | dict(table.unwritten)).items())))


def lose_memory(table: OffsetTable) -> OffsetTable:
    """What another coordinator reads: offsets that were in memory alone are gone."""
    return OffsetTable(table.recorded)
