"""The properties of the consistent region."""

from collections.abc import Callable

from fencepost.model.explore.transition_system import Check, PropertyKind
from fencepost.model.region.controller import (
    UNSOUGHT,
    GroupBean,
    Region,
    RegionMode,
    keys_of,
)
from fencepost.model.region.explore.row import (
    BEAN,
    REGION,
    RegionBounds,
)
from fencepost.model.region.operator import ClientState, Membership, Operator

SENTENCES = {
    "G2": "All operators that have been reset to a checkpoint hold the same seek map.",
    "G3": "A merge is complete only with N contributions of N names, the same names in all of them.",
    "G4": "A complete checkpoint resumes no partition after what downstream has seen of it: nothing is lost.",
    "G5": "A complete checkpoint resumes no partition before what downstream has seen of it: nothing comes twice.",
    "G6": "Contributions to one merge have no partition in common.",
    "G7": "A complete checkpoint covers every partition that has a control variable.",
    "G10": "Queue and drain buffer hold no more than the queue's capacity.",
    "G13": "Outside callbacks a member keeps offsets of exactly the partitions that its client has.",
    "G17": "A message taken before a reset is never submitted after it.",
    "H13": "No assignment seeks an offset before that of the last complete checkpoint.",
    "H04-swap": "No checkpoint completes while all operators wait for a reset with partitions that they never sought.",
    "H04-twice": "What downstream has seen twice is in no complete checkpoint.",
    "V1": "An operator waits for a reset only while one of it is to come.",
    "V6": "In a reset, a merge that an operator waits for is still to be completed or told.",
}
"""The properties by their names in the specification."""


def region_checks(bounds: RegionBounds) -> tuple[Check, ...]:
    """The checks of states."""
    columns = bounds.columns
    settled = Check("checkpointed", (REGION,), lambda region: region.last == bounds.checkpoints, PropertyKind.SOMETIMES)
    return (
        Check("G2", (REGION, *columns), lambda region, *operators: same_maps(bounds, region, operators)),
        Check("G3", (BEAN,), is_whole_merge),
        *(Check("G13", (column,), keeps_assigned) for column in columns),
        *(Check("G10", (column,), lambda own: fits(bounds, own)) for column in columns),
        *(
            Check("G17", (REGION, column), holds_nothing(name))
            for name, column in zip(bounds.names, columns, strict=True)
        ),
        *(
            Check("V1", (REGION, column), will_be_reset(name))
            for name, column in zip(bounds.names, columns, strict=True)
        ),
        Check("H04-swap", (REGION, *columns), lambda region, *operators: not has_swapped(region, operators)),
        Check("V6", (REGION, BEAN, *columns), lambda region, bean, *rest: merge_goes_on(bounds, region, bean, rest)),
        settled,
    )


def same_maps(bounds: RegionBounds, region: Region, operators: tuple[Operator, ...]) -> bool:
    """G2: no two operators whose last reset was to this checkpoint seek different offsets of a partition."""
    if region.mode not in (RegionMode.RESET, RegionMode.RUN) or not region.last:
        return True
    maps = [
        one.seek_map
        for name, one in zip(bounds.names, operators, strict=True)
        if name not in region.todo and not one.is_map_old and one.state is not ClientState.SUBSCRIBED
    ]
    return all(len(set(offsets) - {None}) <= 1 for offsets in zip(*maps, strict=True))


def is_whole_merge(bean: GroupBean) -> bool:
    """G3."""
    if bean.merged is None:
        return True
    names = {one.name for one in bean.contributions}
    return all(one.names == names for one in bean.contributions)


def fits(bounds: RegionBounds, own: Operator) -> bool:
    """G10."""
    return len(own.queue) + len(own.drained) <= bounds.capacity


def keeps_assigned(own: Operator) -> bool:
    """G13, of a member outside callbacks."""
    return own.membership is not Membership.MEMBER or keys_of(own.offsets) == keys_of(own.positions)


def holds_nothing(name: str) -> Callable[[Region, Operator], bool]:
    """G17: an operator that has been reset has nothing in hand that it took before."""

    def holds(region: Region, own: Operator) -> bool:
        was_reset = region.mode is RegionMode.RESET and name not in region.todo
        fresh = own.state is ClientState.RESET_COMPLETE
        return not (was_reset and fresh and own.hand is not None)

    return holds


def has_swapped(region: Region, operators: tuple[Operator, ...]) -> bool:
    """H04: a checkpoint has just been completed by operators that got others' partitions and wait for a reset."""
    return (
        region.mode is RegionMode.RUN
        and region.last > 0
        and all(
            own.is_drained and own.state is ClientState.RESET_PENDING and UNSOUGHT in own.offsets for own in operators
        )
    )


def will_be_reset(name: str) -> Callable[[Region, Operator], bool]:
    """V1."""

    def holds(region: Region, own: Operator) -> bool:
        if own.state is not ClientState.RESET_PENDING:
            return True
        return region.is_requested or (region.mode is RegionMode.RESET and name in region.todo)

    return holds


def merge_goes_on(bounds: RegionBounds, region: Region, bean: GroupBean, operators: tuple[Operator, ...]) -> bool:
    """V6."""
    if region.mode is not RegionMode.RESET or not region.last:
        return True
    if not region.todo <= region.contributed or not bounds.job <= bean.registered or bean.unheard & region.todo:
        return True
    waiting = [own for name, own in zip(bounds.names, operators, strict=True) if name in region.todo]
    return any(not own.is_up or (own.notice is not None and own.notice[0] == region.last) for own in waiting)
