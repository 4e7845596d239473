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
from fencepost.model.logic import ite


def assign_round_robin(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """The assignment of `roundrobin`: partitions by topic and number, members in member order; racks are ignored."""
    ordered = member_order(members_by_id(members).values())
    given: list[list[TopicPartition]] = [[] for _ in ordered]
    positions = subscriber_positions(ordered)
    pointer = 0
    for topic in participating_topics(ordered, cluster):
        interested = positions[topic]
        turn = bisect_left(interested, pointer) % len(interested)
        for partition in partitions_of(topic, cluster):
            given[interested[turn]].append(partition)
            pointer = interested[turn] + 1
            turn = next_turn(turn, len(interested))
    return {member.id: tuple(partitions) for member, partitions in zip(ordered, given, strict=True)}


def next_turn(turn: int, count: int) -> int:
    """The turn after a turn, when `count` members take turns."""
    return ite(turn + 1 < count, turn + 1, 0)
