"""The fetcher of the reference client: what was fetched, and which records a poll returns (member.md 6.6).

Each response to Fetch adds a completed fetch for each partition at the tail of a queue. A poll drains the head, then
the next, until it has its limit. No fetch is sent for a partition while one of its completed fetches is in the queue.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fencepost.model.classic.member.client import CallbackKind, Client, Position, is_returnable, position_of
from fencepost.model.errors import Error
from fencepost.model.groups.messages import Partition
from fencepost.model.wire.codec import Body
from fencepost.model.wire.records import Batch, decode_batches, records_of

DEFAULT_LIMIT = 30
"""The most records that a poll returns."""


@dataclass(slots=True)
class CompletedFetch:
    """Records of one partition, by their offsets. `position` is that of the client which the next one continues, and
    `following` the position behind the last batch."""

    partition: Partition
    position: int
    offsets: list[int]
    following: int


@dataclass(frozen=True, slots=True)
class ReturnedRecords:
    """Records that a poll returns, by their offsets: the position moves from `first` to `following`."""

    partition: Partition
    offsets: tuple[int, ...]
    first: int
    following: int


@dataclass(slots=True)
class Fetcher:
    """Completed fetches in their order; `limit` is the most records that a poll returns."""

    limit: int = DEFAULT_LIMIT
    queue: deque[CompletedFetch] = field(default_factory=deque)
    turns: dict[Partition, int] = field(default_factory=dict)
    """When records of a partition were returned last, as the number of that turn."""

    def positions_to_fetch(self, client: Client, in_flight: Iterable[Partition]) -> list[Position]:
        """The positions to ask for: those of partitions of which nothing is buffered or asked for."""
        busy = {*in_flight, *(completed.partition for completed in self.queue)}
        wanted = [one for one in client.positions if self.is_fetchable(client, one) and one.partition not in busy]
        return self.put_in_order(wanted)

    def put_in_order(self, positions: list[Position]) -> list[Position]:
        """The positions in the order in which brokers fill their responses: the longest without records first
        (PREFETCH-10)."""
        return sorted(positions, key=lambda one: self.turns.get(one.partition, 0))

    def is_fetchable(self, client: Client, position: Position) -> bool:
        """Whether a partition may be fetched: its position is known, its records could be returned, and no listener is
        being told that it is given up (PREFETCH-08)."""
        call = client.callback
        given_up = call.partitions if call is not None and call.kind is not CallbackKind.ASSIGNED else ()
        if position.partition in given_up:
            return False
        return position.offset is not None and is_returnable(client, position.partition)

    def add_response(self, client: Client, asked: Mapping[Partition, int], body: Body) -> None:
        """A response to Fetch has come; `asked` are the offsets by partition that the request asked for."""
        for topic in body["responses"]:
            for row in topic["partitions"]:
                partition = topic["topic"], row["partition_index"]
                if row["error_code"] == Error.NONE and self.is_expected(client, partition, asked.get(partition)):
                    self.add_batches(partition, asked[partition], decode_batches(row["records"] or b"").batches)

    def is_expected(self, client: Client, partition: Partition, asked: int | None) -> bool:
        """Whether the position is still the one that was asked for (POLL-11)."""
        position = position_of(client, partition)
        return asked is not None and position is not None and position.offset == asked

    def add_batches(self, partition: Partition, asked: int, batches: tuple[Batch, ...]) -> None:
        """Add the records of a partition from the offset on that was asked for."""
        if not batches:
            return
        records = (record for batch in batches if not batch.control for record in records_of(batch)[0])
        offsets = [record.offset for record in records if self.is_wanted(record.offset, asked)]
        self.queue.append(CompletedFetch(partition, asked, offsets, self.position_behind(batches[-1], offsets)))

    def is_wanted(self, offset: int, asked: int) -> bool:
        """Whether a record of a batch is one that was asked for: a batch may begin before it."""
        return offset >= asked

    def position_behind(self, last: Batch, offsets: list[int]) -> int:
        """The position behind the last batch of a response: compaction may have removed its last records (POLL-12)."""
        return last.next_offset

    def drain(self, client: Client) -> Iterator[ReturnedRecords]:
        """What a poll returns, completed fetch by completed fetch; the caller moves the positions meanwhile."""
        left = self.limit
        for _ in range(len(self.queue)):
            if not left:
                return
            completed = self.queue.popleft()
            if self.is_stale(client, completed):
                continue
            if not is_returnable(client, completed.partition):
                self.queue.append(completed)  # paused: kept for later (POLL-09)
                continue
            taken = self.take(completed, left)
            left -= len(taken.offsets)
            if completed.offsets:
                self.queue.appendleft(completed)
            yield taken

    def is_stale(self, client: Client, completed: CompletedFetch) -> bool:
        """Whether a completed fetch is of no use any more: its partition is gone, or its position is another one."""
        position = position_of(client, completed.partition)
        is_subscribed = client.is_manual or completed.partition[0] in client.topics
        return position is None or position.offset != completed.position or not is_subscribed

    def take(self, completed: CompletedFetch, count: int) -> ReturnedRecords:
        """Take so many records from a completed fetch."""
        offsets, completed.offsets = completed.offsets[:count], completed.offsets[count:]
        first = completed.position
        self.turns[completed.partition] = 1 + max(self.turns.values(), default=0)
        completed.position = offsets[-1] + 1 if completed.offsets else completed.following
        return ReturnedRecords(completed.partition, tuple(offsets), first, completed.position)
