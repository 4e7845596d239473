"""Record batches of format 2: building, taking apart and moving them; compressed records are left as they are.

Source: the "Record Batch" section of Apache Kafka's documentation; the checksum is CRC-32C (Castagnoli).
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fencepost.model.wire.primitives import Cursor, ReadError, read_varlong, surplus_finding, write_varlong

_POLYNOMIAL = 0x82F63B78
_PREFIX = struct.Struct(">qiibI")
_BODY = struct.Struct(">hiqqqhii")
_LENGTH_FROM = 12
"""The length field counts from here: it leaves out the base offset and itself."""

_COMPRESSION = 0x07
_TRANSACTIONAL = 0x10
_CONTROL = 0x20


def _table() -> tuple[int, ...]:
    entries = []
    for entry in range(256):
        for _ in range(8):
            entry = (entry >> 1) ^ (_POLYNOMIAL if entry & 1 else 0)
        entries.append(entry)
    return tuple(entries)


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The CRC-32C of `data`."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `timestamp` in milliseconds since 1970, `offset` in its partition."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = 0
    offset: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as it lies in a log. `records` are the bytes after the record count, compressed or not."""

    base_offset: int
    leader_epoch: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    records: bytes

    @property
    def next_offset(self) -> int:
        """The offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size(self) -> int:
        """The length of the whole batch in bytes."""
        return _PREFIX.size + _BODY.size + len(self.records)

    @property
    def compressed(self) -> bool:
        """Whether `records` are compressed."""
        return bool(self.attributes & _COMPRESSION)

    @property
    def transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether the batch is a marker of the broker's instead of records."""
        return bool(self.attributes & _CONTROL)


@dataclass(frozen=True, slots=True)
class DecodedBatches:
    """What some bytes held; an answer to Fetch may rightly end in the middle of a batch."""

    batches: tuple[Batch, ...]
    findings: tuple[str, ...]


def make_batch(records: Sequence[Record], base_offset: int = 0, leader_epoch: int = 0) -> Batch:
    """Put records together; their offsets are taken from `base_offset` on. Raises ValueError for no records."""
    if not records:
        raise ValueError("a batch has at least one record")
    base_timestamp = records[0].timestamp
    out = bytearray()
    for delta, record in enumerate(records):
        _write_record(out, record, delta, base_timestamp)
    last = len(records) - 1
    latest = max(record.timestamp for record in records)
    return Batch(base_offset, leader_epoch, 0, last, base_timestamp, latest, -1, -1, -1, len(records), bytes(out))


def control_batch(base_offset: int, producer_id: int, producer_epoch: int, commit: bool, timestamp: int) -> Batch:
    """The marker that ends a transaction in a partition (KIP-98)."""
    key = struct.pack(">hh", 0, int(commit))
    value = struct.pack(">hi", 0, 0)
    batch = make_batch([Record(value, key, timestamp)], base_offset)
    attributes = _TRANSACTIONAL | _CONTROL
    return replace(batch, attributes=attributes, producer_id=producer_id, producer_epoch=producer_epoch)


def encode_batch(batch: Batch) -> bytes:
    """The bytes of a batch, with its checksum."""
    body = _BODY.pack(
        batch.attributes,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.record_count,
    )
    body += batch.records
    length = _PREFIX.size - _LENGTH_FROM + len(body)
    return _PREFIX.pack(batch.base_offset, length, batch.leader_epoch, 2, crc32c(body)) + body


def rebase_batch(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The bytes of a batch with another base offset and leader epoch, which its checksum does not cover."""
    _, length, _, magic, checksum = _PREFIX.unpack_from(data)
    return _PREFIX.pack(base_offset, length, leader_epoch, magic, checksum) + data[_PREFIX.size :]


def decode_batches(data: bytes) -> DecodedBatches:
    """Take a run of batches apart, up to the first that cannot be read. Never fails on what `data` holds."""
    batches: list[Batch] = []
    start = 0
    while start < len(data):
        found = _read_batch(data, start)
        if isinstance(found, str):
            return DecodedBatches(tuple(batches), (f"{found} at byte {start}",))
        batch, start = found
        batches.append(batch)
    return DecodedBatches(tuple(batches), ())


def records_of(batch: Batch) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """The records of a batch and what was odd about them; those of a compressed batch stay unknown."""
    if batch.compressed:
        return (), ("compressed records",)
    cursor = Cursor(batch.records)
    records: list[Record] = []
    try:
        records.extend(_read_records(cursor, batch))
    except ReadError as cut:
        cursor.add_finding(str(cut.within(f"record {len(records)}", None)))
    return tuple(records), tuple(cursor.findings)


def _read_batch(data: bytes, start: int) -> tuple[Batch, int] | str:
    if len(data) - start < _PREFIX.size + _BODY.size:
        return "truncated batch"
    base_offset, length, leader_epoch, magic, checksum = _PREFIX.unpack_from(data, start)
    if magic != 2:
        return f"record format {magic}"
    end = start + _LENGTH_FROM + length
    body = start + _PREFIX.size
    if not body + _BODY.size <= end <= len(data):
        return "truncated batch"
    if crc32c(data[body:end]) != checksum:
        return "wrong checksum"
    fields = (base_offset, leader_epoch, *_BODY.unpack_from(data, body), data[body + _BODY.size : end])
    return Batch(*fields), end


def _read_records(cursor: Cursor, batch: Batch) -> Iterator[Record]:
    for _ in range(max(batch.record_count, 0)):
        record = Cursor(cursor.take(read_varlong(cursor)))
        record.take(1)
        timestamp = batch.base_timestamp + read_varlong(record)
        offset = batch.base_offset + read_varlong(record)
        key = _read_bytes(record)
        value = _read_bytes(record)
        yield Record(value, key, timestamp, offset, tuple(_read_headers(record)))
        if record.position < record.end:
            cursor.add_finding(f"{surplus_finding(record)} in the record with offset {offset}")
    if cursor.position < cursor.end:
        cursor.add_finding(surplus_finding(cursor))


def _read_headers(cursor: Cursor) -> Iterator[tuple[str, bytes | None]]:
    for _ in range(read_varlong(cursor)):
        key = _read_bytes(cursor) or b""
        yield key.decode(errors="surrogateescape"), _read_bytes(cursor)


def _read_bytes(cursor: Cursor) -> bytes | None:
    length = read_varlong(cursor)
    return None if length < 0 else cursor.take(length)


def _write_bytes(out: bytearray, data: bytes | None) -> None:
    write_varlong(out, -1 if data is None else len(data))
    out += data or b""


def _write_record(out: bytearray, record: Record, delta: int, base_timestamp: int) -> None:
    one = bytearray(b"\0")
    write_varlong(one, record.timestamp - base_timestamp)
    write_varlong(one, delta)
    _write_bytes(one, record.key)
    _write_bytes(one, record.value)
    write_varlong(one, len(record.headers))
    for name, value in record.headers:
        _write_bytes(one, name.encode(errors="surrogateescape"))
        _write_bytes(one, value)
    write_varlong(out, len(one))
    out += one
