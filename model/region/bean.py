"""The bean of a group in the job control plane: who has registered, and the merge of checkpoints (page, Shared)."""

from dataclasses import dataclass

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.dialect import RegionDialect
from fencepost.model.region.offsets import Offsets, highest, lay_over

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
