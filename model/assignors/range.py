"""The range assignor: topic by topic, a contiguous block of partitions for each subscriber (member.md 5.2).

Topics with the same subscribers and the same number of partitions are split identically: they share one list of
owners. With racks, partitions go first to subscribers in the rack of a replica, as far as their shares allow (5.6).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from fencepost.model.assignors.group import (
    Assignment,
    ClusterTopics,
    GroupMember,
    TopicPartition,
    member_order,
    members_by_id,
    participating_topics,
    partitions_of,
    rack_of,
    replica_racks,
    should_use_racks,
    subscriber_positions,
)
from fencepost.model.logic import ite

Racks: TypeAlias = Sequence[frozenset[str]]
NOBODY = -1


def assign_range(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """The assignment of `range`."""
    ordered = member_order(members_by_id(members).values())
    given: list[list[TopicPartition]] = [[] for _ in ordered]
    topics = participating_topics(ordered, cluster)
    subscribers = subscriber_positions(ordered)
    readers = [rack_of(member) for member in ordered]
    racks = {topic: replica_racks(topic, cluster) for topic in topics} if any(readers) else {}
    if any(should_use_racks({readers[one] for one in subscribers[topic]}, racks[topic]) for topic in racks):
        _give_by_racks(subscribers, readers, racks, given)
    else:
        for topic in topics:
            partitions = partitions_of(topic, cluster)
            for position, begin, end in blocks(subscribers[topic], len(partitions)):
                given[position] += partitions[begin:end]
    return {member.id: tuple(partitions) for member, partitions in zip(ordered, given, strict=True)}


def block_size(position: int, quotient: int, remainder: int) -> int:
    """The size of the block of the subscriber at this position: the first `remainder` blocks have one more."""
    return quotient + ite(position < remainder, 1, 0)


def blocks(subscribers: Sequence[int], count: int) -> Iterator[tuple[int, int, int]]:
    """Each subscriber that gets something of `count` partitions, with the beginning and the end of its block."""
    quotient, remainder = divmod(count, len(subscribers))
    end = 0
    for position in range(min(count, len(subscribers))):
        begin, end = end, end + block_size(position, quotient, remainder)
        yield subscribers[position], begin, end


def _give_by_racks(
    subscribers: Mapping[str, tuple[int, ...]],
    readers: Sequence[str | None],
    racks: Mapping[str, Racks],
    given: list[list[TopicPartition]],
) -> None:
    """Give the partitions of all topics away, those of co-partitioned topics by one list of owners."""
    together: dict[tuple[tuple[int, ...], int], list[str]] = defaultdict(list)
    for topic in racks:
        together[subscribers[topic], len(racks[topic])].append(topic)
    for (positions, count), topics in together.items():
        own = [readers[position] for position in positions]
        shares = _Shares(len(positions), count)
        if len(topics) > 1:
            several = zip(*(racks[topic] for topic in topics), strict=True)
            _match_partitions(shares, own, [frozenset.intersection(*each) for each in several])
        elif should_use_racks(set(own), racks[topics[0]]):
            _match_ranges(shares, own, racks[topics[0]])
        shares.give_the_rest()
        for topic in topics:
            for number, owner in enumerate(shares.owners):
                given[positions[owner]].append((topic, number))
    for partitions in given:
        partitions.sort()


class _Shares:
    """How much each subscriber may still take of the partitions of one topic, and who has what so far."""

    def __init__(self, subscribers: int, count: int) -> None:
        self.quotient, self.extra = divmod(count, subscribers)
        self.taken = [0] * subscribers
        self.owners = [NOBODY] * count

    def room(self, position: int) -> int:
        """How many partitions the subscriber may still take; this never grows."""
        return max(0, self.quotient + (self.extra > 0) - self.taken[position])

    def give(self, position: int, numbers: Sequence[int]) -> None:
        """Give the subscriber partitions, not more than it has room for."""
        for number in numbers:
            self.owners[number] = position
        self.taken[position] += len(numbers)
        if numbers and self.taken[position] > self.quotient:
            self.extra -= 1

    def give_the_rest(self) -> None:
        """Give the partitions without an owner to the subscribers in order."""
        rest = [number for number, owner in enumerate(self.owners) if owner == NOBODY]
        begin = 0
        for position in range(len(self.taken)):
            end = begin + self.room(position)
            self.give(position, rest[begin:end])
            begin = end


def _match_partitions(shares: _Shares, readers: Sequence[str | None], racks: Racks) -> None:
    """Partition by partition, to the first subscriber with room that has no rack or one with replicas."""
    waiting: dict[str | None, list[int]] = defaultdict(list)
    for position in reversed(range(len(readers))):
        waiting[readers[position]].append(position)
    for number, near in enumerate(racks):
        candidates = []
        for rack in (None, *near):
            queue = waiting.get(rack, [])
            while queue and not shares.room(queue[-1]):
                queue.pop()
            candidates += queue[-1:]
        if candidates:
            shares.give(min(candidates), [number])


def _match_ranges(shares: _Shares, readers: Sequence[str | None], racks: Racks) -> None:
    """Subscriber by subscriber, the first partitions that it can read in its rack; without a rack, any."""
    by_rack: dict[str | None, list[int]] = defaultdict(list)
    for number in reversed(range(len(racks))):
        by_rack[None].append(number)
        for near in racks[number]:
            by_rack[near].append(number)
    for position, rack in enumerate(readers):
        stack, room = by_rack.get(rack, []), shares.room(position)
        taken: list[int] = []
        while stack and len(taken) < room:
            number = stack.pop()
            if shares.owners[number] == NOBODY:
                taken.append(number)
        shares.give(position, taken)
