"""One partition that moves from one consumer to another: what is fetched, consumed, reported and recorded."""

from dataclasses import dataclass

from fencepost.model.explore.transition_system import Action, Check, Column, Transition, TransitionSystem
from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.push.dialect import PushDialect
from fencepost.model.push.offsets import (
    OffsetTable,
    PartitionPosition,
    accept_offset,
    lose_memory,
    reported_offset,
    write_offsets,
)

LOG_END = 2
OFFSET_SENTENCES = {
    "S11": "No message is skipped: a consumer begins no later than where the application has consumed.",
    "S11-back": "The offset of a partition never moves backwards.",
}
PARTITION = "p0"
NO_OFFSETS = OffsetTable()


@fast_frozen
@dataclass(frozen=True, slots=True)
class OffsetState:
    """Two consumers' positions, who owns the partition, up to where it was consumed, reports under way, the table."""

    positions: tuple[PartitionPosition, PartitionPosition] = (PartitionPosition(), PartitionPosition())
    owner: int | None = 0
    consumed: int = 0
    reports: tuple[tuple[int, int], ...] = ()
    """Consumer and offset of each ping response under way."""
    table: OffsetTable = NO_OFFSETS
    moves: int = 1
    failovers: int = 0


def offset_system(dialect: PushDialect, failovers: int = 0) -> TransitionSystem:
    """The system with one column; the partition moves once, the coordinator fails over so often."""

    def transitions(state: OffsetState) -> tuple[Transition, ...]:
        found = [*consumer_steps(state, dialect), *table_steps(state, dialect)]
        return tuple(Transition(label, ((0, after),), violates=broken(state, after)) for label, after in found)

    skipped = Check("S11", (0,), lambda state: not is_skipped(state))
    return TransitionSystem(
        (Column("offsets", "offsets"),),
        (OffsetState(failovers=failovers),),
        (Action("step", (0,), transitions),),
        checks=(skipped,),
    )


def is_skipped(state: OffsetState) -> bool:
    """Whether the owner has begun behind a message that nobody consumed."""
    return state.owner is not None and state.positions[state.owner].consumed > state.consumed


def broken(before: OffsetState, after: OffsetState) -> str:
    """The property that a step breaks. What a failover forgets was never recorded."""
    if after.failovers < before.failovers:
        return ""
    return "S11-back" if after.table.offset(PARTITION) < before.table.offset(PARTITION) else ""


def consumer_steps(state: OffsetState, dialect: PushDialect) -> list[tuple[str, OffsetState]]:
    """A consumer fetches, the application consumes, a ping is answered: by one that stopped as well."""
    found: list[tuple[str, OffsetState]] = []
    for who, position in enumerate(state.positions):
        name = f"c{who}"
        if who == state.owner and position.fetched < LOG_END:
            more = evolve(position, fetched=position.fetched + 1)
            found.append((f"{name} fetches message {position.fetched}", with_position(state, who, more)))
        if who == state.owner and position.consumed < position.fetched:
            more = evolve(position, consumed=position.consumed + 1)
            new = with_position(state, who, more)
            label = f"the application at {name} consumes message {position.consumed}"
            found.append((label, evolve(new, consumed=max(state.consumed, more.consumed))))
        if len(state.reports) < 2 and (who == state.owner or who == 0):
            offset = reported_offset(position, dialect)
            reports = (*state.reports, (who, offset))
            found.append((f"{name} answers a ping with offset {offset}", evolve(state, reports=reports)))
    return found


def with_position(state: OffsetState, who: int, position: PartitionPosition) -> OffsetState:
    """The state with another position of one consumer."""
    one, other = state.positions
    return evolve(state, positions=(position, other) if who == 0 else (one, position))


def table_steps(state: OffsetState, dialect: PushDialect) -> list[tuple[str, OffsetState]]:
    """A report arrives, the batch is written, the partition moves, the coordinator fails over."""
    found: list[tuple[str, OffsetState]] = []
    if state.reports:
        (who, offset), rest = state.reports[0], state.reports[1:]
        table, rule = accept_offset(state.table, PARTITION, offset, who == state.owner, dialect)
        what = "records" if rule == "offset.accepted" else "ignores"
        found.append((f"the coordinator {what} offset {offset} of c{who}", evolve(state, reports=rest, table=table)))
    if state.table.unwritten:
        found.append(("the offsets are written", evolve(state, table=write_offsets(state.table))))
    if state.moves and state.owner is not None:
        found.append(move_partition(state, dialect))
    if state.failovers:
        lost = evolve(state, failovers=state.failovers - 1, table=lose_memory(state.table), reports=())
        found.append(("the coordinator fails over", lost))
    return found


def move_partition(state: OffsetState, dialect: PushDialect) -> tuple[str, OffsetState]:
    """Stop to the owner, then Start to the other with the offset that is known by then."""
    table = state.table
    if dialect.stop_carries_offsets:
        final = reported_offset(state.positions[0], dialect)
        table, _ = accept_offset(table, PARTITION, final, True, dialect)
    offset = table.offset(PARTITION)
    # What was under way on the channel of the old owner was sent before its response to Stop.
    reports = () if dialect.stop_carries_offsets else state.reports
    positions = (state.positions[0], PartitionPosition(offset, offset))
    moved = evolve(state, owner=1, moves=0, table=table, positions=positions, reports=reports)
    return f"p0 moves to c1, which starts at {offset}", moved
