"""Kafka's own JSON form of messages, as its request log has it, read into bodies.

Names are in camel case, bytes in base64, a uuid in base64 for URLs. Instead of records it has their size. A field that
the version does not have, and a tagged field with its default, may be absent.
"""

import base64
import uuid
from collections.abc import Mapping
from typing import Any

from fencepost.model.wire.compiler import schema_of
from fencepost.model.wire.schema import Field

OTHER_NAMES = {"generationIdOrMemberEpoch": "generationId", "generationId": "generationIdOrMemberEpoch"}
"""Names that versions of Kafka have changed, and what else they may be."""
SIZE_SUFFIX = "SizeInBytes"
"""The end of a name that stands for a field that is left out."""


def body_from_json(name: str, version: int, value: object) -> dict[str, Any]:
    """The body that `value`, parsed JSON, stands for. `name` is a schema's ("JoinGroupRequest").

    Raises `ValueError` for a name or version that the kit does not know, and for a value of another form.
    """
    return struct_from_json(schema_of(name, version).fields, version, value)


def struct_from_json(fields: tuple[Field, ...], version: int, value: object) -> dict[str, Any]:
    """The fields of a JSON object, by their names in snake case. Raises `ValueError`."""
    if not isinstance(value, Mapping):
        raise ValueError(f"no JSON object: {value!r}")
    by_name = {camel_case(field.name): field for field in fields if version in field.versions}
    by_name |= {OTHER_NAMES[name]: field for name, field in by_name.items() if name in OTHER_NAMES}
    unknown = [name for name in value if name not in by_name and not name.endswith(SIZE_SUFFIX)]
    if unknown:
        raise ValueError(f"there is no field {unknown[0]!r}")
    return {
        by_name[name].name: value_from_json(by_name[name], version, each)
        for name, each in value.items()
        if name in by_name
    }


def value_from_json(field: Field, version: int, value: Any) -> Any:
    """The value of one field. Raises `ValueError`."""
    if value is None:
        return None
    if field.array:
        if not isinstance(value, list):
            raise ValueError(f"{field.name} is no array")
        return [item_from_json(field, version, item) for item in value]
    return item_from_json(field, version, value)


def item_from_json(field: Field, version: int, value: Any) -> Any:
    """The value of a field, or of an item of its array. Raises `ValueError`."""
    match field.kind:
        case "struct":
            return struct_from_json(field.fields, version, value)
        case "bytes" | "records":
            return base64.b64decode(as_text(field, value), validate=True)
        case "uuid":
            return str(uuid.UUID(bytes=base64.urlsafe_b64decode(as_text(field, value) + "==")))
        case _:
            return value


def as_text(field: Field, value: object) -> str:
    """A value that is text. Raises `ValueError`."""
    if not isinstance(value, str):
        raise ValueError(f"{field.name} is no text")
    return value


def camel_case(name: str) -> str:
    """A name in snake case as Kafka's JSON has it: groupsNames for groups_names."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
