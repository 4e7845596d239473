"""The input of both branches of the sticky assignors: members and partitions as numbers, claims, racks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.model.assignors.claims import Claim, ReadClaim, resolve_claims
from fencepost.model.assignors.group import (
    Assignment,
    ClusterTopics,
    GroupMember,
    java_order,
    members_by_id,
    participating_topics,
)
from fencepost.model.assignors.partition_index import PartitionIndex, index_partitions
from fencepost.model.assignors.racks import rack_of, replica_racks, should_use_racks


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
