"""The buffers of a driven client: what it was sent of each partition and has not returned, as the trace shows them.

A record is buffered from the Fetch response that brings it to the poll that returns it. What disturbs a buffer, such as
a seek or a rebalance, makes it unknown: nothing is said of it until the next response.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from fencepost.model.assignors.group import TopicPartition
from fencepost.traces.client_judge.classic.application import Application

MANY_POLLS = 20
"""So many polls that return nothing are more than a client takes to read what has come."""
READING_MS = 250
"""How long a client may take to read a Fetch response."""


@dataclass(slots=True)
class Wait:
    """A partition with buffered records that no poll has returned yet, for so many polls that returned others.

    `ahead` is what was buffered of other partitions at first.
    """

    ahead: int
    polls: int = 0
    empty_polls: int = 0
    """The polls that returned nothing."""
    passed: int = 0
    """The records of others that were returned meanwhile."""
    is_refilled: bool = False
    """Whether records of others came meanwhile."""


@dataclass(slots=True)
class Buffers:
    """The buffers of all partitions. Times in milliseconds."""

    markers: set[tuple[TopicPartition, int]] = field(default_factory=set)
    """Offsets that no record has."""
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    """The offset behind the last record that came, of partitions whose buffer is known."""
    doubtful: dict[TopicPartition, int] = field(default_factory=dict)
    """The same of partitions whose buffer has become unknown: the client may have these records or not."""
    came: dict[TopicPartition, int] = field(default_factory=dict)
    """When the last record came."""
    most: dict[TopicPartition, int] = field(default_factory=dict)
    """The most records of a partition that were buffered at once."""
    waits: dict[TopicPartition, Wait] = field(default_factory=dict)
    partly: set[TopicPartition] = field(default_factory=set)
    """Partitions of which a poll has returned some records of a response, and left others."""
    beside_error: set[TopicPartition] = field(default_factory=set)
    """Partitions whose last records came in a response with an error of another one."""
    begun: dict[TopicPartition, int] = field(default_factory=dict)
    """What the client had certainly read when the poll under way began."""
    returned: set[TopicPartition] = field(default_factory=set)
    """The partitions of the records of the poll under way; some clients tell of these in another order."""
    stopped_at: frozenset[TopicPartition] = frozenset()
    """The partitions of which the last poll returned some records, and not all."""
    left: frozenset[TopicPartition] = frozenset()
    """Those with buffered records that it returned nothing of, if it returned as much as it may."""
    empty_since: dict[TopicPartition, tuple[int, int, int]] = field(default_factory=dict)
    """When a partition became empty that is not fetched, how many polls there were since, and in how many of them the
    client may drain what it had of others."""
    asked: dict[TopicPartition, int] = field(default_factory=dict)
    """The offsets of the last fetches."""
    emptied: frozenset[TopicPartition] = frozenset()
    """The partitions whose last record the last poll returned."""
    resumes: bool = False
    """Whether a poll began where the one before it had stopped."""
    fetches_retained: bool = False
    """Whether a partition was fetched of which more was buffered than a poll may return."""
    starved: bool = False

    def held(self, application: Application, partition: TopicPartition) -> int:
        """The number of records of a partition that are buffered, 0 if that is unknown."""
        end, position = self.ends.get(partition, 0), application.next_of(partition)
        gaps = sum(each == partition and position <= offset < end for each, offset in self.markers)
        return max(0, end - position - gaps)

    def total(self, application: Application, but: TopicPartition | None = None) -> int:
        """The number of buffered records, of all partitions or all but one."""
        return sum(self.held(application, each) for each in self.ends if each != but)

    def most_to_drain(self, application: Application) -> int:
        """The number of records that may be buffered of all partitions that the client has."""
        lost = {each: end for each, end in self.doubtful.items() if each in application.owned - self.ends.keys()}
        return self.total(application) + sum(max(0, end - application.next_of(each)) for each, end in lost.items())

    def deliver(self, application: Application, partition: TopicPartition, end: int, time: int) -> None:
        """Records of a partition come, up to before an offset."""
        if not self.held(application, partition):
            self.waits[partition] = Wait(self.total(application, partition))
        for other, wait in self.waits.items():
            wait.is_refilled |= other != partition and wait.polls > 0
        self.ends[partition], self.came[partition] = end, time
        self.most[partition] = max(self.most.get(partition, 0), self.held(application, partition))

    def doubt(self, application: Application, ends: Mapping[TopicPartition, int]) -> None:
        """Records come, up to before these offsets, that the client may throw away unread."""
        self.forget(ends)
        self.doubtful |= ends
        for partition, end in ends.items():
            self.most[partition] = max(self.most.get(partition, 0), end - application.next_of(partition))

    def begin_poll(self, application: Application, time: int) -> None:
        """A poll begins."""
        returnable = application.owned - application.paused
        self.begun = {
            each: held
            for each in returnable & self.ends.keys()
            if self.came[each] + READING_MS <= time and (held := self.held(application, each))
        }
        self.returned.clear()

    def bound(self, application: Application, partition: TopicPartition) -> int:
        """In how many polls a partition that waits is served, whether polls go on behind the place where the last one
        stopped, at it, or by the age of the responses."""
        others = sum(most for each, most in self.most.items() if each != partition and each in application.owned)
        limit = max(application.limit, 1)
        return max(len(application.owned), others // limit + 1, self.waits[partition].ahead // limit + 1)

    def is_starving(self, application: Application, partition: TopicPartition) -> bool:
        """Whether a partition waits for longer than any rule allows: for more polls, and behind more records."""
        wait, bound = self.waits[partition], self.bound(application, partition)
        others = sum(most for each, most in self.most.items() if each != partition and each in application.owned)
        allowed = max(len(application.owned) * application.limit, others, wait.ahead)
        return (wait.polls > bound and wait.passed > allowed) or wait.empty_polls > MANY_POLLS

    def forget(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """The buffers of some partitions are unknown, or of all."""
        self.doubtful |= {each: end for each, end in self.ends.items() if partitions is None or each in partitions}
        by_partition = (self.ends, self.came, self.waits, self.empty_since, self.asked)
        everything = frozenset(self.partly | self.beside_error).union(*by_partition)
        for partition in everything if partitions is None else partitions:
            for known in by_partition:
                known.pop(partition, None)
            self.partly.discard(partition)
            self.beside_error.discard(partition)
        self.stopped_at, self.left, self.begun = frozenset(), frozenset(), {}
        self.emptied = frozenset()
