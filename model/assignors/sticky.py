"""The sticky assignors: `sticky` (KIP-54) and `cooperative-sticky` (KIP-429)."""

from collections.abc import Sequence

from fencepost.model.assignors.claims import NO_OWNER, cooperative_claim, sticky_claim
from fencepost.model.assignors.general import assign_generally
from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember, is_uniform
from fencepost.model.assignors.sticky_group import StickyGroup, make_sticky_group
from fencepost.model.assignors.uniform import assign_uniformly


def assign_sticky(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """The assignment of `sticky`, which takes the partitions that members claim from their user data alone.

    Where the rules leave something open, such as who keeps a surplus partition, the order of the members decides.
    """
    group = make_sticky_group(members, cluster, sticky_claim)
    return group.name_partitions(_assign_target(group))


def assign_cooperative_sticky(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """The assignment of `cooperative-sticky`: its target without the partitions that a member has to give up first.

    Those are withheld from all in this round, and given in the next one (COOP-09, -16, -18).
    """
    group = make_sticky_group(members, cluster, cooperative_claim)
    return group.name_partitions(withhold(group, _assign_target(group)))


def withhold(group: StickyGroup, given: Sequence[Sequence[int]]) -> list[list[int]]:
    """A target without the partitions that another member has to give up first, or that several claim."""
    return [
        [code for code in codes if group.owners[code] in (NO_OWNER, position)] for position, codes in enumerate(given)
    ]


def _assign_target(group: StickyGroup) -> list[list[int]]:
    """The balanced assignment that keeps claims, by position."""
    if not group.members:
        return []
    return assign_uniformly(group) if is_uniform(group.members) else assign_generally(group)
