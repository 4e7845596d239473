"""The plan of a leader: the assignments in its SyncGroup, held against the members in its JoinGroup response."""

from collections.abc import Mapping, Sequence

from fencepost.model.assignors.checks import CHECKS
from fencepost.model.assignors.consumer_protocol import ConsumerProtocolError, decode_assignment, decode_subscription
from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember, TopicPartition
from fencepost.model.assignors.properties import ANY_ASSIGNOR, PROPERTIES, broken_properties
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.traces.client_judge.classic.state import ClientState, Exchange
from fencepost.traces.events import Operation

EXACT = {"range": "RANGE-01", "roundrobin": "RR-01"}
"""The assignors whose rules determine the result, with the requirement that says so."""
CHECKED = frozenset(check.requirement for check in CHECKS)
"""The requirements that have groups of their own."""
SHOWN_BY_MORE = frozenset({"RANGE-06", "STICKY-04"})
"""What a plan for one topic does not show to hold: it takes several topics, or a balanced group before it."""


def judge_plan(state: ClientState, operation: Operation, exchange: Exchange) -> None:
    """The plan has every member, and is one that the assignor allows."""
    given = operation.body["assignments"]
    told = exchange.operation.response or {}
    if exchange.skips:
        title, observed = "A leader plans that was told to skip it", f"{len(given)} assignments"
        state.check(not given, "MEMBER-09", operation, title, "no assignments", observed)
        return
    members = read_members(told["members"])
    if state.is_recorded and len(members) < len(told["members"]):
        return  # a subscription of another kind
    try:
        plan = {row["member_id"]: decode_assignment(row["assignment"]) for row in given}
    except ConsumerProtocolError as error:
        state.violate("WIRE-01", operation, "An assignment is unreadable", "an assignment", str(error))
        return
    missing = sorted({member.id for member in members} - plan.keys())
    title, expected = "The plan of the leader lacks members", f"{len(members)} members"
    observed = f"nothing for {', '.join(missing)}"
    state.check(not missing, "MEMBER-08", operation, title, expected, observed)
    if state.groups.told is not None:
        judge_invented(state, operation, exchange, members, plan)
        return
    if not missing and members:
        has_racks = any(member.subscription.rack for member in members)  # those of partitions are not recorded
        protocol = exchange.protocol if not (state.is_recorded and has_racks) else ""
        clusters = known_clusters(state, operation, exchange, members, plan)
        judge_properties(state, operation, protocol, members, clusters, plan)


def known_clusters(
    state: ClientState, operation: Operation, exchange: Exchange, members: Sequence[GroupMember], plan: Assignment
) -> tuple[ClusterTopics, ...]:
    """The partitions by which the leader may have planned: those that it was told last, or before Metadata that was on
    its way with the response to JoinGroup. It may know nothing of a topic of which Metadata told first after that. A
    recording does not show which it knows: it gives them out, or withholds them from a member that claims one of
    them."""
    if not state.is_recorded:
        known = known_topics(state, exchange, plan)
        alternatives = []
        if is_told_late(state, operation, exchange):
            alternatives.append(known_topics_at_first(state, exchange, plan))
        alternatives += (
            {
                topic: counts.get(topic, count)
                for topic, count in known.items()
                if topic in counts or time < exchange.time
            }
            for time, counts in state.former_topics
            if is_fresh(state, exchange, time)
        )
        return tuple(map(ClusterTopics, (known, *alternatives)))
    given = [partition for own in plan.values() for partition in own]
    claimed = [partition for member in members for partition in member.subscription.owned]
    return ClusterTopics(count_partitions(given)), ClusterTopics(count_partitions([*given, *claimed]))


def is_told_late(state: ClientState, operation: Operation, exchange: Exchange) -> bool:
    """Whether all Metadata but the first may still have been on its way when the leader planned."""
    return exchange.metadata == 2 and state.told_at[1] + state.knowledge.grace > operation.sent_at


def is_fresh(state: ClientState, exchange: Exchange, time: int) -> bool:
    """Whether news of this time may still have been on its way when the response to JoinGroup was read."""
    return time + state.knowledge.grace > exchange.time


def count_partitions(partitions: Sequence[TopicPartition]) -> dict[str, int]:
    """The least numbers of partitions of topics that have all of these."""
    counts: dict[str, int] = {}
    for topic, number in partitions:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    return counts


def known_topics(state: ClientState, exchange: Exchange, plan: Assignment) -> dict[str, int]:
    """The partitions of topics by which the leader plans. One that subscribes to other topics forgets the ones before,
    and may plan by Metadata that it asked for before it read who the members are: Apache Kafka's client does, and joins
    again when it learns the rest."""
    return dict(state.topics) if exchange.metadata != 1 else known_topics_at_first(state, exchange, plan)


def known_topics_at_first(state: ClientState, exchange: Exchange, plan: Assignment) -> dict[str, int]:
    """The partitions of topics that the leader knows by the first Metadata after the response to JoinGroup."""
    known = exchange.told_first | {topic for given in plan.values() for topic, _ in given}
    return {topic: count for topic, count in state.topics.items() if topic in known}


def read_members(rows: Sequence[Mapping[str, object]]) -> tuple[GroupMember, ...]:
    """The members as the leader is told of them; those that cannot be read are left out."""
    found = []
    for row in rows:
        metadata, instance = row["metadata"], row.get("group_instance_id")
        try:
            subscription = decode_subscription(metadata if isinstance(metadata, bytes) else b"")
        except ConsumerProtocolError:
            continue
        found.append(GroupMember(str(row["member_id"]), subscription, None if instance is None else str(instance)))
    return tuple(found)


def judge_properties(
    state: ClientState,
    operation: Operation,
    protocol: str,
    members: Sequence[GroupMember],
    clusters: Sequence[ClusterTopics],
    plan: Assignment,
) -> None:
    """The plan has the properties of its assignor, for one of the clusters that the leader may know; a group of one
    shows none of them."""
    broken, cluster = min(
        ((broken_properties(protocol, members, each, plan), each) for each in clusters), key=lambda pair: len(pair[0])
    )
    names = {one.requirement for one in PROPERTIES.get(protocol, ANY_ASSIGNOR)}
    for one in broken:
        state.violate(
            one.property.requirement, operation, f"The plan by {protocol} is wrong", one.property.name, one.sentence
        )
    if len(members) > 1:
        for requirement in sorted(names - {one.property.requirement for one in broken} - SHOWN_BY_MORE):
            state.evidence.hold(requirement, operation.handle - 1)
        if not broken and protocol in EXACT:
            judge_exactly(state, operation, protocol, members, cluster, plan)


def judge_invented(
    state: ClientState, operation: Operation, exchange: Exchange, members: Sequence[GroupMember], plan: Assignment
) -> None:
    """The plan is for an invented group: its check has the last word, and the other properties hold as well."""
    told, protocol = state.groups.told, exchange.protocol
    assert told is not None
    if not told.is_odd:
        about = CHECKED | {told.requirement}
        names = {one.requirement for one in PROPERTIES.get(protocol, ANY_ASSIGNOR)} - about
        broken = broken_properties(protocol, members, ClusterTopics(known_topics(state, exchange, plan)), plan)
        for one in broken:
            if one.property.requirement in names:
                title = f"The plan by {protocol} is wrong"
                state.violate(one.property.requirement, operation, title, one.property.name, one.sentence)
        for requirement in sorted(names - {one.property.requirement for one in broken}):
            state.evidence.hold(requirement, operation.handle - 1)
    state.groups.take(plan, operation.handle - 1)


def judge_exactly(
    state: ClientState,
    operation: Operation,
    protocol: str,
    members: Sequence[GroupMember],
    cluster: ClusterTopics,
    plan: Assignment,
) -> None:
    """The plan is the one that the rules of the assignor determine; racks leave it open."""
    if any(member.subscription.rack for member in members):
        return
    expected = ASSIGNORS[protocol].assign(members, cluster)
    is_equal = all(sorted(plan.get(id, ())) == sorted(own) for id, own in expected.items())
    title = f"The plan by {protocol} is wrong"
    state.check(is_equal, EXACT[protocol], operation, title, describe_plan(expected), describe_plan(plan))


def describe_plan(plan: Mapping[str, Sequence[TopicPartition]]) -> str:
    """A plan in words."""
    rows = (f"'{id}' gets {', '.join(f'{topic}/{n}' for topic, n in sorted(own))}" for id, own in sorted(plan.items()))
    return "; ".join(rows)
