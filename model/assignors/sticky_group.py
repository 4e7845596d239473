"""What both branches of the sticky assignors are made of (member.md 5.4).

Members and partitions are numbers here, because the assignors compare and sort them too often to do so by name. Claims
are the partitions that members say they own; step A decides whose claim counts. Quotas are how many partitions each
member gets under equal subscriptions; they run on plain numbers and, in the proofs of `model/assignors/proofs.py`, on
symbolic ones. An audience is the members that may read a partition.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappush, heapreplace
from typing import TypeAlias

from fencepost.model.assignors.consumer_protocol import decode_cooperative_user_data, decode_sticky_user_data
from fencepost.model.assignors.group import (
    NO_GENERATION,
    Assignment,
    ClusterTopics,
    GroupMember,
    Subscription,
    TopicPartition,
    java_order,
    members_by_id,
    participating_topics,
    rack_of,
    replica_racks,
    should_use_racks,
)
from fencepost.model.frozen import evolve
from fencepost.model.logic import Truth, and_, ite


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """The partitions that take part, each with a code. Codes ascend by topic, then by partition number."""

    names: tuple[TopicPartition, ...]
    """The partitions by code."""
    codes: dict[str, range]
    """The codes of each topic's partitions."""

    def codes_of(self, partitions: Iterable[TopicPartition]) -> list[int]:
        """The codes of those partitions that take part."""
        codes, nothing = self.codes, range(0)
        return [codes[topic][number] for topic, number in partitions if 0 <= number < len(codes.get(topic, nothing))]

    def names_of(self, codes: Iterable[int]) -> tuple[TopicPartition, ...]:
        """The partitions with these codes, ordered."""
        names = self.names
        return tuple([names[code] for code in sorted(codes)])


def index_partitions(topics: Sequence[str], cluster: ClusterTopics) -> PartitionIndex:
    """The index of the partitions of these topics, which are in order."""
    names: list[TopicPartition] = []
    codes = {}
    for topic in topics:
        begin, count = len(names), cluster.partitions[topic]
        names += zip([topic] * count, range(count), strict=True)
        codes[topic] = range(begin, begin + count)
    return PartitionIndex(tuple(names), codes)


NO_OWNER = -1
CONTESTED = -2
"""The owner of a partition that several members claim in one generation: nobody's claim counts (KAFKA-12984)."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The partitions that a member says it owns, and the generation in which they were assigned to it."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION


ReadClaim: TypeAlias = Callable[[Subscription], Claim]
"""How an assignor reads the claim of a member."""


def sticky_claim(subscription: Subscription) -> Claim:
    """The claim that `sticky` goes by: that of the user data, whatever the other fields say (STICKY-10).

    An eager member owns nothing when it joins. User data that cannot be read claim nothing (ASSIGN-07).
    """
    decoded = decode_sticky_user_data(subscription.user_data)
    return Claim() if decoded is None else Claim(*decoded)


def cooperative_claim(subscription: Subscription) -> Claim:
    """The claim that `cooperative-sticky` goes by: the owned partitions, with the generation of version 2.

    Without one, the generation is that of the user data.
    """
    generation = subscription.generation
    if generation < 0:
        generation = decode_cooperative_user_data(subscription.user_data)
    return Claim(subscription.owned, generation)


def resolve_claims(claims: Sequence[Claim], index: PartitionIndex) -> list[int]:
    """The valid owner of each partition, as a position in `claims`; NO_OWNER without one, CONTESTED with several.

    The claim of the highest generation counts (STICKY-07, KAFKA-14639); a claim on something that does not exist
    does not (STICKY-12, -13).
    """
    owners = [NO_OWNER] * len(index.names)
    newest = [NO_GENERATION - 1] * len(owners)
    for position, claim in enumerate(claims):
        generation = max(claim.generation, NO_GENERATION)
        for code in index.codes_of(claim.partitions):
            if generation > newest[code]:
                owners[code], newest[code] = position, generation
            elif generation == newest[code] and owners[code] != position:
                owners[code] = CONTESTED
    return owners


def older_owners(
    claims: Iterable[tuple[int, Claim]], index: PartitionIndex, subscribes: Callable[[int, str], bool]
) -> dict[int, int]:
    """For partitions claimed in a generation before the newest of all: the member with the latest of those claims.

    `claims` come with the positions of their members; of several in one generation the first counts. A member that
    does not subscribe to the topic any longer is left out (STICKY-14).
    """
    claims = tuple(claims)
    newest = max((claim.generation for _, claim in claims), default=NO_GENERATION)
    found: dict[int, tuple[int, int]] = {}
    for position, claim in claims:
        if claim.generation < newest:
            for code in index.codes_of(claim.partitions):
                is_latest = code not in found or claim.generation > found[code][0]
                if is_latest and subscribes(position, index.names[code][0]):
                    found[code] = claim.generation, position
    return {code: position for code, (_, position) in found.items()}


@dataclass(frozen=True, slots=True)
class Quota:
    """The sizes of a balanced assignment: `low` for each member, and one more for as many as `extra` says.

    `extra` counts the members that may still get one more; each that does takes 1 off.
    """

    low: int
    extra: int


def kept_claims(quota: Quota, claims: int) -> int:
    """How many of its claims a member keeps: up to `low`, and one more if it has it and somebody may."""
    most = ite(and_(claims > quota.low, quota.extra > 0), quota.low + 1, quota.low)
    return ite(claims < most, claims, most)


def is_below(quota: Quota, size: int) -> Truth:
    """Whether a member of this size is still owed partitions."""
    return size < quota.low


def may_grow(quota: Quota, size: int) -> Truth:
    """Whether a member of this size may get the partition that only some get."""
    return and_(size == quota.low, quota.extra > 0)


def quota_after(quota: Quota, size: int) -> Quota:
    """The quota after a member has come to this size."""
    return evolve(quota, extra=quota.extra - ite(size > quota.low, 1, 0))


@dataclass(frozen=True, slots=True)
class RackTable:
    """The racks of the members by position and of the replicas by code, where racks make a difference."""

    readers: tuple[str | None, ...]
    replicas: tuple[frozenset[str], ...]
    sizes: Counter[str | None]
    """How many members read from each rack."""

    def is_near(self, position: int, code: int) -> bool:
        """Whether the member has no rack, or reads from one with a replica."""
        rack = self.readers[position]
        return rack is None or rack in self.replicas[code]

    def readers_near(self, code: int) -> int:
        """How many members read from a rack with a replica."""
        return sum(self.sizes[rack] for rack in self.replicas[code])


@dataclass(frozen=True, slots=True)
class StickyGroup:
    """The members, by position in the order of their ids, and the partitions, by code."""

    members: tuple[GroupMember, ...]
    order: tuple[int, ...]
    """The positions in the order in which the members were given. It decides what the rules leave open."""
    index: PartitionIndex
    claims: tuple[Claim, ...]
    owners: tuple[int, ...]
    """The valid owner of each partition before this round, see `claims.resolve_claims`."""
    racks: RackTable | None

    def claims_in_rack(self) -> list[list[int]]:
        """The partitions that each member validly owns, in order, without those that it cannot read in its rack."""
        found: list[list[int]] = [[] for _ in self.members]
        for code, owner in enumerate(self.owners):
            if owner >= 0 and (self.racks is None or self.racks.is_near(owner, code)):
                found[owner].append(code)
        return found

    def number_then_topic(self, code: int) -> tuple[int, int]:
        """The key of the order by partition number, then by topic."""
        return self.index.names[code][1], code

    def name_partitions(self, given: Sequence[Sequence[int]]) -> Assignment:
        """The assignment that gives each member, by position, these partitions."""
        names = self.index.names_of
        return {self.members[position].id: names(given[position]) for position in self.order}


def make_sticky_group(members: Sequence[GroupMember], cluster: ClusterTopics, read_claim: ReadClaim) -> StickyGroup:
    """The group of these members, whose claims are read like this."""
    known = members_by_id(members)
    ids = sorted(known, key=java_order)
    place = {member_id: position for position, member_id in enumerate(ids)}
    ordered = tuple(known[member_id] for member_id in ids)
    topics = participating_topics(ordered, cluster)
    index = index_partitions(topics, cluster)
    claims = tuple(read_claim(member.subscription) for member in ordered)
    owners = tuple(resolve_claims(claims, index))
    order = tuple(place[member_id] for member_id in known)
    return StickyGroup(ordered, order, index, claims, owners, _rack_table(ordered, topics, cluster))


def _rack_table(members: Sequence[GroupMember], topics: Sequence[str], cluster: ClusterTopics) -> RackTable | None:
    """The racks, None where they make no difference."""
    readers = tuple(map(rack_of, members))
    sizes = Counter(readers)
    if sizes[None] == len(members):
        return None
    replicas = tuple(near for topic in topics for near in replica_racks(topic, cluster))
    return RackTable(readers, replicas, sizes) if should_use_racks(sizes, replicas) else None


class Audiences:
    """The sizes of all members, and the audience of each partition: the members that may read it.

    Members are positions, partitions codes, and audiences numbers: topics with the same subscribers share one. The
    smallest member of an audience is the one with the fewest partitions, of several the first.
    """

    def __init__(self, size: int, subscribers: Iterable[tuple[tuple[int, ...], range]]) -> None:
        """`size` is the number of members; `subscribers` are those of each topic, with the codes of its partitions."""
        self.sizes = [0] * size
        self.of: list[int] = []
        self.members: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._near: dict[tuple[int, frozenset[str]], int] = {}
        self._heaps: dict[int, list[tuple[int, int]]] = {}
        self._joined: list[list[int]] = [[] for _ in range(size)]
        for members, codes in subscribers:
            self.of += [self._number(members)] * len(codes)

    def _number(self, members: tuple[int, ...]) -> int:
        """The number of the audience of these members."""
        if members not in self._numbers:
            number = self._numbers[members] = len(self.members)
            self.members.append(members)
            for position in members:
                self._joined[position].append(number)
        return self._numbers[members]

    def near(self, code: int, racks: RackTable) -> int:
        """The number of the audience of those members that may read the partition and are near it."""
        key = self.of[code], racks.replicas[code]
        if key not in self._near:
            self._near[key] = self._number(tuple(one for one in self.members[key[0]] if racks.is_near(one, code)))
        return self._near[key]

    def smallest(self, audience: int) -> int:
        """The smallest member of an audience, which is not empty."""
        heap, sizes = self._heaps.get(audience), self.sizes
        if heap is None:
            heap = self._heaps[audience] = [(sizes[position], position) for position in self.members[audience]]
            heapify(heap)
        while True:
            size, position = heap[0]
            if size == sizes[position]:
                return position
            # Members that grow stay where they are in a heap until they come to its top.
            heapreplace(heap, (sizes[position], position))

    def grow(self, position: int) -> None:
        """The member has one partition more."""
        self.sizes[position] += 1

    def shrink(self, position: int) -> None:
        """The member has one partition less."""
        self.sizes[position] -= 1
        for audience in self._joined[position]:
            if audience in self._heaps:
                heappush(self._heaps[audience], (self.sizes[position], position))
