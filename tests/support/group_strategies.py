"""Hypothesis strategies for the input of assignors: subscriptions, claims, members, topics."""

from hypothesis import strategies as st

from fencepost.model.assignors.consumer_protocol import encode_cooperative_user_data, encode_sticky_user_data
from fencepost.model.assignors.group import ClusterTopics, GroupMember, Subscription

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
