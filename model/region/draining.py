"""Drain, checkpoint and reset at an operator, and its metrics (page, Drain processing, Reset processing)."""

from collections.abc import Iterable
from dataclasses import dataclass

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.controller import (
    UNSOUGHT,
    Names,
    Offsets,
    OperatorCheckpoint,
    keys_of,
    known_offsets,
    lay_over,
    no_offsets,
)
from fencepost.model.region.dialect import RegionDialect
from fencepost.model.region.operator import (
    ClientState,
    Membership,
    Operator,
    OperatorStep,
    Polling,
    start_offsets,
)

# Drain, checkpoint and reset at an operator (page, Drain processing, Reset processing).


def drain(operator: Operator) -> OperatorStep:
    """Stop polling and put the queue aside (D1, D2). The caller commits `offsets_to_commit`."""
    aside = evolve(operator, polling=Polling.OFF, drained=operator.queue, queue=(), is_drained=True)
    return OperatorStep(aside, "drain.drained")


def offsets_to_commit(operator: Operator) -> Offsets:
    """What a drain commits in one request (D3)."""
    return known_offsets(operator.offsets)


def is_fit_for_checkpoint(operator: Operator, is_member: bool, dialect: RegionDialect) -> bool:
    """Whether the operator agrees to a checkpoint (H04, H05); `is_member` says whether the group still has it."""
    holds = operator.membership is Membership.MEMBER
    if dialect.vetoes_checkpoint:
        if operator.state is ClientState.RESET_PENDING or UNSOUGHT in operator.offsets:
            return False
        if not holds and operator.assigned:
            return False
    return not (dialect.checks_membership and holds and not is_member)


def write_checkpoint(operator: Operator, name: str, names: Names, dialect: RegionDialect) -> OperatorCheckpoint:
    """The operator's part of a checkpoint (K1)."""
    base = operator.seek_map if dialect.checkpoints_seek_map else no_offsets(len(operator.offsets))
    return OperatorCheckpoint(name, names, known_offsets(operator.offsets), base)


def resume(operator: Operator) -> OperatorStep:
    """The checkpoint is complete: put the drain buffer back and poll (K2)."""
    queue = (*operator.drained, *operator.queue)
    running = evolve(
        operator, queue=queue, drained=(), polling=Polling.FULL, is_drained=False, notice=None, is_map_old=True
    )
    return OperatorStep(running, "checkpoint.resumed")


def reset_to(
    operator: Operator,
    seek_map: Offsets,
    variables: Offsets,
    dialect: RegionDialect,
    rule: str,
    starts: Offsets | None = None,
) -> OperatorStep:
    """Stop polling, clear buffer and queue, seek what is assigned, poll throttled (X1, X4). `starts` are the start
    positions, 0 if None."""
    found, made = start_offsets(seek_map, variables, keys_of(operator.positions), starts)
    after = evolve(
        operator,
        seek_map=lay_over(found, seek_map) if dialect.checkpoints_seek_map else seek_map,
        positions=found,
        offsets=found,
        queue=(),
        drained=(),
        polling=Polling.THROTTLED,
        state=ClientState.RESET_COMPLETE,
        is_drained=False,
        is_map_old=False,
    )
    return OperatorStep(after, rule, variables=None if made == variables else made)


def reset_to_initial(
    operator: Operator, variables: Offsets, dialect: RegionDialect, starts: Offsets | None = None
) -> OperatorStep:
    """Seek the control variables (X1); repaired, know those of all partitions."""
    assigned = keys_of(operator.positions)
    every = (
        variables
        if dialect.checkpoints_seek_map
        else tuple(offset if partition in assigned else None for partition, offset in enumerate(variables))
    )
    return reset_to(operator, every, variables, dialect, "reset.initial", starts)


def reset_to_merge(
    operator: Operator, checkpoint: int, variables: Offsets, dialect: RegionDialect, starts: Offsets | None = None
) -> OperatorStep | None:
    """Seek the merged map, if its notification has come (X4)."""
    if operator.notice is None or operator.notice[0] != checkpoint:
        return None
    merged = operator.notice[1]
    known = lay_over(variables, merged) if dialect.checkpoints_seek_map else merged
    return reset_to(operator, known, variables, dialect, "reset.merged", starts)


def may_be_reset(operator: Operator, dialect: RegionDialect) -> bool:
    """Whether nothing in hand is in the way: a process thread that got its permit first lets it go first (H03)."""
    return operator.hand is None or not dialect.takes_with_permit


# The metrics of an operator (page, Partition assignment, Drain processing).


@fast_frozen
@dataclass(frozen=True, slots=True)
class DrainTimes:
    """The time of the last drain and the longest one, in milliseconds."""

    last_ms: int = 0
    longest_ms: int = 0


def count_drain(times: DrainTimes, took_ms: int) -> DrainTimes:
    """The times after a drain."""
    return DrainTimes(took_ms, max(times.longest_ms, took_ms))


def assignment_metrics(partitions: Iterable[tuple[str, int]]) -> tuple[int, int]:
    """The numbers of assigned partitions and of their topics."""
    held = set(partitions)
    return len(held), len({topic for topic, _ in held})
