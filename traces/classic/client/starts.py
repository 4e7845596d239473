"""Where a partition starts, which commits may cover it, and what a client pays for an assignment: monitors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fencepost.model.assignors.consumer_protocol import NEWEST_VERSION
from fencepost.model.assignors.group import TopicPartition
from fencepost.model.classic.messages import read_offsets
from fencepost.model.errors import Error
from fencepost.traces.classic.client.messages import (
    MOVED,
    NO_GENERATION,
    describe_news,
    describe_partitions,
    error_in,
    fetch_offsets,
    fetched_partitions,
    generation_in,
    out_of_range,
    read_bounds,
    read_committed,
)
from fencepost.traces.classic.client.view import ClientView, blame_request, has_own_reason_to_join
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import (
    Finding,
    Findings,
    Seen,
    after,
    at_end,
    before,
    build_pass,
    check,
    leave_open,
)

EAGER_ASSIGNORS = frozenset({"range", "roundrobin", "sticky"})
"""The assignors with well-known names under which a member gives everything up when it joins."""
NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


@dataclass(slots=True)
class Starts:
    """Follows what a client is told of the offsets of a partition, from its assignment to its first Fetch.

    The first Fetch, or record, is the start, whatever the client asked for before: many ask for the bounds of the log
    beside the committed offset, to hold one against the other. A Fetch that was under way since before the assignment
    is no start; so only one that begins at a bound of the log shows that the reset policy has decided. Times in
    milliseconds.
    """

    generation: int = NO_GENERATION
    """That of the last assignment."""
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The committed offsets that OffsetFetch told since the last assignment of an eager member, -1 for none."""
    told_before: Mapping[TopicPartition, int] = field(default_factory=dict)
    """What OffsetFetch told before that: a request may still be on its way that goes by it."""
    bounds: frozenset[tuple[TopicPartition, int]] = frozenset()
    """The offsets that ListOffsets told since the assignment."""
    assigned: frozenset[TopicPartition] = NO_PARTITIONS
    starting: frozenset[TopicPartition] = NO_PARTITIONS
    """The assigned partitions that were not fetched yet."""
    fetched: frozenset[TopicPartition] = NO_PARTITIONS
    """Those that were fetched since the assignment."""

    @before("JoinGroup request")
    def take_join(self, view: ClientView, seen: Seen) -> None:
        """The client joins."""
        self.assigned = self.assigned if view.installed else NO_PARTITIONS

    @after("SyncGroup response")
    def take_assignment(self, view: ClientView, seen: Seen) -> None:
        """An assignment comes. What OffsetFetch told in a generation is good for it, though the client was reset and
        has joined it again: Apache Kafka's client keeps that (ConsumerCoordinator.PendingCommittedOffsetRequest)."""
        if seen.event.body.get("error_code"):
            return
        had, assigned, former = self.assigned, view.installed or NO_PARTITIONS, self.generation
        self.generation = view.knowledge.latest.assigned_in
        self.assigned, self.fetched = assigned, NO_PARTITIONS
        if view.is_cooperative:
            self.starting = (self.starting | (assigned - had)) & assigned
            return
        self.starting, self.bounds = assigned, frozenset()
        if former != self.generation:
            self.told_before, self.committed = self.committed, {}

    @after("OffsetFetch response")
    def take_offsets(self, view: ClientView, seen: Seen) -> None:
        """OffsetFetch tells."""
        self.committed = {**self.committed, **dict(read_committed(seen.event.body, view.topic_names))}

    @after("ListOffsets response")
    def take_bounds(self, view: ClientView, seen: Seen) -> None:
        """ListOffsets tells."""
        self.bounds |= frozenset(read_bounds(seen.event.body))

    @after("Fetch response")
    def take_records(self, view: ClientView, seen: Seen) -> None:
        """A response to Fetch leaves."""
        self.starting -= out_of_range(seen.event, view.topic_names)

    @after("poll")
    def take_returned(self, view: ClientView, seen: Seen) -> None:
        """A poll returns records: a client may have those from the committed offset on since before the assignment."""
        self.starting -= {(str(topic), int(number)) for topic, number, _ in seen.event.body["records"]}

    @before("Fetch request")
    def judge_starts(self, view: ClientView, seen: Seen) -> Findings:
        """A Fetch arrives: each partition that starts does so at its committed offset, or by the reset policy if it
        was told that there is none (MCOMMIT-19)."""
        operation, time = seen.request, seen.event.time
        application = view.application
        is_manual, sought = application.manual_since is not None, application.sought
        is_fresh = view.assigned_at is None or time - view.assigned_at <= view.knowledge.grace
        told = {**(self.told_before if is_fresh else {}), **self.committed}
        offsets = dict(fetch_offsets(operation.body, view.topic_names))
        started = {each for each in offsets if each in sought or is_manual}
        for partition in sorted((self.starting & offsets.keys()) - started):
            offset, committed = offsets[partition], told.get(partition)
            if committed in (offset, -1):
                yield build_pass("MCOMMIT-19", operation.handle - 1)
            elif (partition, offset) in self.bounds:
                where = describe_partitions({partition})
                words = "what OffsetFetch tells, which has told nothing yet" if committed is None else None
                title = "The reset policy decides where there may be a committed offset"
                expected = f"Fetch of {where} from {words or f'the committed {committed}'} on"
                observed = f"Fetch of {where} from {offset} on, a bound that ListOffsets has told"
                yield blame_request("MCOMMIT-19", operation, title, expected, observed)
            else:
                continue
            started.add(partition)
        self.starting -= started
        if view.assigned_at is not None and time > view.assigned_at:
            self.fetched |= offsets.keys()

    @before("OffsetCommit request")
    def judge_commit(self, view: ClientView, seen: Seen) -> Findings:
        """A commit of an eager member covers no partition whose position is not known yet: since the assignment it was
        told no offset of it, and has neither fetched nor sought it (MCOMMIT-18)."""
        application, operation = view.application, seen.request
        is_eager = bool(view.protocols) and view.protocols <= EAGER_ASSIGNORS
        if not application.is_driven or view.assigned_at is None or not is_eager or view.is_installed_doubtful:
            return
        if application.manual_since is not None:
            return  # they are those that it has assigned, whose commits have no generation (MCOMMIT-12)
        if generation_in(operation) != view.knowledge.latest.assigned_in or not view.installed:
            return
        known = self.committed.keys() | application.sought | application.kept | self.fetched
        covered = {partition for partition, _ in read_offsets(operation.body, view.topic_names)} & view.installed
        unknown = covered - known - (application.owned - view.installed)
        title, expected = "The commit covers partitions without a position", "no partition before its offset is known"
        told, observed = view.knowledge.latest.news, describe_partitions(unknown)
        yield check(not unknown, "MCOMMIT-18", operation.handle - 1, title, expected, observed, told)


# --- What a client pays for news that should cost it nothing, and what it does not use.
#
# Both rest on the same proof. A stable member that was told of nothing, and whose application asks for nothing, has no
# reason to join. If it does so all the same, the one piece of news that is left is its reason.


def joins_for(view: ClientView, sequence: int) -> bool:
    """Whether a JoinGroup has no other reason than the event with this sequence number."""
    latest = view.knowledge.latest
    is_at_rest = latest.is_stable and not latest.requirement and latest.sequence <= sequence
    return is_at_rest and not has_own_reason_to_join(view)


@dataclass(slots=True)
class OffsetErrors:
    """An OffsetFetch whose error says that the coordinator moves or loads is repeated, and costs no generation
    (MEMBER-14). `failed` is the sequence number of the first response with such an error since the last JoinGroup or
    success, -1 for none; `told` has it in words."""

    failed: int = -1
    told: str = ""

    @after("OffsetFetch response")
    def take_response(self, view: ClientView, seen: Seen) -> None:
        """OffsetFetch fails, or does not."""
        event = seen.event
        if error_in(event) not in MOVED:
            self.failed = -1
        elif self.failed < 0:
            self.failed = event.sequence
            self.told = f"OffsetFetch got {Error(error_in(event)).name} at {event.time} ms"

    @before("JoinGroup request")
    def judge_join(self, view: ClientView, seen: Seen) -> Findings:
        """The client joins."""
        failed, self.failed = self.failed, -1
        if failed >= 0 and joins_for(view, failed):
            title, expected = "An OffsetFetch that fails costs the generation", "OffsetFetch again, and no JoinGroup"
            yield build_violation("MEMBER-14", seen.event.sequence, title, expected, "JoinGroup", self.told)


@dataclass(slots=True)
class NewerAssignments:
    """An assignment in a version to come is read by the part that is known, and used (WIRE-02).

    `partitions` are those of such an assignment, of which none was fetched yet; `told` has the response in words."""

    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    sequence: int = -1
    since: int = 0
    told: str = ""

    @after("SyncGroup response")
    def take_assignment(self, view: ClientView, seen: Seen) -> None:
        """An assignment comes."""
        event = seen.event
        version = int.from_bytes((event.body.get("assignment") or bytes(2))[:2], signed=True)
        self.partitions = (view.installed or NO_PARTITIONS) if version > NEWEST_VERSION else NO_PARTITIONS
        self.sequence, self.since = event.sequence, event.time
        self.told = f"{describe_news(seen.request, event)} in version {version}"

    @before("Fetch request")
    def judge_fetch(self, view: ClientView, seen: Seen) -> Findings:
        """A Fetch arrives."""
        if not self.partitions.isdisjoint(fetched_partitions(seen.request, view.topic_names)):
            self.partitions = NO_PARTITIONS
            yield build_pass("WIRE-02", seen.event.sequence)

    @before("JoinGroup request")
    def judge_join(self, view: ClientView, seen: Seen) -> Findings:
        """The client joins."""
        if self.partitions and joins_for(view, self.sequence):
            yield self.find_unused(seen.event.sequence, "JoinGroup")
        self.partitions = NO_PARTITIONS

    @at_end
    def judge_end(self, view: ClientView, time: int) -> Findings:
        """An assignment that is never used is a violation once its time has passed."""
        waited = time - self.since
        if not self.partitions or view.is_over:
            return
        if waited > view.patience_for("Fetch") and not view.is_unheard(time, view.knowledge.grace):
            yield self.find_unused(self.sequence, f"none for {waited} ms")
        else:
            yield leave_open("WIRE-02", self.sequence, f"{self.told}, {waited} ms ago")

    def find_unused(self, sequence: int, observed: str) -> Finding:
        """The violation by a client that does not use the assignment."""
        title, expected = "An assignment of a newer version is not used", describe_partitions(self.partitions)
        return build_violation("WIRE-02", sequence, title, f"Fetch of {expected}", observed, self.told)
