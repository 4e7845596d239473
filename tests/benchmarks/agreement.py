"""Comparison of the assignors with Kafka's own classes, on random groups.

Run with `python -m tests.benchmarks.agreement`; `--cases`, `--seed` and `--version` are optional. A group is
compared under each assignor. Where the result depends on the order in which a hash map gives the members, or a hash
set the partitions that might go back, the rules leave it open: Kafka's result has to be among the model's for all
orders and choices. A result that differs otherwise is counted by the hazard of Kafka's classes that explains it
(member.md appendix B; U10 is new to it), or as unexplained.
"""

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Self
from unittest.mock import patch

from fencepost.conformance.assignors.run import RandomGroup, draw_group
from fencepost.model.assignors import sticky
from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember, TopicPartition
from fencepost.model.assignors.properties import broken_properties
from fencepost.model.assignors.registry import ASSIGNORS
from fencepost.model.assignors.sticky_group import (
    ReadClaim,
    StickyGroup,
    cooperative_claim,
    make_sticky_group,
    older_owners,
    sticky_claim,
)
from tests.targets.kafka.installation import VERSIONS, find_java, install
from tests.targets.process import MissingDependencyError

# --- Kafka's own assignors, in a Java that runs beside and answers a line for each group.

PROGRAM = Path(__file__).with_name("KafkaAssignors.java")
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"


class JavaAssignorError(Exception):
    """A Java class failed on a group; the message is the name of the exception."""


class JavaAssignors:
    """The Java, as a context manager. Raises MissingDependencyError without a Java, Maven or Kafka's jars."""

    def __init__(self, version: str) -> None:
        jars = install(version) / "jars" / "*"
        command = [find_java(), "-Xmx2g", QUIET, "-cp", str(jars), str(PROGRAM)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def assign(self, name: str, members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        """The assignment by a class. Raises JavaAssignorError if it fails."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{name};{write_topics(cluster)};{' '.join(map(write_member, members))}\n")
        self.process.stdin.flush()
        kind, _, rest = self.process.stdout.readline().rstrip("\n").partition(";")
        if kind != "assignment":
            raise JavaAssignorError(rest or "the Java has ended")
        return read_assignments(rest)


def write_topics(cluster: ClusterTopics) -> str:
    """The topics, each as `name:count`, or as `name:racks/racks` with a `+` between racks."""
    words = []
    for topic, count in cluster.partitions.items():
        near = cluster.racks.get(topic)
        shape = str(count) if not near or not count else "/".join("+".join(sorted(each)) for each in near[:count])
        words.append(f"{topic}:{shape}")
    return " ".join(words)


def write_member(member: GroupMember) -> str:
    """The member as `id|instance|rack|topics|user data|owned|generation`."""
    one = member.subscription
    user_data = (one.user_data or b"").hex()
    owned = ",".join(f"{topic}-{number}" for topic, number in one.owned)
    fields = (member.id, member.instance_id or "", one.rack or "", ",".join(one.topics), user_data, owned)
    return "|".join((*fields, str(one.generation)))


def read_assignments(text: str) -> dict[str, tuple[TopicPartition, ...]]:
    """The assignment that the Java wrote."""
    found = {}
    for word in text.split(" "):
        member, _, partitions = word.partition("|")
        pairs = (item.rsplit("-", 1) for item in partitions.split(",") if item)
        found[member] = tuple((topic, int(number)) for topic, number in pairs)
    return found


MOST_MEMBERS = 4
"""All orders of so many members are tried."""
MOST_CHOICES = 300
"""Choices tried in each order, which nearly always are all."""
EQUAL, OPEN, UNEXPLAINED = "equal", "left open by the rules", "unexplained"
BROKEN = ", and Kafka's result breaks a property"
CLAIMS: dict[str, ReadClaim] = {"sticky": sticky_claim, "cooperative-sticky": cooperative_claim}


def compare_groups(java: JavaAssignors, seeds: Sequence[int], is_odd: bool) -> Counter[tuple[str, str]]:
    """How many results of each assignor are of each kind."""
    found: Counter[tuple[str, str]] = Counter()
    for seed in seeds:
        group = draw_group(Random(seed), MOST_MEMBERS, is_odd)
        for name in ASSIGNORS:
            kind = compare_group(java, name, group)
            found[name, kind] += 1
            if kind == UNEXPLAINED:
                print(f"seed {seed}, {name}: {write_topics(group.cluster)}", file=sys.stderr)
                print(*map(write_member, group.members), sep="\n", file=sys.stderr)
    return found


def compare_group(java: JavaAssignors, name: str, group: RandomGroup) -> str:
    """Of which kind Kafka's result for this group is."""
    try:
        theirs: Assignment | None = java.assign(name, group.members, group.cluster)
    except JavaAssignorError:
        theirs = None
    assign = ASSIGNORS[name].assign
    if theirs is not None:
        if as_sets(theirs) == as_sets(assign(group.members, group.cluster)):
            return EQUAL
        if as_sets(theirs) in map(as_sets, possible_results(assign, group)):
            return OPEN
    explanation = next(find_hazards(name, group), UNEXPLAINED)
    is_broken = theirs is None or broken_properties(name, group.members, group.cluster, theirs)
    return explanation + BROKEN if is_broken and explanation != UNEXPLAINED else explanation


class ScriptedChoices:
    """Takes the place of `choose_returning`: makes the choices of a script, then first choices, and notes all."""

    def __init__(self, script: Sequence[tuple[int, int]]) -> None:
        self.script = script
        self.made: list[tuple[int, int]] = []

    def __call__(self, partitions: Collection[int]) -> int:
        """One of the partitions."""
        number = len(self.made)
        place = self.script[number][0] if number < len(self.script) else 0
        self.made.append((place, len(partitions)))
        return sorted(partitions)[place]


def possible_results(assign: Assign, group: RandomGroup) -> Iterator[Assignment]:
    """The results of all orders of the members and all choices that the rules leave open."""
    for ordered in permutations(group.members):
        script: list[tuple[int, int]] | None = []
        for _ in range(MOST_CHOICES):
            if script is None:
                break
            choices = ScriptedChoices(script)
            with patch.object(sticky, "choose_returning", choices):
                yield assign(ordered, group.cluster)
            script = next_choices(choices.made)


def next_choices(made: Sequence[tuple[int, int]]) -> list[tuple[int, int]] | None:
    """The choices to make in the next run, each with the number of options; None after the last run."""
    for place in reversed(range(len(made))):
        choice, options = made[place]
        if choice + 1 < options:
            return [*made[:place], (choice + 1, options)]
    return None


def as_sets(assignment: Assignment) -> dict[str, frozenset[TopicPartition]]:
    """The assignment without the order of its lists."""
    return {member: frozenset(partitions) for member, partitions in assignment.items()}


def find_hazards(name: str, group: RandomGroup) -> Iterator[str]:
    """The hazards of Kafka's sticky classes that this group meets."""
    if name not in CLAIMS:
        return
    sticky = make_sticky_group(group.members, group.cluster, CLAIMS[name])
    topics = [frozenset(member.subscription.topics) for member in sticky.members]
    claims = tuple(enumerate(sticky.claims))
    if len(set(topics)) > 1:
        everybody = older_owners(claims, sticky.index, lambda position, topic: True)
        if any(sticky.index.names[code][0] not in topics[one] for code, one in everybody.items()):
            yield "U1, U4: an older claimant does not subscribe to the topic"
        if name == "cooperative-sticky" and any(len(each) > 1 for each in claimants_by_partition(sticky).values()):
            yield "U3: a partition is claimed twice in the general branch"
    mixed = {one for one, claim in claims if claim.generation != sticky.members[one].subscription.generation}
    for claimants in claimants_by_partition(sticky).values():
        generations = [sticky.claims[one].generation for one in claimants]
        if len(claimants) > 1 and mixed.intersection(claimants):
            yield "U10: the generation of the earlier claimant is in its user data, and not looked for there"
        if any(generations.count(one) > 1 for one in generations if one < max(generations)):
            yield "U6: claims of one generation under a later one"


def claimants_by_partition(group: StickyGroup) -> dict[int, list[int]]:
    """The positions of the members that claim each partition."""
    found: dict[int, list[int]] = {}
    for position, claim in enumerate(group.claims):
        for code in group.index.codes_of(claim.partitions):
            found.setdefault(code, []).append(position)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print a table; return 1 if a result is unexplained, 2 without Java or Maven."""
    parser = argparse.ArgumentParser(prog="agreement", description="Compare the assignors with Kafka's own classes.")
    parser.add_argument("--cases", type=int, default=10_000, help="groups (default: 10,000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--version", default=VERSIONS["4"], help=f"of Kafka (default: {VERSIONS['4']})")
    chosen = parser.parse_args(arguments)
    half = chosen.seed + chosen.cases // 2
    try:
        with JavaAssignors(chosen.version) as java:
            found = compare_groups(java, range(chosen.seed, half), is_odd=False)
            found += compare_groups(java, range(half, chosen.seed + chosen.cases), is_odd=True)
    except MissingDependencyError as error:
        print(f"agreement: {error}", file=sys.stderr)
        return 2
    for (name, kind), count in sorted(found.items()):
        print(f"{name:20} {count:8,} {kind}")
    return 1 if any(kind == UNEXPLAINED for _, kind in found) else 0


if __name__ == "__main__":
    sys.exit(main())
