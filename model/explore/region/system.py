"""The transition system of the consistent region within its bounds."""

from fencepost.model.explore.region.fault_actions import fault_actions, following_actions
from fencepost.model.explore.region.operator_actions import operator_actions
from fencepost.model.explore.region.properties import region_checks
from fencepost.model.explore.region.region_actions import region_actions
from fencepost.model.explore.region.row import RegionBounds
from fencepost.model.explore.region.symmetry import operator_symmetry
from fencepost.model.explore.transition_system import Action, Column, TransitionSystem


def region_system(bounds: RegionBounds) -> TransitionSystem:
    """The system: operators, the region, the bean and the group, and faults within their bounds."""
    actions: list[Action] = region_actions(bounds)
    for name in bounds.names:
        actions += operator_actions(bounds, name)
    actions += [*following_actions(bounds), *fault_actions(bounds)]
    names = ("faults left", "region", "checkpoints", "downstream", "bean", "Kafka", "control variables")
    columns = (*(Column(name, name) for name in names), *(Column(name, "operator") for name in bounds.names))
    return TransitionSystem(
        columns,
        bounds.initial(),
        tuple(actions),
        checks=region_checks(bounds),
        symmetry=operator_symmetry(bounds),
    )
