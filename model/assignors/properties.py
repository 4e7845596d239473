"""The properties of assignors, as checks of any assignment (member.md 5.1, P1 to P6).

A check takes the members, the topics and the assignment, and yields a sentence for each place where the property is
broken. `broken_properties` applies those checks that an assignor of a well-known name has to pass. Properties of
several rounds are in `rounds`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from fencepost.model.assignors.group import (
    Assignment,
    ClusterTopics,
    GroupMember,
    TopicPartition,
    is_uniform,
    member_order,
    members_by_id,
    participating_topics,
    subscriber_positions,
)
from fencepost.model.assignors.sticky_group import (
    CONTESTED,
    NO_OWNER,
    Quota,
    ReadClaim,
    StickyGroup,
    cooperative_claim,
    kept_claims,
    make_sticky_group,
    quota_after,
    sticky_claim,
)

Members: TypeAlias = Sequence[GroupMember]
Check: TypeAlias = Callable[[Members, ClusterTopics, Assignment], Iterator[str]]


@dataclass(frozen=True, slots=True)
class AssignorProperty:
    """A promise of an assignor: the requirement that says it, and the check."""

    name: str
    requirement: str
    check: Check


@dataclass(frozen=True, slots=True)
class BrokenProperty:
    """A place where an assignment breaks a promise, in a sentence."""

    property: AssignorProperty
    sentence: str

    def __str__(self) -> str:
        return f"{self.property.requirement} ({self.property.name}): {self.sentence}"


def broken_properties(
    name: str, members: Members, cluster: ClusterTopics, assignment: Assignment
) -> tuple[BrokenProperty, ...]:
    """How the assignment breaks what the assignor of this name promises.

    An assignor with another name has to be valid, and to give each partition to one member at most.
    """
    properties = PROPERTIES.get(name, ANY_ASSIGNOR)
    return tuple(
        BrokenProperty(one, sentence) for one in properties for sentence in one.check(members, cluster, assignment)
    )


def find_missing_members(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
    """Members that are not in the assignment, and others that are."""
    ids = {member.id for member in members}
    for member_id in sorted(ids - assignment.keys()):
        yield f"{member_id} is not in the assignment"
    for member_id in sorted(assignment.keys() - ids):
        yield f"{member_id} is in the assignment, but not a member"


def find_invalid(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
    """Partitions that do not exist, or whose topic the member does not subscribe to (P1)."""
    known = members_by_id(members)
    for member_id, partitions in assignment.items():
        topics = known[member_id].subscription.topics if member_id in known else ()
        for topic, number in partitions:
            if not 0 <= number < cluster.partitions.get(topic, 0):
                yield f"{member_id} has {topic}-{number}, which does not exist"
            elif topic not in topics:
                yield f"{member_id} has {topic}-{number}, but does not subscribe to {topic}"


def find_doubles(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
    """Partitions that are assigned more than once (P2)."""
    owners: dict[TopicPartition, list[str]] = defaultdict(list)
    for member_id, partitions in assignment.items():
        for partition in partitions:
            owners[partition].append(member_id)
    for (topic, number), several in owners.items():
        if len(several) > 1:
            yield f"{topic}-{number} is assigned to {' and '.join(several)}"


def find_unassigned(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
    """Partitions of subscribed topics that no member has (P3)."""
    yield from (
        f"{topic}-{number} is assigned to no member" for topic, number in _list_unassigned(members, cluster, assignment)
    )


def find_needlessly_withheld(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
    """Partitions that no member has, although no member has to give them up first (P3, cooperative)."""
    group = make_sticky_group(members, cluster, cooperative_claim)
    for topic, number in _list_unassigned(members, cluster, assignment):
        if group.owners[group.index.codes[topic][number]] == NO_OWNER:
            yield f"{topic}-{number} is withheld, but no member owns it"


def _list_unassigned(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[TopicPartition]:
    assigned = {partition for partitions in assignment.values() for partition in partitions}
    for topic in participating_topics(members, cluster):
        yield from ((topic, n) for n in range(cluster.partitions[topic]) if (topic, n) not in assigned)


def find_uneven_topics(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
    """Topics whose n partitions are not shared as range says.

    Of k subscribers, the first n mod k get one partition more than the others (P4, range): the first by the partitions
    that they get, as another order of members is another fault. With racks in use any of them may be those.
    """
    ordered = member_order(members_by_id(members).values())
    with_racks = any(member.subscription.rack for member in ordered)
    positions = subscriber_positions(ordered)
    for topic in participating_topics(ordered, cluster):
        count = cluster.partitions[topic]
        quotient, remainder = divmod(count, len(positions[topic]))
        ids = (ordered[one].id for one in positions[topic])
        blocks = [[number for name, number in assignment.get(id, ()) if name == topic] for id in ids]
        found = [len(block) for _, block in sorted((min(block, default=count), block) for block in blocks)]
        expected = [quotient + (place < remainder) for place in range(len(found))]
        if (sorted(found) if with_racks else found) != (sorted(expected) if with_racks else expected):
            yield f"the subscribers of {topic} have {found} of its partitions, expected {expected}"


def find_split_topics(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
    """Topics with the same subscribers and as many partitions that are not split identically (RANGE-06)."""
    positions = subscriber_positions(tuple(members_by_id(members).values()))
    owners = {partition: member_id for member_id, partitions in assignment.items() for partition in partitions}
    first: dict[tuple[tuple[int, ...], int], str] = {}
    for topic in participating_topics(members, cluster):
        count = cluster.partitions[topic]
        like = first.setdefault((positions[topic], count), topic)
        for number in range(count):
            one, other = owners.get((like, number)), owners.get((topic, number))
            if one != other:
                yield f"{like}-{number} goes to {one}, but {topic}-{number} to {other}"


def find_uneven_totals(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
    """Members with two partitions more than another, though all subscribe to the same topics (P4, round robin)."""
    if is_uniform(members):
        sizes = {member_id: len(partitions) for member_id, partitions in assignment.items()}
        if sizes and max(sizes.values()) - min(sizes.values()) > 1:
            yield f"the sizes {sizes} differ by more than 1"


def find_improvable(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
    """Partitions that could go to a subscriber with at least two fewer (P4, sticky)."""
    sizes = {member_id: len(partitions) for member_id, partitions in assignment.items()}
    subscribers: dict[str, list[str]] = defaultdict(list)
    for member in members_by_id(members).values():
        for topic in set(member.subscription.topics):
            subscribers[topic].append(member.id)
    smallest = {
        topic: min(several, key=lambda each: (sizes.get(each, 0), each)) for topic, several in subscribers.items()
    }
    for member_id, partitions in assignment.items():
        for topic, number in partitions:
            other = smallest.get(topic)
            size, smaller = sizes[member_id], sizes.get(other or "", 0)
            if other is not None and smaller + 1 < size:
                yield f"{topic}-{number} of {member_id} ({size} partitions) could go to {other} ({smaller})"


def find_needless_moves(
    read_claim: ReadClaim,
) -> Check:
    """The check whether as many claims are kept as balance allows, if all subscribe to the same topics (P5).

    With racks in use a member may lose what it cannot read in its rack, and the check finds nothing.
    """

    def check(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
        group = make_sticky_group(members, cluster, read_claim)
        if not members or not is_uniform(members) or group.racks is not None:
            return
        most, quota = 0, Quota(*divmod(len(group.owners), len(group.members)))
        for owned in group.claims_in_rack():
            kept = kept_claims(quota, len(owned))
            most, quota = most + kept, quota_after(quota, kept)
        kept = sum(len(own & set(assignment.get(member, ()))) for member, own in _valid_claims(group).items())
        if kept < most:
            yield f"{kept} partitions stay where they were, {most} could"

    return check


def find_disturbed(read_claim: ReadClaim) -> Check:
    """The check whether members keep what they had, if that was valid, complete and balanced (P5, STICKY-04)."""

    def check(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
        group = make_sticky_group(members, cluster, read_claim)
        before = {member: tuple(sorted(own)) for member, own in _valid_claims(group).items()}
        checks = (find_invalid, find_unassigned, find_improvable)
        if group.racks is not None or any(next(one(members, cluster, before), None) for one in checks):
            return
        for member, own in before.items():
            if set(own) != set(assignment.get(member, ())):
                yield f"{member} had {list(own)}, which was balanced, and gets {sorted(assignment.get(member, ()))}"

    return check


def find_unsafe(members: Members, cluster: ClusterTopics, assignment: Assignment) -> Iterator[str]:
    """Partitions given to a member while another has to give them up first (P6, cooperative)."""
    group = make_sticky_group(members, cluster, cooperative_claim)
    for position, member in enumerate(group.members):
        for code in group.index.codes_of(assignment.get(member.id, ())):
            owner, (topic, number) = group.owners[code], group.index.names[code]
            if owner == CONTESTED:
                yield f"{member.id} gets {topic}-{number}, which several members claim in one generation"
            elif owner not in (NO_OWNER, position):
                yield f"{member.id} gets {topic}-{number}, which {group.members[owner].id} owns"


def _valid_claims(group: StickyGroup) -> dict[str, set[TopicPartition]]:
    """The partitions that each member validly owns."""
    found: dict[str, set[TopicPartition]] = {member.id: set() for member in group.members}
    for code, owner in enumerate(group.owners):
        if owner >= 0:
            found[group.members[owner].id].add(group.index.names[code])
    return found


VALID = (
    AssignorProperty("valid", "ASSIGN-01", find_invalid),
    AssignorProperty("at most once", "ASSIGN-02", find_doubles),
)
ALL_MEMBERS = AssignorProperty("all members", "ASSIGN-04", find_missing_members)
COMPLETE = AssignorProperty("complete", "ASSIGN-03", find_unassigned)
ANY_ASSIGNOR = (*VALID, ALL_MEMBERS)
EAGER = (*ANY_ASSIGNOR, COMPLETE)
STICKY = (
    *EAGER,
    AssignorProperty("balanced", "STICKY-02", find_improvable),
    AssignorProperty("balanced for equal subscriptions", "STICKY-01", find_uneven_totals),
    AssignorProperty("sticky", "STICKY-03", find_needless_moves(sticky_claim)),
    AssignorProperty("unchanged if balanced", "STICKY-04", find_disturbed(sticky_claim)),
)
PROPERTIES: Mapping[str, tuple[AssignorProperty, ...]] = MappingProxyType(
    {
        "range": (
            *EAGER,
            AssignorProperty("balanced by topic", "RANGE-02", find_uneven_topics),
            AssignorProperty("co-partitioned", "RANGE-06", find_split_topics),
        ),
        "roundrobin": (*EAGER, AssignorProperty("balanced for equal subscriptions", "RR-04", find_uneven_totals)),
        "sticky": STICKY,
        "cooperative-sticky": (
            *ANY_ASSIGNOR,
            AssignorProperty("complete or withheld", "COOP-10", find_needlessly_withheld),
            AssignorProperty("cooperative-safe", "COOP-09", find_unsafe),
            AssignorProperty("sticky", "STICKY-03", find_needless_moves(cooperative_claim)),
            AssignorProperty("unchanged if balanced", "STICKY-04", find_disturbed(cooperative_claim)),
        ),
    }
)
"""What the assignors with well-known names promise for a single assignment."""
