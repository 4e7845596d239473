"""Frozen dataclasses as JSON: written, read back strictly, and described by a JSON Schema, all by their type hints.

A field that is None is left out. Nothing else is: every other field is there, and no field that the class lacks.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from inspect import getdoc
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from fencepost.model.errors import FencepostError

Value = TypeVar("Value")
SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class FormError(FencepostError):
    """A value does not have the form of its class; the message says where, and what should be there."""


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The least value of an annotated number."""

    least: int


Count = Annotated[int, AtLeast(0)]
Seconds = Annotated[float, AtLeast(0)]


def to_plain(value: Any) -> Any:
    """The value as objects, lists, strings, numbers and booleans of JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        named = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: to_plain(each) for name, each in named if each is not None}
    if isinstance(value, Mapping):
        return {str(name): to_plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    return str(value) if isinstance(value, StrEnum) else value


def from_plain(kind: type[Value], value: object) -> Value:
    """The dataclass that `to_plain` wrote. Raises `FormError` for the first place with another form."""
    read: Value = _read(kind, value, "")
    return read


def schema_of(kind: type, title: str) -> dict[str, Any]:
    """The JSON Schema of what `to_plain` writes for a dataclass."""
    classes: dict[str, Any] = {}
    top = _describe(kind, classes)
    return {"$schema": SCHEMA_DIALECT, "title": title, **top, "$defs": dict(sorted(classes.items()))}


def to_text(plain: object) -> str:
    """The JSON text, indented and ended by a newline. Equal values give equal texts."""
    return json.dumps(plain, indent=2, allow_nan=False) + "\n"


@cache
def _types(kind: type) -> Mapping[str, Any]:
    """The types of the fields of a dataclass, with their annotations."""
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: hints[each.name] for each in fields(kind)}


def _alternatives(kind: Any) -> tuple[Any, bool]:
    """The type without None, and whether None is allowed."""
    if get_origin(kind) is UnionType:
        (other,) = (each for each in get_args(kind) if each is not NoneType)
        return other, True
    return kind, False


def _read(kind: Any, value: object, where: str) -> Any:
    if get_origin(kind) is Annotated:
        plain, bound = get_args(kind)
        number = _read(plain, value, where)
        if number < bound.least:
            raise FormError(f"{where} is below {bound.least}")
        return number
    if get_origin(kind) is Literal:
        if value not in get_args(kind) or type(value) is bool:
            raise FormError(f"{where} should be {' or '.join(map(repr, get_args(kind)))}")
        return value
    if is_dataclass(kind):
        return _read_fields(kind, value, where)
    if get_origin(kind) is tuple:
        return _read_items(get_args(kind), value, where)
    if get_origin(kind) is not None:
        _, item = get_args(kind)
        return {name: _read(item, each, _member(where, name)) for name, each in _as_object(value, where).items()}
    if issubclass(kind, StrEnum):
        if value not in list(kind):
            raise FormError(f"{where} should be one of {', '.join(kind)}")
        return kind(value)
    return _read_scalar(kind, value, where)


def _read_fields(kind: Any, value: object, where: str) -> Any:
    given = _as_object(value, where)
    types = _types(kind)
    if unknown := given.keys() - types.keys():
        raise FormError(f"{_member(where, min(unknown))} is no field of a report")
    read: dict[str, Any] = {}
    for name, hint in types.items():
        plain, is_optional = _alternatives(hint)
        if name in given:
            read[name] = _read(plain, given[name], _member(where, name))
        elif is_optional:
            read[name] = None
        else:
            raise FormError(f"{_member(where, name)} is missing")
    return kind(**read)


def _read_items(kinds: tuple[Any, ...], value: object, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise FormError(f"{where} should be a list")
    if kinds[1:] == (...,):
        kinds = kinds[:1] * len(value)
    if len(value) != len(kinds):
        raise FormError(f"{where} should have {len(kinds)} items")
    return tuple(
        _read(kind, each, f"{where}[{number}]") for number, (kind, each) in enumerate(zip(kinds, value, strict=True))
    )


_SCALARS = {str: "a string", bool: "true or false", int: "a whole number", float: "a number"}
_SCHEMA_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def _read_scalar(kind: type, value: object, where: str) -> object:
    # A bool is an int to isinstance, but not to a reader of the file; a whole number is a number.
    if type(value) is kind or (kind is float and type(value) is int):
        if kind is float and not math.isfinite(float(str(value))):
            raise FormError(f"{where} should be finite")
        return float(value) if kind is float else value  # type: ignore[arg-type]
    raise FormError(f"{where} should be {_SCALARS[kind]}")


def _as_object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FormError(f"{where or 'it'} should be an object")
    return value


def _member(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _describe(kind: Any, classes: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; those of the classes in it go to `classes`."""
    if get_origin(kind) is Annotated:
        plain, bound = get_args(kind)
        return {**_describe(plain, classes), "minimum": bound.least}
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if is_dataclass(kind):
        return _describe_class(kind, classes)  # type: ignore[arg-type]
    if get_origin(kind) is tuple:
        return _describe_items(get_args(kind), classes)
    if get_origin(kind) is not None:
        return {"type": "object", "additionalProperties": _describe(get_args(kind)[1], classes)}
    if issubclass(kind, StrEnum):
        return {"enum": [str(each) for each in kind]}
    return {"type": _SCHEMA_TYPES[kind]}


def _describe_items(kinds: tuple[Any, ...], classes: dict[str, Any]) -> dict[str, Any]:
    if kinds[1:] == (...,):
        return {"type": "array", "items": _describe(kinds[0], classes)}
    return {
        "type": "array",
        "prefixItems": [_describe(each, classes) for each in kinds],
        "minItems": len(kinds),
        "maxItems": len(kinds),
    }


def _describe_class(kind: type, classes: dict[str, Any]) -> dict[str, Any]:
    if kind.__name__ not in classes:
        classes[kind.__name__] = {}  # a place for classes that contain themselves
        hints = {name: _alternatives(hint) for name, hint in _types(kind).items()}
        classes[kind.__name__] = {
            "description": "\n".join(" ".join(paragraph.split()) for paragraph in (getdoc(kind) or "").split("\n\n")),
            "type": "object",
            "properties": {name: _describe(plain, classes) for name, (plain, _) in hints.items()},
            "required": [name for name, (_, is_optional) in hints.items() if not is_optional],
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{kind.__name__}"}
