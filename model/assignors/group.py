"""The values that assignors take and give: members with their subscriptions, the topics of the cluster, assignments.

Racks are here too: when an assignor looks at them, and who can read a partition in its own rack (KIP-881).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

NO_GENERATION = -1
"""The generation of a claim that carries none."""

TopicPartition: TypeAlias = tuple[str, int]
"""A topic and the number of one of its partitions."""

Assignment: TypeAlias = Mapping[str, tuple[TopicPartition, ...]]
"""The partitions of each member, by member id. Every member that was asked for is in it, perhaps with none."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member sends to the leader in JoinGroup (ConsumerProtocolSubscription).

    A field that the version does not have keeps its default: version 0 has topics and user data, 1 adds the owned
    partitions, 2 the generation, 3 the rack.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None
    """The rack that the member reads from; None or empty: none."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member as the leader sees it. A static member has an instance id."""

    id: str
    subscription: Subscription
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterTopics:
    """The topics that exist.

    `partitions` is the number of partitions of each. `racks` holds, for some topics, the racks of the replicas of
    each partition, offline replicas included.
    """

    partitions: Mapping[str, int]
    racks: Mapping[str, Sequence[frozenset[str]]] = field(default_factory=dict)


Assign: TypeAlias = Callable[[Sequence[GroupMember], ClusterTopics], Assignment]
"""An assignor: the assignment for these members. Of two members with one id the later one counts."""


def java_order(text: str) -> bytes:
    """The key by which Java compares strings: by UTF-16 code units (RANGE-07)."""
    return text.encode("utf-16-be", "surrogatepass")


def members_by_id(members: Iterable[GroupMember]) -> dict[str, GroupMember]:
    """The members by id, in the order given."""
    return {member.id: member for member in members}


def is_uniform(members: Iterable[GroupMember]) -> bool:
    """Whether all members subscribe to the same topics, those that do not exist included."""
    return len({frozenset(topics) for topics in {member.subscription.topics for member in members}}) <= 1


def participating_topics(members: Iterable[GroupMember], cluster: ClusterTopics) -> list[str]:
    """The topics that take part: a member subscribes to them, and they have partitions. Ordered by name (ASSIGN-05)."""
    wanted = {topic for topics in {member.subscription.topics for member in members} for topic in topics}
    return sorted((topic for topic in wanted if cluster.partitions.get(topic, 0) > 0), key=java_order)


def member_order(members: Iterable[GroupMember]) -> list[GroupMember]:
    """Static members by instance id, then the others by member id (RANGE-04, RR-05)."""

    def place(member: GroupMember) -> tuple[bool, bytes]:
        instance = member.instance_id
        return instance is None, java_order(member.id if instance is None else instance)

    return sorted(members, key=place)


def subscriber_positions(members: Sequence[GroupMember]) -> dict[str, tuple[int, ...]]:
    """The positions, in the sequence, of the members that subscribe to each topic."""
    if len({member.subscription.topics for member in members}) == 1:
        return dict.fromkeys(members[0].subscription.topics, tuple(range(len(members))))
    found: dict[str, list[int]] = {}
    for position, member in enumerate(members):
        for topic in dict.fromkeys(member.subscription.topics):
            found.setdefault(topic, []).append(position)
    return {topic: tuple(positions) for topic, positions in found.items()}


def partitions_of(topic: str, cluster: ClusterTopics) -> list[TopicPartition]:
    """The partitions of a topic, in order."""
    return [(topic, number) for number in range(cluster.partitions[topic])]


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
