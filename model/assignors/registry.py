"""The assignors by their names on the wire."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fencepost.model.assignors.group import Assign
from fencepost.model.assignors.range import assign_range
from fencepost.model.assignors.round_robin import assign_round_robin
from fencepost.model.assignors.sticky import assign_cooperative_sticky, assign_sticky


@dataclass(frozen=True, slots=True)
class Assignor:
    """An assignor. A cooperative one lets members keep their partitions while they join."""

    name: str
    assign: Assign
    is_cooperative: bool = False


ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {
        assignor.name: assignor
        for assignor in (
            Assignor("range", assign_range),
            Assignor("roundrobin", assign_round_robin),
            Assignor("sticky", assign_sticky),
            Assignor("cooperative-sticky", assign_cooperative_sticky, is_cooperative=True),
        )
    }
)
