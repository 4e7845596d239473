"""Checks of assignors that take certain groups: each yields sentences about wrong assignments.

`SeenPlans` applies them to plans that somebody has made already, in the order in which a check asks for them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from fencepost.model.assignors.consumer_protocol import (
    NEWEST_VERSION,
    decode_subscription,
    encode_sticky_user_data,
    encode_subscription,
)
from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember, Subscription
from fencepost.model.assignors.notation import as_text, read_assignment, read_members, read_topics
from fencepost.model.assignors.properties import (
    find_invalid,
    find_needlessly_withheld,
    find_split_topics,
    find_unassigned,
    find_unsafe,
)
from fencepost.model.assignors.registry import ASSIGNORS, find_unsettled
from fencepost.model.assignors.sticky_group import make_sticky_group, sticky_claim
from fencepost.model.errors import FencepostError
from fencepost.model.frozen import evolve

ALL = ("range", "roundrobin", "sticky", "cooperative-sticky")
EXACT = ("range", "roundrobin")
BOTH_STICKY = ("sticky", "cooperative-sticky")
OWN_RULES = frozenset({"STICKY-13", "STICKY-14", "STICKY-15", "COOP-18"})
"""The requirements of this project alone: there are groups for which assignors of Apache Kafka fail."""


@dataclass(frozen=True, slots=True)
class AssignorCheck:
    """A check for assignors of some names: the requirement, the groups in words, and a function that yields a sentence
    for each wrong assignment."""

    requirement: str
    names: tuple[str, ...]
    groups: str
    run: Callable[[Assign, str], Iterator[str]]
    has_racks: bool = False
    """Whether the replicas of its topics are in racks."""
    versions: tuple[int, ...] = ()
    """The versions of the members' subscriptions, the newest known for those without one."""

    @property
    def name(self) -> str:
        """What tells the check from others of the same assignor."""
        return f"{self.requirement} {self.groups}"


class PlanError(FencepostError):
    """An assignor has brought no plan; the message is the reason."""


class MissingPlan(Exception):
    """A check asks for a plan that nobody has seen yet, for these members and topics."""

    def __init__(self, members: Sequence[GroupMember], cluster: ClusterTopics) -> None:
        super().__init__("a plan is missing")
        self.members = tuple(members)
        self.cluster = cluster


@dataclass(slots=True)
class SeenPlans:
    """Plans for the groups of one check, in the order in which it asks for them; None where the assignor failed."""

    plans: Sequence[Assignment | None]
    _asked: int = field(default=0, init=False)

    def assign(self, members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        """The next plan. Raises `PlanError`, and `MissingPlan` after the last one."""
        if self._asked >= len(self.plans):
            raise MissingPlan(members, cluster)
        plan = self.plans[self._asked]
        self._asked += 1
        if plan is None:
            raise PlanError("it brings no plan")
        return plan


def read_group(
    topics: str, members: str, instances: str = "", racks: str = ""
) -> tuple[list[GroupMember], ClusterTopics]:
    """The members and topics in the notation; instances as `member=instance`, racks as `member=rack`."""
    cluster = read_topics(topics)
    named, near = (dict(pair.split("=") for pair in pairs.split()) for pairs in (instances, racks))
    return read_members(members, cluster, instances=named, racks=near), cluster


def encode_in_version(subscription: Subscription, version: int) -> bytes:
    """The bytes of a subscription; one of a version that is not known has more bytes than those that are."""
    known = min(version, NEWEST_VERSION)
    surplus = bytes(4) if version > known else b""
    return version.to_bytes(2) + encode_subscription(subscription, known)[2:] + surplus


def expect(
    requirement: str, name: str, topics: str, members: str, expected: str, instances: str = "", racks: str = ""
) -> AssignorCheck:
    """The assignor gives this assignment, which its rules determine."""

    def run(assign: Assign, name: str) -> Iterator[str]:
        found = assign(*read_group(topics, members, instances, racks))
        if {id: frozenset(own) for id, own in found.items()} != read_assignment(expected):
            yield f"{as_text(found)}, expected {expected}"

    return AssignorCheck(requirement, (name,), f"{topics}: {members} {instances}{racks}".rstrip(), run, bool(racks))


def expect_order(topics: str, members: str, order: str, requirement: str, instances: str = "") -> AssignorCheck:
    """Range gives the members blocks of each topic in this order, of whatever size."""

    def run(assign: Assign, name: str) -> Iterator[str]:
        group, cluster = read_group(topics, members, instances)
        found = assign(group, cluster)
        for topic, count in cluster.partitions.items():
            given = [number for id in order.split() for name, number in sorted(found.get(id, ())) if name == topic]
            if given != list(range(count)):
                yield f"{as_text(found)}, expected blocks of {topic} for {order} in this order"

    return AssignorCheck(requirement, ("range",), f"{topics}: {members} {instances}".rstrip(), run)


def expect_alike(requirement: str, name: str, topics: str, members: str) -> AssignorCheck:
    """The assignor divides topics with as many partitions alike."""

    def run(assign: Assign, name: str) -> Iterator[str]:
        group, cluster = read_group(topics, members)
        yield from find_split_topics(group, cluster, assign(group, cluster))

    return AssignorCheck(requirement, (name,), f"{topics}: {members}", run)


def expect_kept(
    requirement: str, names: tuple[str, ...], topics: str, members: str, kept: str, instances: str = ""
) -> AssignorCheck:
    """Members get at least these partitions."""

    def run(assign: Assign, name: str) -> Iterator[str]:
        found = assign(*read_group(topics, members, instances))
        for id, own in read_assignment(kept).items():
            if not own <= set(found.get(id, ())):
                yield f"{as_text(found)}, expected {id} to have {as_text({id: tuple(sorted(own))})}"

    return AssignorCheck(requirement, names, f"{topics}: {members}", run)


def expect_valid(requirement: str, names: tuple[str, ...], topics: str, members: str) -> AssignorCheck:
    """The assignor succeeds, and every partition it gives exists and is subscribed to; an eager one gives all."""

    def run(assign: Assign, name: str) -> Iterator[str]:
        group, cluster = read_group(topics, members)
        found = assign(group, cluster)
        yield from find_invalid(group, cluster, found)
        if name != "cooperative-sticky":
            yield from find_unassigned(group, cluster, found)

    return AssignorCheck(requirement, names, f"{topics}: {members}", run)


def compare(
    requirement: str,
    names: tuple[str, ...],
    topics: str,
    members: str,
    change: Callable[[Sequence[GroupMember]], Sequence[GroupMember]],
    what: str,
    instances: str = "",
) -> AssignorCheck:
    """A change of the members changes nothing; static members may have other member ids after it."""

    def run(assign: Assign, name: str) -> Iterator[str]:
        group, cluster = read_group(topics, members, instances)
        before, after = assign(group, cluster), assign(changed := change(group), cluster)
        if by_instance(group, before) != by_instance(changed, after):
            yield f"{as_text(before)}, and {as_text(after)} {what}"

    return AssignorCheck(requirement, names, f"{topics}: {members}, and the same {what}", run)


def by_instance(members: Sequence[GroupMember], assignment: Assignment) -> dict[str, frozenset[tuple[str, int]]]:
    """The assignment by the instances of static members, and the ids of others."""
    return {each.instance_id or each.id: frozenset(assignment.get(each.id, ())) for each in members}


def rename_members(members: Sequence[GroupMember]) -> list[GroupMember]:
    """Static members with other ids, in another order."""
    return [evolve(each, id=f"new-{place}") for place, each in enumerate(members)]


def spoil_user_data(assign: Assign, name: str) -> Iterator[str]:
    """User data that nobody can read."""
    group, cluster = read_group("t:3", "c1; c2")
    for data in (b"", b"\x00", b"\xff\xff\xff\xff", bytes(range(40))):
        spoilt = [evolve(each, subscription=evolve(each.subscription, user_data=data)) for each in group]
        yield from find_unassigned(spoilt, cluster, assign(spoilt, cluster))


def contradict_owned(assign: Assign, name: str) -> Iterator[str]:
    """The user data of one member, and the owned partitions of another, claim everything."""
    (first, second), cluster = read_group("t:4", "c1; c2")
    everything = tuple(("t", number) for number in range(4))
    claims = evolve(first.subscription, owned=everything, generation=5, user_data=None)
    data = encode_sticky_user_data(everything[:2], 5)
    group = [
        evolve(first, subscription=claims),
        evolve(second, subscription=evolve(second.subscription, user_data=data)),
    ]
    found = assign(group, cluster)
    if not set(everything[:2]) <= set(found.get("c2", ())):
        yield f"{as_text(found)}, expected c2 to have t-0,t-1"


def claim_without_generation(assign: Assign, name: str) -> Iterator[str]:
    """User data of the older schema, without the generation at its end."""
    (first, second), cluster = read_group("t:4", "c1; c2")
    data = encode_sticky_user_data((("t", 2), ("t", 3)), 0)[:-4]
    found = assign([evolve(first, subscription=evolve(first.subscription, user_data=data)), second], cluster)
    if not {("t", 2), ("t", 3)} <= set(found.get("c1", ())):
        yield f"{as_text(found)}, expected c1 to have t-2,t-3"


def check_withheld(requirement: str, topics: str, members: str) -> AssignorCheck:
    """A cooperative assignor withholds what its owner has to give up, and nothing else."""

    def run(assign: Assign, name: str) -> Iterator[str]:
        group, cluster = read_group(topics, members)
        found = assign(group, cluster)
        yield from find_unsafe(group, cluster, found)
        yield from find_needlessly_withheld(group, cluster, found)

    return AssignorCheck(requirement, ("cooperative-sticky",), f"{topics}: {members}", run)


def check_rounds(topics: str, members: str) -> AssignorCheck:
    """The rounds of a cooperative group come to an end."""

    def run(assign: Assign, name: str) -> Iterator[str]:
        group, cluster = read_group(topics, members)
        yield from find_unsettled(evolve(ASSIGNORS[name], assign=assign), group, cluster)

    return AssignorCheck("COOP-12", ("cooperative-sticky",), f"{topics}: {members}, several rounds", run)


def mix_versions(assign: Assign, name: str) -> Iterator[str]:
    """Members with subscriptions of all versions, and of one that is to come."""
    group, cluster = read_group("t:6", "c0; c1; c2; c3; c4")
    mixed = [
        evolve(each, subscription=decode_subscription(encode_in_version(each.subscription, version)))
        for version, each in enumerate(group)
    ]
    found = assign(mixed, cluster)
    yield from find_invalid(mixed, cluster, found)
    yield from find_unassigned(mixed, cluster, found)


def check_exchange(topics: str, members: str) -> AssignorCheck:
    """No two members exchange partitions of one topic."""

    def run(assign: Assign, name: str) -> Iterator[str]:
        group, cluster = read_group(topics, members)
        found = assign(group, cluster)
        sticky = make_sticky_group(group, cluster, sticky_claim)
        ids = [member.id for member in sticky.members]
        before = {
            partition: ids[owner]
            for partition, owner in zip(sticky.index.names, sticky.owners, strict=True)
            if owner >= 0
        }
        moves = {
            (topic, before[topic, number], id)
            for id, own in found.items()
            for topic, number in own
            if before.get((topic, number), id) != id
        }
        for topic, old, new in sorted(moves):
            if old < new and (topic, new, old) in moves:
                yield f"{old} and {new} exchange partitions of {topic}: {as_text(found)}"

    return AssignorCheck("STICKY-16", ("sticky",), f"{topics}: {members}", run)


STATIC = "consumer-b=instance1 consumer-a=instance2"
NESTED = "t0:1 t1:2 t2:3"
CHECKS = (
    expect_valid("ASSIGN-05", ALL, "t1:2", "c1{t1}; c2{tX}"),
    compare("ASSIGN-06", EXACT, "t1:3 t2:2", "c1{t1}; c2; c3{t1}", lambda all: all[::-1], "in another order"),
    AssignorCheck("ASSIGN-07", ALL, "t:3: c1; c2, with user data that is none", spoil_user_data),
    AssignorCheck(
        "ASSIGN-08",
        ALL,
        "t:6: c0 to c4, with subscriptions of the versions 0 to 4",
        mix_versions,
        versions=(0, 1, 2, 3, 4),
    ),
    expect_order("t0:3 t1:3", "C0; C1", "C0 C1", "RANGE-01"),
    expect("RANGE-02", "range", "t:10", "m0; m1; m2", "m0 t-0..3; m1 t-4..6; m2 t-7..9"),
    expect("RANGE-03", "range", "t1:3 t2:2", "c1{t1}; c2; c3{t1}", "c1 t1-0; c2 t1-1,t2-0,t2-1; c3 t1-2"),
    expect_order("t1:3 t2:3", "consumer-b; consumer-a", "consumer-b consumer-a", "RANGE-04", STATIC),
    compare("RANGE-05", ("range",), "t1:3", "b; a", rename_members, "with other member ids", "b=i1 a=i2"),
    expect_alike("RANGE-06", "range", "t1:3 t2:3", "c1; c2"),
    expect_order("t:3", "consumer2; consumer10", "consumer10 consumer2", "RANGE-07"),
    expect(
        "RANGE-08",
        "range",
        "t1:a/b/a/b t2:b/a/b/a",
        "c1; c2",
        "c1 t1-0,t1-1,t2-0,t2-1; c2 t1-2,t1-3,t2-2,t2-3",
        racks="c1=a c2=b",
    ),
    expect("RANGE-08", "range", "t:b/b/a/a", "c1; c2", "c1 t-2,t-3; c2 t-0,t-1", racks="c1=a"),
    expect("RANGE-09", "range", "t:ab/ab/ab/ab", "c1; c2", "c1 t-0,t-1; c2 t-2,t-3", racks="c1=a c2=b"),
    expect("RANGE-09", "range", "t:c/d/c/d", "c1; c2", "c1 t-0,t-1; c2 t-2,t-3", racks="c1=a c2=b"),
    expect("RR-01", "roundrobin", "t:5", "C0; C1", "C0 t-0,t-2,t-4; C1 t-1,t-3"),
    expect("RR-02", "roundrobin", NESTED, "C0{t0}; C1{t0,t1}; C2", "C0 t0-0; C1 t1-0; C2 t1-1,t2-0,t2-1,t2-2"),
    expect("RR-03", "roundrobin", "t1:1 t2:2", "c1; c2", "c1 t1-0,t2-1; c2 t2-0"),
    expect(
        "RR-05",
        "roundrobin",
        "t:3",
        "consumer-b; consumer-a",
        "consumer-b t-0,t-2; consumer-a t-1",
        "consumer-b=instance1",
    ),
    compare("RR-06", ("roundrobin",), "t1:3", "b; a", rename_members, "with other member ids", "b=i1 a=i2"),
    expect_kept("STICKY-04", BOTH_STICKY, "t0:2 t1:2", "A{t0} t0-0,t0-1@5; B t1-0,t1-1@5", "A t0-0,t0-1; B t1-0,t1-1"),
    expect_kept(
        "STICKY-05",
        BOTH_STICKY,
        "t:8",
        "c1 t-0,t-1@5; c2 t-2,t-3@5; c3 t-4,t-5@5",
        "c1 t-0,t-1; c2 t-2,t-3; c3 t-4,t-5",
    ),
    expect_kept("STICKY-06", BOTH_STICKY, "t1:3 t2:3", "c1 t1-0..2,t2-0..2@5; c2", "c1 t1-0,t2-0,t1-1"),
    expect_kept(
        "STICKY-07", BOTH_STICKY, "t1:3 t2:3", "c2 t1-0,t1-2,t2-1@9; c1 t1-0,t1-2,t2-1@10", "c1 t1-0,t1-2,t2-1"
    ),
    expect("STICKY-08", "sticky", "t:3", "c1 t-0,t-1@5; c2 t-0,t-2@5; c3 @5", "c1 t-1; c2 t-2; c3 t-0"),
    expect_kept("STICKY-09", BOTH_STICKY, "t:4", "c1 t-2@10; c2 t-0@8", "c2 t-0"),
    AssignorCheck("STICKY-10", ("sticky",), "t:4: c1 and c2 claim in different fields", contradict_owned),
    AssignorCheck("STICKY-11", ("sticky",), "t:4: c1 claims without a generation", claim_without_generation),
    expect_valid("STICKY-12", BOTH_STICKY, "t1:2", "c1{t1} t0-0,t1-0@5; c2{t1} t0-1@5"),
    expect_valid("STICKY-13", BOTH_STICKY, "t0:3", "A t0-7@5; B"),
    expect_valid("STICKY-14", BOTH_STICKY, "t0:4 t1:1", "A{t0} t0-0..3@5; B{t1} t0-0@4; C{t0,t1}"),
    expect_valid("STICKY-15", BOTH_STICKY, "t0:3", "A{t0} t0-0..2@5; B{t0}; C{t9} t0-0@4"),
    check_exchange("t1:4 t2:4", "A t1-0,t1-1,t2-0,t2-1@5; B t1-2,t1-3,t2-2,t2-3@5; C{t1}"),
    check_exchange("t1:2 t2:3 t3:4", "A{t1,t2} t1-0,t1-1,t2-0,t2-1@5; B{t2,t3} t2-2,t3-0..3@5; C"),
    expect(
        "STICKY-19", "sticky", "t:a/b/a/b", "c1 t-0,t-1@5; c2 t-2,t-3@5", "c1 t-0,t-2; c2 t-1,t-3", racks="c1=a c2=b"
    ),
    check_withheld("COOP-09", "t:6", "c1 t-0..5@5; c2; c3"),
    check_withheld("COOP-10", "t:6", "c1 t-0,t-1@5; c3 t-4,t-5@5"),
    check_withheld("COOP-11", "t0:4 t1:1", "A{t0} t0-0..3@5; B t1-0@5"),
    check_rounds("t0:2 t1:2", "c0 t0-0,t0-1,t1-0,t1-1@5; c1{t1}; c2{t0}; c3{t0}"),
    check_withheld("COOP-16", "t:3", "c1 t-0,t-1@5; c2 t-0,t-2@5; c3 @5"),
    check_withheld("COOP-18", "t0:4 t1:1", "A{t0} t0-0..3@5; B{t0} t0-0@4; C{t0,t1} t1-0@5"),
)
"""All checks, for the assignors that they are about."""
