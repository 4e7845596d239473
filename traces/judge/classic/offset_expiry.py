"""Offsets whose retention is over: a pass may have removed them, or not, until an answer shows which (LAT-17)."""

from collections.abc import Iterator

from fencepost.model.classic.coordinator.offsets import over
from fencepost.model.classic.coordinator.state import Cluster, World
from fencepost.model.classic.core.state import Phase
from fencepost.model.classic.messages.requests import Fetch, Partition, TopicNames
from fencepost.model.frozen import alter
from fencepost.traces.events import Body
from fencepost.traces.judge.classic.matching import fetched_rows
from fencepost.traces.judge.search.configuration import Configuration, Part


def doubted(one: Configuration, after: World, now: int, retention: int) -> frozenset[Partition]:
    """The offsets in doubt after a step to this world. What may be removed depends on the phase that ends here."""
    before, doubtful = one.world, one.doubtful
    if before.offsets and before.group is not None and after.group is not None:
        if before.group.phase is not after.group.phase:
            doubtful = doubtful | over(before, now, retention)
        if doubtful and before.offsets is not after.offsets:
            doubtful = frozenset(each for each in doubtful if before.offsets.get(each) is after.offsets.get(each))
    return doubtful if after.offsets else frozenset()


def removals(one: Configuration, part: Part, now: int, cluster: Cluster) -> Iterator[World]:
    """The worlds in which offsets that this answer shows to be gone, or the whole group, were removed."""
    world, request, settings = one.world, part.request, cluster.settings
    if world.group is None:
        return
    empty = world.group.phase is Phase.EMPTY and not world.pending
    due = one.swept is None or now >= one.swept + settings.retention_check_interval
    if not empty and not isinstance(request, Fetch):
        return
    doubtful = one.doubtful | over(world, now, settings.offsets_retention)
    if empty and due and doubtful.issuperset(world.offsets):
        yield World()
    gone = missing(part, request, doubtful, cluster.names) if isinstance(request, Fetch) else frozenset()
    if gone:
        yield alter(world, offsets={where: offset for where, offset in world.offsets.items() if where not in gone})


def missing(part: Part, request: Fetch, doubtful: frozenset[Partition], names: TopicNames) -> frozenset[Partition]:
    """Which of these offsets the answer to an OffsetFetch says are not there."""
    operation = part.operation
    if not doubtful or operation.answer is None:
        return frozenset()
    rows = fetched_rows(operation.version, operation.answer, request.group, names)
    asked = doubtful if request.partitions is None else doubtful.intersection(request.partitions)
    return frozenset(where for where in asked if where not in rows or is_unset(rows[where]))


def is_unset(row: Body) -> bool:
    """The row says that nothing was committed."""
    return row.get("error_code") == 0 and row.get("committed_offset") == -1
