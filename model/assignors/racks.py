"""Racks: when an assignor looks at them, and which members can read a partition in their own rack (KIP-881)."""

from collections.abc import Collection, Sequence

from fencepost.model.assignors.group import ClusterTopics, GroupMember

NO_RACKS: frozenset[str] = frozenset()


def rack_of(member: GroupMember) -> str | None:
    """The rack of a member, None without one."""
    return member.subscription.rack or None


def replica_racks(topic: str, cluster: ClusterTopics) -> list[frozenset[str]]:
    """The racks of the replicas of each partition of a topic; empty where they are unknown."""
    count = cluster.partitions[topic]
    known = list(cluster.racks.get(topic, ()))[:count]
    return known + [NO_RACKS] * (count - len(known))


def should_use_racks(member_racks: Collection[str | None], partition_racks: Sequence[frozenset[str]]) -> bool:
    """Whether racks can make a difference; None among the racks of members stands for none.

    They cannot if no member's rack holds a replica, or if each partition has replicas on the same racks (RANGE-09).
    """
    distinct = set(partition_racks)
    return len(distinct) > 1 and not frozenset().union(*distinct).isdisjoint(member_racks)
