"""The APIs of records: Produce, Fetch, ListOffsets, and the partitions of transactions."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

from fencepost.adapters.serve.partition import LEADER_EPOCH, Partition
from fencepost.adapters.serve.topics import TopicStore
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.wire.records import Batch, decode_batches, encode_batch, records_of

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
        for wanted in topic["partitions"]:
            most = min(wanted["partition_max_bytes"], most_answered - size)
            partition = topics.partition(topic["topic"], wanted["partition"])
            # The first batch of an answer comes whatever its size, lest a reader get stuck before it (KIP-74).
            response = _read_partition(partition, wanted, most, committed_only, at_least_one=size == 0)
            size += len(response["records"])
            urgent |= response["error_code"] != Error.NONE
            rows.append(response)
        responses.append({"topic": topic["topic"], "partitions": rows})
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
                        "partition_error_code": _partition_error(topics.partition(topic["name"], index)),
                    }
                    for index in topic["partitions"]
                ],
            }
            for topic in body["v3_and_below_topics"]
        ]
    }


def _partition_error(partition: Partition | None) -> Error:
    return Error.UNKNOWN_TOPIC_OR_PARTITION if partition is None else Error.NONE


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
