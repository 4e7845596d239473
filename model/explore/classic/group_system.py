"""The group model with its properties, ready for a search."""

from dataclasses import replace

from fencepost.model.explore.classic.group_model import GroupModel
from fencepost.model.explore.classic.properties import property_checks
from fencepost.model.explore.classic.reductions import ReducedGroupModel
from fencepost.model.explore.classic.state_layout import Bounds, ModelConfig
from fencepost.model.explore.transition_system import TransitionSystem


def group_system(config: ModelConfig, bounds: Bounds, reduced: bool = True) -> TransitionSystem:
    """The group's world with its properties, by default in its smallest form."""
    world = (ReducedGroupModel if reduced else GroupModel)(config, bounds)
    return replace(world.system(), checks=property_checks(world.count))
