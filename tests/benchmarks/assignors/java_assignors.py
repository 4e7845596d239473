"""Kafka's own assignors, in a Java that runs beside and answers a line for each group."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from select import select
from typing import Self

from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember, TopicPartition
from tests.targets.kafka.installation import find_java, install

PROGRAM = Path(__file__).with_name("KafkaAssignors.java")
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"


class JavaAssignorError(Exception):
    """A Java class failed on a group; the message is the name of the exception."""


class JavaTimeoutError(Exception):
    """The Java did not answer in time; it has been ended, and another is there."""


class JavaAssignors:
    """The Java, as a context manager. Raises MissingDependencyError without a Java, Maven or Kafka's jars."""

    def __init__(self, version: str) -> None:
        jars = install(version) / "jars" / "*"
        # One thread collects garbage, so that the work of the main thread is what counts.
        self.command = [find_java(), "-Xmx2g", "-XX:+UseSerialGC", QUIET, "-cp", str(jars), str(PROGRAM)]
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[str]":
        """A Java that has answered once, so that no limit is used up by its start."""
        process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ask(process, "range;1;t:1;member||||||-1")
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def assign(
        self,
        name: str,
        members: Sequence[GroupMember],
        cluster: ClusterTopics,
        repeats: int = 1,
        limit_s: float | None = None,
    ) -> tuple[float, Assignment]:
        """The processor seconds of the best of the later repeats, and the assignment.

        Raises JavaAssignorError, and JavaTimeoutError after `limit_s` seconds of the clock.
        """
        group = f"{write_topics(cluster)};{' '.join(map(write_member, members))}"
        answer = ask(self.process, f"{name};{repeats};{group}", limit_s)
        if answer is None:
            self.process.kill()
            self.process.communicate()
            self.process = self._start()
            raise JavaTimeoutError
        told, _, rest = answer.partition(";")
        if not told.isdigit():
            raise JavaAssignorError(rest or "the Java has ended")
        return int(told) / 1e9, read_assignments(rest)


def ask(process: "subprocess.Popen[str]", line: str, limit_s: float | None = None) -> str | None:
    """The line with which the Java answers, None if it does not within the limit."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    if limit_s is not None and not select([process.stdout], [], [], limit_s)[0]:
        return None
    return process.stdout.readline().rstrip("\n")


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
