"""The assignors by their names on the wire."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fencepost.model.assignors.consumer_protocol import encode_cooperative_user_data, encode_sticky_user_data
from fencepost.model.assignors.group import Assign, TopicPartition
from fencepost.model.assignors.range import assign_range
from fencepost.model.assignors.round_robin import assign_round_robin
from fencepost.model.assignors.sticky import assign_cooperative_sticky, assign_sticky


def no_user_data(partitions: Sequence[TopicPartition], generation: int) -> None:
    """The user data of assignors that need none."""


def cooperative_user_data(partitions: Sequence[TopicPartition], generation: int) -> bytes:
    """The user data of `cooperative-sticky`: the generation alone, for the subscription has the partitions."""
    return encode_cooperative_user_data(generation)


@dataclass(frozen=True, slots=True)
class Assignor:
    """An assignor. A cooperative one lets members keep their partitions while they join.

    `user_data` makes the user data that a member sends after it got these partitions in this generation.
    """

    name: str
    assign: Assign
    user_data: Callable[[Sequence[TopicPartition], int], bytes | None] = no_user_data
    is_cooperative: bool = False


ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {
        assignor.name: assignor
        for assignor in (
            Assignor("range", assign_range),
            Assignor("roundrobin", assign_round_robin),
            Assignor("sticky", assign_sticky, encode_sticky_user_data),
            Assignor("cooperative-sticky", assign_cooperative_sticky, cooperative_user_data, is_cooperative=True),
        )
    }
)
