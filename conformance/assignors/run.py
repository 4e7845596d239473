"""A whole test of an assignor: checks, random groups, and the report."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from fencepost.adapters.assignor import AssignorError
from fencepost.conformance.analysis.report_builder import ReportBuilder
from fencepost.conformance.results import Failure, Report, Scope
from fencepost.conformance.run.provenance import record_judging
from fencepost.conformance.specification import CLIENT_SPECIFICATION
from fencepost.model.assignors.checks import CHECKS
from fencepost.model.assignors.consumer_protocol import encode_sticky_user_data
from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember, Subscription, TopicPartition
from fencepost.model.assignors.notation import as_text, members_as_text
from fencepost.model.assignors.properties import ANY_ASSIGNOR, PROPERTIES, Members, broken_properties
from fencepost.model.assignors.sticky import assign_sticky
from fencepost.traces.verdict import CheckStatus

# -- random groups for assignors --------------------------------------------------------------------------------------

RACKS = ("a", "b", "c")
MISSING_TOPIC = "missing"


@dataclass(frozen=True, slots=True)
class RandomGroup:
    """A group, and whether a member claims or sends something that no member of Kafka's would."""

    members: tuple[GroupMember, ...]
    cluster: ClusterTopics


def draw_group(random: Random, most_members: int = 5, is_odd: bool = True) -> RandomGroup:
    """A group after something has happened to it.

    The group had an assignment, perhaps; then members came, went, missed a generation or changed their subscriptions,
    and topics grew or vanished. With `is_odd`, some members also claim what another has, or what does not exist.
    """
    before = draw_cluster(random)
    members = draw_members(random, before, random.randint(1, most_members))
    kind = random.random()
    if kind < 0.2:
        return RandomGroup(tuple(members), before)
    had = assign_sticky(members, before)
    cluster = alter_cluster(random, before)
    rest = [member for member in members if random.random() < 0.8]
    claimed = [claim(random, member, had, is_odd) for member in rest]
    joined = draw_members(random, cluster, random.randint(0, most_members - len(claimed)), like=members)
    if is_odd and kind < 0.5:
        claimed = [contest(random, member, cluster) for member in claimed]
    both = [*claimed, *joined] or members[:1]
    random.shuffle(both)
    return RandomGroup(tuple(both), cluster)


def draw_cluster(random: Random) -> ClusterTopics:
    """One to five topics of up to seven partitions, with racks in every third case."""
    partitions = {f"t{number}": random.randint(0 if number else 1, 7) for number in range(random.randint(1, 5))}
    if random.random() < 0.5:
        partitions = dict.fromkeys(partitions, random.randint(1, 5))
    if random.random() < 0.67:
        return ClusterTopics(partitions)
    several = random.randint(1, 2)
    racks = {
        topic: tuple(frozenset(random.sample(RACKS, several)) for _ in range(count))
        for topic, count in partitions.items()
    }
    return ClusterTopics(partitions, racks)


def alter_cluster(random: Random, cluster: ClusterTopics) -> ClusterTopics:
    """The cluster some time later: partitions are added, a topic vanishes."""
    if random.random() < 0.6:
        return cluster
    partitions = {topic: count + random.randint(0, 2) for topic, count in cluster.partitions.items()}
    if len(partitions) > 1 and random.random() < 0.3:
        del partitions[random.choice(sorted(partitions))]
    racks = {
        topic: (*racks, *(frozenset(random.sample(RACKS, 1)) for _ in range(partitions.get(topic, 0) - len(racks))))
        for topic, racks in cluster.racks.items()
    }
    return ClusterTopics(partitions, racks)


def draw_members(
    random: Random, cluster: ClusterTopics, count: int, like: Sequence[GroupMember] = ()
) -> list[GroupMember]:
    """Members without claims, some of them static; half of the groups subscribe to the same topics."""
    topics = sorted({*cluster.partitions, MISSING_TOPIC} if random.random() < 0.2 else cluster.partitions)
    is_uniform = like[0].subscription.topics if like and random.random() < 0.5 else None
    if is_uniform is None and random.random() < 0.5:
        is_uniform = draw_topics(random, topics)
    with_racks = random.random() < 0.7 if cluster.racks else False
    found = []
    for number in range(count):
        wanted = draw_topics(random, topics) if is_uniform is None else is_uniform
        rack = random.choice(RACKS) if with_racks and random.random() < 0.85 else None
        member_id = f"{'m' if not like else 'n'}{random.choice('xyz')}{number}"
        instance = f"i{random.randint(0, 9)}{member_id}" if random.random() < 0.15 else None
        found.append(GroupMember(member_id, Subscription(wanted, rack=rack), instance))
    return found


def draw_topics(random: Random, topics: Sequence[str]) -> tuple[str, ...]:
    """At least one of the topics."""
    return tuple(random.sample(topics, random.randint(1, len(topics))))


def claim(random: Random, member: GroupMember, had: Assignment, is_odd: bool) -> GroupMember:
    """The member as it joins again with what it had; it may have missed generations, or subscribe anew."""
    generation = random.choice((5, 5, 5, 5, 4, 3))
    topics = member.subscription.topics
    if is_odd and random.random() < 0.15:
        topics = topics[: random.randint(1, len(topics))]
    return with_claim(member, topics, had[member.id], generation)


def contest(random: Random, member: GroupMember, cluster: ClusterTopics) -> GroupMember:
    """The member with random claims, in any of a few generations."""
    own = [topic for topic in member.subscription.topics if cluster.partitions.get(topic, 0)]
    every = [(topic, number) for topic in own for number in range(cluster.partitions[topic])]
    owned = tuple(sorted(random.sample(every, random.randint(0, len(every)))))
    return with_claim(member, member.subscription.topics, owned, random.choice((5, 5, 4, 3, -1)))


def with_claim(
    member: GroupMember, topics: tuple[str, ...], owned: tuple[TopicPartition, ...], generation: int
) -> GroupMember:
    """The member with this claim, which is in every field that an assignor reads."""
    data = encode_sticky_user_data(owned, generation) if owned or generation >= 0 else None
    subscription = Subscription(topics, data, owned, generation, member.subscription.rack)
    return GroupMember(member.id, subscription, member.instance_id)


# -- A whole test of an assignor --------------------------------------------------------------------------------------

DEFAULT_GROUPS = 500
"""How many random groups an assignor gets."""


@dataclass(slots=True)
class AssignorTest:
    """A test of an assignor under way. `name` is the name that it has on the wire; one that is not well known is held
    against what every assignor promises. `assign` may raise `AssignorError`."""

    name: str
    assign: Assign
    groups: int = DEFAULT_GROUPS
    seed: int = 0
    target: str = "assignor"
    broken: dict[str, Failure] = field(default_factory=dict)
    """The first failure of each requirement."""
    kept: dict[str, int] = field(default_factory=dict)
    """How many assignments were checked for each requirement."""

    def run(self) -> Report:
        """Ask for all assignments, and report on them."""
        provenance, begun = record_judging(), time.monotonic()
        for requirement, groups, sentences in self._checks():
            self._judge(requirement, groups, sentences)
        for number in range(self.groups):
            group = draw_group(Random(f"{self.seed}-{number}"))
            self._judge_random(group.members, group.cluster)
        requirements = [*self.kept, *(id for id in self.broken if id not in self.kept)]
        catalogue = CLIENT_SPECIFICATION.requirements
        builder = ReportBuilder([id for id in catalogue if id in requirements], specification=CLIENT_SPECIFICATION)
        for id, times in self.kept.items():
            for _ in range(times if id not in self.broken else 0):
                builder.add_check(id, CheckStatus.PASS, "")
        for id, failure in self.broken.items():
            if CLIENT_SPECIFICATION.is_recommendation(id):
                builder.add_check(id, CheckStatus.UNUSUAL, f"{failure.schedule[0]}: {failure.observed}")
            else:
                builder.add_failure(id, failure)
        report = builder.build(
            target={"name": self.target, "assignor": self.name},
            schedules=self.groups,
            events=0,
            seconds=time.monotonic() - begun,
            seed=self.seed,
            scope=Scope.SELECTED,
        )
        return replace(report, provenance=provenance)

    def _checks(self) -> Iterator[tuple[str, str, Iterator[str]]]:
        for check in CHECKS:
            if self.name in check.names:
                yield check.requirement, check.groups, check.run(self.assign, self.name)

    def _judge(self, requirement: str, groups: str, sentences: Iterator[str]) -> None:
        try:
            wrong = next(sentences, None)
        except AssignorError as error:
            wrong = str(error)
        self._note(requirement, groups, wrong)

    def _judge_random(self, members: Members, cluster: ClusterTopics) -> None:
        """An assignment for a random group has all properties of its assignor."""
        topics = " ".join(f"{topic}:{count}" for topic, count in cluster.partitions.items())
        text = f"{topics}: {members_as_text(members)}"
        try:
            assignment = self.assign(members, cluster)
        except AssignorError as error:
            self._note("ASSIGN-04", text, str(error))
            return
        wrong = {
            each.property.requirement: f"{each.sentence}, in {as_text(assignment)}"
            for each in reversed(broken_properties(self.name, members, cluster, assignment))
        }
        for each in PROPERTIES.get(self.name, ANY_ASSIGNOR):
            self._note(each.requirement, text, wrong.get(each.requirement))

    def _note(self, requirement: str, groups: str, wrong: str | None) -> None:
        self.kept[requirement] = self.kept.get(requirement, 0) + 1
        if wrong is not None and requirement not in self.broken:
            sentence = CLIENT_SPECIFICATION.requirements[requirement].title
            self.broken[requirement] = Failure(
                trace="",
                step=0,
                observed=wrong,
                allowed=(),
                guard="",
                schedule=(groups,),
                replayed=True,
                title=f"The assignment is wrong: {sentence}",
                kind=requirement,
            )
