"""The wire format equals kio's byte for byte, for every API and version that both know."""

import dataclasses
import io
import random
import re
import struct
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin

import pytest
from crc32c import crc32c as reference_crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_entity_schema
from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, RecordHeader
from kio.records.schema import Record as KioRecord
from kio.records.writers import write_batch
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from fencepost.model.wire import codec, records
from fencepost.model.wire.records import Record, decode_batches, encode_batch, make_batch, records_of
from fencepost.model.wire.schema import SCHEMAS

# --- Record batches, against other writers of the same format and under hostile bytes.

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
def test_same_batches_as_kio(written: list[Record], base_offset: int) -> None:
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


MESSAGES_EACH = 12
WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def kio_class(name: str, version: int) -> Any:
    """kio's class for a schema of ours, or None if kio has dropped that version."""
    snake_name = re.sub("(?!^)([A-Z])", r"_\1", name).lower()
    for found, kind in (
        (snake_name, EntityType.data),
        (snake_name, EntityType.header),
        (snake_name.removesuffix("_request"), EntityType.request),
        (snake_name.removesuffix("_response"), EntityType.response),
    ):
        if kind in schema_name_map.get(found, {}).get(version, {}):
            return load_entity_schema(found, version, cast(Any, kind))
    return None


FOREIGN = {"StickyAssignorUserData", "CooperativeStickyAssignorUserData"} | {
    f"{name}{part}" for name in ("OffsetCommit", "GroupMetadata") for part in ("Key", "Value")
}
"""Formats of Kafka's assignors, which are not among Kafka's schemas (`tests/model/assignors` has bytes of them), and
what coordinators store, which kio does not know (`tests/traces/test_import_offsets.py` has bytes of that)."""
PAIRS = [(name, version) for name, schema in SCHEMAS.items() if name not in FOREIGN for version in schema.versions]
KNOWN_TO_KIO = [(name, version) for name, version in PAIRS if kio_class(name, version) is not None]


class Pair:
    """Makes the same message as an entity of kio's and as a body of ours, walking kio's classes."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def entity(self, cls: Any, fields: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        theirs, ours = {}, {}
        for field in dataclasses.fields(cls):
            name = field.name if field.name in fields else field.name + "_ms"
            theirs[field.name], ours[name] = self.value(field.type, field.metadata.get("kafka_type"), fields[name])
        assert ours.keys() == fields.keys()
        return cls(**theirs), ours

    def value(self, kind: Any, primitive: str | None, fields: Any) -> tuple[Any, Any]:
        if get_origin(kind) is UnionType and primitive != "uuid":
            if self.chance.random() < 0.25:
                return None, -1 if primitive == "datetime_i64" else None
            (kind,) = (one for one in get_args(kind) if one is not NoneType)
        if get_origin(kind) is tuple:
            items = [
                self.value(get_args(kind)[0], primitive, fields) for _ in range(self.chance.choice((0, 1, 1, 2, 3)))
            ]
            return tuple(theirs for theirs, _ in items), [ours for _, ours in items]
        if primitive is None:
            return self.entity(kind, fields)
        theirs, ours = self.primitive(primitive)
        return theirs, ours

    def primitive(self, kind: str) -> tuple[Any, Any]:
        chance = self.chance
        match kind:
            case "string":
                text = "".join(chance.choices("abc-.é語🐟\0", k=chance.choice((0, 1, 5, 40, 130))))
                return text, text
            case "bytes" | "records":
                raw = chance.randbytes(chance.choice((0, 1, 9, 127, 128, 300)))
                return raw, raw
            case "bool":
                flag = chance.random() < 0.5
                return flag, flag
            case "uuid":
                one = uuid.UUID(int=chance.choice((0, chance.getrandbits(128))))
                return (one if one.int else None), str(one)
            case "error_code":
                error = chance.choice(list(ErrorCode))
                return error, error.value
            case "timedelta_i32" | "timedelta_i64":
                span = chance.randint(-(2**31), 2**31 - 1)
                return timedelta(milliseconds=span), span
            case "datetime_i64":
                moment = chance.randint(0, 2**41)
                return datetime.fromtimestamp(moment / 1000, UTC), moment
        width = WIDTHS[kind]
        number = chance.choice((-1, 0, 1, -(2 ** (width - 1)), 2 ** (width - 1) - 1, chance.randint(-100, 100)))
        return number, number


def written_by_kio(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def test_kio_knows_nearly_everything() -> None:
    """The comparison below means something only as long as it covers the tables."""
    dropped = set(PAIRS) - set(KNOWN_TO_KIO)
    assert {name.removesuffix("Request").removesuffix("Response") for name, _ in dropped} == {
        "OffsetCommit",
        "OffsetFetch",
        "CreateTopics",
        "DescribeConfigs",
    }
    assert len(dropped) == 2 * (2 + 1 + 2 + 1)


@pytest.mark.parametrize("name", SCHEMAS)
def test_same_bytes_as_kio(name: str) -> None:
    for version in (version for known, version in KNOWN_TO_KIO if known == name):
        pair = Pair(random.Random(f"{name} {version}"))
        for _ in range(MESSAGES_EACH):
            entity, body = pair.entity(kio_class(name, version), codec.fields_of(name, version))
            data = written_by_kio(entity)
            assert codec.encode_body(name, version, body) == data, (version, body)
            assert codec.decode_body(name, version, data) == codec.DecodedBody(body, ()), version
