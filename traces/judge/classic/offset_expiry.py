"""Offsets whose retention is over: a pass may have removed them, or not, until a response shows which (LAT-17)."""

from collections.abc import Iterator

from fencepost.model.classic.coordinator.group_protocol import CLASSIC_GROUP
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Phase
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import OffsetFetch, Partition, TopicNames
from fencepost.model.groups.offsets import expired_offsets
from fencepost.model.groups.protocol import Cluster
from fencepost.traces.events import Body
from fencepost.traces.judge.classic.matching import offset_fetch_rows
from fencepost.traces.judge.classic.unseen import unseen_of
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation


def maybe_expired_offsets(
    configuration: Configuration, after: GroupState, now: int, retention: int
) -> frozenset[Partition]:
    """The offsets in doubt after a step to this world. What may be removed depends on the phase that ends here."""
    before, doubtful = configuration.world, unseen_of(configuration).maybe_expired
    if before.offsets and before.group is not None and after.group is not None:
        if before.group.phase is not after.group.phase:
            doubtful = doubtful | expired_offsets(before, now, retention, CLASSIC_GROUP)
        if doubtful and before.offsets is not after.offsets:
            doubtful = frozenset(each for each in doubtful if before.offsets.get(each) is after.offsets.get(each))
    return doubtful if after.offsets else frozenset()


def states_after_cleanup(
    configuration: Configuration, part: GroupOperation, now: int, cluster: Cluster
) -> Iterator[GroupState]:
    """The worlds in which offsets that this response shows to be gone, or the whole group, were removed."""
    world, request, settings = configuration.world, part.request, cluster.settings
    if world.group is None:
        return
    # A transaction whose pending offsets were deleted keeps the group on the older coordinator alone.
    empty = world.group.phase is Phase.EMPTY and not any(world.pending.values())
    unseen = unseen_of(configuration)
    due = unseen.last_cleanup is None or now >= unseen.last_cleanup + settings.retention_check_interval
    if not empty and not isinstance(request, OffsetFetch):
        return
    doubtful = unseen.maybe_expired | expired_offsets(world, now, settings.offsets_retention, CLASSIC_GROUP)
    if empty and due and doubtful.issuperset(world.offsets):
        yield GroupState(deleted=world.deleted)
    gone = missing_offsets(part, request, doubtful, cluster.names) if isinstance(request, OffsetFetch) else frozenset()
    if gone:
        yield evolve(world, offsets={where: offset for where, offset in world.offsets.items() if where not in gone})


def missing_offsets(
    part: GroupOperation, request: OffsetFetch, doubtful: frozenset[Partition], names: TopicNames
) -> frozenset[Partition]:
    """Which of these offsets are not there by the response to an OffsetFetch."""
    operation = part.operation
    if not doubtful or operation.response is None:
        return frozenset()
    rows = offset_fetch_rows(operation.version, operation.response, request.group, names)
    asked = doubtful if request.partitions is None else doubtful.intersection(request.partitions)
    return frozenset(where for where in asked if where not in rows or is_offset_unset(rows[where]))


def is_offset_unset(row: Body) -> bool:
    """The row says that nothing was committed."""
    return row.get("error_code") == 0 and row.get("committed_offset") == -1
