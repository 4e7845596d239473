"""The test vectors of member.md §5: results of Kafka's own assignors, sets of partitions compared."""

from itertools import permutations

import pytest

from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember
from fencepost.model.assignors.notation import as_sets, read_assignment, read_members, read_topics, rejoining
from fencepost.model.assignors.registry import ASSIGNORS

RANGE = {
    "V-RANGE-1": ("t0:3 t1:3", "C0; C1", "C0 t0-0,t0-1,t1-0,t1-1; C1 t0-2,t1-2"),
    "V-RANGE-2": ("t:10", "member-0; member-1; member-2", "member-0 t-0..3; member-1 t-4..6; member-2 t-7..9"),
    "V-RANGE-3": ("t1:3 t2:2", "c1{t1}; c2{t1,t2}; c3{t1}", "c1 t1-0; c2 t1-1,t2-0,t2-1; c3 t1-2"),
    "V-RANGE-4": ("t:1", "c1; c2", "c1 t-0; c2"),
    "V-RANGE-7": ("t1:1 t2:1 t3:1 t4:1 t5:1", "c1; c2", "c1 t1-0,t2-0,t3-0,t4-0,t5-0; c2"),
    "V-RANGE-8": ("t:3", "consumer2; consumer10", "consumer10 t-0,t-1; consumer2 t-2"),
    "V-RANGE-9": ("t0:2 t1:2 t2:2 t3:2", "C0; C1; C2", "C0 t0-0,t1-0,t2-0,t3-0; C1 t0-1,t1-1,t2-1,t3-1; C2"),
    "V-RANGE-10": ("t1:2", "c1{t1}; c2{tX}", "c1 t1-0,t1-1; c2"),
}
FIVE_TOPICS = (
    "topic1:2 topic2:1 topic3:2 topic4:1 topic5:2",
    "consumer1; consumer2{topic1,topic3,topic5}; consumer3{topic1,topic3,topic5}; consumer4",
)
NESTED = "t0:1 t1:2 t2:3"
ROUND_ROBIN = {
    "V-RR-1": ("t0:3 t1:3", "C0; C1", "C0 t0-0,t0-2,t1-1; C1 t0-1,t1-0,t1-2"),
    "V-RR-2": (NESTED, "C0{t0}; C1{t0,t1}; C2", "C0 t0-0; C1 t1-0; C2 t1-1,t2-0,t2-1,t2-2"),
    "V-RR-3": (NESTED, "C1{t0,t1}; C2", "C1 t0-0,t1-1; C2 t1-0,t2-0,t2-1,t2-2"),
    "V-RR-4": ("t1:1 t2:2", "c1; c2", "c1 t1-0,t2-1; c2 t2-0"),
    "V-RR-6": ("t1:3 t2:2", "c1{t1}; c2{t1,t2}; c3{t1}", "c1 t1-0; c2 t1-1,t2-0,t2-1; c3 t1-2"),
    "V-RR-7": (
        *FIVE_TOPICS,
        "consumer1 topic1-0,topic3-0,topic5-0; consumer2 topic1-1,topic3-1,topic5-1; consumer3; "
        "consumer4 topic2-0,topic4-0",
    ),
}
SIX_TOPICS = "topic1:1 topic2:1 topic3:1 topic4:1 topic5:1 topic6:1"
SIX_OWNED = (
    "consumer1{topic1,topic2} topic1-0@1; consumer2{topic1,topic2,topic3,topic4} topic2-0,topic3-0@1; "
    "consumer3{topic2,topic3,topic4,topic5,topic6} topic4-0,topic5-0,topic6-0@1"
)
STICKY = {
    "V-STICKY-1": ("t0:2 t1:2 t2:2 t3:2", "C0; C1; C2", "C0 t0-0,t1-1,t3-0; C1 t0-1,t2-0,t3-1; C2 t1-0,t2-1"),
    "V-STICKY-2": (
        "t0:2 t1:2 t2:2 t3:2",
        "C0 t0-0,t1-1,t3-0@1; C2 t1-0,t2-1@1",
        "C0 t0-0,t1-1,t3-0,t0-1; C2 t1-0,t2-1,t2-0,t3-1",
    ),
    "V-STICKY-3": (NESTED, "C0{t0}; C1{t0,t1}; C2", "C0 t0-0; C1 t1-0,t1-1; C2 t2-0..2"),
    "V-STICKY-4": (NESTED, "C1{t0,t1} t1-0,t1-1@1; C2 t2-0..2@1", "C1 t1-0,t1-1,t0-0; C2 t2-0..2"),
    "V-STICKY-5": (
        *FIVE_TOPICS,
        "consumer1 topic2-0,topic3-0; consumer2 topic1-0,topic3-1; consumer3 topic1-1,topic5-0; "
        "consumer4 topic4-0,topic5-1",
    ),
    "V-STICKY-6": ("t:3", "c1 t-0..2@1; c2", "c1 t-0,t-1; c2 t-2"),
    "V-STICKY-7": ("t:6", "c1 t-0..5@5; c2; c3", "c1 t-0,t-1; c2 t-2,t-4; c3 t-3,t-5"),
    "V-STICKY-8": ("t1:3 t2:3", "c1 t1-0..2,t2-0..2@5; c2", "c1 t1-0,t2-0,t1-1; c2 t1-2,t2-1,t2-2"),
    "V-STICKY-9": (
        "t:8",
        "c1 t-0,t-1@5; c2 t-2,t-3@5; c3 t-4,t-5@5",
        "c1 t-0,t-1,t-6; c2 t-2,t-3,t-7; c3 t-4,t-5",
    ),
    "V-STICKY-10": ("t:5", "c1 t-0,t-2@5; c2 t-1,t-3@5", "c1 t-0,t-2,t-4; c2 t-1,t-3"),
    "V-STICKY-11": (
        "topic1:2 topic2:3",
        "consumer1 topic1-0,topic2-1@5; consumer2 topic1-1,topic2-2@5",
        "consumer1 topic1-0,topic2-1,topic2-0; consumer2 topic1-1,topic2-2",
    ),
    "V-STICKY-12": (
        "topic1:2 topic2:3",
        "consumer1 topic1-0@5; consumer2 topic1-1@5; consumer3 @5",
        "consumer1 topic1-0,topic2-1; consumer2 topic1-1,topic2-2; consumer3 topic2-0",
    ),
    "V-STICKY-13": (
        "t1:3 t2:3",
        "c1 t1-0,t1-2,t2-1@10; c2 t1-0,t1-2,t2-1@9",
        "c1 t1-0,t1-2,t2-1; c2 t1-1,t2-0,t2-2",
    ),
    "V-STICKY-14": (
        "t1:3 t2:3 t3:3",
        "c1 t1-0,t2-0,t3-0@10; c2 t1-1,t2-1,t3-1@9; c3 t2-1,t3-0,t3-2@8",
        "c1 t1-0,t2-0,t3-0; c2 t1-1,t2-1,t3-1; c3 t3-2,t1-2,t2-2",
    ),
    "V-STICKY-15": ("t:3", "c1 t-0,t-1@5; c2 t-0,t-2@5; c3 @5", "c1 t-1; c2 t-2; c3 t-0"),
    "V-STICKY-16": ("t:4", "c1 t-0,t-1@5; c2 t-0,t-2@5; c3 @5", "c1 t-1,t-3; c2 t-2; c3 t-0"),
    "V-STICKY-17": ("t0:2 t1:2", "A{t0} t0-0,t0-1@5; B t1-0,t1-1@5", "A t0-0,t0-1; B t1-0,t1-1"),
    "V-STICKY-18": ("t0:1 t1:4", "A{t0}; B", "A t0-0; B t1-0..3"),
    "V-STICKY-19": (
        SIX_TOPICS,
        SIX_OWNED,
        "consumer1 topic1-0; consumer2 topic2-0,topic3-0; consumer3 topic4-0,topic5-0,topic6-0",
    ),
}
COOPERATIVE = {
    "V-COOP-1": ("t:3", "c1 t-0..2@1; c2", ["c1 t-0,t-1; c2", "c1 t-0,t-1; c2 t-2"]),
    "V-COOP-2": (
        "t:6",
        "c1 t-0..5@5; c2; c3",
        ["c1 t-0,t-1; c2; c3", "c1 t-0,t-1; c2 t-2,t-4; c3 t-3,t-5"],
    ),
    "V-COOP-3": ("t:6", "c1 t-0,t-1@5; c3 t-4,t-5@5", ["c1 t-0,t-1,t-2; c3 t-4,t-5,t-3"] * 2),
    "V-COOP-4": (
        "t:3",
        "c1 t-0,t-1@5; c2 t-0,t-2@5; c3 @5",
        ["c1 t-1; c2 t-2; c3", "c1 t-1; c2 t-2; c3 t-0"],
    ),
    "V-COOP-5": (
        "t1:3 t2:3",
        "c1 t1-0,t1-2,t2-1@10; c2 t1-0,t1-2,t2-1@9",
        ["c1 t1-0,t1-2,t2-1; c2 t1-1,t2-0,t2-2"] * 2,
    ),
    "V-COOP-6": (
        "t0:4 t1:1",
        "A{t0} t0-0..3@5; B t1-0@5",
        ["A t0-1,t0-2,t0-3; B t1-0", "A t0-1,t0-2,t0-3; B t1-0,t0-0"],
    ),
    "V-COOP-7": ("t:2", "c1 t-0,t-1@5; c2; c3", ["c1 t-0; c2; c3", "c1 t-0; c2 t-1; c3"]),
    "V-COOP-8": ("t0:3", "c1{t0,tX} t0-0..2@5; c2{t0}", ["c1 t0-1,t0-2; c2", "c1 t0-1,t0-2; c2 t0-0"]),
    "V-COOP-9": (
        "t0:2 t1:2",
        "c0 t0-0,t0-1,t1-0,t1-1@5; c1{t1}; c2{t0}; c3{t0}",
        ["c0 t0-1; c1; c2; c3", "c0 t1-1; c1 t1-0; c2 t0-0; c3", "c0 t1-1; c1 t1-0; c2 t0-0; c3 t0-1"],
    ),
    "V-COOP-10": ("t1:2 t2:2", "c1{t2} @5; c2{t1} @5", ["c1 t2-0,t2-1; c2 t1-0,t1-1"] * 2),
}
RACKS = {
    "V-RACK-1": ("t:b/a/b/a/b/a", "c1; c2", "c1 t-1,t-3,t-5; c2 t-0,t-2,t-4", ("range", "sticky")),
    "V-RACK-1 round robin": ("t:b/a/b/a/b/a", "c1; c2", "c1 t-0,t-2,t-4; c2 t-1,t-3,t-5", ("roundrobin",)),
    "V-RACK-2": ("t1:a/b/a/b t2:a/b/a/b", "c1; c2", "c1 t1-0,t1-2,t2-0,t2-2; c2 t1-1,t1-3,t2-1,t2-3", ("range",)),
    "V-RACK-3": ("t1:a/b/a/b t2:b/a/b/a", "c1; c2", "c1 t1-0,t1-1,t2-0,t2-1; c2 t1-2,t1-3,t2-2,t2-3", ("range",)),
    "V-RACK-3 sticky": (
        "t1:a/b/a/b t2:b/a/b/a",
        "c1; c2",
        "c1 t1-0,t1-2,t2-1,t2-3; c2 t1-1,t1-3,t2-0,t2-2",
        ("sticky",),
    ),
    "V-RACK-4": ("t:ab/ab/ab/ab", "c1; c2", "c1 t-0,t-1; c2 t-2,t-3", ("range",)),
    "V-RACK-5": ("t:a/b/a/b", "c1 t-0,t-1@5; c2 t-2,t-3@5", "c1 t-0,t-2; c2 t-3,t-1", ("sticky",)),
    "V-RACK-5 cooperative": ("t:a/b/a/b", "c1 t-0,t-1@5; c2 t-2,t-3@5", "c1 t-0; c2 t-3", ("cooperative-sticky",)),
}


def assign(name: str, members: list[GroupMember], cluster: ClusterTopics) -> Assignment:
    return ASSIGNORS[name].assign(members, cluster)


@pytest.mark.parametrize(
    ("name", "vector"),
    [("range", vector) for vector in RANGE]
    + [("roundrobin", vector) for vector in ROUND_ROBIN]
    + [("sticky", vector) for vector in STICKY],
)
def test_vectors_in_every_order_of_members(name: str, vector: str) -> None:
    topics, members, expected = (RANGE | ROUND_ROBIN | STICKY)[vector]
    cluster = read_topics(topics)
    for ordered in permutations(read_members(members, cluster)):
        assert as_sets(assign(name, list(ordered), cluster)) == read_assignment(expected)


@pytest.mark.parametrize("vector", COOPERATIVE)
def test_vectors_of_rounds_in_every_order_of_members(vector: str) -> None:
    topics, texts, rounds = COOPERATIVE[vector]
    cluster = read_topics(topics)
    for ordered in permutations(read_members(texts, cluster)):
        members = list(ordered)
        for generation, expected in enumerate([*rounds, rounds[-1]], 11):
            assignment = assign("cooperative-sticky", members, cluster)
            assert as_sets(assignment) == read_assignment(expected), generation
            members = rejoining(members, assignment, generation)


@pytest.mark.parametrize("vector", RACKS)
def test_vectors_of_racks(vector: str) -> None:
    topics, texts, expected, names = RACKS[vector]
    cluster = read_topics(topics)
    for ordered in permutations(read_members(texts, cluster, racks={"c1": "a", "c2": "b"})):
        for name in names:
            assert as_sets(assign(name, list(ordered), cluster)) == read_assignment(expected)


STATIC = {"consumer-b": "instance1", "consumer-a": "instance2"}
BLOCKS = "consumer-b t1-0,t1-1,t2-0,t2-1; consumer-a t1-2,t2-2"
DEALT = "consumer-b t1-0,t1-2,t2-1; consumer-a t1-1,t2-0,t2-2"


@pytest.mark.parametrize(
    ("name", "instances", "expected"),
    [
        pytest.param("range", STATIC, BLOCKS, id="V-RANGE-5"),
        pytest.param("range", {"consumer-b": "instance1"}, BLOCKS, id="V-RANGE-6"),
        pytest.param("roundrobin", {"consumer-b": "instance1"}, DEALT, id="V-RR-5"),
        pytest.param("sticky", {}, "consumer-a t1-0,t1-2,t2-1; consumer-b t1-1,t2-0,t2-2", id="STICKY-17"),
        pytest.param("sticky", STATIC, "consumer-a t1-0,t1-2,t2-1; consumer-b t1-1,t2-0,t2-2", id="STICKY-17 static"),
    ],
)
def test_vectors_of_static_members(name: str, instances: dict[str, str], expected: str) -> None:
    cluster = read_topics("t1:3 t2:3")
    members = read_members("consumer-a; consumer-b", cluster, instances=instances)
    assert as_sets(assign(name, members, cluster)) == read_assignment(expected)


def test_the_vector_with_two_results() -> None:
    """V-STICKY-20: the member visited first keeps what it has."""
    cluster = read_topics("topic1:2 topic2:2")
    members = read_members("c1 topic1-0,topic2-0@5; c2 topic1-1,topic2-1@5; c3 @5", cluster)
    found = {frozenset(as_sets(assign("sticky", list(each), cluster)).items()) for each in permutations(members)}
    assert found == {
        frozenset(read_assignment(text).items())
        for text in (
            "c1 topic1-0,topic2-0; c2 topic1-1; c3 topic2-1",
            "c1 topic1-0; c2 topic1-1,topic2-1; c3 topic2-0",
        )
    }


@pytest.mark.parametrize(
    ("hazard", "name", "topics", "members", "expected"),
    [
        (
            "U1",
            "sticky",
            "t0:4 t1:1",
            "A{t0} t0-0..3@5; B{t1} t0-0@4; C @5",
            "A t0-2,t0-3; B t1-0; C t0-0,t0-1",
        ),
        ("U2", "sticky", "t0:3", "A t0-7@5; B", "A t0-0,t0-2; B t0-1"),
        ("U3", "cooperative-sticky", "t0:4 t1:1", "A{t0} t0-0..3@5; B{t0} t0-0@4; C t1-0@5", "A t0-2,t0-3; B; C t1-0"),
        ("U4", "sticky", "t0:3", "A{t0} t0-0..2@5; B{t0} @5; C{t9} t0-0@4", "A t0-1,t0-2; B t0-0; C"),
    ],
)
def test_hazards_of_kafka_are_avoided(hazard: str, name: str, topics: str, members: str, expected: str) -> None:
    """STICKY-13, -14, -15 and COOP-18, which Kafka's own classes violate."""
    cluster = read_topics(topics)
    assert as_sets(assign(name, read_members(members, cluster), cluster)) == read_assignment(expected)
