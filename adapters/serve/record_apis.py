"""The APIs of records: Produce, Fetch, ListOffsets, and the partitions of transactions."""

import json
import os
import re
import shutil
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from fencepost.adapters.serve.coordination import CorruptLogError, dialect_named, topic_id_of
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.protocols import KAFKA
from fencepost.model.wire.records import Batch, control_batch, decode_batches, encode_batch, rebase_batch, records_of

# --- The log of one partition, in memory.

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
    given. With a file, they survive a restart."""

    def __init__(self, file: Path | None = None) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self._file = file
        self._size = 0
        self._stored: list[StoredBatch] = []
        self._open: dict[int, int] = {}
        self._aborted: list[AbortedTransaction] = []
        if file is not None and file.exists():
            self._restore(file.read_bytes())

    def _restore(self, data: bytes) -> None:
        """Take the batches of a file, up to one that was written in part."""
        file, self._file = self._file, None
        for batch in decode_batches(data).batches:
            if not self._stored:
                self.start_offset = self.end_offset = batch.base_offset
            if batch.control:
                (marker,), _ = records_of(batch)
                self._end_open(batch.producer_id, committed=marker.key is not None and marker.key[-1] == 1)
            elif batch.transactional:
                self._open.setdefault(batch.producer_id, batch.base_offset)
            self._store(StoredBatch(batch.base_offset, batch.next_offset, batch.max_timestamp, data[: batch.size]))
            data = data[batch.size :]
        self._file = file
        self._write_anew()

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
        if not self._end_open(producer_id, committed):
            return False
        marker = self.end_offset
        batch = control_batch(marker, producer_id, producer_epoch, committed, now)
        self._store(StoredBatch(marker, marker + 1, now, encode_batch(batch)))
        return True

    def _end_open(self, producer_id: int, committed: bool) -> bool:
        """Close the producer's transaction at the next offset; whether one is open."""
        first = self._open.pop(producer_id, None)
        if first is not None and not committed:
            self._aborted.append(AbortedTransaction(producer_id, first, self.end_offset))
        return first is not None

    def read(self, offset: int, max_bytes: int, *, committed_only: bool, at_least_one: bool) -> ReadResult:
        """Whole batches from the one that holds `offset`, `at_least_one` even if it is larger than `max_bytes`."""
        limit = self.last_stable_offset if committed_only else self.end_offset
        chosen: list[bytes] = []
        reached = offset
        # From the batch with `offset`, or the first after it.
        first = max(bisect_right(self._stored, offset, key=attrgetter("base")) - 1, 0)
        for stored in islice(self._stored, first, None):
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
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("ab") as file:
                file.write(stored.data)
        while self._size > MAX_LOG_BYTES and len(self._stored) > 1:
            oldest = self._stored.pop(0)
            self._size -= len(oldest.data)
            self.start_offset = oldest.end
            self._aborted = [one for one in self._aborted if one.last >= self.start_offset]
        if self._file is not None and self._file.stat().st_size > 2 * MAX_LOG_BYTES:
            self._write_anew()

    def _write_anew(self) -> None:
        """Write the file without what is not there any more."""
        if self._file is not None and self._file.exists():
            beside = self._file.with_suffix(".new")
            beside.write_bytes(b"".join(stored.data for stored in self._stored))
            os.replace(beside, self._file)


# --- The topics of the broker: their names, ids and partitions.

DEFAULT_PARTITIONS = 4
"""Partitions of a topic created without a number; more than Kafka's 1, so that a group can share them."""

MAX_PARTITIONS = 10_000
"""Partitions of all topics together."""

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and its partitions; its id follows from its name."""

    name: str
    partitions: tuple[Partition, ...]

    @property
    def id(self) -> str:
        """The topic's id (KIP-516)."""
        return topic_id_of(self.name)


class TopicStore:
    """All topics by name. With a file, they survive a restart; their records are in a folder beside it."""

    def __init__(self, file: Path | None = None) -> None:
        self._topics: dict[str, Topic] = {}
        self._file = file
        if file is not None and file.exists():
            self._topics = {name: self._make_topic(name, count) for name, count in _read_topics(file).items()}

    def _folder_of(self, name: str) -> Path | None:
        """The folder with the records of a topic, if they are kept."""
        return None if self._file is None else self._file.with_name("records") / name

    def _make_topic(self, name: str, count: int, first: int = 0) -> Topic:
        """A topic whose partitions begin with this number."""
        folder = self._folder_of(name)
        files = (None if folder is None else folder / f"{number}.log" for number in range(first, count))
        return Topic(name, tuple(map(Partition, files)))

    @property
    def by_name(self) -> Mapping[str, Topic]:
        """Every topic by name."""
        return self._topics

    def topic_with_id(self, topic_id: str) -> Topic | None:
        """The topic with that id."""
        return next((topic for topic in self._topics.values() if topic.id == topic_id), None)

    def partition(self, name: str, index: int) -> Partition | None:
        """The partition of that topic and number; None if there is none."""
        topic = self._topics.get(name)
        return topic.partitions[index] if topic and 0 <= index < len(topic.partitions) else None

    def partition_count(self, name: str) -> int | None:
        """The number of partitions of the topic, None if there is no such topic."""
        topic = self._topics.get(name)
        return len(topic.partitions) if topic else None

    def id_of(self, name: str) -> str | None:
        """The id of the topic, None if there is no such topic."""
        topic = self._topics.get(name)
        return topic.id if topic else None

    def name_of(self, topic_id: str) -> str | None:
        """The name of the topic with this id, None if there is no such topic."""
        topic = self.topic_with_id(topic_id)
        return topic.name if topic else None

    def creation_error(self, name: str, partitions: int) -> Error:
        """The error of creating this topic, or NONE."""
        if not _NAME.fullmatch(name) or name in (".", ".."):
            return Error.INVALID_TOPIC_EXCEPTION
        if name in self._topics:
            return Error.TOPIC_ALREADY_EXISTS
        if partitions < 1:
            return Error.INVALID_PARTITIONS
        if partitions + sum(len(topic.partitions) for topic in self._topics.values()) > MAX_PARTITIONS:
            return Error.POLICY_VIOLATION
        return Error.NONE

    def create(self, name: str, partitions: int = DEFAULT_PARTITIONS) -> Error:
        """Create a topic and return NONE, or only the error of `creation_error`."""
        error = self.creation_error(name, partitions)
        if error is Error.NONE:
            self._topics[name] = self._make_topic(name, partitions)
            self._save()
        return error

    def grow(self, name: str, partitions: int) -> None:
        """Add empty partitions to a topic until it has `partitions`."""
        known = self._topics[name].partitions
        added = self._make_topic(name, partitions, len(known)).partitions
        self._topics[name] = Topic(name, (*known, *added))
        self._save()

    def growth_error(self, name: str, partitions: int) -> Error:
        """The error of having a topic grow to `partitions`, or NONE."""
        if name not in self._topics:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        added = partitions - len(self._topics[name].partitions)
        if added < 1:
            return Error.INVALID_PARTITIONS
        has_room = added + sum(len(topic.partitions) for topic in self._topics.values()) <= MAX_PARTITIONS
        return Error.NONE if has_room else Error.POLICY_VIOLATION

    def delete(self, name: str) -> Error:
        """Delete a topic with its records."""
        if self._topics.pop(name, None) is None:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        folder = self._folder_of(name)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        self._save()
        return Error.NONE

    def _save(self) -> None:
        if self._file is None:
            return
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps({name: len(topic.partitions) for name, topic in self._topics.items()}))
        os.replace(beside, self._file)


def _read_topics(file: Path) -> dict[str, int]:
    try:
        return {name: int(count) for name, count in json.loads(file.read_text()).items()}
    except (ValueError, AttributeError, TypeError) as cause:
        raise CorruptLogError(f"{file}: damaged ({cause}); delete it, the topics then have to be made again") from None


Body: TypeAlias = Mapping[str, Any]

_READ_COMMITTED = 1
_TRANSACTIONAL_BATCH = 1 << 4
_SCRIPT_PRODUCER = 4_000_000
"""The producer of transactions that the program itself writes."""
_MAX_FETCH_BYTES = 8 * 1024 * 1024
"""Most bytes of records in a response to Fetch, unless one batch alone has more."""


class OffsetSpec(IntEnum):
    """Special timestamps of ListOffsets, which stand for a place in the log."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3


@dataclass(frozen=True, slots=True)
class FetchResult:
    """A response to Fetch. `size` counts its bytes of records; `has_error` marks an error."""

    body: Body
    size: int
    has_error: bool


def produce(topics: TopicStore, body: Body) -> Body:
    """Append the valid batches; each partition has its own result."""
    return {
        "responses": [
            {
                "name": topic["name"],
                "partition_responses": [
                    _append_records(topics.partition(topic["name"], one["index"]), one["index"], one["records"] or b"")
                    for one in topic["partition_data"]
                ],
            }
            for topic in body["topic_data"]
        ]
    }


def _append_records(partition: Partition | None, index: int, data: bytes) -> Body:
    response = {"index": index, "error_code": Error.NONE, "base_offset": -1}
    found = decode_batches(data)
    if partition is None:
        return response | {"error_code": Error.UNKNOWN_TOPIC_OR_PARTITION}
    if found.findings or not found.batches:
        return response | {"error_code": Error.CORRUPT_MESSAGE}
    if not all(map(_is_valid_batch, found.batches)):
        return response | {"error_code": Error.INVALID_RECORD}
    offsets = []
    for batch in found.batches:
        offsets.append(partition.append(batch, data[: batch.size]))
        data = data[batch.size :]
    return response | {"base_offset": offsets[0], "log_start_offset": partition.start_offset}


def _is_valid_batch(batch: Batch) -> bool:
    """Whether the batch can be read; compressed records are not checked."""
    if batch.control or not 0 < batch.record_count == batch.last_offset_delta + 1:
        return False
    return batch.compressed or not records_of(batch)[1]


def fetch(topics: TopicStore, body: Body) -> FetchResult:
    """Read the available batches. Fetch sessions (KIP-227) are declined, so every request names all partitions."""
    if body.get("session_id"):
        return FetchResult({"error_code": Error.FETCH_SESSION_ID_NOT_FOUND}, 0, True)
    committed_only = body["isolation_level"] == _READ_COMMITTED
    most_answered = min(body["max_bytes"], _MAX_FETCH_BYTES)
    size, urgent, responses = 0, False, []
    for topic in body["topics"]:
        rows = []
        name = topic["topic"] if "topic" in topic else topics.name_of(topic["topic_id"])
        for wanted in topic["partitions"]:
            most = min(wanted["partition_max_bytes"], most_answered - size)
            partition = None if name is None else topics.partition(name, wanted["partition"])
            # The first batch of an answer comes whatever its size, lest a reader get stuck before it (KIP-74).
            response = _read_partition(partition, wanted, most, committed_only, at_least_one=size == 0)
            if name is None:
                response["error_code"] = Error.UNKNOWN_TOPIC_ID
            size += len(response["records"])
            urgent |= response["error_code"] != Error.NONE
            rows.append(response)
        responses.append({**topic, "partitions": rows})
    return FetchResult({"responses": responses}, size, urgent)


def _read_partition(
    partition: Partition | None, wanted: Body, max_bytes: int, committed_only: bool, at_least_one: bool
) -> dict[str, Any]:
    response = {
        "partition_index": wanted["partition"],
        "error_code": Error.NONE,
        "high_watermark": -1,
        "records": b"",
    }
    if partition is None:
        return response | {"error_code": Error.UNKNOWN_TOPIC_OR_PARTITION}
    if not partition.start_offset <= wanted["fetch_offset"] <= partition.end_offset:
        return response | {"error_code": Error.OFFSET_OUT_OF_RANGE}
    found = partition.read(wanted["fetch_offset"], max_bytes, committed_only=committed_only, at_least_one=at_least_one)
    aborted = [{"producer_id": one.producer_id, "first_offset": one.first} for one in found.aborted]
    return response | {
        "high_watermark": partition.end_offset,
        "last_stable_offset": partition.last_stable_offset,
        "log_start_offset": partition.start_offset,
        "aborted_transactions": aborted if committed_only else None,
        "records": found.data,
    }


def list_offsets(topics: TopicStore, body: Body) -> Body:
    """Return the offset of each timestamp, or the first or last offset."""
    committed_only = body.get("isolation_level") == _READ_COMMITTED
    return {
        "topics": [
            {
                "name": topic["name"],
                "partitions": [
                    _find_offset(topics.partition(topic["name"], one["partition_index"]), one, committed_only)
                    for one in topic["partitions"]
                ],
            }
            for topic in body["topics"]
        ]
    }


def _find_offset(partition: Partition | None, wanted: Body, committed_only: bool) -> Body:
    response = {
        "partition_index": wanted["partition_index"],
        "error_code": Error.NONE,
        "timestamp": -1,
        "offset": -1,
    }
    if partition is None:
        return response | {"error_code": Error.UNKNOWN_TOPIC_OR_PARTITION}
    found: tuple[int, int] | None
    match wanted["timestamp"]:
        case OffsetSpec.LATEST:
            found = (-1, partition.last_stable_offset if committed_only else partition.end_offset)
        case OffsetSpec.EARLIEST:
            found = (-1, partition.start_offset)
        case OffsetSpec.MAX_TIMESTAMP:
            found = partition.find_max_timestamp()
        case timestamp:
            found = partition.find_by_timestamp(timestamp)
    if found is None:
        return response
    return response | {"timestamp": found[0], "offset": found[1], "leader_epoch": LEADER_EPOCH}


def add_transaction_partitions(topics: TopicStore, body: Body) -> Body:
    """Respond to AddPartitionsToTxn without storing it: a partition learns of a transaction from its first batch."""
    return {
        "results_by_topic_v3_and_below": [
            {
                "name": topic["name"],
                "results_by_partition": [
                    {
                        "partition_index": index,
                        "partition_error_code": Error.UNKNOWN_TOPIC_OR_PARTITION
                        if topics.partition(topic["name"], index) is None
                        else Error.NONE,
                    }
                    for index in topic["partitions"]
                ],
            }
            for topic in body["v3_and_below_topics"]
        ]
    }


def end_transaction(topics: TopicStore, producer_id: int, producer_epoch: int, committed: bool, now: int) -> bool:
    """Mark the end of the producer's transaction in every partition that it wrote to; True if there is one."""
    marked = [
        partition.end_transaction(producer_id, producer_epoch, committed, now)
        for topic in topics.by_name.values()
        for partition in topic.partitions
    ]
    return any(marked)


def write_transaction(partition: Partition, batch: Batch, now: int) -> None:
    """Append a batch to a partition as a transaction of its own, and the marker of its commit at `now` (ms)."""
    written = evolve(
        batch, attributes=_TRANSACTIONAL_BATCH, producer_id=_SCRIPT_PRODUCER, producer_epoch=0, base_sequence=0
    )
    partition.append(written, encode_batch(written))
    partition.end_transaction(_SCRIPT_PRODUCER, 0, True, now)


# --- The APIs and versions that the broker offers.

OFFERED_VERSIONS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        **dialect_named(KAFKA).versions,
        "Produce": (3, 9),  # above it, a response names the leader of another epoch
        "Fetch": (4, 13),
        "ListOffsets": (1, 7),
        "Metadata": (0, 12),
        "ApiVersions": (0, 4),
        "CreateTopics": (2, 7),
        "DeleteTopics": (1, 5),
        "CreatePartitions": (0, 3),
        "DescribeConfigs": (1, 4),
        "AddPartitionsToTxn": (0, 3),
        # Above these a client expects a new producer epoch with every transaction (KIP-890).
        "EndTxn": (0, 4),
        "TxnOffsetCommit": (0, 4),
    }
)
"""Lowest and highest version of every API. All of JoinGroup to FindCoordinator down to 0 or 1, since aiokafka speaks
the old versions only; Produce must be there or librdkafka does not fetch."""
