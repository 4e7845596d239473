"""The round robin assignor: all partitions dealt one by one, with one circular pointer (member.md 5.3)."""

from bisect import bisect_left
from collections.abc import Sequence

from fencepost.model.assignors.group import (
    Assignment,
    ClusterTopics,
    GroupMember,
    TopicPartition,
    member_order,
    members_by_id,
    participating_topics,
    partitions_of,
    subscriber_positions,
)


def assign_round_robin(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """The assignment of `roundrobin`: partitions by topic and number, members in member order; racks are ignored."""
    ordered = member_order(members_by_id(members).values())
    given: list[list[TopicPartition]] = [[] for _ in ordered]
    positions = subscriber_positions(ordered)
    pointer = 0
    for topic in participating_topics(ordered, cluster):
        interested = positions[topic]
        turn = bisect_left(interested, pointer)
        for partition in partitions_of(topic, cluster):
            if turn == len(interested):
                turn = 0
            given[interested[turn]].append(partition)
            turn += 1
        pointer = interested[turn - 1] + 1
    return {member.id: tuple(partitions) for member, partitions in zip(ordered, given, strict=True)}
