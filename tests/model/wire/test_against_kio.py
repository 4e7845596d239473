"""The wire format equals kio's byte for byte, for every API and version that both know."""

import dataclasses
import datetime
import io
import random
import re
import uuid
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin

import pytest
from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_writer
from kio.static.constants import EntityType

from fencepost.model.wire import codec
from fencepost.model.wire.schema import SCHEMAS

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


FOREIGN = {"StickyAssignorUserData", "CooperativeStickyAssignorUserData"}
"""Formats of Kafka's assignors, which are not among Kafka's schemas; `tests/model/assignors` has bytes of them."""
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
                return datetime.timedelta(milliseconds=span), span
            case "datetime_i64":
                moment = chance.randint(0, 2**41)
                return datetime.datetime.fromtimestamp(moment / 1000, datetime.UTC), moment
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
