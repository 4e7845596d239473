"""From a schema and a version to a reader and a writer, made once and kept."""

import functools
import reprlib
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from fencepost.model.protocols import load_part, protocols_with
from fencepost.model.wire import primitives
from fencepost.model.wire.primitives import (
    Cursor,
    Reader,
    ReadError,
    UnencodableError,
    Writer,
    read_uvarint,
    surplus_finding,
    write_uvarint,
)
from fencepost.model.wire.schema import SCHEMAS, Field, Schema, read_tables

UNKNOWN_TAGS = "unknown_tags"
"""Where a body keeps the tagged fields that the schema does not know: their bytes by number, written as text."""


def schema_of(name: str, version: int) -> Schema:
    """The schema called `name`. Raises ValueError unless the kit knows it in that version."""
    schema = SCHEMAS.get(name) or schemas_of_protocols().get(name)
    if schema is None:
        raise ValueError(f"no message is called {name!r}")
    if version not in schema.versions:
        low, high = schema.versions[0], schema.versions[-1]
        raise ValueError(f"{name} version {version} is not known; versions {low} to {high} are")
    return schema


@functools.cache
def schemas_of_protocols() -> Mapping[str, Schema]:
    """The schemas of messages that a single protocol has for itself, by name."""
    schemas, _ = read_tables(map(load_part, protocols_with(lambda entry: entry.messages).values()))
    return schemas


@functools.cache
def compile_message(name: str, version: int) -> tuple[Reader, Writer]:
    """Reader and writer of one message. Raises ValueError as `schema_of`."""
    schema = schema_of(name, version)
    return _struct(schema.fields, version, version in schema.flexible, "")


def default_of(field: Field, version: int) -> Any:
    """A fresh default of `field`, structs filled in."""
    if field.kind == "struct" and not field.array and field.default is not None:
        return {inner.name: default_of(inner, version) for inner in field.fields if version in inner.versions}
    return list(field.default) if isinstance(field.default, list) else field.default


@dataclass(frozen=True, slots=True)
class _Member:
    """A field in one version, ready to be read and written."""

    field: Field
    version: int
    read: Reader
    write: Writer

    def default(self) -> Any:
        return default_of(self.field, self.version)


def _item(field: Field, version: int, flexible: bool, nullable: bool, path: str) -> tuple[Reader, Writer]:
    compact = flexible and not field.rigid
    match field.kind:
        case "struct":
            return _struct(field.fields, version, flexible, path)
        case "string":
            return primitives.string_codec(compact, nullable, path)
        case "bytes" | "records":
            return primitives.bytes_codec(compact, nullable, path)
        case _:
            return primitives.FIXED_WIDTH[field.kind]


def _value(field: Field, version: int, flexible: bool, path: str) -> tuple[Reader, Writer]:
    nullable = version in field.nullable
    if not field.array:
        return _item(field, version, flexible, nullable, path)
    item = _item(field, version, flexible, False, path + "[]")
    return primitives.array_codec(item, flexible, nullable, path)


def _struct(fields: tuple[Field, ...], version: int, flexible: bool, path: str) -> tuple[Reader, Writer]:
    inside = path + "." if path else ""
    present = [field for field in fields if version in field.versions]
    absent = {field.name: default_of(field, version) for field in fields if version not in field.versions}
    members = [_Member(field, version, *_value(field, version, flexible, inside + field.name)) for field in present]
    plain = [member for member in members if member.field.tag is None]
    tagged = [member for member in members if member.field.tag is not None]
    return (
        _struct_reader(plain, _tag_reader(tagged, path) if flexible else None),
        _struct_writer(plain, _tag_writer(tagged) if flexible else None, {m.field.name for m in tagged}, absent),
    )


def _struct_reader(plain: list[_Member], read_tags: Callable[[Cursor, dict[str, Any]], None] | None) -> Reader:
    readers = [(member.field.name, member.read) for member in plain]

    def read(cursor: Cursor) -> dict[str, Any]:
        body: dict[str, Any] = {}
        name = ""
        try:
            for name, read_field in readers:
                body[name] = read_field(cursor)
            if read_tags is not None:
                name = "tags"
                read_tags(cursor, body)
        except ReadError as cut:
            if cut.value is not None:
                body[name] = cut.value
            raise cut.within("." + name, body or None) from None
        return body

    return read


def _struct_writer(
    plain: list[_Member],
    write_tags: Callable[[bytearray, Mapping[str, Any]], None] | None,
    tag_names: set[str],
    absent: Mapping[str, Any],
) -> Writer:
    writers = [(member.field.name, member.default(), member.write) for member in plain]
    known = {name for name, _, _ in writers} | tag_names
    if write_tags is not None:
        known.add(UNKNOWN_TAGS)

    def write(out: bytearray, body: Mapping[str, Any]) -> None:
        if not isinstance(body, Mapping):
            raise UnencodableError(f"{reprlib.repr(body)} is no mapping of field names to values")
        if not body.keys() <= known:
            _check_strays(body, known, absent)
        name = ""
        try:
            for name, default, write_field in writers:
                write_field(out, body.get(name, default))
            if write_tags is not None:
                name = "tags"
                write_tags(out, body)
        except UnencodableError as error:
            raise error.within("." + name) from None
        except (struct.error, TypeError, ValueError, OverflowError, AttributeError) as error:
            value = reprlib.repr(body.get(name))
            raise UnencodableError(f"{value} does not fit ({error})").within("." + name) from error

    return write


def _check_strays(body: Mapping[str, Any], known: set[str], absent: Mapping[str, Any]) -> None:
    """Fields that this version lacks may be given only as long as they say nothing."""
    for name in sorted(body.keys() - known):
        if name not in absent:
            raise UnencodableError(f"there is no field {name!r}")
        if body[name] is not None and body[name] != absent[name]:
            raise UnencodableError(f"this version has no field {name!r}, given as {reprlib.repr(body[name])}")


def _tag_reader(tagged: list[_Member], path: str) -> Callable[[Cursor, dict[str, Any]], None]:
    by_number = {member.field.tag: member for member in tagged}
    place = path or "the message"

    def read(cursor: Cursor, body: dict[str, Any]) -> None:
        body.update((member.field.name, member.default()) for member in tagged)
        last = -1
        for _ in range(read_uvarint(cursor)):
            number = read_uvarint(cursor)
            data = cursor.take(read_uvarint(cursor))
            if number <= last:
                cursor.add_finding(f"tags out of order in {place}")
            last = number
            member = by_number.get(number)
            if member is None:
                body.setdefault(UNKNOWN_TAGS, {})[str(number)] = data
            else:
                body[member.field.name] = _read_tagged(cursor, member, data, place)

    return read


def _read_tagged(cursor: Cursor, member: _Member, data: bytes, place: str) -> Any:
    """A tagged field knows its size, so that a fault inside it does not end the message."""
    inner = Cursor(data, cursor.max_items)
    value = None
    try:
        value = member.read(inner)
        if inner.position < inner.end:
            inner.add_finding(f"{surplus_finding(inner)} in {member.field.name} of {place}")
    except ReadError as cut:
        inner.add_finding(str(cut.within("." + member.field.name, cut.value)))
        value = cut.value
    cursor.findings.update(inner.findings)
    cursor.max_items = inner.max_items
    return member.default() if value is None else value


def _tag_writer(tagged: list[_Member]) -> Callable[[bytearray, Mapping[str, Any]], None]:
    def encode_tagged(member: _Member, value: Any) -> bytes:
        data = bytearray()
        member.write(data, value)
        return bytes(data)

    defaults = {member.field.name: encode_tagged(member, member.default()) for member in tagged}

    def write(out: bytearray, body: Mapping[str, Any]) -> None:
        found = {int(number): bytes(data) for number, data in body.get(UNKNOWN_TAGS, {}).items()}
        for member in tagged:
            name = member.field.name
            if name in body and (data := encode_tagged(member, body[name])) != defaults[name]:
                found[cast(int, member.field.tag)] = data
        write_uvarint(out, len(found))
        for number, data in sorted(found.items()):
            write_uvarint(out, number)
            write_uvarint(out, len(data))
            out += data

    return write
