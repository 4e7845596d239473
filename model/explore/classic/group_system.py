"""The group model with its properties, ready for a search."""

from dataclasses import replace

from fencepost.model.classic.dialect import Dialect
from fencepost.model.explore.classic.failover_model import FailoverModel
from fencepost.model.explore.classic.group_model import GroupModel
from fencepost.model.explore.classic.properties import property_checks
from fencepost.model.explore.classic.reductions import ReducedGroupModel
from fencepost.model.explore.classic.state_layout import Bounds, ModelConfig
from fencepost.model.explore.transition_system import TransitionSystem


def group_system(
    config: ModelConfig, bounds: Bounds, reduced: bool = True, stores_early: bool = False
) -> TransitionSystem:
    """The group's world with its properties, by default in its smallest form; with fail-overs it has none.

    `stores_early`: the coordinator stores a generation before it answers JoinGroup.
    """
    if bounds.failovers:
        return FailoverModel(config, bounds, Dialect(generation_waits_for_assignment=not stores_early)).system()
    world = (ReducedGroupModel if reduced else GroupModel)(config, bounds)
    return replace(world.system(), checks=property_checks(world.count))
