"""The topic of committed offsets as a trace: what coordinators stored of their groups.

A file is a segment of the log of `__consumer_offsets`, or the text that `kafka-dump-log --offsets-decoder` makes of
one. Each generation with its leader, members and assignments becomes a step `stored`, each committed offset
`committed`, and a group that is deleted `forget`. Offsets of a transaction count when it is committed.
"""

import heapq
import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from fencepost.model.settings import Settings
from fencepost.model.wire.codec import decode_body
from fencepost.model.wire.records import Batch, Record, decode_batches, records_of
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.trace_files import TraceError, trace_writer
from fencepost.traces.importers.log_layout import open_bytes, read_log_lines
from fencepost.traces.message_fields import partitions_in

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record: its time in milliseconds since 1970, its place in its file, and the step that it tells."""

    time: int
    place: int
    body: Fields


@dataclass(slots=True)
class OffsetsImportResult:
    """Counts of an import: events written, records read, those of other kinds, and those that could not be read, with
    the first reason."""

    events: int = 0
    records: int = 0
    others: int = 0
    unread: int = 0
    reason: str = ""

    def add_unread(self, reason: str) -> None:
        """Count what could not be read."""
        self.unread += 1
        self.reason = self.reason or reason


def import_offsets(paths: Sequence[Path], output: Path) -> OffsetsImportResult:
    """Write what these files and folders show of groups as a trace.

    Raises `TraceError` if a file cannot be read or nothing is about a group, and `OSError` if the trace cannot be
    written.
    """
    imported = OffsetsImportResult()
    files = [file for path in paths for file in files_of(path)]
    streams = (enumerate_file(number, read_file(path, imported)) for number, path in enumerate(files))
    merged = heapq.merge(*streams, key=lambda each: each[0])
    first = next(merged, None)
    names = ", ".join(map(str, paths))
    if first is None:
        told = f": {imported.reason}" if imported.reason else ""
        raise TraceError(names, 0, f"no record of a classic group among {imported.records}{told}")
    began = min(first[0], first[2].body.get("joined", first[0]))
    told_began = datetime.fromtimestamp(began / 1_000, UTC).isoformat(timespec="milliseconds")
    implementation = {"recorder": "fencepost import offsets", "name": "Kafka", "began": told_began}
    implementation |= {"unread": f"{imported.unread} parts were not read: {imported.reason}"} if imported.unread else {}
    header = Header(names, Order.TOTAL, "wall", Settings(), 0, implementation)
    with trace_writer(output, header) as write:
        for event in to_events(began, first, merged):
            write(event)
            imported.events += 1
    return imported


def files_of(path: Path) -> list[Path]:
    """The segments in a folder, or the file itself. Raises `TraceError`."""
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*.log") if each.stat().st_size)
    if not found:
        raise TraceError(str(path), 0, "no segment in this folder: their names end in .log")
    return found


Placed = tuple[int, int, StoredRecord]
"""When a record is told, which file it is in, and the record."""


MAX_TIME = 32_503_680_000_000
"""The year 3000: later times are damage."""


def enumerate_file(number: int, records: Iterable[StoredRecord]) -> Iterator[Placed]:
    """The records of a file with times that never fall."""
    records = (each for each in records if each.time < MAX_TIME)
    for time, record in accumulate(
        ((each.time, each) for each in records), lambda one, two: (max(one[0], two[0]), two[1])
    ):
        yield time, number, record


def to_events(began: int, first: Placed, others: Iterable[Placed]) -> Iterator[Event]:
    """The events of the records; before the first one nothing is known."""
    yield Event(0, 0, 0, "", Kind.INTERNAL, "unknown", 0, {"reason": "the log begins"})
    for sequence, (time, file, record) in enumerate(chain((first,), others), 1):
        body = {**record.body, "file": file, "line": record.place}
        if "joined" in body:
            body["joined"] -= began
        yield Event(sequence, time - began, 0, "", Kind.INTERNAL, "step", 0, body)


def read_file(path: Path, imported: OffsetsImportResult) -> Iterator[StoredRecord]:
    """Yield the records of a file in its order. Raises `TraceError`."""
    try:
        with open_bytes(path) as file:
            is_text = is_dump(file.peek(512)[:512])
    except (OSError, EOFError) as error:
        raise TraceError(str(path), 0, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    yield from read_dump(path, imported) if is_text else read_segment(path, imported)


def is_dump(head: bytes) -> bool:
    """Whether a file that begins so is text."""
    return head[:2] in (b"\xff\xfe", b"\xfe\xff") or not any(byte < 9 for byte in head)


# --- Transactions.


@dataclass(slots=True)
class OpenTransactions:
    """Offsets that count when their transaction is committed, by its producer."""

    waiting: dict[int, list[StoredRecord]] = field(default_factory=dict)

    def hold(self, producer: int, record: StoredRecord) -> None:
        """Keep a record until its transaction ends."""
        self.waiting.setdefault(producer, []).append(record)

    def end(self, producer: int, time: int, *, is_commit: bool) -> list[StoredRecord]:
        """The records that count now that the transaction of this producer ends."""
        held = self.waiting.pop(producer, [])
        return [StoredRecord(time, each.place, each.body) for each in held] if is_commit else []


# --- Segments of the log.

PREFIX = struct.Struct(">qi")
CONTROL, TRANSACTIONAL = 0x20, 0x10
"""Attributes of a batch."""
MAX_BATCH = 256 << 20


def read_segment(path: Path, imported: OffsetsImportResult) -> Iterator[StoredRecord]:
    """Yield the records in a segment. Raises `TraceError`."""
    opened = OpenTransactions()
    for batch in read_batches(path, imported):
        records, findings = records_of(batch)
        for finding in findings[:1]:
            imported.add_unread(finding)
        for record in records:
            if batch.attributes & CONTROL:
                yield from opened.end(
                    batch.producer_id, record.timestamp, is_commit=(record.key or b"")[2:4] == b"\0\1"
                )
                continue
            body = read_record(record, imported)
            if body is None:
                continue
            stored = StoredRecord(record.timestamp, record.offset, body)
            if batch.attributes & TRANSACTIONAL and body["step"] == "committed":
                opened.hold(batch.producer_id, stored)
            else:
                yield stored


def read_batches(path: Path, imported: OffsetsImportResult) -> Iterator[Batch]:
    """Yield the batches of a segment, up to the first that cannot be read. Raises `TraceError`."""
    with open_bytes(path) as file:
        while len(prefix := file.read(PREFIX.size)) == PREFIX.size:
            _, length = PREFIX.unpack(prefix)
            if prefix.strip(b"\0") == b"":
                return  # a segment may be allocated beyond its end
            if not 0 < length < MAX_BATCH:
                raise TraceError(str(path), 0, "neither a segment of a log nor the text of kafka-dump-log")
            found = decode_batches(prefix + file.read(length))
            for finding in found.findings:
                imported.add_unread(finding)
            yield from found.batches


def read_record(record: Record, imported: OffsetsImportResult) -> Fields | None:
    """What a record tells of a classic group; None if nothing."""
    imported.records += 1
    key, value = record.key or b"", record.value
    version = int.from_bytes(key[:2], "big") if len(key) > 2 else -1
    name = {0: "OffsetCommit", 1: "OffsetCommit", 2: "GroupMetadata"}.get(version)
    if name is None:
        imported.others += 1
        return None
    named = dict(decode_body(f"{name}Key", version, key[2:]).body)
    if value is None:
        return tell_deletion(named)
    try:
        told = decode_body(f"{name}Value", int.from_bytes(value[:2], "big"), value[2:])
    except ValueError:
        imported.add_unread(f"{name} of version {int.from_bytes(value[:2], 'big')}")
        return None
    return tell_value(named, told.body)


def tell_deletion(key: Mapping[str, Any]) -> Fields | None:
    """The step of a record without a value: the group is deleted. One offset that is deleted is no step."""
    return None if "topic" in key else {"step": "forget", "group": key.get("group", "")}


def tell_value(key: Mapping[str, Any], value: Mapping[str, Any]) -> Fields:
    """The step of a record: a committed offset, or a generation."""
    if "topic" in key:
        return {"step": "committed", **key, "offset": value.get("offset", -1)}
    members = [
        {
            "member": each.get("member_id", ""),
            "instance": each.get("group_instance_id"),
            "client": each.get("client_id"),
            "partitions": partitions_of(each.get("assignment")),
        }
        for each in value.get("members") or ()
    ]
    told: Fields = {"step": "stored", "group": key.get("group", ""), "generation": value.get("generation", -1)}
    told |= {"leader": value.get("leader") or "", "protocol": value.get("protocol") or "", "members": members}
    joined = value.get("current_state_timestamp", -1)
    return told | ({"joined": joined} if type(joined) is int and joined > 0 else {})


def partitions_of(assignment: Any) -> list[str]:
    """The partitions in an assignment, in bytes or decoded, as `topic/number`."""
    if isinstance(assignment, dict):
        rows = assignment.get("assigned_partitions") or ()
        return [f"{row['topic']}/{number}" for row in rows for number in row["partitions"]]
    return partitions_in(assignment)


# --- The text of kafka-dump-log.

BATCH_LINE = re.compile(r"baseOffset: .*?producerId: (?P<producer>-?\d+) .*?isTransactional: (?P<is_open>true|false)")
RECORD_LINE = re.compile(
    r"\boffset: (?P<offset>\d+) .*?CreateTime: (?P<time>\d+) .*?(?P<rest>(?:key|endTxnMarker): .*)$"
)
KEY_AND_VALUE = re.compile(r"key: (?P<key>.*?) payload: ?(?P<value>.*)$")
GROUP_KEY = re.compile(r"group_metadata::group=(?P<group>.*)$|metadata::(?P<old>.*)$")
OFFSET_KEY = re.compile(r"offset_commit::group=(?P<group>.*),partition=(?P<topic>.*)-(?P<partition>\d+)$")
OLD_VALUE = re.compile(r"(?P<type>[^:]*):(?P<protocol>[^:]*):(?P<generation>-?\d+):(?P<assignment>\{.*\})$")
OWNER = re.compile(r"(?P<member>[^={}\[\]]+?)=\[(?P<parts>[^\]]*)\]")
CAPITAL = re.compile(r"(?<!^)([A-Z])")


def read_dump(path: Path, imported: OffsetsImportResult) -> Iterator[StoredRecord]:
    """Yield the records in the text of kafka-dump-log. Raises `TraceError`."""
    opened, producer, is_open = OpenTransactions(), -1, False
    for number, row in read_log_lines(path):
        batch = BATCH_LINE.search(row)
        if batch is not None and "key: " not in row:
            producer, is_open = int(batch["producer"]), batch["is_open"] == "true"
            continue
        found = RECORD_LINE.search(row)
        if found is None:
            continue
        time = int(found["time"])
        if found["rest"].startswith("endTxnMarker"):
            yield from opened.end(producer, time, is_commit="COMMIT" in found["rest"])
            continue
        imported.records += 1
        try:
            body = read_texts(found["rest"].rstrip())
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            imported.add_unread(f"line {number} is damaged")
            continue
        if body is None:
            imported.others += 1
        elif is_open and body["step"] == "committed":
            opened.hold(producer, StoredRecord(time, number, body))
        else:
            yield StoredRecord(time, number, body)


def read_texts(text: str) -> Fields | None:
    """What a key and a value in words tell of a classic group; None if nothing."""
    found = KEY_AND_VALUE.search(text)
    if found is None:
        return None
    key, value = found["key"], found["value"]
    if key.startswith("{"):
        return read_documents(key, value)
    group, offset = GROUP_KEY.match(key), OFFSET_KEY.match(key)
    if group is not None:
        return read_old_group(group["group"] or group["old"], value)
    number = re.search(r"offset=(-?\d+)", value)
    if offset is None or number is None:
        return None
    told = {"group": offset["group"], "topic": offset["topic"], "partition": int(offset["partition"])}
    return tell_value(told, {"offset": int(number[1])})


def read_documents(key: str, value: str) -> Fields | None:
    """A record whose key and value are JSON: Kafka 3.9 and newer."""
    named, told = json.loads(key), json.loads(value) if value.startswith("{") else None
    if str(named.get("type")) not in ("0", "1", "2"):
        return None
    fields = snake_case(named.get("data") or {})
    return tell_deletion(fields) if told is None else tell_value(fields, snake_case(told.get("data") or {}))


def snake_case(value: Any) -> Any:
    """A document with the names of its fields in snake case."""
    if isinstance(value, dict):
        return {CAPITAL.sub(r"_\1", name).lower(): snake_case(inner) for name, inner in value.items()}
    return [snake_case(each) for each in value] if isinstance(value, list) else value


def read_old_group(group: str, value: str) -> Fields | None:
    """A generation as Kafka up to 3.8 writes it: without its leader."""
    told: Mapping[str, Any] = {}
    older = OLD_VALUE.match(value)
    if older is not None:
        told = {**older.groupdict(), "generationId": int(older["generation"])}
    elif value.startswith("{"):
        told = json.loads(value)
    if "generationId" not in told:
        return tell_deletion({"group": group})
    owners = OWNER.finditer(str(told.get("assignment") or ""))
    members = [
        {"member_id": each["member"].lstrip(" ,"), "assignment": {"assigned_partitions": owned_rows(each["parts"])}}
        for each in owners
    ]
    return tell_value({"group": group}, {**told, "generation": told["generationId"], "members": members})


def owned_rows(parts: str) -> list[Fields]:
    """The partitions in a list such as `t-0, t-1`."""
    split = (part.strip().rpartition("-") for part in parts.split(",") if part.strip())
    return [{"topic": topic, "partitions": [int(number)]} for topic, _, number in split if number.isdigit()]
