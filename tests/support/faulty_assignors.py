"""Faulty assignors: one for each requirement that tests of assignors check, made of the reference assignors."""

import re
from collections.abc import Callable, Sequence

from fencepost.adapters.assignor import AssignorError
from fencepost.model.assignors.consumer_protocol import (
    ConsumerProtocolError,
    decode_sticky_user_data,
    encode_sticky_user_data,
)
from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember, Subscription
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.assignors.sticky_group import cooperative_claim
from fencepost.model.frozen import evolve

Plan = dict[str, tuple[tuple[str, int], ...]]
ChangePlan = Callable[[Plan, ClusterTopics], Plan]
ChangeSubscription = Callable[[Subscription, int], Subscription]


def replan(name: str, change: ChangePlan) -> Assign:
    """The reference assignor with a change of its assignment."""

    def assign(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        return change(dict(ASSIGNORS[name].assign(members, cluster)), cluster)

    return assign


def resubscribe(name: str, change: ChangeSubscription) -> Assign:
    """The reference assignor with other subscriptions; the change gets the position of the member."""

    def assign(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        changed = [evolve(each, subscription=change(each.subscription, place)) for place, each in enumerate(members)]
        return ASSIGNORS[name].assign(changed, cluster)

    return assign


def rename(name: str, change: Callable[[GroupMember, int], str]) -> Assign:
    """The reference assignor with other member ids, and no instances."""

    def assign(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        names = {change(each, place): each.id for place, each in enumerate(members)}
        changed = [evolve(each, id=other, instance_id=None) for each, other in zip(members, names, strict=True)]
        return {names[id]: own for id, own in ASSIGNORS[name].assign(changed, cluster).items()}

    return assign


def refuse(name: str, is_refused: Callable[[GroupMember, ClusterTopics], bool]) -> Assign:
    """The reference assignor, which fails if a member is one of these."""

    def assign(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        if any(is_refused(each, cluster) for each in members):
            raise AssignorError("it fails: KeyError")
        return ASSIGNORS[name].assign(members, cluster)

    return assign


def leave_one_out(plan: Plan, cluster: ClusterTopics) -> Plan:
    """Nobody gets the first partition of the richest."""
    richest = max(plan, key=lambda id: len(plan[id]))
    return plan | {richest: plan[richest][1:]}


def give_twice(plan: Plan, cluster: ClusterTopics) -> Plan:
    """Everybody gets one partition."""
    one = next((partition for own in plan.values() for partition in own), None)
    return {id: tuple({*own, one}) for id, own in plan.items()} if one is not None else plan


def give_foreign(plan: Plan, cluster: ClusterTopics) -> Plan:
    """Everybody gets a partition that does not exist."""
    return {id: (*own, ("nowhere", 0)) for id, own in plan.items()}


def forget_poorest(plan: Plan, cluster: ClusterTopics) -> Plan:
    """A member without partitions is left out."""
    return {id: own for id, own in plan.items() if own}


def all_to_one(plan: Plan, cluster: ClusterTopics) -> Plan:
    """The first member gets everything."""
    everything = tuple(sorted(partition for own in plan.values() for partition in own))
    return {id: everything if place == 0 else () for place, id in enumerate(sorted(plan))}


def rotate(plan: Plan, cluster: ClusterTopics) -> Plan:
    """Everybody gets the share of the next one."""
    ids = sorted(plan)
    return {id: plan[ids[place - 1]] for place, id in enumerate(ids)}


def swap_in_odd_topics(plan: Plan, cluster: ClusterTopics) -> Plan:
    """Shares of every other topic go to others."""
    odd = set(sorted(cluster.partitions)[1::2])
    turned = rotate(plan, cluster)
    return {
        id: (*(each for each in own if each[0] not in odd), *(each for each in turned[id] if each[0] in odd))
        for id, own in plan.items()
    }


def assign_by_topic(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """Round robin that begins with the first member in each topic."""
    plan: Plan = {each.id: () for each in members}
    for topic, count in cluster.partitions.items():
        for id, own in ASSIGNORS["roundrobin"].assign(members, ClusterTopics({topic: count})).items():
            plan[id] += tuple(own)
    return plan


def mirror(name: str) -> Assign:
    """The assignor with the numbers of partitions turned round."""

    def turn(partitions: Sequence[tuple[str, int]], cluster: ClusterTopics) -> tuple[tuple[str, int], ...]:
        return tuple((topic, cluster.partitions.get(topic, 1) - 1 - number) for topic, number in partitions)

    def assign(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        changed = []
        for each in members:
            subscription = each.subscription
            owned = turn(subscription.owned, cluster)
            data = encode_sticky_user_data(owned, subscription.generation) if subscription.user_data else None
            changed.append(evolve(each, subscription=evolve(subscription, owned=owned, user_data=data)))
        return {id: turn(own, cluster) for id, own in ASSIGNORS[name].assign(changed, cluster).items()}

    return assign


def set_generation(change: Callable[[int, int], int]) -> ChangeSubscription:
    """Claims with other generations, by generation and position."""

    def apply(subscription: Subscription, place: int) -> Subscription:
        generation = change(subscription.generation, place)
        data = encode_sticky_user_data(subscription.owned, generation) if subscription.user_data else None
        return evolve(subscription, generation=generation, user_data=data)

    return apply


def forget_claims(subscription: Subscription, place: int) -> Subscription:
    """No claims."""
    return evolve(subscription, owned=(), generation=-1, user_data=None)


def forget_old_claims(subscription: Subscription, place: int) -> Subscription:
    """Claims of high generations alone."""
    return subscription if subscription.generation >= 9 else forget_claims(subscription, place)


def read_owned(subscription: Subscription, place: int) -> Subscription:
    """Claims from the owned partitions."""
    return evolve(subscription, user_data=encode_sticky_user_data(subscription.owned, subscription.generation))


def subscribe_to_all(subscription: Subscription, place: int) -> Subscription:
    """Subscribed to every topic of the checks."""
    return evolve(subscription, topics=("t0", "t1", "t2"))


def has_unreadable_data(member: GroupMember, cluster: ClusterTopics) -> bool:
    """Whether the user data are none."""
    data = member.subscription.user_data
    try:
        return data is not None and decode_sticky_user_data(data) is None
    except ConsumerProtocolError:
        return True


def wants_missing(member: GroupMember, cluster: ClusterTopics) -> bool:
    """Whether a member subscribes to a topic that does not exist."""
    return any(topic not in cluster.partitions for topic in member.subscription.topics)


def claims_nonsense(member: GroupMember, cluster: ClusterTopics) -> bool:
    """Whether a member claims partitions that do not exist, or topics that it does not subscribe to."""
    claim = cooperative_claim(member.subscription)
    return any(
        number >= cluster.partitions.get(topic, 0) or topic not in member.subscription.topics
        for topic, number in claim.partitions
    )


def pad_numbers(member: GroupMember, place: int) -> str:
    """The id with its numbers padded, so that they compare as numbers."""
    return re.sub(r"\d+", lambda found: found[0].zfill(6), member.id)


def has_no_generation(member: GroupMember, cluster: ClusterTopics) -> bool:
    """Whether a member of a group of five says no generation."""
    return member.id == "c4" and member.subscription.generation < 0


def assign_by_rack(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """Partitions for the members in turn, if there are racks: those with odd numbers first."""
    plan = dict(ASSIGNORS["range"].assign(members, cluster))
    return rotate(plan, cluster) if cluster.racks else plan


def exchange_two(plan: Plan, cluster: ClusterTopics) -> Plan:
    """The plan in which the first two members have exchanged what they have."""
    first, second, *_ = [*sorted(plan), "", ""]
    return {**plan, first: plan[second], second: plan[first]} if second else plan


STICKY, COOPERATIVE = "sticky", "cooperative-sticky"
EAGER_AS_COOPERATIVE: Assign = ASSIGNORS[STICKY].assign
FAULTY_ASSIGNORS: list[tuple[str, str, Assign]] = [
    ("ASSIGN-01", "range", replan("range", give_foreign)),
    ("ASSIGN-02", "range", replan("range", give_twice)),
    ("ASSIGN-03", "range", replan("range", leave_one_out)),
    ("ASSIGN-04", "range", replan("range", forget_poorest)),
    ("ASSIGN-05", "range", refuse("range", wants_missing)),
    ("ASSIGN-06", "range", rename("range", lambda member, place: f"m{place}")),
    ("ASSIGN-06", "roundrobin", rename("roundrobin", lambda member, place: f"m{place}")),
    ("ASSIGN-07", "sticky", refuse(STICKY, has_unreadable_data)),
    ("ASSIGN-08", "range", refuse("range", has_no_generation)),
    ("RANGE-01", "range", ASSIGNORS["roundrobin"].assign),
    ("RANGE-02", "range", replan("range", rotate)),
    ("RANGE-03", "range", resubscribe("range", subscribe_to_all)),
    ("RANGE-04", "range", rename("range", lambda member, place: member.id)),
    ("RANGE-05", "range", rename("range", lambda member, place: member.id)),
    ("RANGE-06", "range", replan("range", swap_in_odd_topics)),
    ("RANGE-07", "range", rename("range", pad_numbers)),
    ("RANGE-08", "range", assign_by_rack),
    ("RANGE-09", "range", assign_by_rack),
    ("RR-01", "roundrobin", ASSIGNORS["range"].assign),
    ("RR-02", "roundrobin", resubscribe("roundrobin", subscribe_to_all)),
    ("RR-03", "roundrobin", assign_by_topic),
    ("RR-04", "roundrobin", replan("roundrobin", all_to_one)),
    ("RR-05", "roundrobin", rename("roundrobin", lambda member, place: member.id)),
    ("RR-06", "roundrobin", rename("roundrobin", lambda member, place: member.id)),
    ("STICKY-01", STICKY, replan(STICKY, all_to_one)),
    ("STICKY-02", STICKY, replan(STICKY, all_to_one)),
    ("STICKY-03", STICKY, resubscribe(STICKY, forget_claims)),
    ("STICKY-04", STICKY, replan(STICKY, rotate)),
    ("STICKY-05", STICKY, resubscribe(STICKY, forget_claims)),
    ("STICKY-06", STICKY, mirror(STICKY)),
    ("STICKY-07", STICKY, resubscribe(STICKY, set_generation(lambda generation, place: 20 - generation))),
    ("STICKY-08", STICKY, resubscribe(STICKY, set_generation(lambda generation, place: generation + place))),
    ("STICKY-09", STICKY, resubscribe(STICKY, forget_old_claims)),
    ("STICKY-10", STICKY, resubscribe(STICKY, read_owned)),
    ("STICKY-11", STICKY, resubscribe(STICKY, forget_claims)),
    ("STICKY-12", STICKY, refuse(STICKY, claims_nonsense)),
    ("STICKY-13", STICKY, refuse(STICKY, claims_nonsense)),
    ("STICKY-14", STICKY, refuse(STICKY, claims_nonsense)),
    ("STICKY-15", STICKY, refuse(STICKY, claims_nonsense)),
    ("STICKY-16", STICKY, replan(STICKY, exchange_two)),
    ("STICKY-19", STICKY, resubscribe(STICKY, lambda one, place: evolve(one, rack=None))),
    ("COOP-09", COOPERATIVE, EAGER_AS_COOPERATIVE),
    ("COOP-10", COOPERATIVE, replan(COOPERATIVE, leave_one_out)),
    ("COOP-11", COOPERATIVE, EAGER_AS_COOPERATIVE),
    ("COOP-12", COOPERATIVE, replan(COOPERATIVE, rotate)),
    ("COOP-16", COOPERATIVE, EAGER_AS_COOPERATIVE),
    ("COOP-18", COOPERATIVE, EAGER_AS_COOPERATIVE),
]
"""Requirement, name and the faulty assignor."""
