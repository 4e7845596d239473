"""Bugs of members: subscriptions, topics that change, and the plans of leaders."""

from typing import Any

from fencepost.adapters.client.reference.client import ReferenceClient
from fencepost.conformance.classic.zoo.clients.reference import (
    COOPERATIVE,
    MIXED,
    client_family,
    instead_of,
    replace_function,
)
from fencepost.conformance.zoo.fault import Patch, Shipped, Side
from fencepost.model.assignors import consumer_protocol
from fencepost.model.assignors.consumer_protocol import encode_assignment
from fencepost.model.classic.member import (
    completion,
    joining,
    preparation,
    settings,
)
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    Client,
    ClientContext,
    JoinedTopics,
    counts_of,
)
from fencepost.model.classic.member.member import Member, MemberState, MemberStep
from fencepost.model.classic.member.step import ClientStep
from fencepost.model.frozen import evolve

subscribing = client_family(Side.MEMBER)


@subscribing.add("BUG-59", "KAFKA-3117, https://github.com/apache/kafka/commit/8a863ecee7e", "MEMBER-21")
@instead_of(completion.install_assignment)
def growth_during_a_rebalance_is_absorbed(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """Partitions that come while the leader rebalances go into its snapshot, though its plan has none of them."""
    return shipped(evolve(client, planned=counts_of(client, client.group_topics)), context)


@subscribing.add(
    "BUG-60", "aiokafka issue 88, KAFKA-3949, https://github.com/aio-libs/aiokafka/commit/99964da7", "MEMBER-27"
)
@instead_of(completion.install_assignment)
def a_subscription_changed_meanwhile_is_lost(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """At the end of a join the present subscription counts as the one that it was made with."""
    return shipped(evolve(client, joined=JoinedTopics(client.topics)), context)


@subscribing.add("BUG-81", "librdkafka 1.8, https://github.com/confluentinc/librdkafka/commit/5cd6f53c4", "MEMBER-06")
def a_change_joins_at_once(patch: Patch) -> None:
    """A topic that changes while JoinGroup has no response has the member send another one."""
    is_exchanging, join = preparation.is_exchanging, core.join

    def is_settled(client: Client) -> bool:
        is_behind = client.joined is not None and client.joined.topics != client.topics
        grown = client.planned and counts_of(client, client.topics) != client.planned
        is_joining = client.member.state == MemberState.PREPARING_REBALANCE
        return is_exchanging(client) and not (is_joining and (is_behind or grown))

    def join_again(member: Member, handle: Any) -> MemberStep:
        return join(evolve(member, waiting=0, rejoins=True), handle)

    replace_function(patch, is_exchanging, is_settled)
    replace_function(patch, join, join_again)


@subscribing.add(
    "BUG-87",
    "franz-go issue 1365, https://github.com/twmb/franz-go/commit/3ac2fff1",
    "COOP-15",
    "MEMBER-35",
    "CALLBACK-02",
    setting=MIXED,
)
@instead_of(settings.select_rebalance_protocol)
def one_cooperative_assignor_is_enough(shipped: Shipped[Any], strategies: Any) -> Any:
    """A member that offers cooperative and eager assignors keeps its partitions whatever the group has chosen."""
    return max(protocol for strategy in strategies for protocol in strategy.protocols)


@subscribing.add("BUG-97", "sarama issue 1462, https://github.com/IBM/sarama/commit/bdbb7771", "MEMBER-21")
@instead_of(preparation.notice_changes)
def growth_is_not_noticed(shipped: Shipped[ClientStep], client: Client, context: ClientContext) -> ClientStep:
    """A leader does not look at the partition counts of its topics."""
    return shipped(evolve(client, planned=counts_of(client, client.group_topics)), context)


@subscribing.add(
    "BUG-98",
    "sarama issue 2290, https://github.com/IBM/sarama/commit/034046e8",
    "MEMBER-08",
    "ASSIGN-04",
    setting=COOPERATIVE,
)
def members_without_partitions_are_left_out(patch: Patch) -> None:
    """The leader's SyncGroup has only the members that get something."""
    encode = joining.encode_plan
    nothing = encode_assignment(())

    def encode_less(client: Client, request: Any) -> Any:
        encoded = encode(client, request)
        return evolve(encoded, assignments=tuple(row for row in encoded.assignments if row[1] != nothing))

    replace_function(patch, encode, encode_less)


@subscribing.add(
    "BUG-139", "franz-go, https://github.com/twmb/franz-go/commit/dcfcacb5", "COOP-01", setting=COOPERATIVE
)
@instead_of(joining.subscription_of)
def claims_are_cleared_before_the_join(shipped: Shipped[Any], client: Client, strategy: Any, claims: Any) -> Any:
    """The list of what the member owns is cleared before it joins again."""
    return evolve(shipped(client, strategy, claims), owned=())


@subscribing.add(
    "BUG-126", "KAFKA-12898, https://github.com/apache/kafka/commit/386670227b2", "WIRE-04", setting=COOPERATIVE
)
def claims_have_no_order(patch: Patch) -> None:
    """Owned partitions are encoded in another order each time."""
    encode = consumer_protocol.encode_subscription

    def in_any_order(partitions: Any) -> list[Any]:
        return [{"topic": topic, "partitions": [number]} for topic, number in sorted(partitions, reverse=True)]

    def encode_unsorted(subscription: Any) -> bytes:
        with Patch() as inner:
            inner.replace(consumer_protocol, "_group_by_topic", in_any_order)
            return encode(subscription)

    patch.replace(joining, "encode_subscription", encode_unsorted)


@subscribing.add(
    "BUG-143", "ruby-kafka issue 525, https://github.com/zendesk/ruby-kafka/commit/ad688de", "ASSIGN-03", "COOP-10"
)
def the_leader_plans_for_its_own_topics(patch: Patch) -> None:
    """A leader assigns only the topics that it has subscribed to itself."""

    def own_counts(client: Client, topics: Any) -> Any:
        return counts_of(client, set(topics) & client.topics)

    patch.replace(joining, "counts_of", own_counts)


@subscribing.add(
    "BUG-144", "aiokafka issue 118, https://github.com/aio-libs/aiokafka/commit/893f62e7", "ASSIGN-03", "COOP-10"
)
def the_leader_does_not_wait_for_metadata(patch: Patch) -> None:
    """A leader makes its plan before the metadata of the other members' topics have come."""
    patch.replace(ReferenceClient, "topics_of_group", lambda client, body: set())


@subscribing.add("BUG-95", "franz-go, https://github.com/twmb/franz-go/commit/0e620de0", "MEMBER-21")
@instead_of(preparation.notice_changes)
def a_topic_that_comes_later_is_not_noticed(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """A leader that joined before its topic had partitions does not look for them any more."""
    missing = client.group_topics - {topic for topic, _ in client.planned}
    return shipped(evolve(client, group_topics=client.group_topics - missing), context)
