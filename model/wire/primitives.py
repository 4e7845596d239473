"""Reading and writing the primitive types of the wire format.

A reader takes the next value off a `Cursor`; a writer appends one to a bytearray. Readers forgive what can be
forgiven and note it; what cannot be read raises `ReadError`. Writers write whatever fits the type's form, legal or not.
Source: the protocol guide of Apache Kafka, "Protocol Primitive Types"; KIP-482 for the compact forms.
"""

import struct
import uuid
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

NO_LIMIT = 1 << 62
ZERO_UUID = "00000000-0000-0000-0000-000000000000"
"""Kafka's id of no topic (KIP-516)."""

_VARINT_BYTES = 5
_VARLONG_BYTES = 10


class ReadError(Exception):
    """Reading ended early. `path` grows from the inside out; `value` is what the innermost reader had by then."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what = what
        self.reason = reason
        self.path: list[str] = []
        self.value: Any = None

    def within(self, step: str, value: Any) -> "ReadError":
        """This error with the step into it from the enclosing struct or array, which has read `value`."""
        self.path.insert(0, step)
        self.value = value
        return self

    def __str__(self) -> str:
        where = "".join(self.path).removeprefix(".") or "the start"
        return f"{self.what} at {where}: {self.reason}"


class UnencodableError(ValueError):
    """A body that the wire format has no form for; the message is one line that names the field."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def within(self, step: str) -> "UnencodableError":
        """This error with the step into it from the enclosing struct, array or message."""
        self.path.insert(0, step)
        return self

    def __str__(self) -> str:
        return f"{''.join(self.path).replace(' .', ' ').strip()}: {self.reason}"


class Cursor:
    """A place in some bytes, and what was found odd on the way there. `max_items` is how many more array items may
    come."""

    __slots__ = ("data", "end", "findings", "max_items", "position")

    def __init__(self, data: bytes, room: int = NO_LIMIT) -> None:
        self.data = data
        self.max_items = room
        self.position = 0
        self.end = len(data)
        self.findings: dict[str, None] = {}

    def add_finding(self, finding: str) -> None:
        """Keep a finding, once."""
        self.findings[finding] = None

    def truncation(self, needed: int) -> ReadError:
        """What to raise when fewer than `needed` bytes are left."""
        return ReadError("truncated", f"need {needed} bytes, have {self.end - self.position}")

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        start = self.position
        if not 0 <= count <= self.end - start:
            raise self.truncation(count)
        self.position = start + count
        return self.data[start : start + count]


def surplus_finding(cursor: Cursor) -> str:
    """What to note when bytes are left over."""
    count = cursor.end - cursor.position
    return f"{count} surplus byte{'s' if count > 1 else ''}"


Reader: TypeAlias = Callable[[Cursor], Any]
Writer: TypeAlias = Callable[[bytearray, Any], None]


def _fixed_width(code: str, write_code: str | None = None) -> tuple[Reader, Writer]:
    form = struct.Struct(">" + code)
    size, unpack, pack = form.size, form.unpack_from, struct.Struct(">" + (write_code or code)).pack

    def read(cursor: Cursor) -> Any:
        start = cursor.position
        if size > cursor.end - start:
            raise cursor.truncation(size)
        cursor.position = start + size
        return unpack(cursor.data, start)[0]

    def write(out: bytearray, value: Any) -> None:
        out += pack(value)

    return read, write


def _read_uuid(cursor: Cursor) -> str:
    return str(uuid.UUID(bytes=cursor.take(16)))


def _write_uuid(out: bytearray, value: str) -> None:
    out += uuid.UUID(value).bytes


FIXED_WIDTH: Mapping[str, tuple[Reader, Writer]] = MappingProxyType(
    {
        "bool": _fixed_width("?", "b"),
        "int8": _fixed_width("b"),
        "int16": _fixed_width("h"),
        "int32": _fixed_width("i"),
        "int64": _fixed_width("q"),
        "uuid": (_read_uuid, _write_uuid),
    }
)
"""The types of fixed width. A uuid is its usual text, which JSON can carry."""

read_int16, write_int16 = FIXED_WIDTH["int16"]
read_int32, write_int32 = FIXED_WIDTH["int32"]


def _read_varint(cursor: Cursor, most: int) -> int:
    value = shift = 0
    for _ in range(most):
        if cursor.position >= cursor.end:
            raise cursor.truncation(1)
        byte = cursor.data[cursor.position]
        cursor.position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
    raise ReadError("malformed", f"a variable-length number of more than {most} bytes")


def read_uvarint(cursor: Cursor) -> int:
    """An unsigned number of up to five bytes, seven bits in each, lowest first."""
    return _read_varint(cursor, _VARINT_BYTES)


def write_uvarint(out: bytearray, value: int) -> None:
    """Inverse of `read_uvarint`."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_varlong(cursor: Cursor) -> int:
    """A signed number of up to ten bytes in zigzag order, as in records."""
    value = _read_varint(cursor, _VARLONG_BYTES)
    return (value >> 1) ^ -(value & 1)


def write_varlong(out: bytearray, value: int) -> None:
    """Inverse of `read_varlong`."""
    write_uvarint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def length_reader(compact: bool, read: Reader) -> Callable[[Cursor], int]:
    """A length in front of strings, bytes and arrays; -1 stands for null. `read` reads the rigid form."""
    return (lambda cursor: read_uvarint(cursor) - 1) if compact else read


def length_writer(compact: bool, write: Writer) -> Callable[[bytearray, int], None]:
    """Inverse of `length_reader`."""
    return (lambda out, length: write_uvarint(out, length + 1)) if compact else write


def string_codec(compact: bool, nullable: bool, path: str) -> tuple[Reader, Writer]:
    """A string. Bytes that are no UTF-8 survive a round trip as surrogate escapes; a writer takes raw bytes too."""
    read_length = length_reader(compact, read_int16)
    write_length = length_writer(compact, write_int16)

    def read(cursor: Cursor) -> str | None:
        length = read_length(cursor)
        if length < 0:
            _note_null(cursor, length, nullable, path)
            return None
        raw = cursor.take(length)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            cursor.add_finding(f"no UTF-8 in {path}")
            return raw.decode(errors="surrogateescape")

    def write(out: bytearray, value: str | bytes | None) -> None:
        if value is None:
            write_length(out, -1)
            return
        raw = value.encode(errors="surrogateescape") if isinstance(value, str) else bytes(memoryview(value))
        write_length(out, len(raw))
        out += raw

    return read, write


def bytes_codec(compact: bool, nullable: bool, path: str) -> tuple[Reader, Writer]:
    """Bytes, or records, which the codec does not look into."""
    read_length = length_reader(compact, read_int32)
    write_length = length_writer(compact, write_int32)

    def read(cursor: Cursor) -> bytes | None:
        length = read_length(cursor)
        if length < 0:
            _note_null(cursor, length, nullable, path)
            return None
        return cursor.take(length)

    def write(out: bytearray, value: bytes | None) -> None:
        if value is None:
            write_length(out, -1)
            return
        raw = memoryview(value)
        write_length(out, raw.nbytes)
        out += raw

    return read, write


def array_codec(item: tuple[Reader, Writer], compact: bool, nullable: bool, path: str) -> tuple[Reader, Writer]:
    """A list. Its count is held against the bytes that are left before anything is made for it."""
    read_item, write_item = item
    read_length = length_reader(compact, read_int32)
    write_length = length_writer(compact, write_int32)

    def read(cursor: Cursor) -> list[Any] | None:
        count = read_length(cursor)
        if count < 0:
            _note_null(cursor, count, nullable, path)
            return None
        if count > cursor.end - cursor.position:
            raise cursor.truncation(count)
        if count > cursor.max_items:
            raise ReadError("too much", f"{count} more items, {cursor.max_items} are allowed")
        cursor.max_items -= count
        items: list[Any] = []
        try:
            for _ in range(count):
                items.append(read_item(cursor))
        except ReadError as cut:
            step = f"[{len(items)}]"
            if cut.value is not None:
                items.append(cut.value)
            raise cut.within(step, items) from None
        return items

    def write(out: bytearray, value: list[Any] | None) -> None:
        if value is None:
            write_length(out, -1)
            return
        if isinstance(value, str | bytes | Mapping):
            raise TypeError("not a list")
        write_length(out, len(value))
        for index, one in enumerate(value):
            try:
                write_item(out, one)
            except UnencodableError as error:
                raise error.within(f"[{index}]") from None

    return read, write


def _note_null(cursor: Cursor, length: int, nullable: bool, path: str) -> None:
    if not nullable:
        cursor.add_finding(f"null in non-nullable {path}")
    if length < -1:
        cursor.add_finding(f"length {length} in {path}")


# --- Java's string hash, by which Kafka places a group in the offsets topic.


def java_abs_hash(text: str) -> int:
    """`Utils.abs(text.hashCode())` of Kafka: the absolute value of Java's string hash, 0 for -2**31."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFF_FFFF
    signed = value - (1 << 32) if value >> 31 else value
    return 0 if signed == -(1 << 31) else abs(signed)
