"""Record batches, against other writers of the same format and under hostile bytes."""

import io
import struct
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from crc32c import crc32c as reference_crc32c  # comes with kio
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, RecordHeader
from kio.records.schema import Record as KioRecord
from kio.records.writers import write_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from fencepost.model.wire import records
from fencepost.model.wire.records import Record, decode_batches, encode_batch, make_batch, records_of

blobs = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=5), blobs), max_size=3).map(tuple)
some_records = st.lists(
    st.builds(Record, blobs, blobs, st.integers(0, 2**32).map(lambda seconds: seconds * 1000), headers=headers),
    min_size=1,
    max_size=8,
)


@given(st.binary(max_size=300))
def test_checksum(data: bytes) -> None:
    assert records.crc32c(data) == reference_crc32c(data)


def as_kio(record: Record, offset: int) -> KioRecord:
    moment = datetime.fromtimestamp(record.timestamp / 1000, UTC)
    return KioRecord(
        attributes=i8(0),
        timestamp=TZAwareMicros.parse(moment),
        offset=i64(offset),
        key=record.key,
        value=record.value,
        headers=tuple(RecordHeader(key=name.encode(), value=value) for name, value in record.headers),
    )


@given(some_records, st.integers(0, 2**40))
@settings(deadline=None)
def test_same_bytes_as_kio(written: list[Record], base_offset: int) -> None:
    out = io.BytesIO()
    theirs = tuple(as_kio(record, base_offset + delta) for delta, record in enumerate(written))
    write_batch(
        out,
        NewRecordBatch(
            producer_id=i64(-1), producer_epoch=i16(-1), base_sequence=i32(-1), records=theirs, attributes=i16(0)
        ),
    )
    ours = make_batch(written, base_offset)
    assert encode_batch(ours) == out.getvalue()
    assert read_batch(encode_batch(ours), 0)[0].records == theirs


@given(some_records, st.integers(0, 2**40))
@settings(deadline=None)
def test_round_trip(written: list[Record], base_offset: int) -> None:
    batch = make_batch(written, base_offset)
    data = encode_batch(batch)
    assert decode_batches(data + data).batches == (batch, batch)
    read, findings = records_of(batch)
    assert findings == ()
    assert read == tuple(replace(record, offset=base_offset + i) for i, record in enumerate(written))
    assert batch.next_offset == base_offset + len(written)
    assert batch.size == len(data)
    assert records.rebase_batch(data, 5, 6) == encode_batch(replace(batch, base_offset=5, leader_epoch=6))


def test_faults_are_found() -> None:
    data = encode_batch(make_batch([Record(b"v")]))
    assert decode_batches(data + data[:-1]).findings == (f"truncated batch at byte {len(data)}",)
    assert len(decode_batches(data + data[:-1]).batches) == 1
    assert decode_batches(data[:-1] + b"x").findings == ("wrong checksum at byte 0",)
    assert decode_batches(data[:16] + b"\1" + data[17:]).findings == ("record format 1 at byte 0",)
    compressed = replace(make_batch([Record(b"v")]), attributes=2)
    assert records_of(compressed) == ((), ("compressed records",))
    negative = replace(make_batch([Record(b"v")]), records=b"\1\1\1\1")
    assert records_of(negative)[1] == ("truncated at record 0: need -1 bytes, have 3",)
    with pytest.raises(ValueError, match="at least one record"):
        make_batch([])


@given(st.binary(max_size=200), st.integers(-(2**31), 2**31 - 1))
@settings(deadline=None)
def test_hostile_records_never_raise(data: bytes, count: int) -> None:
    batch = replace(make_batch([Record(b"v")]), records=data, record_count=count)
    (read,) = decode_batches(encode_batch(batch)).batches
    assert read == batch
    records_of(batch)
    decode_batches(data)
    decode_batches(struct.pack(">qiibI", 0, count, 0, 2, 0) + data)


def test_the_end_of_a_transaction() -> None:
    batch = records.control_batch(7, 42, 3, commit=True, timestamp=5)
    assert batch.transactional and batch.control and batch.next_offset == 8
    parsed, _ = read_batch(encode_batch(batch), 0)
    assert (parsed.attributes, parsed.producer_id, parsed.producer_epoch, parsed.base_offset) == (0x30, 42, 3, 7)
    assert (parsed.records[0].key, parsed.records[0].value) == (b"\0\0\0\1", b"\0\0\0\0\0\0")
