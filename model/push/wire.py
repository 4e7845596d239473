"""The messages of the draft as bytes: frames, requests with a type, responses without one, and the repairs.

A frame is a 32-bit size that does not count itself, and that many bytes. Integers are big-endian, a string is its
16-bit length and its bytes. The draft numbers no type; the numbers here are ours. Repaired, each response begins with
the type of its request, Stop, Start and their responses carry the attempt, and the coordinator's id has 32 bits.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from fencepost.model.errors import FencepostError
from fencepost.model.push.dialect import Command, PushDialect

Body: TypeAlias = Mapping[str, Any]
MAX_FRAME_BYTES = 1 << 20
"""A larger size is taken for no frame at all."""
NO_COORDINATOR = -1
REQUEST_TYPES = {"ClusterMetadata": 20, "RegisterConsumer": 21, "Ping": 22, "Stop": 23, "Start": 24}
"""The type of each request."""
_NAMES = {number: name for name, number in REQUEST_TYPES.items()}


class MalformedFrame(FencepostError):
    """Bytes that are no message; the line says what is wrong where."""


@dataclass(frozen=True, slots=True)
class WireField:
    """A field: its name, and its kind, or the fields of each entry of a list whose length is 16 bits."""

    name: str
    kind: str
    entries: tuple["WireField", ...] = ()


def fields(*pairs: str) -> tuple[WireField, ...]:
    """Fields written as "name kind"."""
    return tuple(WireField(name, kind) for name, kind in map(str.split, pairs))


_OFFSETS = WireField("partitions", "list", fields("topic string", "partition string", "offset i64"))
_BROKERS = WireField("brokers", "list", fields("id i32", "host string", "port i32"))
_REGISTER = fields(
    "group string",
    "consumer string",
    "topic_count string",
    "auto_commit bool",
    "auto_offset_reset string",
    "session_timeout_ms i32",
)
_FORMATS = {"bool": ">?", "i16": ">h", "i32": ">i", "i64": ">q"}


def request_fields(name: str, dialect: PushDialect) -> tuple[WireField, ...]:
    """The fields of a request after its type."""
    attempt = fields("attempt i32") if dialect.numbers_attempts else ()
    if name == "RegisterConsumer":
        return _REGISTER
    if name == "Ping":
        return fields("num_retries i16") + (fields("confirmed i32") if dialect.lease_is_confirmed else ())
    if name == "Stop":
        return attempt
    return (*attempt, _OFFSETS) if name == "Start" else ()


def response_fields(name: str, dialect: PushDialect) -> tuple[WireField, ...]:
    """The fields of the response to a request; those of a Ping are absent without auto-commit."""
    attempt = fields("attempt i32") if dialect.numbers_attempts else ()
    if name == "ClusterMetadata":
        coordinator = "coordinator_id i32" if dialect.wide_ids else "coordinator_id i16"
        return (*fields("error_code i16", coordinator), _BROKERS)
    if name == "Ping":
        return (_OFFSETS,)
    if name == "Stop":
        return (*attempt, _OFFSETS)
    return (*attempt, *fields("error_code i16")) if name == "Start" else fields("error_code i16")


def encode_push_request(name: str, body: Body, dialect: PushDialect) -> bytes:
    """The frame of a request. Raises `MalformedFrame` for a body that does not fit."""
    return _frame(struct.pack(">h", REQUEST_TYPES[name]) + _encode(request_fields(name, dialect), body, name))


def encode_push_response(name: str, body: Body, dialect: PushDialect) -> bytes:
    """The frame of the response to a request; a Ping's without `partitions` is empty. Raises `MalformedFrame`."""
    payload = struct.pack(">h", REQUEST_TYPES[name]) if dialect.types_responses else b""
    if name != "Ping" or "partitions" in body:
        payload += _encode(response_fields(name, dialect), body, name)
    return _frame(payload)


def decode_push_request(payload: bytes, dialect: PushDialect) -> tuple[str, Body]:
    """The name and the body of a request, its frame's size taken off. Raises `MalformedFrame`."""
    if len(payload) < 2:
        raise MalformedFrame(f"a request of {len(payload)} bytes has no type")
    number = struct.unpack_from(">h", payload)[0]
    name = _NAMES.get(number)
    if name is None:
        raise MalformedFrame(f"request type {number} is none of {sorted(_NAMES)}")
    return name, _decode(request_fields(name, dialect), payload, 2, name)


def decode_push_response(name: str, payload: bytes, dialect: PushDialect) -> Body:
    """The body of the response to a request of this name. Raises `MalformedFrame`."""
    start = 0
    if dialect.types_responses:
        if len(payload) < 2 or struct.unpack_from(">h", payload)[0] != REQUEST_TYPES[name]:
            raise MalformedFrame(f"{payload[:2].hex(' ') or 'nothing'} is not the type of a response to {name}")
        start = 2
    if name == "Ping" and len(payload) == start:
        return {}
    return _decode(response_fields(name, dialect), payload, start, f"response to {name}")


def response_name(payload: bytes) -> str:
    """What a response that says so responds to. Raises `MalformedFrame`."""
    number = struct.unpack_from(">h", payload)[0] if len(payload) >= 2 else 0
    if number not in _NAMES:
        raise MalformedFrame(f"response type {number} is none of {sorted(_NAMES)}")
    return _NAMES[number]


def frame_size(head: bytes) -> int:
    """The size in the first four bytes of a frame. Raises `MalformedFrame` if it is negative or too large."""
    return _check_size(int(struct.unpack(">i", head)[0]))


def has_stop_response(dialect: PushDialect) -> bool:
    """Whether Stop is answered."""
    return dialect.command is Command.STOP_RESPONSE


def _check_size(size: int) -> int:
    if not 0 <= size <= MAX_FRAME_BYTES:
        raise MalformedFrame(f"a frame of {size} bytes; at most {MAX_FRAME_BYTES} are read")
    return size


def _frame(payload: bytes) -> bytes:
    return struct.pack(">i", _check_size(len(payload))) + payload


def _encode(layout: tuple[WireField, ...], body: Body, what: str) -> bytes:
    return b"".join(_encode_field(field, body.get(field.name, _default(field)), what) for field in layout)


def _default(field: WireField) -> Any:
    return [] if field.kind == "list" else "" if field.kind == "string" else 0


def _encode_field(field: WireField, value: Any, what: str) -> bytes:
    try:
        if field.kind == "list":
            entries = b"".join(_encode(field.entries, entry, what) for entry in value)
            return struct.pack(">h", len(value)) + entries
        if field.kind == "string":
            data: bytes = value.encode()
            return struct.pack(">h", len(data)) + data
        return struct.pack(_FORMATS[field.kind], value)
    except (struct.error, AttributeError, TypeError) as error:
        raise MalformedFrame(f"{what}: {field.name} cannot be {value!r} ({error})") from error


def _decode(layout: tuple[WireField, ...], payload: bytes, start: int, what: str) -> Body:
    cursor = _Cursor(payload, start, what)
    body = dict(cursor.read_fields(layout))
    if cursor.place != len(payload):
        raise MalformedFrame(f"{what}: {len(payload) - cursor.place} bytes too many")
    return body


@dataclass(slots=True)
class _Cursor:
    """A place in the bytes of a message."""

    payload: bytes
    place: int
    what: str

    def take(self, size: int, name: str) -> bytes:
        """The next bytes."""
        data = self.payload[self.place : self.place + size]
        if size < 0 or len(data) < size:
            raise MalformedFrame(f"{self.what}: {name} wants {size} bytes at byte {self.place}, {len(data)} are there")
        self.place += size
        return data

    def read_fields(self, layout: tuple[WireField, ...]) -> Iterator[tuple[str, Any]]:
        """Each field with its value."""
        for field in layout:
            yield field.name, self.read(field)

    def read(self, field: WireField) -> Any:
        """The value of a field."""
        if field.kind not in ("list", "string"):
            form = _FORMATS[field.kind]
            return struct.unpack(form, self.take(struct.calcsize(form), field.name))[0]
        size = struct.unpack(">h", self.take(2, field.name))[0]
        if field.kind == "string":
            return self.take(size, field.name).decode(errors="replace")
        if size < 0:
            raise MalformedFrame(f"{self.what}: {field.name} has {size} entries")
        return [dict(self.read_fields(field.entries)) for _ in range(size)]
