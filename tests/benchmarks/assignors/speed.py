"""How long the assignors take beside Kafka's own, in the same run, and how that grows.

Run with `python -m tests.benchmarks.assignors.speed`; `--repeats`, `--sizes MEMBERSxPARTITIONS...` and `--json FILE`
are optional. Shapes of a group: `fresh` has no claims, `grown` one member in ten that is new, `differing` members
that subscribe to half of the topics each and claim what they had in a group with one member in ten more. Seconds are
those of the processor, the best of the repeats; Kafka's are of a Java that has run the same group many times, or,
where one run takes long, that has run it once.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from fencepost.model.assignors.group import ClusterTopics, GroupMember, Subscription
from fencepost.model.assignors.registry import ASSIGNORS, Assignor, rejoin
from tests.benchmarks.assignors.java_assignors import JavaAssignors, JavaTimeoutError
from tests.targets.kafka.installation import VERSIONS
from tests.targets.process import MissingDependencyError

SIZES = ((10, 100), (100, 1_000), (300, 3_000), (1_000, 10_000))
"""Members and partitions; the last is the size of the threshold."""
PARTITIONS_OF_TOPIC = 100
GENERATION = 7
WARMING = 40
"""Runs of Java, of which the later half counts."""
WARMING_S = 10.0
"""Seconds that all runs may take, at the pace of the first."""
LONG_RUN_S = 1.0
"""A Java that takes so long is run once."""
LIMIT_S = 20.0
"""Seconds of the clock that one run of Java may take."""


@dataclass(frozen=True, slots=True)
class Timing:
    """An assignor on a group: seconds of the model's and of Kafka's."""

    assignor: str
    shape: str
    members: int
    partitions: int
    seconds: float
    java: float
    is_cut: bool = False
    """Kafka's took longer than the limit, and this is the limit, of the clock."""

    @property
    def ratio(self) -> float:
        """How many times as long as Kafka's the model's takes."""
        return self.seconds / self.java


def make_topics(partitions: int) -> ClusterTopics:
    """Topics of a hundred partitions each, or one that is smaller."""
    topics = max(1, partitions // PARTITIONS_OF_TOPIC)
    return ClusterTopics({f"topic-{number:03}": partitions // topics for number in range(topics)})


def fresh_members(count: int, topics: Sequence[str]) -> list[GroupMember]:
    """Members that subscribe to all topics and claim nothing."""
    return [GroupMember(f"consumer-{number:05}", Subscription(tuple(topics))) for number in range(count)]


def fresh(assignor: Assignor, count: int, cluster: ClusterTopics) -> list[GroupMember]:
    """A group that forms."""
    return fresh_members(count, sorted(cluster.partitions))


def grown_members(assignor: Assignor, count: int, cluster: ClusterTopics) -> list[GroupMember]:
    """A group that one in ten has just joined."""
    members = fresh(assignor, count, cluster)
    return with_claims(assignor, members[: count - count // 10], cluster) + members[count - count // 10 :]


def differing(assignor: Assignor, count: int, cluster: ClusterTopics) -> list[GroupMember]:
    """A group whose members subscribe to different topics, after one in eleven has left."""
    random, topics = Random(count), sorted(cluster.partitions)
    half = max(1, len(topics) // 2)
    members = [
        GroupMember(f"consumer-{number:05}", Subscription(tuple(sorted(random.sample(topics, half)))))
        for number in range(count + count // 10)
    ]
    return with_claims(assignor, members, cluster)[:count]


def with_claims(assignor: Assignor, members: Sequence[GroupMember], cluster: ClusterTopics) -> list[GroupMember]:
    """The members as they join again after an assignment."""
    assignment = assignor.assign(members, cluster)
    return [rejoin(assignor, member, assignment, GENERATION) for member in members]


Shape = Callable[[Assignor, int, ClusterTopics], list[GroupMember]]
SHAPES: Mapping[str, Shape] = {"fresh": fresh, "grown": grown_members, "differing": differing}


def measure(java: JavaAssignors, name: str, shape: str, size: tuple[int, int], repeats: int) -> Timing:
    """Time an assignor and Kafka's on the same group."""
    cluster = make_topics(size[1])
    assignor = ASSIGNORS[name]
    members = SHAPES[shape](assignor, size[0], cluster)
    ours = []
    for _ in range(repeats):
        begun = time.process_time()
        assignor.assign(members, cluster)
        ours.append(time.process_time() - begun)
    try:
        theirs, _ = java.assign(name, members, cluster, 1, LIMIT_S)
        if theirs < LONG_RUN_S:
            theirs, _ = java.assign(name, members, cluster, min(WARMING, int(WARMING_S / theirs) + 2))
    except JavaTimeoutError:
        return Timing(name, shape, *size, min(ours), LIMIT_S, is_cut=True)
    return Timing(name, shape, *size, min(ours), theirs)


def measure_all(java: JavaAssignors, sizes: Sequence[tuple[int, int]], repeats: int) -> Iterator[Timing]:
    """Time every assignor on every shape and size."""
    for name in ASSIGNORS:
        for shape in SHAPES:
            for size in sizes:
                yield measure(java, name, shape, size, repeats)


def parse_size(text: str) -> tuple[int, int]:
    """The members and partitions in a text such as `1000x10000`."""
    members, _, partitions = text.partition("x")
    if not members.isdigit() or not partitions.isdigit() or not int(members) * int(partitions):
        raise argparse.ArgumentTypeError(f"{text}: expected members and partitions, such as 1000x10000")
    return int(members), int(partitions)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table; return 2 without Java or Maven."""
    parser = argparse.ArgumentParser(prog="speed", description="Time the assignors beside Kafka's own.")
    parser.add_argument("--repeats", type=int, default=5, help="runs of the model's assignors (default: 5)")
    parser.add_argument("--sizes", type=parse_size, nargs="+", default=SIZES, help="such as 1000x10000")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    chosen = parser.parse_args(arguments)
    found = []
    print("assignor            shape      members  partitions   milliseconds     Kafka's  ratio")
    try:
        with JavaAssignors(VERSIONS["4"]) as java:
            for one in measure_all(java, chosen.sizes, chosen.repeats):
                found.append(one)
                head = f"{one.assignor:20}{one.shape:10}{one.members:8,}{one.partitions:12,}"
                theirs = f"> {1e3 * one.java:,.0f}" if one.is_cut else f"{1e3 * one.java:,.2f}"
                print(f"{head}{1e3 * one.seconds:15,.2f}{theirs:>12}{one.ratio:7.2f}", flush=True)
    except MissingDependencyError as error:
        print(f"speed: {error}", file=sys.stderr)
        return 2
    if chosen.json:
        chosen.json.write_text(
            json.dumps([asdict(one) | {"ratio": round(one.ratio, 2)} for one in found], indent=2) + "\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
