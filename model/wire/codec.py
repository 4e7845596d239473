"""The door to the wire format: frames and bodies to plain dicts and back.

A *frame* is a request or an answer without the four bytes of length in front. A *body* maps Kafka's field names in
snake case to None, bool, int, str, bytes, lists and further bodies; a uuid is its usual text.

Encoding is permissive: a missing field takes its default, a null goes wherever the form has room for one, raw bytes may
stand for a string, numbers are bounded by their width only. `UnencodableError` says what remains impossible: a name the
schema does not know, a field that says something but does not exist in that version, a value of the wrong kind.

Decoding never fails on what the other side sent: what is odd becomes a finding, a short sentence. A message that ends
early yields the fields that were read, the others are missing. Tagged fields that the schema does not know are kept
under "unknown_tags" and are no finding, for the protocol allows them (KIP-482).

>>> decode_request(encode_request("Heartbeat", 0, 7, "me", {"group_id": "g", "generation_id": 1})).body
{'group_id': 'g', 'generation_id': 1, 'member_id': ''}
"""

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from fencepost.model.wire import schema
from fencepost.model.wire.compiler import compile_message, schema_of
from fencepost.model.wire.primitives import NO_LIMIT, Cursor, ReadError, UnencodableError, surplus_finding
from fencepost.model.wire.schema import Field

__all__ = [
    "API_KEYS",
    "API_NAMES",
    "VERSIONS",
    "Body",
    "DecodedBody",
    "DecodedRequest",
    "DecodedResponse",
    "UnencodableError",
    "decode_body",
    "decode_request",
    "decode_response",
    "encode_body",
    "encode_request",
    "encode_response",
    "fields_of",
    "fit_body",
]

Body: TypeAlias = Mapping[str, Any]

UNSUPPORTED_VERSION = 35

API_KEYS: Mapping[str, int] = schema.API_KEYS
"""Number of each API the kit knows, by name ("JoinGroup")."""

API_NAMES: Mapping[int, str] = MappingProxyType({key: name for name, key in API_KEYS.items()})
"""Name of each API the kit knows, by number."""

VERSIONS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {name: (versions[0], versions[-1]) for name in API_KEYS for versions in [schema.SCHEMAS[name + "Request"].versions]}
)
"""Lowest and highest version the kit knows of each API."""


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A body, and what was odd about its bytes."""

    body: Body
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecodedRequest:
    """A request. `api` is None if the kit does not know the key; the body is then empty, as it is for a version the kit
    does not know. Numbers that the frame was too short for are -1."""

    api: str | None
    key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Body
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecodedResponse:
    """An answer. `correlation_id` is -1 if the frame was too short for one."""

    correlation_id: int
    body: Body
    findings: tuple[str, ...]


def encode_body(name: str, version: int, body: Body) -> bytes:
    """The bytes of a body. `name` is a schema's ("JoinGroupRequest", "ConsumerProtocolSubscription").

    Raises UnencodableError, and ValueError for a name or version that the kit does not know.
    """
    out = bytearray()
    _write(out, name, version, body)
    return bytes(out)


def decode_body(name: str, version: int, data: bytes) -> DecodedBody:
    """Inverse of `encode_body`. Raises ValueError for an unknown name or version, never for `data`."""
    cursor = Cursor(data)
    return DecodedBody(_read_last(cursor, name, version), tuple(cursor.findings))


def complete_body(name: str, version: int, body: Body) -> Body:
    """A message with all fields of its version; absent fields get their defaults. Raises as `encode_body`."""
    return decode_body(name, version, encode_body(name, version, body)).body


def encode_request(api: str, version: int, correlation_id: int, client_id: str | None, body: Body) -> bytes:
    """A request frame. Raises as `encode_body`."""
    out = bytearray()
    header = {
        "request_api_key": API_KEYS.get(api),
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    _write(out, "RequestHeader", _request_header_version(api, version), header)
    _write(out, api + "Request", version, body)
    return bytes(out)


def decode_request(frame: bytes, max_items: int = NO_LIMIT) -> DecodedRequest:
    """Take a request frame apart, whatever it holds; a message with more array items than `max_items` is cut there.

    The limit is for servers: an item may take up one byte in the frame, but hundreds once it is unpacked.
    """
    key, version = (int.from_bytes(frame[i : i + 2], signed=True) if len(frame) >= i + 2 else -1 for i in (0, 2))
    api = API_NAMES.get(key)
    known = api is not None and version in schema.SCHEMAS[api + "Request"].versions
    cursor = Cursor(frame, max_items)
    header, whole = _read(cursor, "RequestHeader", _request_header_version(api, version) if api and known else 1)
    body: Body = {}
    if whole and api and known:
        body = _read_last(cursor, api + "Request", version)
    elif whole:
        cursor.add_finding(f"unknown version {version} of {api}" if api else f"unknown api key {key}")
    correlation_id = header.get("correlation_id", -1)
    return DecodedRequest(api, key, version, correlation_id, header.get("client_id"), body, tuple(cursor.findings))


def encode_response(api: str, version: int, correlation_id: int, body: Body) -> bytes:
    """A response frame. Raises as `encode_body`.

    An ApiVersions answer with error 35 gets the body of version 0, whatever was asked (KIP-511).
    """
    if api == "ApiVersions" and body.get("error_code") == UNSUPPORTED_VERSION:
        version = 0
    out = bytearray()
    _write(out, "ResponseHeader", _response_header_version(api, version), {"correlation_id": correlation_id})
    _write(out, api + "Response", version, body)
    return bytes(out)


def decode_response(api: str, version: int, frame: bytes) -> DecodedResponse:
    """Take the answer to a request apart. Raises ValueError for an API or version that the kit does not know."""
    cursor = Cursor(frame)
    header, whole = _read(cursor, "ResponseHeader", _response_header_version(api, version))
    body: Body = {}
    if whole:
        error = int.from_bytes(frame[cursor.position : cursor.position + 2])
        refused = api == "ApiVersions" and error == UNSUPPORTED_VERSION
        body = _read_last(cursor, api + "Response", 0 if refused else version)
    return DecodedResponse(header.get("correlation_id", -1), body, tuple(cursor.findings))


def fields_of(name: str, version: int) -> dict[str, Any]:
    """The fields of one version of a message: each name maps to the fields of a struct (or of an array's structs), else
    to None. Raises ValueError for a name or version that the kit does not know."""
    return _fields(schema_of(name, version).fields, version)


def fit_body(name: str, version: int, body: Body) -> Body:
    """The part of `body` that this version can carry, so that one answer can be written for all versions."""
    return _fit_struct(body, fields_of(name, version))


def _fields(fields: tuple[schema.Field, ...], version: int) -> dict[str, Any]:
    return {
        field.name: _fields(field.fields, version) if field.kind == "struct" else None
        for field in fields
        if version in field.versions
    }


def _fit_struct(body: Body, fields: Mapping[str, Any]) -> Body:
    return {name: _fit_value(value, fields[name]) for name, value in body.items() if name in fields}


def _fit_value(value: Any, fields: Mapping[str, Any] | None) -> Any:
    if fields is None or value is None:
        return value
    if isinstance(value, Mapping):
        return _fit_struct(value, fields)
    return [_fit_value(item, fields) for item in value]


def _request_header_version(api: str, version: int) -> int:
    return 2 if version in schema_of(api + "Request", version).flexible else 1


def _response_header_version(api: str, version: int) -> int:
    """ApiVersions keeps to the oldest header, since its reader cannot know yet what the broker speaks (KIP-511)."""
    return int(version in schema_of(api + "Response", version).flexible and api != "ApiVersions")


def _write(out: bytearray, name: str, version: int, body: Body) -> None:
    _, write = compile_message(name, version)
    try:
        write(out, body)
    except UnencodableError as error:
        raise error.within(f"{name} v{version} ") from error.__cause__


def _read(cursor: Cursor, name: str, version: int) -> tuple[Body, bool]:
    """What could be read, and whether that is all of it."""
    read, _ = compile_message(name, version)
    try:
        return read(cursor), True
    except ReadError as cut:
        cursor.add_finding(str(cut))
        return cut.value or {}, False


def _read_last(cursor: Cursor, name: str, version: int) -> Body:
    """Read what should take up the rest of the bytes."""
    body, whole = _read(cursor, name, version)
    if whole and cursor.position < cursor.end:
        cursor.add_finding(surplus_finding(cursor))
    return body


# --- Bodies as the JSON that Kafka writes of them.


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
