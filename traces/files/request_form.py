"""The form of requests in a trace: the fields of Kafka's message schemas, each with a value of its type.

Without this check a mistake of whoever wrote the trace would be judged as one of the coordinator.
"""

import functools
from collections.abc import Mapping
from typing import Any

from fencepost.model.wire.codec import API_KEYS
from fencepost.model.wire.compiler import UNKNOWN_TAGS, schema_of
from fencepost.model.wire.schema import Field

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_NAMES = {list: "an array", dict: "an object", bool: "a boolean", str: "a string"}


class RequestFormError(ValueError):
    """A body is not that of a request; the message is the reason."""


def check_request_form(api: str, version: int, body: Mapping[str, Any]) -> None:
    """Hold the top-level fields of a request against its schema. Raises `RequestFormError`.

    A request of an API that the kit does not know has no form, nor has one that says of itself by a key with an
    underscore that its bytes were odd. A field whose schema gives it a default may be missing.
    """
    if api not in API_KEYS:
        return
    try:
        fields = _fields_of(api, version)
    except ValueError:
        if _is_marked(body):
            return
        raise RequestFormError(f"{api} has no version {version} that Fencepost knows") from None
    for name, (field, is_required) in fields.items():
        if name not in body:
            if is_required and not _is_marked(body):
                raise RequestFormError(f"{api} v{version} without {name!r}")
        elif not _has_type(body[name], field, version) and not _is_marked(body):
            raise RequestFormError(f"{name!r} of {api} v{version} is not {_describe_type(field)}")
    if len(body) > len(fields) or not body.keys() <= fields.keys():
        for name in body:
            if name not in fields and name != UNKNOWN_TAGS and not name.startswith("_"):
                raise RequestFormError(f"{api} v{version} has no field {name!r}")


def _is_marked(body: Mapping[str, Any]) -> bool:
    return any(name.startswith("_") for name in body)


@functools.cache
def _fields_of(api: str, version: int) -> dict[str, tuple[Field, bool]]:
    """The fields of a request by name, and whether each of them has to be there."""
    fields = (field for field in schema_of(f"{api}Request", version).fields if version in field.versions)
    return {field.name: (field, _is_required(field, version)) for field in fields}


def _is_required(field: Field, version: int) -> bool:
    has_default = field.kind in _BITS and field.default != 0
    return field.tag is None and version not in field.nullable and not has_default


def _types_of(field: Field) -> tuple[type, ...]:
    """The types of a value; none if any will do."""
    if field.array:
        return (list,)
    return {"struct": (dict,), "bool": (bool,), "string": (str, bytes)}.get(field.kind, ())


def _has_type(value: object, field: Field, version: int) -> bool:
    bits = _BITS.get(field.kind) if not field.array else None
    if bits is not None:
        return type(value) is int and -1 << bits - 1 <= value < 1 << bits - 1
    if value is None:
        return version in field.nullable
    types = _types_of(field)
    return not types or isinstance(value, types)


def _describe_type(field: Field) -> str:
    if not field.array and field.kind in _BITS:
        return f"an integer of {_BITS[field.kind]} bits"
    return _NAMES[_types_of(field)[0]] if _types_of(field) else f"a value of type {field.kind}"
