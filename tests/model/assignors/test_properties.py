"""Our assignors have the properties of assignors, and each check finds an assignment that breaks it."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.conformance.assignors.run import draw_group
from fencepost.model.assignors.consumer_protocol import encode_cooperative_user_data, encode_sticky_user_data
from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember, Subscription
from fencepost.model.assignors.notation import as_sets, read_assignment, read_members, read_topics
from fencepost.model.assignors.properties import PROPERTIES, broken_properties
from fencepost.model.assignors.registry import ASSIGNORS, Assignor, find_unsettled, run_rounds
from fencepost.model.assignors.sticky import assign_sticky

# --- Hypothesis strategies for the input of assignors: subscriptions, claims, members, topics.

TOPICS = ("t", "u", "v")
RACKS = ("a", "b")

Group = tuple[tuple[GroupMember, ...], ClusterTopics]


@st.composite
def clusters(draw: st.DrawFn, with_racks: bool = True) -> ClusterTopics:
    """Up to three topics of up to six partitions, some of them with racks."""
    partitions = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 6), min_size=1))
    if not with_racks or not draw(st.booleans()):
        return ClusterTopics(partitions)
    near = st.frozensets(st.sampled_from(RACKS), max_size=2)
    racks = {topic: draw(st.tuples(*[near] * count)) for topic, count in partitions.items()}
    return ClusterTopics(partitions, racks)


@st.composite
def subscriptions(draw: st.DrawFn, topics: st.SearchStrategy[tuple[str, ...]]) -> Subscription:
    """A subscription with a claim, which may be contested by others or name what does not exist."""
    wanted = draw(topics)
    partition = st.tuples(st.sampled_from(TOPICS), st.integers(-1, 7))
    owned = tuple(draw(st.lists(partition, max_size=5, unique=True)))
    generation = draw(st.sampled_from((-1, 3, 4, 5)))
    rack = draw(st.sampled_from((None, "", *RACKS)))
    data = draw(
        st.sampled_from(
            (None, encode_sticky_user_data(owned, generation), encode_cooperative_user_data(generation), b"\x00\x01")
        )
    )
    return Subscription(wanted, data, owned, generation, rack)


@st.composite
def groups(draw: st.DrawFn, with_racks: bool = True) -> Group:
    """A cluster and up to five members, half of the time with equal subscriptions."""
    cluster = draw(clusters(with_racks))
    any_topics = st.lists(st.sampled_from((*TOPICS, "missing")), max_size=4, unique=True).map(tuple)
    topics = st.just(draw(any_topics)) if draw(st.booleans()) else any_topics
    ids = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True))
    members = []
    for member_id in ids:
        subscription = draw(subscriptions(topics))
        members.append(GroupMember(member_id, subscription, draw(st.sampled_from((None, f"i{member_id}")))))
    return tuple(members), cluster


SEEDS = 60


@pytest.mark.parametrize("name", ASSIGNORS)
@given(groups())
def test_no_group_breaks_a_property(name: str, group: Group) -> None:
    members, cluster = group
    assignment = ASSIGNORS[name].assign(members, cluster)
    assert [*map(str, broken_properties(name, members, cluster, assignment))] == []


@pytest.mark.parametrize("name", ASSIGNORS)
def test_no_group_that_something_happened_to_breaks_a_property(name: str) -> None:
    for seed in range(SEEDS):
        group = draw_group(Random(seed))
        assignment = ASSIGNORS[name].assign(group.members, group.cluster)
        assert [*map(str, broken_properties(name, group.members, group.cluster, assignment))] == [], seed


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@given(groups(with_racks=False))
def test_rounds_settle_on_a_balanced_assignment(name: str, group: Group) -> None:
    members, cluster = group
    assert list(find_unsettled(ASSIGNORS[name], members, cluster)) == []
    *_, settled = run_rounds(ASSIGNORS[name], members, cluster)
    plain = [replace(member, subscription=replace(member.subscription, user_data=None)) for member in members]
    assert [*map(str, broken_properties("sticky", plain, cluster, settled))] == []


@pytest.mark.parametrize("name", ["range", "roundrobin"])
@given(groups(), st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter(name: str, group: Group, random: Random) -> None:
    """ASSIGN-06."""
    members, cluster = group
    shuffled = random.sample(members, len(members))
    assert ASSIGNORS[name].assign(shuffled, cluster) == ASSIGNORS[name].assign(members, cluster)


@pytest.mark.parametrize("name", ["range", "roundrobin"])
@given(groups())
def test_static_members_keep_their_partitions_when_their_ids_change(name: str, group: Group) -> None:
    """RANGE-05, RR-06."""
    members, cluster = group
    static = [replace(member, instance_id=f"i{member.id}") for member in members]
    renamed = [replace(member, id=f"new {chr(200 - ord(member.id))}") for member in static]
    before, after = (ASSIGNORS[name].assign(each, cluster) for each in (static, renamed))
    assert [before[one.id] for one in static] == [after[one.id] for one in renamed]


@given(groups())
def test_sticky_ignores_instance_ids_and_the_fields_of_owned_partitions(group: Group) -> None:
    """STICKY-10, STICKY-17."""
    members, cluster = group
    bare = [GroupMember(member.id, replace(member.subscription, owned=(), generation=-1)) for member in members]
    assert assign_sticky(bare, cluster) == assign_sticky(members, cluster)


def test_a_member_that_is_listed_twice_counts_once() -> None:
    """BUG-137: the later entry counts, and all partitions have an owner."""
    cluster = read_topics("t:4")
    members = read_members("A{x}; A{t}; B{t}", cluster)
    for assignor in ASSIGNORS.values():
        assignment = assignor.assign(members, cluster)
        assert sorted(map(len, assignment.values())) == [2, 2]


def test_nobody_gets_nothing() -> None:
    for assignor in ASSIGNORS.values():
        assert assignor.assign([], read_topics("t:4")) == {}


def test_a_member_without_topics_gets_nothing() -> None:
    """Also if it comes first: Kafka's classes then take the subscriptions for equal."""
    cluster = read_topics("t:2")
    for assignor in ASSIGNORS.values():
        assert as_sets(assignor.assign(read_members("A{}; B{t}", cluster), cluster)) == read_assignment("A; B t-0,t-1")


def test_names_compare_as_in_java() -> None:
    """By UTF-16 code units, where what lies beyond the first 65,536 characters comes before U+E000."""
    cluster = read_topics("t:1")
    ids = ("\ue000", "\U00010000")
    for assignor in ASSIGNORS.values():
        assert assignor.assign(read_members("; ".join(ids), cluster), cluster)[ids[1]] == (("t", 0),)


WITNESSES = {
    "all members": ("range", "t:1", "c1; c2", "c1 t-0", "c2 is not in the assignment"),
    "no others": ("range", "t:1", "c1", "c1 t-0; c9", "c9 is in the assignment, but not a member"),
    "existing": ("roundrobin", "t:1", "c1", "c1 t-0,t-1", "c1 has t-1, which does not exist"),
    "subscribed": ("sticky", "t:1 u:1", "c1{u}; c2", "c1 t-0; c2 u-0", "c1 has t-0, but does not subscribe to t"),
    "at most once": ("range", "t:1", "c1; c2", "c1 t-0; c2 t-0", "t-0 is assigned to c1 and c2"),
    "complete": ("sticky", "t:2", "c1; c2", "c1 t-0; c2", "t-1 is assigned to no member"),
    "balanced by topic": (
        "range",
        "t:3",
        "c1; c2",
        "c1 t-0; c2 t-1,t-2",
        "the subscribers of t have [1, 2] of its partitions, expected [2, 1]",
    ),
    "co-partitioned": ("range", "t:2 u:2", "c1; c2", "c1 t-0,u-1; c2 t-1,u-0", "t-0 goes to c1, but u-0 to c2"),
    "even totals": (
        "roundrobin",
        "t:2",
        "c1; c2",
        "c1 t-0,t-1; c2",
        "the sizes {'c1': 2, 'c2': 0} differ by more than 1",
    ),
    "balanced": (
        "sticky",
        "t:2 u:1",
        "c1; c2{t}",
        "c1 t-0,t-1,u-0; c2",
        "t-0 of c1 (3 partitions) could go to c2 (0)",
    ),
    "sticky": ("sticky", "t:2", "c1 t-0@5; c2", "c1 t-1; c2 t-0", "0 partitions stay where they were, 1 could"),
    "unchanged": (
        "sticky",
        "t:1 u:1",
        "c1{t,u} t-0@5; c2{t,u,x} u-0@5",
        "c1 u-0; c2 t-0",
        "c1 had [('t', 0)], which was balanced, and gets [('u', 0)]",
    ),
    "withheld for a reason": (
        "cooperative-sticky",
        "t:2",
        "c1 t-0@5; c2",
        "c1 t-0; c2",
        "t-1 is withheld, but no member owns it",
    ),
    "cooperative-safe": (
        "cooperative-sticky",
        "t:2",
        "c1 t-0,t-1@5; c2",
        "c1 t-0; c2 t-1",
        "c2 gets t-1, which c1 owns",
    ),
    "contested": (
        "cooperative-sticky",
        "t:2",
        "c1 t-0@5; c2 t-0@5",
        "c1 t-0; c2 t-1",
        "c1 gets t-0, which several members claim in one generation",
    ),
}


@pytest.mark.parametrize("witness", WITNESSES)
def test_each_check_can_fail(witness: str) -> None:
    name, topics, texts, assignment, sentence = WITNESSES[witness]
    cluster = read_topics(topics)
    given = {member: tuple(sorted(each)) for member, each in read_assignment(assignment).items()}
    found = broken_properties(name, read_members(texts, cluster), cluster, given)
    assert sentence in [one.sentence for one in found]


def test_every_property_has_a_witness() -> None:
    failed = set()
    for name, topics, texts, assignment, _ in WITNESSES.values():
        cluster = read_topics(topics)
        given = {member: tuple(sorted(each)) for member, each in read_assignment(assignment).items()}
        failed |= {one.property.check for one in broken_properties(name, read_members(texts, cluster), cluster, given)}
    unseen = {(name, one.name) for name in PROPERTIES for one in PROPERTIES[name] if one.check not in failed}
    # These are made by the same functions as those of sticky.
    assert unseen == {("cooperative-sticky", "sticky"), ("cooperative-sticky", "unchanged if balanced")}


def test_an_assignor_of_another_name_may_be_uneven_but_not_invalid() -> None:
    cluster = read_topics("t:3")
    members = read_members("c1; c2", cluster)
    assert broken_properties("mine", members, cluster, {"c1": (("t", 0), ("t", 1)), "c2": ()}) == ()
    (found,) = broken_properties("mine", members, cluster, {"c1": (("t", 9),), "c2": ()})
    assert str(found) == "ASSIGN-01 (valid): c1 has t-9, which does not exist"


def test_an_assignor_that_does_not_settle_is_seen() -> None:
    def rotate(members: object, cluster: ClusterTopics) -> Assignment:
        calls.append(1)
        return {"c1": (("t", len(calls)),)}

    calls: list[int] = []
    cluster = read_topics("t:9")
    sentences = find_unsettled(Assignor("mine", rotate, is_cooperative=True), read_members("c1", cluster), cluster)
    assert list(sentences) == ["round 6 still changes the assignment"]
