"""The actions of a walk that no search has: an operator waits for a merge in vain, or finds records of the log lost."""

from functools import partial

from fencepost.model.explore.transition_system import Action, Transition
from fencepost.model.region.controller import CheckpointStore, GroupBean, Region, RegionMode, keys_of
from fencepost.model.region.explore.fault_actions import crash_operator
from fencepost.model.region.explore.row import (
    BEAN,
    FAULTS,
    KAFKA,
    NOTHING,
    REGION,
    STORE,
    Kafka,
    RegionBounds,
    RegionFaults,
    Transitions,
    reset_region,
)
from fencepost.model.region.operator import RESET_OR_NEW, Membership, Operator, Polling

WAITS_IN_VAIN = "waits in vain"
LOST_RECORDS = "finds records lost"


def walk_actions(bounds: RegionBounds) -> list[Action]:
    """The actions of every operator that no search has."""
    found = []
    for name in bounds.names:
        column = bounds.column(name)
        crashed = (FAULTS, REGION, STORE, BEAN, KAFKA, column)
        found += [
            Action(f"{name} {WAITS_IN_VAIN}", (REGION, STORE, BEAN, column), partial(wait_in_vain, bounds, name)),
            Action(f"{name} {LOST_RECORDS}", crashed, partial(find_records_lost, bounds, name)),
        ]
    return found


def wait_in_vain(
    bounds: RegionBounds, name: str, region: Region, store: CheckpointStore, bean: GroupBean, own: Operator
) -> Transitions:
    """The time to wait for a merge is over, and the region is reset once more (X3)."""
    waits = region.mode is RegionMode.RESET and region.last > 0 and name in region.todo & region.contributed
    is_complete = bean.checkpoint == region.last and bean.merged is not None
    if not waits or not own.is_up or is_complete:
        return NOTHING
    return (Transition(f"{name} waits for a merge in vain", reset_region(bounds, region, store), "merge.late"),)


def find_records_lost(
    bounds: RegionBounds,
    name: str,
    faults: RegionFaults,
    region: Region,
    store: CheckpointStore,
    bean: GroupBean,
    kafka: Kafka,
    own: Operator,
) -> Transitions:
    """The first poll after a seek returns a later record than the one that was sought, and the PE goes down (H15)."""
    is_settled = own.membership is Membership.MEMBER and own.polling is not Polling.OFF
    if not is_settled or own.state not in RESET_OR_NEW or not keys_of(own.positions):
        return NOTHING
    return crash_operator(bounds, name, faults, region, store, bean, kafka, own)
