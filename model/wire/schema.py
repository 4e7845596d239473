"""Message schemas: a small notation, and the values it is read into.

A table is indented text. A line at the margin opens an API or a free-standing piece of data:

    api JoinGroup 11, versions 0-9, flexible 6+
      request
        group_id      string
        protocols     []
          name        string
      response
        ...
    data ConsumerProtocolAssignment, versions 0-3
      ...

Below it stands one field a line: name, type, and then what applies of

    5+  0-7  3      the versions that have the field (all, if not said)
    = -1            the default (zero, empty or false, if not said)
    tag 0           a tagged field with that number, in flexible versions

A type is a primitive's name, `struct`, or either after `[]` for an array (a bare `[]` is an array of structs). `?`
after it allows null; `?2-7` allows null in those versions only. `rigid` marks a string that stays in the old form even
in flexible versions.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from fencepost.model.wire.primitives import ZERO_UUID
from fencepost.model.wire.tables import cluster, group, log, offsets

_NO_VERSION = range(0)
_EVERY_VERSION = range(1 << 15)

_TYPE = re.compile(r"(?P<array>\[\])?(?P<kind>[a-z]+\d*)?(?P<null>\?)?(?P<null_versions>[\d+-]*)")
_VERSIONS = re.compile(r"\d+(-\d+|\+)?")
_HEAD = re.compile(
    r"(api|data) (?P<name>\w+)( (?P<key>\d+))?, versions (?P<versions>[\d-]+)(, flexible (?P<flexible>\d+)\+)?"
)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message. `kind` is a primitive or "struct"; `default` is what a missing field stands for."""

    name: str
    kind: str
    array: bool
    versions: range
    nullable: range
    default: Any
    tag: int | None
    rigid: bool
    fields: tuple["Field", ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """A message or a piece of data in all its versions; `flexible` are those with compact lengths and tags."""

    name: str
    versions: range
    flexible: range
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a table with the lines indented under it."""

    text: str
    below: tuple["_Line", ...]


def _nest_lines(lines: list[str], depth: int = 0) -> Iterator[_Line]:
    """Turn indentation into nesting."""
    starts = [i for i, line in enumerate(lines) if len(line) - len(line.lstrip()) == depth]
    for start, end in pairwise([*starts, len(lines)]):
        yield _Line(lines[start].strip(), tuple(_nest_lines(lines[start + 1 : end], depth + 2)))


def _range(text: str) -> range:
    low, _, high = text.partition("-")
    if low.endswith("+"):
        return range(int(low[:-1]), _EVERY_VERSION.stop)
    return range(int(low), int(high or low) + 1)


def _default(text: str | None, kind: str, array: bool) -> Any:
    if text == "null":
        return None
    if array:
        return []
    match kind:
        case "bool":
            return text == "true"
        case "string":
            return text or ""
        case "bytes" | "records":
            return b""
        case "uuid":
            return ZERO_UUID
        case "struct":
            return {}
        case _:
            return int(text or "0")


def _field(line: _Line) -> Field:
    name, type_text, *words = line.text.split()
    shape = _TYPE.fullmatch(type_text)
    if shape is None:
        raise ValueError(f"no type: {line.text!r}")
    kind = shape["kind"] or "struct"
    array = shape["array"] is not None
    versions = _range(words.pop(0)) if words and _VERSIONS.fullmatch(words[0]) else _EVERY_VERSION
    nullable = _EVERY_VERSION if shape["null"] else _NO_VERSION
    if shape["null_versions"]:
        nullable = _range(shape["null_versions"])
    default = words[words.index("=") + 1] if "=" in words else None
    tag = int(words[words.index("tag") + 1]) if "tag" in words else None
    below = tuple(map(_field, line.below))
    return Field(name, kind, array, versions, nullable, _default(default, kind, array), tag, "rigid" in words, below)


def _schemas(table: str) -> Iterator[tuple[int | None, Schema]]:
    for line in _nest_lines([line for line in table.splitlines() if line.strip()]):
        head = _HEAD.fullmatch(line.text)
        if head is None:
            raise ValueError(f"neither api nor data: {line.text!r}")
        versions = _range(head["versions"])
        flexible = range(int(head["flexible"]), _EVERY_VERSION.stop) if head["flexible"] else _NO_VERSION
        if head["key"] is None:
            yield None, Schema(head["name"], versions, flexible, tuple(map(_field, line.below)))
        else:
            for part in line.below:
                name = head["name"] + part.text.capitalize()
                yield int(head["key"]), Schema(name, versions, flexible, tuple(map(_field, part.below)))


def read_tables(tables: Iterable[str]) -> tuple[Mapping[str, Schema], Mapping[str, int]]:
    """The schemas in these tables by name, and the numbers of their APIs by name."""
    schemas = {}
    keys = {}
    for key, schema in (found for table in tables for found in _schemas(table)):
        schemas[schema.name] = schema
        if key is not None:
            keys[schema.name.removesuffix("Request").removesuffix("Response")] = key
    return MappingProxyType(schemas), MappingProxyType(keys)


SCHEMAS, API_KEYS = read_tables(module.TABLE for module in (cluster, group, offsets, log))
"""`SCHEMAS`: every schema by name ("JoinGroupRequest"). `API_KEYS`: the number of every API by name ("JoinGroup")."""
