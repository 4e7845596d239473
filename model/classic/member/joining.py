"""JoinGroup and SyncGroup: their fields, and the reaction to each response (member.md 1.3, 1.5)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from fencepost.model.assignors.consumer_protocol import (
    ConsumerProtocolError,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
)
from fencepost.model.assignors.group import ClusterTopics, GroupMember, Subscription
from fencepost.model.classic.core.state import (
    JoinRequest,
    JoinResponse,
    MemberView,
    Protocol,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    Client,
    ClientContext,
    JoinedTopics,
    Problem,
    SentKind,
    SyncedAssignment,
    Unanswered,
    assigned_partitions,
    counts_of,
    flags_of,
    has_generation,
    learn_partitions,
    next_handle,
    partitions_of,
)
from fencepost.model.classic.member.lookup import COORDINATOR_MOVED, back_off_join, lose_coordinator, send_request
from fencepost.model.classic.member.member import NO_GENERATION, MemberState
from fencepost.model.classic.member.settings import MAX_REASON_LENGTH, RebalanceProtocol, Strategy, UserData
from fencepost.model.classic.member.step import ClientStep
from fencepost.model.classic.messages import CONSUMER, JoinGroup, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Partition
from fencepost.model.sorts import AssignmentBytes, HandleNumber, InstanceId, MemberId, Metadata, MetadataBytes

RETRIED_AT_ONCE = frozenset(
    {
        Error.MEMBER_ID_REQUIRED,
        Error.UNKNOWN_MEMBER_ID,
        Error.ILLEGAL_GENERATION,
        Error.REBALANCE_IN_PROGRESS,
    }
)
"""Errors after which the client joins without a backoff."""


@dataclass(frozen=True, slots=True)
class ExchangeRules:
    """The rules by which JoinGroup or SyncGroup fails without a loss of generation or member id."""

    rebalance: str
    moved: str
    fenced: str
    fatal: str
    loading: str = ""
    """Empty where a coordinator that is loading is no reason to wait."""


JOIN_RULES = ExchangeRules(
    "client.join.rebalance", "client.join.moved", "client.join.fenced", "client.join.fatal", "client.join.loading"
)
SYNC_RULES = ExchangeRules("client.sync.rebalance", "client.sync.moved", "client.sync.fenced", "client.sync.fatal")


def send_join(client: Client, context: ClientContext) -> ClientStep:
    """JoinGroup, as the proved member sends it, with a subscription for each assignor (MEMBER-04, WIRE-03)."""
    if context.now < client.clocks.join_retry:
        return ClientStep(client, (), ("client.join.backoff",))
    handle = next_handle(client)
    step = core.join(client.member, handle)
    (sent,) = step.sent_requests
    request = cast(JoinRequest, sent.request)
    offered = zip(client.settings.strategies, request.protocols, strict=True)
    protocols = tuple(
        Protocol(
            protocol.name, MetadataBytes(encode_subscription(subscription_of(client, strategy, protocol.metadata)))
        )
        for strategy, protocol in offered
    )
    joining = evolve(client, member=step.member, joined=JoinedTopics(client.topics), synced=None)
    unanswered = Unanswered(handle, SentKind.JOIN, context.now + client.settings.join_timeout)
    message = JoinGroup(client.settings.group, evolve(request, protocols=protocols))
    return send_request(joining, message, unanswered, step.rule, client.reason[:MAX_REASON_LENGTH])


def subscription_of(client: Client, strategy: Strategy, claims: Metadata | None) -> Subscription:
    """The subscription that goes to one assignor; `claims` are those of the proved member."""
    flags = cast(tuple[bool, ...], claims)
    return Subscription(
        topics=tuple(sorted(client.topics)),
        owned=partitions_of(client, flags),
        generation=client.member.owned_in if has_generation(client) else NO_GENERATION,
        user_data=user_data_of(client, strategy),
        rack=client.settings.rack,
    )


def user_data_of(client: Client, strategy: Strategy) -> bytes | None:
    """What an assignor adds to the subscription; nothing before the first assignment (STICKY-18)."""
    if client.member.owned_in < 0 or strategy.user_data is UserData.NONE:
        return None
    if strategy.user_data is UserData.GENERATION:
        return encode_cooperative_user_data(client.member.owned_in)
    return encode_sticky_user_data(client.remembered, client.member.owned_in)


def on_join_response(client: Client, handle: int, response: JoinResponse, context: ClientContext) -> ClientStep:
    """JoinGroup is answered."""
    if response.error == Error.NONE and response.protocol_type not in (None, CONSUMER):
        response = JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL)
    members = read_members(response.members)
    client = learn_group(client, members)
    views = tuple(
        MemberView(MemberId(one.id), cast(InstanceId | None, one.instance_id), flags_of(client, claims))
        for one, claims in zip(members, claims_in_force(members, is_cooperative(client, response)), strict=True)
    )
    plan = plan_assignment(client, response, members, context)
    sync_handle = next_handle(client)
    told = evolve(response, members=views)
    step = core.on_join_response(client.member, HandleNumber(handle), told, sync_handle, plan)
    client = evolve(client, member=step.member)
    if step.rule != "member.join.answered":
        return handle_join_error(client, response.error, step.rule, context)
    (sent,) = step.sent_requests
    client = enable_heartbeats(lead_group(client, response, members), context)
    request = encode_plan(client, cast(SyncRequest, sent.request))
    assert client.joined is not None
    client = evolve(client, joined=evolve(client.joined, protocol=response.protocol))
    unanswered = Unanswered(sync_handle, SentKind.SYNC, context.now + client.settings.request_timeout)
    rule = sync_rule(response)
    sending = send_request(client, SyncGroup(client.settings.group, request, True), unanswered, rule)
    return ClientStep(sending.client, sending.outputs, (step.rule, *sending.rules))


def read_members(views: Iterable[MemberView]) -> tuple[GroupMember, ...]:
    """The members as the leader is told of them; one whose subscription cannot be read subscribes to nothing."""
    members = []
    for view in views:
        if view.id is not None:
            try:
                subscription = decode_subscription(cast(bytes, view.metadata or b""))
            except ConsumerProtocolError:
                subscription = Subscription(())
            members.append(GroupMember(view.id, subscription, view.instance))
    return tuple(members)


def is_cooperative(client: Client, response: JoinResponse) -> bool:
    """Whether the assignor that the coordinator chose lets members keep their partitions while they join."""
    chosen = (one for one in client.settings.strategies if one.name == response.protocol)
    return any(RebalanceProtocol.COOPERATIVE in one.protocols for one in chosen)


def claims_in_force(members: tuple[GroupMember, ...], is_cooperative: bool) -> Iterator[tuple[Partition, ...]]:
    """What each member claims and no other one claims in a later generation (STICKY-07): nothing if an assignor was
    chosen that takes everything away first."""
    newest: dict[Partition, int] = {}
    for one in members:
        for partition in one.subscription.owned:
            newest[partition] = max(newest.get(partition, NO_GENERATION), one.subscription.generation)
    for one in members:
        subscription = one.subscription
        yield tuple(each for each in subscription.owned if is_cooperative and newest[each] <= subscription.generation)


def learn_group(client: Client, members: tuple[GroupMember, ...]) -> Client:
    """The client that knows every partition that the members own, or that the leader may assign."""
    topics = {topic for member in members for topic in member.subscription.topics}
    existing = [(topic, number) for topic, count in counts_of(client, topics) for number in range(count)]
    owned = [partition for member in members for partition in member.subscription.owned]
    return learn_partitions(client, [*existing, *owned])


def plan_assignment(
    client: Client, response: JoinResponse, members: tuple[GroupMember, ...], context: ClientContext
) -> tuple[MemberId | None, ...]:
    """Who gets each partition according to the assignor that the coordinator chose (MEMBER-08); None for nobody."""
    owner: dict[tuple[str, int], MemberId] = {}
    assign = context.assignors.get(str(response.protocol))
    leads = response.leader is not None and response.leader == response.member
    if assign is not None and leads and not response.skip_assignment:
        topics = {topic for member in members for topic in member.subscription.topics}
        for id, partitions in assign(members, ClusterTopics(dict(counts_of(client, topics)))).items():
            owner.update(dict.fromkeys(partitions, MemberId(id)))
    return tuple(owner.get(partition) for partition in client.known)


def lead_group(client: Client, response: JoinResponse, members: tuple[GroupMember, ...]) -> Client:
    """A leader watches the topics of the whole group, also if it makes no plan (MEMBER-09, MEMBER-21)."""
    leads = response.leader == response.member
    topics = frozenset(topic for member in members for topic in member.subscription.topics) | client.topics
    if not leads:
        return evolve(client, leads=False, group_topics=frozenset(), planned=())
    return evolve(client, leads=True, group_topics=topics, planned=counts_of(client, topics))


def enable_heartbeats(client: Client, context: ClientContext) -> Client:
    """The clocks of heartbeat, session and poll start anew (HBT-16)."""
    settings, now = client.settings, context.now
    clocks = evolve(
        client.clocks,
        heartbeat=now + settings.heartbeat_interval,
        session=now + settings.session_timeout,
        poll=now + settings.max_poll_interval,
    )
    return evolve(client, clocks=clocks)


def sync_rule(response: JoinResponse) -> str:
    """The rule by which SyncGroup is sent."""
    if response.leader != response.member:
        return "client.sync.as-follower"
    return "client.sync.skip-assignment" if response.skip_assignment else "client.sync.as-leader"


def encode_plan(client: Client, request: SyncRequest) -> SyncRequest:
    """SyncGroup with the assignments as bytes."""
    assignments = tuple(
        (id, AssignmentBytes(encode_assignment(partitions_of(client, cast(tuple[bool, ...], flags)))))
        for id, flags in request.assignments
    )
    return evolve(request, assignments=assignments)


def handle_join_error(client: Client, error: Error, rule: str, context: ClientContext) -> ClientStep:
    """The client after a JoinGroup that did not succeed; `rule` is that of the proved member."""
    if rule == "member.late-answer":
        return ClientStep(client, (), (rule,))
    if rule != "member.join.refused":
        return ClientStep(reset_preparation(client), (), (rule,))
    return refuse_exchange(client, error, JOIN_RULES, context)


def reset_preparation(client: Client) -> Client:
    """The step before JoinGroup runs again where the membership was reset."""
    return client if client.member.state != MemberState.UNJOINED else evolve(client, is_prepared=False)


def refuse_exchange(client: Client, error: Error, rules: ExchangeRules, context: ClientContext) -> ClientStep:
    """What follows on an error that costs neither generation nor member id: at once, after a backoff, or raised."""
    if error in RETRIED_AT_ONCE:
        return ClientStep(client, (), (rules.rebalance,))
    if error in COORDINATOR_MOVED:
        step = lose_coordinator(back_off_join(client, context), context)
        return ClientStep(step.client, step.outputs, (rules.moved, *step.rules))
    if error == Error.COORDINATOR_LOAD_IN_PROGRESS and rules.loading:
        return ClientStep(back_off_join(client, context), (), (rules.loading,))
    fenced = error == Error.FENCED_INSTANCE_ID
    return ClientStep(evolve(client, failure=error), (), (rules.fenced if fenced else rules.fatal,))


def on_sync_response(client: Client, handle: int, response: SyncResponse, context: ClientContext) -> ClientStep:
    """SyncGroup is answered; an assignment waits for the next poll, which completes the rebalance."""
    member = client.member
    if response.error != Error.NONE or member.state != MemberState.COMPLETING_REBALANCE:
        step = core.on_sync_response(member, HandleNumber(handle), response)
        client = evolve(client, member=step.member)
        if step.rule == "member.sync.refused":
            return refuse_exchange(client, response.error, SYNC_RULES, context)
        return ClientStep(reset_preparation(client), (), (step.rule,))
    chosen = None if client.joined is None else client.joined.protocol
    contradicts = response.protocol_type not in (None, CONSUMER) or response.protocol not in (None, chosen)
    try:
        partitions = tuple(sorted(set(decode_assignment(cast(bytes, response.assignment or b"")))))
    except ConsumerProtocolError:
        return give_exchange_up(client, Problem.UNREADABLE, "client.sync.unreadable")
    if contradicts:
        return give_exchange_up(client, Problem.WRONG_PROTOCOL, "client.sync.wrong-protocol")
    client = learn_partitions(client, [*partitions, *assigned_partitions(client)])
    return ClientStep(evolve(client, synced=SyncedAssignment(handle, partitions)), (), ("client.sync.assigned",))


def give_exchange_up(client: Client, failure: Problem, rule: str) -> ClientStep:
    """A response that contradicts the request is raised; a later poll joins again (MEMBER-31)."""
    member = core.disconnect(client.member).member
    return ClientStep(evolve(client, member=member, failure=failure), (), (rule,))
