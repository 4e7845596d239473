"""The controller of a consistent region, the bean that merges checkpoints, and what is downstream."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.settings import RegionDialect

# Maps from partitions to offsets, as tuples with an entry for each partition.


Offsets = tuple[int | None, ...]
"""The offset of each partition; None of one that the map does not have."""
UNSOUGHT = -1
"""The entry of a partition that is known and has no offset yet."""
Record = tuple[int, int]
"""A message: its partition and offset."""


def no_offsets(partitions: int) -> Offsets:
    """The empty map."""
    return (None,) * partitions


def put_offset(offsets: Offsets, partition: int, offset: int | None) -> Offsets:
    """The map with one entry changed."""
    return (*offsets[:partition], offset, *offsets[partition + 1 :])


def keys_of(offsets: Offsets) -> tuple[int, ...]:
    """The partitions that the map has."""
    return tuple(partition for partition, offset in enumerate(offsets) if offset is not None)


def known_offsets(offsets: Offsets) -> Offsets:
    """The map without partitions that have no offset yet."""
    return tuple(None if offset == UNSOUGHT else offset for offset in offsets)


def lay_over(base: Offsets, upper: Offsets) -> Offsets:
    """The entries of the upper map, and those of the base where it has none."""
    return tuple(low if high is None else high for low, high in zip(base, upper, strict=True))


def highest(maps: Iterable[Offsets], partitions: int) -> Offsets:
    """The highest entry of each partition."""
    result = list(no_offsets(partitions))
    for offsets in maps:
        for partition, offset in enumerate(offsets):
            held = result[partition]
            if offset is not None and (held is None or offset > held):
                result[partition] = offset
    return tuple(result)


# The bean of a group in the job control plane: who has registered, and the merge of checkpoints (page, Shared).


Names = frozenset[str]
NOBODY: Names = frozenset()


@fast_frozen
@dataclass(frozen=True, slots=True)
class OperatorCheckpoint:
    """What one operator writes: its name, the names of the group, the offsets of what it is assigned; repaired, its
    seek map as well."""

    name: str
    names: Names
    offsets: Offsets
    base: Offsets


@fast_frozen
@dataclass(frozen=True, slots=True)
class GroupBean:
    """The bean. It is not stored: a restart of the job control plane begins with an empty one.

    Only the merge of one checkpoint is there at a time, for the one before is retired.
    """

    registered: Names = NOBODY
    checkpoint: int = 0
    """The sequence id of the merge, 0 if there is none."""
    contributions: tuple[OperatorCheckpoint, ...] = ()
    merged: Offsets | None = None
    """The map of the merge once it is complete."""
    unheard: Names = NOBODY
    """Operators to which the notification is under way."""


BeanStep = tuple[GroupBean, str]
"""The bean after a step, and the rule."""


def register(bean: GroupBean, name: str) -> BeanStep:
    """Add an operator's name (I3)."""
    return evolve(bean, registered=bean.registered | {name}), "bean.registered"


def merge_offsets(contributions: tuple[OperatorCheckpoint, ...]) -> Offsets:
    """The union of the contributions: what is assigned over the seek maps. The page has no rule for a conflict; here
    the highest offset wins."""
    size = len(contributions[0].offsets)
    return lay_over(
        highest((one.base for one in contributions), size), highest((one.offsets for one in contributions), size)
    )


def contribute(
    bean: GroupBean, checkpoint: int, own: OperatorCheckpoint, job: Names, dialect: RegionDialect
) -> BeanStep:
    """mergeConsumerCheckpoint (M1, M2): the merge is complete once N operators have contributed, where N is what the
    contributor says, repaired the number of the job's operators."""
    if bean.checkpoint != checkpoint:
        bean = evolve(bean, checkpoint=checkpoint, contributions=(), merged=None, unheard=NOBODY)
    is_new = own.name not in {one.name for one in bean.contributions}
    known = (*bean.contributions, own) if is_new else bean.contributions
    contributions = tuple(sorted(known, key=lambda one: one.name))
    needed = job if dialect.fixes_names else own.names
    if dialect.fixes_names:
        is_whole = needed <= {one.name for one in contributions}
    else:
        is_whole = len(contributions) >= len(needed)
    if not is_whole:
        return evolve(bean, contributions=contributions), "merge.waiting"
    repeats = bean.merged is not None and not is_new
    if repeats and not dialect.notifies_again:
        return bean, "merge.silent"
    merged = merge_offsets(contributions)
    rule = "merge.repeated" if repeats else "merge.complete"
    return evolve(bean, contributions=contributions, merged=merged, unheard=bean.registered | {own.name}), rule


def names_of_merge(part: OperatorCheckpoint, job: Names, dialect: RegionDialect) -> Names:
    """Whose contributions a merge waits for after the job was changed: those named in the checkpoint, repaired those
    of them that are in the job (H17)."""
    return part.names & job if dialect.counts_present_operators else part.names


def retire(bean: GroupBean, checkpoint: int) -> GroupBean:
    """retireCheckpoint(k): forget merges of k and of those before (M3)."""
    if not bean.checkpoint or bean.checkpoint > checkpoint:
        return bean
    return evolve(bean, checkpoint=0, contributions=(), merged=None, unheard=NOBODY)


# What is behind the operators, as one consumer that keeps count: the oracle of loss and duplication.


@fast_frozen
@dataclass(frozen=True, slots=True)
class Downstream:
    """The next offset of each partition, and whether one came twice or was left out since the state was restored."""

    next: tuple[int, ...]
    has_duplicate: bool = False
    has_gap: bool = False


def take_tuple(downstream: Downstream, record: Record) -> Downstream:
    """Process a tuple."""
    partition, offset = record
    due = downstream.next[partition]
    later = (*downstream.next[:partition], max(due, offset + 1), *downstream.next[partition + 1 :])
    return evolve(
        downstream,
        next=later,
        has_duplicate=downstream.has_duplicate or offset < due,
        has_gap=downstream.has_gap or offset > due,
    )


# The controller of a consistent region: drain, checkpoint, reset, and the requests for resets.


class RegionMode(StrEnum):
    """What the region is doing."""

    RUN = "run"
    DRAIN = "drain"
    CHECKPOINT = "checkpoint"
    RESET = "reset"


@fast_frozen
@dataclass(frozen=True, slots=True)
class Region:
    """The controller's state. `todo` are the operators that have yet to drain, to checkpoint or to be reset."""

    mode: RegionMode = RegionMode.RUN
    todo: Names = NOBODY
    contributed: Names = NOBODY
    """Those that wait for the merge in the reset under way."""
    last: int = 0
    """The sequence id of the last complete checkpoint, 0 for the initial state."""
    is_requested: bool = False
    """A reset was requested and has yet to begin: at once, or after the one under way."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class CheckpointStore:
    """The last complete checkpoint with the downstream state in it, and what there is of the next one."""

    complete: tuple[OperatorCheckpoint, ...]
    snapshot: Downstream
    partial: tuple[OperatorCheckpoint, ...] = ()

    def of(self, name: str) -> OperatorCheckpoint | None:
        """What an operator wrote into the complete one."""
        return next((one for one in self.complete if one.name == name), None)


def start_drain(region: Region, job: Names) -> Region:
    """Drain every operator."""
    return evolve(region, mode=RegionMode.DRAIN, todo=job)


def finish_drain(region: Region, name: str, job: Names) -> Region:
    """An operator has drained; after the last one all write their checkpoints."""
    rest = region.todo - {name}
    return evolve(region, todo=rest) if rest else evolve(region, mode=RegionMode.CHECKPOINT, todo=job)


def finish_checkpoint(region: Region, name: str) -> Region:
    """An operator has written its checkpoint; with the last one it is complete (K2)."""
    rest = region.todo - {name}
    return evolve(region, todo=rest) if rest else evolve(region, mode=RegionMode.RUN, todo=NOBODY, last=region.last + 1)


def start_reset(region: Region, job: Names) -> Region:
    """Reset every operator to the last complete checkpoint (X0)."""
    return evolve(region, mode=RegionMode.RESET, todo=job, contributed=NOBODY, is_requested=False)


def request_reset(region: Region, dialect: RegionDialect) -> Region:
    """An operator's request: it is on its way to the controller, but in a reset queued or, as documented, forgotten
    (H07)."""
    is_forgotten = region.mode is RegionMode.RESET and not dialect.queues_requests
    return region if is_forgotten else evolve(region, is_requested=True)


def finish_reset(region: Region, name: str, job: Names) -> Region:
    """An operator has been reset; after the last one the region runs, or is reset once more (X5)."""
    rest = region.todo - {name}
    if rest:
        return evolve(region, todo=rest)
    if region.is_requested:
        return start_reset(region, job)
    return evolve(region, mode=RegionMode.RUN, todo=NOBODY, contributed=NOBODY)


def has_permit(region: Region, name: str) -> bool:
    """Whether an operator may submit: while the region runs, and in a drain until its own is done."""
    return region.mode is RegionMode.RUN or (region.mode is RegionMode.DRAIN and name in region.todo)
