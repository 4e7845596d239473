"""Bugs of assignors. Each is in force while the assignor makes a plan, and not while its plan is looked at."""

from collections.abc import Callable, Sequence
from typing import Any

from fencepost.conformance.classic.zoo.clients.reference import client_family, instead_of, replace_function
from fencepost.conformance.zoo.fault import Patch, Shipped, Side
from fencepost.model.assignors import group, round_robin, sticky, sticky_group
from fencepost.model.assignors import range as range_assignor
from fencepost.model.assignors.group import NO_GENERATION, ClusterTopics, GroupMember
from fencepost.model.assignors.sticky_group import NO_OWNER, Claim, PartitionIndex, Quota, StickyGroup

assigning = client_family(Side.ASSIGNOR)


@assigning.add("BUG-118", "KAFKA-3661, https://github.com/apache/kafka/commit/8429db937e2", "ASSIGN-05")
@instead_of(group.participating_topics)
def an_unknown_topic_is_an_error(shipped: Shipped[list[str]], members: Any, cluster: ClusterTopics) -> list[str]:
    """A subscribed topic without metadata fails the assignor."""
    return sorted({topic for member in members for topic in member.subscription.topics})


def resolve_by(better: Callable[[int, int], bool], *, contests: bool = True) -> Any:
    """A way to resolve claims in which one generation is better than another."""

    def resolve(made: Sequence[Claim], index: PartitionIndex) -> list[int]:
        owners = [NO_OWNER] * len(index.names)
        seen: dict[int, int] = {}
        for position, claim in enumerate(made):
            generation = max(claim.generation, NO_GENERATION)
            for code in index.codes_of(claim.partitions):
                if code not in seen or better(generation, seen[code]):
                    owners[code], seen[code] = position, generation
                elif contests and generation == seen[code] and owners[code] != position:
                    owners[code] = sticky_group.CONTESTED
        return owners

    return resolve


@assigning.add("BUG-119", "KAFKA-7026, https://github.com/apache/kafka/commit/3e8a10e7d9a", "STICKY-07")
def the_oldest_claim_counts(patch: Patch) -> None:
    """Of two claims the one of the lower generation counts."""
    replace_function(patch, sticky_group.resolve_claims, resolve_by(lambda new, old: new < old))


@assigning.add("BUG-120", "KAFKA-12984, https://github.com/apache/kafka/commit/37d086fa2aa", "STICKY-08", "COOP-16")
def the_first_of_equal_claims_counts(patch: Patch) -> None:
    """Of two claims of one generation the first counts."""
    replace_function(patch, sticky_group.resolve_claims, resolve_by(lambda new, old: new > old, contests=False))


@assigning.add("BUG-121", "KAFKA-12984, https://github.com/apache/kafka/commit/37d086fa2aa", "STICKY-01")
def too_many_members_grow(patch: Patch) -> None:
    """Every member at the lower quota may take one more, after as many as there should be have done so."""
    replace_function(patch, sticky_group.may_grow, lambda quota, size: size == quota.low)
    replace_function(patch, sticky_group.quota_after, lambda quota, size: quota)


@assigning.add("BUG-122", "KAFKA-14639, https://github.com/apache/kafka/commit/c6ad151ac3b", "COOP-09", "STICKY-09")
@instead_of(sticky_group.resolve_claims)
def only_the_newest_claims_count(
    shipped: Shipped[list[int]], made: Sequence[Claim], index: PartitionIndex
) -> list[int]:
    """Only claims of the newest generation of all count."""
    newest = max((claim.generation for claim in made), default=NO_GENERATION)
    return shipped([claim if claim.generation == newest else Claim() for claim in made], index)


@assigning.add("BUG-123", "KAFKA-15170, https://github.com/apache/kafka/commit/f0291ac74b8", "COOP-09")
@instead_of(sticky_group.make_sticky_group)
def a_partition_in_the_wrong_rack_is_not_withheld(
    shipped: Shipped[StickyGroup], members: Any, cluster: ClusterTopics, read_claim: Any
) -> StickyGroup:
    """A partition that its owner cannot read in its rack moves to another member at once."""
    made = shipped(members, cluster, read_claim)
    if made.racks is None:
        return made
    near = [
        owner if owner < 0 or made.racks.is_near(owner, code) else NO_OWNER for code, owner in enumerate(made.owners)
    ]
    return StickyGroup(made.members, made.order, made.index, made.claims, tuple(near), made.racks)


@assigning.add("BUG-124", "KAFKA-15106, https://github.com/apache/kafka/commit/e0b7499103d", "STICKY-15", "STICKY-02")
def a_difference_of_one_is_an_imbalance(patch: Patch) -> None:
    """A partition moves to a member that has one fewer."""
    replace_function(patch, sticky.is_improvement, lambda larger, smaller: larger > smaller)


@assigning.add("BUG-125", "KAFKA-16277, https://github.com/apache/kafka/commit/027fad4b2a0", "STICKY-06")
def whole_topics_move(patch: Patch) -> None:
    """What a member has too much of is cut off topic by topic."""
    patch.replace(StickyGroup, "number_then_topic", lambda own, code: (code, code))


@assigning.add(
    "BUG-127",
    "librdkafka issues 2121, 3024, https://github.com/confluentinc/librdkafka/commit/8ba5df7ab",
    "RR-01",
    "ASSIGN-01",
)
def the_index_is_that_of_another_list(patch: Patch) -> None:
    """The turn counts the members interested in a topic, and is used in the list of all members."""

    def positions(members: Sequence[GroupMember]) -> dict[str, tuple[int, ...]]:
        found = group.subscriber_positions(members)
        return {topic: tuple(range(len(interested))) for topic, interested in found.items()}

    patch.replace(round_robin, "subscriber_positions", positions)


@assigning.add(
    "BUG-129",
    "librdkafka issue 3306, https://github.com/confluentinc/librdkafka/commit/fd3d4bc80",
    "STICKY-03",
    "STICKY-04",
)
def nothing_is_sticky(patch: Patch) -> None:
    """The partitions that members have had are not looked at."""
    replace_function(patch, sticky_group.resolve_claims, lambda made, index: [NO_OWNER] * len(index.names))


@assigning.add("BUG-133", "librdkafka, https://github.com/confluentinc/librdkafka/commit/43b8bc179", "ASSIGN-06")
def topics_have_no_order(patch: Patch) -> None:
    """The order of topics is that in which members name them."""

    def as_named(members: Any, cluster: ClusterTopics) -> list[str]:
        named = dict.fromkeys(topic for member in members for topic in member.subscription.topics[::-1])
        return [topic for topic in named if cluster.partitions.get(topic, 0) > 0]

    replace_function(patch, group.participating_topics, as_named)
    replace_function(patch, group.member_order, lambda members: list(members))


@assigning.add(
    "BUG-134", "franz-go issue 24, https://github.com/twmb/franz-go/commit/e0389166", "RANGE-03", "ASSIGN-03"
)
def shares_count_all_members(patch: Patch) -> None:
    """The share of a member is that of all members, though not all subscribe to the topic."""
    blocks = range_assignor.blocks
    sizes: list[int] = []

    def positions(members: Sequence[GroupMember]) -> Any:
        sizes[:] = [len(members)]
        return group.subscriber_positions(members)

    def cut(subscribers: Sequence[int], count: int) -> Any:
        quotient, remainder = divmod(count, sizes[0])
        end = 0
        for place, position in enumerate(subscribers):
            begin, end = end, end + range_assignor.block_size(place, quotient, remainder)
            yield position, begin, end

    patch.replace(range_assignor, "subscriber_positions", positions)
    replace_function(patch, blocks, cut)


@assigning.add("BUG-135", "franz-go, https://github.com/twmb/franz-go/commit/d7ae9db9", "COOP-09")
@instead_of(sticky.withhold)
def withholding_believes_stale_claims(
    shipped: Shipped[list[list[int]]], own: StickyGroup, given: Sequence[Sequence[int]]
) -> list[list[int]]:
    """A partition is withheld from those that do not claim it, whatever the generation of a claim."""
    claimed = [set(own.index.codes_of(claim.partitions)) for claim in own.claims]
    everybody = set[int]().union(*claimed)
    return [
        [code for code in codes if code in claimed[position] or code not in everybody]
        for position, codes in enumerate(given)
    ]


@assigning.add(
    "BUG-136", "franz-go, https://github.com/twmb/franz-go/commit/4deed686", "ASSIGN-02", "ASSIGN-03", "STICKY-02"
)
def a_move_is_noted_in_one_map(patch: Patch) -> None:
    """A partition that moves is still counted where it was."""
    patch.replace(sticky_group.Audiences, "shrink", lambda own, position: None)


@assigning.add("BUG-138", "franz-go, https://github.com/twmb/franz-go/commit/2f6d70e2", "STICKY-13", "STICKY-12")
@instead_of(PartitionIndex.codes_of)
def claims_may_be_nonsense(shipped: Shipped[list[int]], index: PartitionIndex, partitions: Any) -> list[int]:
    """A claim on a partition that does not exist fails the assignor, or counts for the next topic."""
    return [index.codes[topic].start + number for topic, number in partitions if topic in index.codes]


@assigning.add("BUG-140", "sarama, https://github.com/IBM/sarama/commit/3d317e1f", "RANGE-02")
@instead_of(range_assignor.blocks)
def boundaries_are_rounded(shipped: Shipped[Any], subscribers: Sequence[int], count: int) -> Any:
    """The blocks of range end at rounded steps."""
    step = count / len(subscribers)
    for place, position in enumerate(subscribers):
        yield position, round(place * step), round((place + 1) * step)


@assigning.add("BUG-141", "ruby-kafka, https://github.com/zendesk/ruby-kafka/commit/3678966", "RR-03", "RR-04")
def each_topic_begins_anew(patch: Patch) -> None:
    """Round robin begins with the first member in each topic."""
    patch.replace(round_robin, "bisect_left", lambda interested, pointer: 0)


@assigning.add("BUG-142", "ruby-kafka, https://github.com/zendesk/ruby-kafka/commit/e3d336c", "ASSIGN-03", "RANGE-02")
def the_remainder_is_lost(patch: Patch) -> None:
    """Every member gets the floor of its share, and the rest nobody."""
    replace_function(patch, range_assignor.block_size, lambda position, quotient, remainder: quotient)


@assigning.add(
    "BUG-128",
    "librdkafka issue 3306, https://github.com/confluentinc/librdkafka/commit/31da24e2e",
    "STICKY-01",
    "STICKY-03",
)
@instead_of(sticky._keep_claims_uniformly)
def a_member_is_full_too_early(shipped: Shipped[Any], own: StickyGroup, quota: Quota) -> Any:
    """Whether a member has all it can get is measured by the number of members."""
    given, left = shipped(own, quota)
    for codes in given:
        del codes[len(own.members) :]
    return given, left
