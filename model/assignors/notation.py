"""A short notation for members, topics and assignments of assignors.

A member is `id{topics} partitions@generation`, as in `c1{t1,t2} t1-0,t2-1@5`; all but the id may be missing, and
topics that are not written are all of the cluster's. `t-0..3` stands for four partitions. Topics are written
`t:3 u:2`, or with the racks of their replicas `t:a/b/ab`, a letter for each rack.
"""

import re
from collections.abc import Iterable, Mapping

from fencepost.model.assignors.consumer_protocol import encode_sticky_user_data
from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember, Subscription, TopicPartition

_MEMBER = re.compile(r"(?P<id>[^{ ]+)(\{(?P<topics>[^}]*)\})?( (?P<owned>[^@ ]*))?(@(?P<generation>\d+))?")


def read_partitions(text: str) -> tuple[TopicPartition, ...]:
    """The partitions in a list such as `t-0,u-1..3`."""
    found: list[TopicPartition] = []
    for item in filter(None, text.split(",")):
        topic, numbers = item.rsplit("-", 1)
        first, _, last = numbers.partition("..")
        found += [(topic, number) for number in range(int(first), int(last or first) + 1)]
    return tuple(found)


def read_topics(text: str) -> ClusterTopics:
    """The topics in a list such as `t:3 u:2` or `t:a/b/a`."""
    partitions, racks = {}, {}
    for item in text.split():
        topic, shape = item.split(":")
        if shape.isdigit():
            partitions[topic] = int(shape)
        else:
            racks[topic] = tuple(frozenset(near) for near in shape.split("/"))
            partitions[topic] = len(racks[topic])
    return ClusterTopics(partitions, racks)


def read_members(
    texts: str, cluster: ClusterTopics, racks: Mapping[str, str] = {}, instances: Mapping[str, str] = {}
) -> list[GroupMember]:
    """The members in a list such as `c1{t} t-0@5; c2`. Their claims are in all fields that an assignor may read."""
    members = []
    for text in texts.split("; "):
        match = _MEMBER.fullmatch(text.strip())
        assert match is not None, text
        topics = match["topics"].split(",") if match["topics"] is not None else sorted(cluster.partitions)
        owned = read_partitions(match["owned"] or "")
        generation = int(match["generation"] or -1)
        user_data = encode_sticky_user_data(owned, generation) if match["generation"] else None
        subscription = Subscription(tuple(filter(None, topics)), user_data, owned, generation, racks.get(match["id"]))
        members.append(GroupMember(match["id"], subscription, instances.get(match["id"])))
    return members


def read_assignment(text: str) -> dict[str, frozenset[TopicPartition]]:
    """The assignment in a list such as `c1 t-0,t-1; c2`."""
    parts = (item.strip().partition(" ") for item in text.split(";"))
    return {member: frozenset(read_partitions(partitions)) for member, _, partitions in parts}


def as_sets(assignment: Assignment) -> dict[str, frozenset[TopicPartition]]:
    """The assignment without the order of its lists, in which a partition is never twice."""
    assert all(len(set(partitions)) == len(partitions) for partitions in assignment.values())
    return {member: frozenset(partitions) for member, partitions in assignment.items()}


def rejoining(
    members: Iterable[GroupMember], assignment: Assignment, generation: int, version: int = 3
) -> list[GroupMember]:
    """The members as they join again after they got this assignment, which the fields of `version` tell of."""
    found = []
    for member in members:
        before, owned = member.subscription, assignment[member.id]
        subscription = Subscription(
            before.topics, encode_sticky_user_data(owned, generation), owned, generation, before.rack
        )
        found.append(GroupMember(member.id, subscription, member.instance_id))
    return found


def as_text(assignment: Assignment) -> str:
    """The assignment in the notation, sorted."""
    return "; ".join(
        f"{member} {','.join(f'{topic}-{number}' for topic, number in sorted(own))}".rstrip()
        for member, own in sorted(assignment.items())
    )


def members_as_text(members: Iterable[GroupMember]) -> str:
    """Members in the notation; a static one with its instance."""
    texts = []
    for member in members:
        topics, owned = ",".join(member.subscription.topics), as_text({"": member.subscription.owned}).strip()
        generation = f"@{member.subscription.generation}" if member.subscription.generation >= 0 else ""
        instance = f" = {member.instance_id}" if member.instance_id is not None else ""
        texts.append(f"{member.id}{{{topics}}} {owned}{generation}".rstrip() + instance)
    return "; ".join(texts)
