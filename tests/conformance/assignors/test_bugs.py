"""Bugs that assignors of real clients had, put into the reference assignors: a test of the assignor finds each."""

from collections.abc import Sequence

import pytest

from fencepost.conformance.assignors.run import AssignorTest
from fencepost.conformance.results import Verdict
from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember, member_order
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.frozen import evolve
from tests.support.faulty_assignors import (
    Plan,
    assign_by_topic,
    claims_nonsense,
    forget_claims,
    refuse,
    resubscribe,
    set_generation,
    wants_missing,
)


def assign_newest_claims(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """Claims of the highest generation alone count."""
    newest = max((each.subscription.generation for each in members), default=-1)
    changed = [
        each
        if each.subscription.generation == newest
        else evolve(each, subscription=forget_claims(each.subscription, 0))
        for each in members
    ]
    return ASSIGNORS["cooperative-sticky"].assign(changed, cluster)


def assign_slices(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """Blocks of n div k partitions; the remainder is lost."""
    plan: Plan = {each.id: () for each in members}
    for topic, count in cluster.partitions.items():
        own = [each.id for each in member_order(members) if topic in each.subscription.topics]
        for place, id in enumerate(own):
            size = count // len(own)
            plan[id] += tuple((topic, number) for number in range(place * size, place * size + size))
    return plan


def assign_rounded(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """Blocks whose bounds are rounded steps."""
    plan: Plan = {each.id: () for each in members}
    for topic, count in cluster.partitions.items():
        own = [each.id for each in member_order(members) if topic in each.subscription.topics]
        bounds = [round(place * count / len(own)) for place in range(len(own) + 1)] if own else []
        for place, id in enumerate(own):
            plan[id] += tuple((topic, number) for number in range(bounds[place], bounds[place + 1]))
    return plan


def assign_shares_of_all(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """Shares by the number of all members, not of the subscribers."""
    plan: Plan = {each.id: () for each in members}
    for topic, count in cluster.partitions.items():
        own = [each.id for each in member_order(members) if topic in each.subscription.topics]
        size, extra = divmod(count, len(members))
        for place, id in enumerate(own):
            first = place * size + min(place, extra)
            plan[id] += tuple((topic, number) for number in range(first, first + size + (place < extra)))
    return plan


def assign_topics_of_leader(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
    """Topics that the first member subscribes to are assigned, and no others."""
    known = members[0].subscription.topics if members else ()
    topics = {topic: count for topic, count in cluster.partitions.items() if topic in known}
    return ASSIGNORS["range"].assign(members, ClusterTopics(topics))


BUGS: dict[str, tuple[str, Assign]] = {
    "BUG-118": ("roundrobin", refuse("roundrobin", wants_missing)),
    "BUG-119": ("sticky", resubscribe("sticky", set_generation(lambda generation, place: 20 - generation))),
    "BUG-120": ("sticky", resubscribe("sticky", set_generation(lambda generation, place: generation + place))),
    "BUG-122": ("cooperative-sticky", assign_newest_claims),
    "BUG-129": ("sticky", resubscribe("sticky", forget_claims)),
    "BUG-134": ("range", assign_shares_of_all),
    "BUG-138": ("sticky", refuse("sticky", claims_nonsense)),
    "BUG-139": ("cooperative-sticky", resubscribe("cooperative-sticky", forget_claims)),
    "BUG-140": ("range", assign_rounded),
    "BUG-141": ("roundrobin", assign_by_topic),
    "BUG-142": ("range", assign_slices),
    "BUG-143": ("range", assign_topics_of_leader),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_of_a_real_assignor_is_found(bug: str) -> None:
    name, assign = BUGS[bug]
    report = AssignorTest(name, assign, groups=100).run()
    assert any(each.verdict is Verdict.FAIL for each in report.results), [each.id for each in report.results]
