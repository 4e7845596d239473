"""The comparison with Kafka's own assignors: lines for Java, kinds of differences, and its classes on a few groups."""

from collections.abc import Sequence

import pytest

from fencepost.conformance.assignors.run import RandomGroup
from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember
from fencepost.model.assignors.notation import read_members, read_topics
from fencepost.model.assignors.properties import broken_properties
from fencepost.model.assignors.registry import ASSIGNORS
from tests.benchmarks import agreement
from tests.benchmarks.agreement import (
    BROKEN,
    EQUAL,
    OPEN,
    UNEXPLAINED,
    JavaAssignorError,
    JavaAssignors,
    compare_group,
    next_choices,
    read_assignments,
    write_member,
    write_topics,
)
from tests.targets.kafka.installation import VERSIONS


class FixedJava(JavaAssignors):
    """Answers with one assignment, or with an error."""

    def __init__(self, assignment: Assignment | None) -> None:
        self.assignment = assignment

    def assign(self, name: str, members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        if self.assignment is None:
            raise JavaAssignorError("NullPointerException")
        return self.assignment


def make_group(topics: str, members: str) -> RandomGroup:
    cluster = read_topics(topics)
    return RandomGroup(tuple(read_members(members, cluster)), cluster)


SHED = make_group("topic1:2 topic2:2", "c1 topic1-0,topic2-0@5; c2 topic1-1,topic2-1@5; c3 @5")
STALE = make_group("t0:4 t1:1", "A{t0} t0-0..3@5; B{t1} t0-0@4; C @5")
CRASH = make_group("t0:3", "A{t0} t0-0..2@5; B{t0} @5; C{t9} t0-0@4")
U1 = "U1, U4: an older claimant does not subscribe to the topic" + BROKEN


def test_a_group_as_java_reads_it() -> None:
    (member,) = read_members("c1{t,u} t-0,u-2@5", read_topics("t:1"), racks={"c1": "a"}, instances={"c1": "i"})
    data = "00000002000174000000010000000000017500000001000000020000 0005".replace(" ", "")
    assert write_member(member) == f"c1|i|a|t,u|{data}|t-0,u-2|5"
    assert write_topics(read_topics("t:2 u:ab/b")) == "t:2 u:a+b/b"
    assert read_assignments("c1|t-x-0,u-1 c2|") == {"c1": (("t-x", 0), ("u", 1)), "c2": ()}


@pytest.mark.parametrize(
    ("group", "theirs", "kind"),
    [
        (SHED, ASSIGNORS["sticky"].assign(SHED.members, SHED.cluster), EQUAL),
        (SHED, ASSIGNORS["sticky"].assign(SHED.members[::-1], SHED.cluster), OPEN),
        (SHED, {"c1": (), "c2": (), "c3": ()}, UNEXPLAINED),
        (SHED, None, UNEXPLAINED),
        (STALE, {"A": (("t0", 2), ("t0", 3)), "B": (("t1", 0), ("t0", 0)), "C": (("t0", 1),)}, U1),
        (CRASH, None, U1),
    ],
    ids=["equal", "left open", "unexplained", "error", "U1", "U4"],
)
def test_kinds_of_differences(group: RandomGroup, theirs: Assignment | None, kind: str) -> None:
    assert compare_group(FixedJava(theirs), "sticky", group) == kind


def test_all_choices_are_made() -> None:
    """Two choices, the second with three options where the first is 0 and with one where it is 1."""
    runs, made = [], [(0, 2), (0, 3)]
    while True:
        runs.append([choice for choice, _ in made])
        following = next_choices(made)
        if following is None:
            break
        made = following if len(following) == 2 else [*following, (0, 1)]
    assert runs == [[0, 0], [0, 1], [0, 2], [1, 0]]


def test_without_java_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert agreement.main([]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.endswith("java: not found; install a Java 17 or newer, or set JAVA_HOME")


@pytest.mark.slow
@pytest.mark.java
def test_kafkas_own_classes_agree_on_some_groups() -> None:
    with JavaAssignors(VERSIONS["4"]) as java:
        found = agreement.compare_groups(java, range(7_000, 7_060), is_odd=True)
    assert sum(count for (_, kind), count in found.items() if kind == EQUAL) > 200
    assert not [kind for _, kind in found if kind == UNEXPLAINED]


@pytest.mark.slow
@pytest.mark.java
def test_kafkas_own_classes_give_a_member_without_topics_partitions() -> None:
    """U9: if it is visited first, its empty subscription is taken for not yet known."""
    group = make_group("t:2", "A{}; B{t}")
    with JavaAssignors(VERSIONS["4"]) as java:
        theirs = java.assign("sticky", group.members, group.cluster)
    (found,) = broken_properties("sticky", group.members, group.cluster, theirs)
    assert found.sentence.startswith("A has t-") and found.sentence.endswith("but does not subscribe to t")
