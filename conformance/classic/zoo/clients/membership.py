"""Bugs of members: joining, identity, heartbeats, leaving, subscriptions, and the plans of leaders."""

from typing import Any

from fencepost.adapters.classic.client.client import ReferenceClient
from fencepost.conformance.classic.zoo.clients.reference import (
    COOPERATIVE,
    EAGER,
    MIXED,
    NO_AUTO_COMMIT,
    client_family,
    instead_of,
    replace_function,
)
from fencepost.conformance.zoo.fault import Patch, Shipped, Side
from fencepost.model.assignors import consumer_protocol
from fencepost.model.assignors.consumer_protocol import encode_assignment
from fencepost.model.classic.core.state import JoinResponse, SyncResponse
from fencepost.model.classic.member import commits, heartbeats, joining, lookup, settings
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    Client,
    ClientContext,
    JoinedTopics,
    Problem,
    SentKind,
    assigned_partitions,
    counts_of,
    has_generation,
)
from fencepost.model.classic.member.member import Member, MemberState, MemberStep
from fencepost.model.classic.member.step import ClientStep
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve

# --- Bugs of members: joining, identity, heartbeats and leaving.

membership = client_family(Side.MEMBER)
NEVER = 10**12
"""A moment that does not come, in milliseconds."""


def stop_consuming(client: Client, failure: Any) -> Client:
    """The client as an application leaves it that ends its loop at an error."""
    member = evolve(client.member, rejoins=False, waiting=0, state=MemberState.UNJOINED)
    return evolve(client, member=member, synced=None, failure=failure, joined=JoinedTopics(client.topics))


@membership.add("BUG-58", "KAFKA-2753, https://github.com/apache/kafka/commit/7eee11451e1", "MEMBER-13", "MEMBER-14")
@instead_of(joining.on_sync_response)
def sync_errors_are_all_alike(
    shipped: Shipped[ClientStep], client: Client, handle: int, response: SyncResponse, context: ClientContext
) -> ClientStep:
    """Every error of SyncGroup has the member join again as it is, at the same coordinator."""
    if response.error == Error.NONE:
        return shipped(client, handle, response, context)
    return ClientStep(evolve(client, member=core.disconnect(client.member).member))


@membership.add(
    "BUG-61",
    "KAFKA-3782, https://github.com/apache/kafka/commit/732fabf94eb",
    "HBT-01",
    "HBT-12",
    setting=NO_AUTO_COMMIT,
)
@instead_of(joining.enable_heartbeats)
def heartbeats_begin_in_the_poll_alone(shipped: Shipped[Client], client: Client, context: ClientContext) -> Client:
    """Heartbeats begin only if the join ends while a poll waits for it."""
    is_polling = context.now < client.clocks.polling_until
    enabled = shipped(client, context)
    return enabled if is_polling else evolve(enabled, clocks=evolve(enabled.clocks, heartbeat=NEVER))


@membership.add("BUG-62", "KAFKA-5154, https://github.com/apache/kafka/commit/1b16acaaa18", "MEMBER-11", "MEMBER-14")
def joining_ends_with_the_join(patch: Patch) -> None:
    """The response to JoinGroup clears the wish to join again; a SyncGroup that fails does not bring it back."""
    answered, disconnect = core.on_join_response, core.disconnect

    def on_response(member: Member, handle: Any, response: JoinResponse, following: Any, plan: Any) -> MemberStep:
        step = answered(member, handle, response, following, plan)
        if step.rule != "member.join.answered":
            return step
        return MemberStep(evolve(step.member, rejoins=False), step.sent_requests, step.rule)

    def give_up(member: Member) -> MemberStep:
        step = disconnect(member)
        is_syncing = member.state == MemberState.COMPLETING_REBALANCE
        return MemberStep(
            evolve(step.member, rejoins=member.rejoins if is_syncing else step.member.rejoins), (), step.rule
        )

    replace_function(patch, answered, on_response)
    replace_function(patch, disconnect, give_up)


@membership.add("BUG-65", "KAFKA-7961, https://github.com/apache/kafka/commit/eb8cc09625c", "MEMBER-20")
@instead_of(commits.complete_rebalance)
def a_foreign_assignment_is_an_error(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """An assignment outside the subscription is raised in the application, which ends."""
    if client.synced is not None and not {topic for topic, _ in client.synced.partitions} <= client.topics:
        return ClientStep(stop_consuming(client, Problem.UNREADABLE))
    return shipped(client, context)


@membership.add("BUG-66", "KAFKA-8104, KAFKA-9140, https://github.com/apache/kafka/commit/00374c3ddf6", "MEMBER-13")
@instead_of(heartbeats.rebalance)
def a_finished_join_is_left_in_place(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """A join that has ended when the generation is reset is neither completed nor begun again."""
    if client.synced is not None and not has_generation(client):
        return ClientStep(client)
    return shipped(client, context)


@membership.add("BUG-69", "KAFKA-10870, https://github.com/apache/kafka/commit/e3ce4a6e11d", "MEMBER-34")
@instead_of(joining.refuse_exchange)
def a_join_told_of_a_rebalance_is_fatal(
    shipped: Shipped[ClientStep], client: Client, error: Error, rules: Any, context: ClientContext
) -> ClientStep:
    """REBALANCE_IN_PROGRESS in the response to JoinGroup ends the application."""
    if error == Error.REBALANCE_IN_PROGRESS and rules is joining.JOIN_RULES:
        return ClientStep(stop_consuming(client, error))
    return shipped(client, error, rules, context)


@membership.add(
    "BUG-70",
    "KAFKA-12983, https://github.com/apache/kafka/commit/1f64df921cb",
    "COOP-17",
    "CALLBACK-05",
    setting=COOPERATIVE,
)
def partitions_survive_the_loss_of_the_id(patch: Patch) -> None:
    """A member that lost its id while it joined claims what it had, and does not call it lost."""
    subscription_of = joining.subscription_of

    def claim_everything(client: Client, strategy: Any, claims: Any) -> Any:
        return evolve(subscription_of(client, strategy, claims), owned=assigned_partitions(client))

    replace_function(patch, commits.lost_partitions, lambda client: ())
    replace_function(patch, subscription_of, claim_everything)


@membership.add(
    "BUG-72",
    "KAFKA-13126, https://github.com/apache/kafka/commit/8b1eca1c58a",
    "MEMBER-32",
    setting=evolve(EAGER, request_timeout=2_000),
)
def a_long_poll_interval_overflows(patch: Patch) -> None:
    """The time limit of JoinGroup overflows: the client gives a parked one up after its request timeout."""
    patch.replace(settings.ClientSettings, "join_timeout", property(lambda own: own.request_timeout))


@membership.add("BUG-73", "KAFKA-13214, https://github.com/apache/kafka/commit/d0ec4d7ebf0", "MEMBER-14")
@instead_of(lookup.back_off_join)
def a_failed_join_costs_the_id(shipped: Shipped[Client], client: Client, context: ClientContext) -> Client:
    """Any error while it joins throws the member id away."""
    return evolve(shipped(client, context), member=core.lose_membership(client.member), is_prepared=False)


@membership.add("BUG-76", "librdkafka, sarama, https://github.com/confluentinc/librdkafka/commit/464c6e5f8", "HBT-12")
@instead_of(heartbeats.work)
def no_heartbeat_while_the_listener_runs(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """No heartbeat is sent while the listener of the application runs."""
    return ClientStep(client) if client.callback is not None else shipped(client, context)


@membership.add(
    "BUG-77", "librdkafka issue 2010, https://github.com/confluentinc/librdkafka/commit/e60e8d534", "MEMBER-22"
)
@instead_of(heartbeats.leave_group)
def closing_leaves_no_group(shipped: Shipped[ClientStep], client: Client, reason: str, rule: str) -> ClientStep:
    """A client that closes sends no LeaveGroup."""
    step = shipped(client, reason, rule)
    return ClientStep(step.client, (), step.rules) if rule == "client.close.leave" else step


@membership.add(
    "BUG-84", "librdkafka, kafkajs, https://github.com/confluentinc/librdkafka/commit/db1cca379", "MEMBER-13"
)
def the_id_survives_its_loss(patch: Patch) -> None:
    """UNKNOWN_MEMBER_ID does not cost the member its id."""
    replace_function(patch, core.lose_membership, core.lose_generation)


@membership.add("BUG-85", "librdkafka, https://github.com/confluentinc/librdkafka/commit/c086b8bf8", "HBT-06")
@instead_of(heartbeats.work)
def heartbeats_go_on_without_polls(shipped: Shipped[ClientStep], client: Client, context: ClientContext) -> ClientStep:
    """A member whose application polls no more stays, and sends heartbeats."""
    return shipped(evolve(client, clocks=evolve(client.clocks, poll=NEVER)), context)


@membership.add(
    "BUG-91", "franz-go issue 98, https://github.com/twmb/franz-go/commit/4f2e7fe3", "PREFETCH-03", setting=COOPERATIVE
)
@instead_of(joining.send_join)
def a_rebalance_cancels_the_offset_fetch(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """A rebalance cancels the OffsetFetch of partitions that stay, and nobody asks again."""
    kept = tuple(one for one in client.unanswered if one.kind is not SentKind.FETCH_OFFSETS)
    return shipped(evolve(client, unanswered=kept), context)


@membership.add("BUG-100", "sarama issue 2058, https://github.com/IBM/sarama/commit/3c1940a1", "MEMBER-14")
@instead_of(joining.refuse_exchange)
def a_loading_coordinator_is_fatal(
    shipped: Shipped[ClientStep], client: Client, error: Error, rules: Any, context: ClientContext
) -> ClientStep:
    """COORDINATOR_LOAD_IN_PROGRESS in the response to JoinGroup ends the application."""
    if error == Error.COORDINATOR_LOAD_IN_PROGRESS:
        return ClientStep(stop_consuming(client, error))
    return shipped(client, error, rules, context)


@membership.add(
    "BUG-103",
    "kafka-python PR 3132, https://github.com/dpkp/kafka-python/commit/e300a6ff",
    "PREFETCH-03",
    setting=COOPERATIVE,
)
@instead_of(commits.install_assignment)
def partitions_that_stay_are_held_back(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """Partitions that stay through a cooperative rebalance are never fetched again."""
    held = tuple(evolve(one, is_pending=True) for one in client.positions)
    return shipped(evolve(client, positions=held), context)


@membership.add("BUG-105", "kafkajs issue 1361, https://github.com/tulios/kafkajs/commit/7985ae84", "HBT-01")
@instead_of(heartbeats.work)
def heartbeats_come_with_records(shipped: Shipped[ClientStep], client: Client, context: ClientContext) -> ClientStep:
    """A member without partitions sends no heartbeats."""
    idle = evolve(client, clocks=evolve(client.clocks, heartbeat=NEVER))
    return shipped(client if client.positions else idle, context)


@membership.add(
    "BUG-111", "kafka-go PR 242, https://github.com/segmentio/kafka-go/commit/50823e6", "COOP-05", setting=COOPERATIVE
)
@instead_of(commits.complete_rebalance)
def an_empty_assignment_is_an_error(shipped: Shipped[ClientStep], client: Client, context: ClientContext) -> ClientStep:
    """A member that is assigned nothing joins again."""
    is_empty = client.synced is not None and not client.synced.partitions
    step = shipped(client, context)
    if not is_empty:
        return step
    member = core.ask_rejoin(step.client.member).member
    return ClientStep(evolve(step.client, member=member), step.outputs, step.rules)


@membership.add("BUG-115", "ruby-kafka PR 711, https://github.com/zendesk/ruby-kafka/commit/7bb8024", "MEMBER-22")
@instead_of(heartbeats.leave_group)
def an_error_while_closing_joins_again(
    shipped: Shipped[ClientStep], client: Client, reason: str, rule: str
) -> ClientStep:
    """A client that is told of a rebalance while it closes does not leave."""
    step = shipped(client, reason, rule)
    return ClientStep(step.client, (), step.rules) if client.member.rejoins else step


@membership.add(
    "BUG-116", "platformatic PR 376, https://github.com/platformatic/kafka/commit/105336c", "HBT-01", "HBT-05"
)
@instead_of(lookup.on_disconnect)
def heartbeats_end_with_a_failure(shipped: Shipped[ClientStep], client: Client, context: ClientContext) -> ClientStep:
    """After a heartbeat that failed for a reason of its own, none is sent any more."""
    step = shipped(client, context)
    return ClientStep(evolve(step.client, clocks=evolve(step.client.clocks, heartbeat=NEVER)), step.outputs, step.rules)


@membership.add(
    "BUG-68", "KAFKA-9741, https://github.com/apache/kafka/commit/635b5fd47c8", "MCOMMIT-03", setting=COOPERATIVE
)
@instead_of(core.commit_request)
def a_commit_in_the_callback_is_late(shipped: Shipped[Any], member: Member, handle: Any) -> Any:
    """A commit while partitions are revoked carries the generation before."""
    made = shipped(member, handle)
    return (
        evolve(made, generation=made.generation - 1) if member.owned_in == made.generation and member.rejoins else made
    )


# --- Bugs of members: subscriptions, topics that change, and the plans of leaders.

subscribing = client_family(Side.MEMBER)


@subscribing.add("BUG-59", "KAFKA-3117, https://github.com/apache/kafka/commit/8a863ecee7e", "MEMBER-21")
@instead_of(commits.install_assignment)
def growth_during_a_rebalance_is_absorbed(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """Partitions that come while the leader rebalances go into its snapshot, though its plan has none of them."""
    return shipped(evolve(client, planned=counts_of(client, client.group_topics)), context)


@subscribing.add(
    "BUG-60", "aiokafka issue 88, KAFKA-3949, https://github.com/aio-libs/aiokafka/commit/99964da7", "MEMBER-27"
)
@instead_of(commits.install_assignment)
def a_subscription_changed_meanwhile_is_lost(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """At the end of a join the present subscription counts as the one that it was made with."""
    return shipped(evolve(client, joined=JoinedTopics(client.topics)), context)


@subscribing.add("BUG-81", "librdkafka 1.8, https://github.com/confluentinc/librdkafka/commit/5cd6f53c4", "MEMBER-06")
def a_change_joins_at_once(patch: Patch) -> None:
    """A topic that changes while JoinGroup has no response has the member send another one."""
    is_exchanging, join = commits.is_exchanging, core.join

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
@instead_of(commits.notice_changes)
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
@instead_of(commits.notice_changes)
def a_topic_that_comes_later_is_not_noticed(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """A leader that joined before its topic had partitions does not look for them any more."""
    missing = client.group_topics - {topic for topic, _ in client.planned}
    return shipped(evolve(client, group_topics=client.group_topics - missing), context)
