"""Where a partition starts, and which commits may cover it: a monitor."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Self

from fencepost.model.assignors.group import TopicPartition
from fencepost.model.classic.messages import read_offsets, topic_of
from fencepost.model.errors import Error
from fencepost.model.groups.messages import TopicNames
from fencepost.traces.classic.client.news import describe_partitions, generation_in
from fencepost.traces.classic.client.records import fetch_offsets, topic_of_fetch
from fencepost.traces.classic.client.view import NO_GENERATION, ClientView
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import Findings, Seen, build_pass
from fencepost.traces.events import Body, Event, Operation
from fencepost.traces.verdict import Violation

EAGER_ASSIGNORS = frozenset({"range", "roundrobin", "sticky"})
"""The assignors with well-known names under which a member gives everything up when it joins."""
NO_OFFSETS: Mapping[TopicPartition, int] = MappingProxyType({})
NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class Starts:
    """Follows what a client is told of the offsets of a partition, from its assignment to its first Fetch.

    The first Fetch is the start, whatever the client asked for before: many ask for the bounds of the log beside the
    committed offset, to hold one against the other. A Fetch that was under way since before the assignment is no
    start; so only one that begins at a bound of the log shows that the reset policy has decided. Times in milliseconds.
    """

    requirements: ClassVar[frozenset[str]] = frozenset({"MCOMMIT-18", "MCOMMIT-19"})
    observes: ClassVar[frozenset[str]] = frozenset(
        {
            *("JoinGroup request", "SyncGroup response", "OffsetFetch response", "ListOffsets response"),
            *("Fetch request", "Fetch response", "OffsetCommit request"),
        }
    )
    since: int | None = None
    """When the last assignment came, None while the client joins."""
    generation: int = NO_GENERATION
    """That of the last assignment."""
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The committed offsets that OffsetFetch told since the last assignment of an eager member, -1 for none."""
    before: Mapping[TopicPartition, int] = field(default_factory=dict)
    """What OffsetFetch told before that: a request may still be on its way that goes by it."""
    bounds: frozenset[tuple[TopicPartition, int]] = frozenset()
    """The offsets that ListOffsets told since the assignment."""
    assigned: frozenset[TopicPartition] = NO_PARTITIONS
    starting: frozenset[TopicPartition] = NO_PARTITIONS
    """The assigned partitions that were not fetched yet."""
    fetched: frozenset[TopicPartition] = NO_PARTITIONS
    """Those that were fetched since the assignment."""

    def step(self, view: ClientView, seen: Seen) -> tuple[Self, Findings]:
        """The monitor after an event, and what it has found."""
        event, operation = seen.event, seen.operation
        assert operation is not None
        match seen.name:
            case "JoinGroup request":
                return replace(self, since=None, assigned=self.assigned if view.installed else NO_PARTITIONS), ()
            case "SyncGroup response" if not event.body.get("error_code"):
                return self.begin(view, event.time), ()
            case "OffsetFetch response":
                return replace(
                    self, committed={**self.committed, **dict(read_committed(event.body, view.topic_names))}
                ), ()
            case "ListOffsets response":
                return replace(self, bounds=self.bounds | frozenset(read_bounds(event.body))), ()
            case "Fetch response":
                return replace(self, starting=self.starting - out_of_range(event, view.topic_names)), ()
            case "Fetch request":
                return self.judge_starts(view, operation, event.time)
            case "OffsetCommit request":
                return self, self.judge_commit(view, operation)
        return self, ()

    def finish(self, view: ClientView, time: int) -> Findings:
        """A partition that was never fetched shows nothing."""
        return ()

    def begin(self, view: ClientView, time: int) -> Self:
        """An assignment comes. What OffsetFetch told in a generation is good for it, though the client was reset and
        has joined it again: Apache Kafka's client keeps that (ConsumerCoordinator.PendingCommittedOffsetRequest)."""
        assigned, generation = view.installed or NO_PARTITIONS, view.installed_generation
        fresh = replace(self, since=time, generation=generation, assigned=assigned, fetched=NO_PARTITIONS)
        if view.is_cooperative:
            return replace(fresh, starting=(self.starting | (assigned - self.assigned)) & assigned)
        fresh = replace(fresh, starting=assigned, bounds=frozenset())
        return fresh if self.generation == generation else replace(fresh, before=self.committed, committed=NO_OFFSETS)

    def judge_starts(self, view: ClientView, operation: Operation, time: int) -> tuple[Self, Findings]:
        """A Fetch arrives: each partition that starts does so at its committed offset, or by the reset policy if it
        was told that there is none (MCOMMIT-19)."""
        application = view.application
        is_manual = application is not None and application.manual_since is not None
        sought = application.sought if application is not None else NO_PARTITIONS
        is_fresh = self.since is None or time - self.since <= view.knowledge.grace
        told = {**(self.before if is_fresh else NO_OFFSETS), **self.committed}
        findings: Findings = ()
        offsets = dict(fetch_offsets(operation.body, view.topic_names))
        started = {each for each in offsets if each in sought or is_manual}
        for partition in (self.starting & offsets.keys()) - started:
            offset, committed = offsets[partition], told.get(partition)
            if committed in (offset, -1):
                findings = (*findings, build_pass("MCOMMIT-19", operation.handle - 1))
            elif (partition, offset) in self.bounds:
                findings = (*findings, build_reset(operation, partition, offset, committed))
            else:
                continue
            started.add(partition)
        fetched = self.fetched | (offsets.keys() if self.since is not None and time > self.since else NO_PARTITIONS)
        return replace(self, starting=self.starting - started, fetched=fetched), findings

    def judge_commit(self, view: ClientView, operation: Operation) -> Findings:
        """A commit of an eager member covers no partition whose position is not known yet: since the assignment it was
        told no offset of it, and has neither fetched nor sought it (MCOMMIT-18)."""
        application = view.application
        is_eager = bool(view.protocols) and view.protocols <= EAGER_ASSIGNORS
        if application is None or self.since is None or not is_eager or view.is_installed_doubtful:
            return ()
        if application.manual_since is not None:
            return ()  # they are those that it has assigned, whose commits have no generation (MCOMMIT-12)
        if generation_in(operation) != view.installed_generation or not view.installed:
            return ()
        known = self.committed.keys() | application.sought | application.kept | self.fetched
        covered = {partition for partition, _ in read_offsets(operation.body, view.topic_names)} & view.installed
        unknown = covered - known - (application.owned - view.installed)
        if not unknown:
            return (build_pass("MCOMMIT-18", operation.handle - 1),)
        title, expected = "The commit covers partitions without a position", "no partition before its offset is known"
        told, observed = view.knowledge.latest.news, describe_partitions(unknown)
        return (build_violation("MCOMMIT-18", operation.handle - 1, title, expected, observed, told),)


def build_reset(operation: Operation, partition: TopicPartition, offset: int, committed: int | None) -> Violation:
    """The violation by a Fetch that begins where the reset policy says, and not where it should."""
    where = describe_partitions({partition})
    told = "what OffsetFetch tells, which has told nothing yet" if committed is None else f"the committed {committed}"
    title = "The reset policy decides where there may be a committed offset"
    observed = f"Fetch of {where} from {offset} on, a bound that ListOffsets has told"
    return build_violation("MCOMMIT-19", operation.handle - 1, title, f"Fetch of {where} from {told} on", observed)


def read_committed(body: Body, names: TopicNames) -> Iterator[tuple[TopicPartition, int]]:
    """The committed offsets that a response to OffsetFetch tells, -1 for none."""
    for group in body.get("groups") or (body,):
        for topic in group.get("topics") or ():
            for row in topic["partitions"]:
                if not row["error_code"] and not group.get("error_code"):
                    yield (topic_of(topic, names), int(row["partition_index"])), row["committed_offset"]


def read_bounds(body: Body) -> Iterator[tuple[TopicPartition, int]]:
    """The bounds of logs that a response to ListOffsets tells."""
    for topic in body.get("topics") or ():
        for row in topic["partitions"]:
            partition = str(topic.get("name", "")), int(row["partition_index"])
            yield from ((partition, offset) for offset in (row.get("old_style_offsets") or (row.get("offset", -1),)))


def out_of_range(event: Event, names: TopicNames) -> frozenset[TopicPartition]:
    """The partitions at whose offset there is nothing to fetch: the reset policy decides where they go on."""
    return frozenset(
        (topic_of_fetch(topic, names), int(row["partition_index"]))
        for topic in event.body.get("responses") or ()
        for row in topic["partitions"]
        if row["error_code"] == Error.OFFSET_OUT_OF_RANGE
    )
