"""The transition system of the consistent region within its bounds."""

from fencepost.model.explore.transition_system import Action, Column, TransitionSystem
from fencepost.model.region.explore.fault_actions import fault_actions, following_actions
from fencepost.model.region.explore.operator_actions import operator_actions
from fencepost.model.region.explore.properties import region_checks
from fencepost.model.region.explore.region_actions import region_actions
from fencepost.model.region.explore.row import RegionBounds, operator_symmetry


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
