"""The log of one partition, in memory."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter

from fencepost.model.wire.records import Batch, control_batch, decode_batches, encode_batch, rebase_batch, records_of

LEADER_EPOCH = 0
MAX_LOG_BYTES = 16 * 1024 * 1024
"""A log that grows beyond this loses its oldest batches."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch in the log: its offsets (from `base` to before `end`), latest timestamp (ms), and bytes."""

    base: int
    end: int
    max_timestamp: int
    data: bytes


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """An aborted transaction: its producer, and its first and last offset in this partition."""

    producer_id: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Some batches of a log, and the aborted transactions a reader of committed records has to skip in them."""

    data: bytes
    aborted: tuple[AbortedTransaction, ...] = ()


class Partition:
    """Batches in order of their offsets. `start_offset` is the first offset still there, `end_offset` the next to be
    given."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self._size = 0
        self._stored: list[StoredBatch] = []
        self._open: dict[int, int] = {}
        self._aborted: list[AbortedTransaction] = []

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which no transaction is open (KIP-98)."""
        return min(self._open.values(), default=self.end_offset)

    def append(self, batch: Batch, data: bytes) -> int:
        """Store the batch, whose bytes are `data`, and return the offset its first record got."""
        base = self.end_offset
        if batch.transactional:
            self._open.setdefault(batch.producer_id, base)
        self._store(
            StoredBatch(base, base + batch.record_count, batch.max_timestamp, rebase_batch(data, base, LEADER_EPOCH))
        )
        return base

    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool, now: int) -> bool:
        """Mark the end of the producer's transaction at `now` (ms) if it wrote to this partition; True if it did."""
        first = self._open.pop(producer_id, None)
        if first is None:
            return False
        marker = self.end_offset
        if not committed:
            self._aborted.append(AbortedTransaction(producer_id, first, marker))
        batch = control_batch(marker, producer_id, producer_epoch, committed, now)
        self._store(StoredBatch(marker, marker + 1, now, encode_batch(batch)))
        return True

    def read(self, offset: int, max_bytes: int, *, committed_only: bool, at_least_one: bool) -> ReadResult:
        """Whole batches from the one that holds `offset`, `at_least_one` even if it is larger than `max_bytes`."""
        limit = self.last_stable_offset if committed_only else self.end_offset
        chosen: list[bytes] = []
        reached = offset
        for stored in islice(self._stored, self._batch_index(offset), None):
            forced = at_least_one and not chosen
            if stored.base >= limit or stored.end <= offset or (len(stored.data) > max_bytes and not forced):
                break
            chosen.append(stored.data)
            max_bytes -= len(stored.data)
            reached = stored.end
        aborted = tuple(one for one in self._aborted if one.last >= offset and one.first < reached)
        return ReadResult(b"".join(chosen), aborted if committed_only else ())

    def find_by_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """Timestamp and offset of the first record that is not older, None if all are. Times in ms."""
        for stored in self._stored:
            if stored.max_timestamp >= timestamp:
                (batch,) = decode_batches(stored.data).batches
                records, _ = records_of(batch)
                fallback = (batch.base_timestamp, stored.base)  # of a compressed batch only the whole is known
                return next(((one.timestamp, one.offset) for one in records if one.timestamp >= timestamp), fallback)
        return None

    def find_max_timestamp(self) -> tuple[int, int] | None:
        """The highest timestamp and the offset it is found at, None if the log is empty (KIP-734)."""
        latest = max(self._stored, key=attrgetter("max_timestamp"), default=None)
        return self.find_by_timestamp(latest.max_timestamp) if latest else None

    def _store(self, stored: StoredBatch) -> None:
        self._stored.append(stored)
        self.end_offset = stored.end
        self._size += len(stored.data)
        while self._size > MAX_LOG_BYTES and len(self._stored) > 1:
            oldest = self._stored.pop(0)
            self._size -= len(oldest.data)
            self.start_offset = oldest.end
            self._aborted = [one for one in self._aborted if one.last >= self.start_offset]

    def _batch_index(self, offset: int) -> int:
        """The index of the batch with `offset`, or of the first after it."""
        return max(bisect_right(self._stored, offset, key=attrgetter("base")) - 1, 0)
