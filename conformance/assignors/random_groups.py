"""Random groups for assignors: members that join anew, come back with claims, contest them, or claim nonsense."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from fencepost.model.assignors.consumer_protocol import encode_cooperative_user_data, encode_sticky_user_data
from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember, Subscription, TopicPartition
from fencepost.model.assignors.sticky import assign_sticky

RACKS = ("a", "b", "c")
MISSING_TOPIC = "missing"


@dataclass(frozen=True, slots=True)
class RandomGroup:
    """A group, and whether a member claims or sends something that no member of Kafka's would."""

    members: tuple[GroupMember, ...]
    cluster: ClusterTopics


def draw_group(random: Random, most_members: int = 5, is_odd: bool = True) -> RandomGroup:
    """A group after something has happened to it.

    The group had an assignment, perhaps; then members came, went, missed a generation or changed their subscriptions,
    and topics grew or vanished. With `is_odd`, some members also claim what another has, or what does not exist.
    """
    before = draw_cluster(random)
    members = draw_members(random, before, random.randint(1, most_members))
    kind = random.random()
    if kind < 0.2:
        return RandomGroup(tuple(members), before)
    had = assign_sticky(members, before)
    cluster = alter_cluster(random, before)
    rest = [member for member in members if random.random() < 0.8]
    claimed = [claim(random, member, had, is_odd) for member in rest]
    joined = draw_members(random, cluster, random.randint(0, most_members - len(claimed)), like=members)
    if is_odd and kind < 0.5:
        claimed = [contest(random, member, cluster) for member in claimed]
    both = [*claimed, *joined] or members[:1]
    random.shuffle(both)
    return RandomGroup(tuple(both), cluster)


def draw_cluster(random: Random) -> ClusterTopics:
    """One to five topics of up to seven partitions, with racks in every third case."""
    partitions = {f"t{number}": random.randint(0 if number else 1, 7) for number in range(random.randint(1, 5))}
    if random.random() < 0.5:
        partitions = dict.fromkeys(partitions, random.randint(1, 5))
    if random.random() < 0.67:
        return ClusterTopics(partitions)
    several = random.randint(1, 2)
    racks = {
        topic: tuple(frozenset(random.sample(RACKS, several)) for _ in range(count))
        for topic, count in partitions.items()
    }
    return ClusterTopics(partitions, racks)


def alter_cluster(random: Random, cluster: ClusterTopics) -> ClusterTopics:
    """The cluster some time later: partitions are added, a topic vanishes."""
    if random.random() < 0.6:
        return cluster
    partitions = {topic: count + random.randint(0, 2) for topic, count in cluster.partitions.items()}
    if len(partitions) > 1 and random.random() < 0.3:
        del partitions[random.choice(sorted(partitions))]
    racks = {
        topic: (*racks, *(frozenset(random.sample(RACKS, 1)) for _ in range(partitions.get(topic, 0) - len(racks))))
        for topic, racks in cluster.racks.items()
    }
    return ClusterTopics(partitions, racks)


def draw_members(
    random: Random, cluster: ClusterTopics, count: int, like: Sequence[GroupMember] = ()
) -> list[GroupMember]:
    """Members without claims, some of them static; half of the groups subscribe to the same topics."""
    topics = sorted({*cluster.partitions, MISSING_TOPIC} if random.random() < 0.2 else cluster.partitions)
    is_uniform = like[0].subscription.topics if like and random.random() < 0.5 else None
    if is_uniform is None and random.random() < 0.5:
        is_uniform = draw_topics(random, topics)
    with_racks = random.random() < 0.7 if cluster.racks else False
    found = []
    for number in range(count):
        wanted = draw_topics(random, topics) if is_uniform is None else is_uniform
        rack = random.choice(RACKS) if with_racks and random.random() < 0.85 else None
        member_id = f"{'m' if not like else 'n'}{random.choice('xyz')}{number}"
        instance = f"i{random.randint(0, 9)}{member_id}" if random.random() < 0.15 else None
        found.append(GroupMember(member_id, Subscription(wanted, rack=rack), instance))
    return found


def draw_topics(random: Random, topics: Sequence[str]) -> tuple[str, ...]:
    """At least one of the topics."""
    return tuple(random.sample(topics, random.randint(1, len(topics))))


def claim(random: Random, member: GroupMember, had: Assignment, is_odd: bool) -> GroupMember:
    """The member as it joins again with what it had; it may have missed generations, or subscribe anew."""
    generation = random.choice((5, 5, 5, 5, 4, 3))
    topics = member.subscription.topics
    if is_odd and random.random() < 0.15:
        topics = topics[: random.randint(1, len(topics))]
    return with_claim(member, topics, had[member.id], generation)


def contest(random: Random, member: GroupMember, cluster: ClusterTopics) -> GroupMember:
    """The member with random claims, in any of a few generations."""
    own = [topic for topic in member.subscription.topics if cluster.partitions.get(topic, 0)]
    every = [(topic, number) for topic in own for number in range(cluster.partitions[topic])]
    owned = tuple(sorted(random.sample(every, random.randint(0, len(every)))))
    return with_claim(member, member.subscription.topics, owned, random.choice((5, 5, 4, 3, -1)))


def with_claim(
    member: GroupMember, topics: tuple[str, ...], owned: tuple[TopicPartition, ...], generation: int
) -> GroupMember:
    """The member with this claim, which is in every field that an assignor reads."""
    data = encode_sticky_user_data(owned, generation) if owned or generation >= 0 else None
    subscription = Subscription(topics, data, owned, generation, member.subscription.rack)
    return GroupMember(member.id, subscription, member.instance_id)


def by_cooperative_user_data(member: GroupMember) -> GroupMember:
    """The member as `cooperative-sticky` sends it in version 1: the generation is in the user data."""
    before = member.subscription
    data = encode_cooperative_user_data(before.generation)
    return GroupMember(member.id, Subscription(before.topics, data, before.owned, -1, before.rack), member.instance_id)
