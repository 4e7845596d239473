"""Encoding of headers and events as lines of JSON, and decoding. `traces/FORMAT.md` describes the format.

Reading is strict: a line that does not fit the format raises `MalformedLineError`; nothing is skipped or guessed.
"""

import json
from binascii import a2b_base64, b2a_base64
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from operator import itemgetter
from typing import Any

from fencepost.model.settings import Settings
from fencepost.traces.events import (
    CLASSIC,
    FAULT,
    FORMAT_VERSION,
    INTERNAL,
    REQUEST,
    RESPONSE,
    SAVED,
    Event,
    Header,
    Kind,
    Order,
)

CLOCKS = ("virtual", "wall")

_BYTES_KEY = "base64"
_ESCAPE = "~"
"""Bytes are `{"base64": "..."}`; in a body with a single key of this form the key gets one more tilde in front."""


class MalformedLineError(ValueError):
    """A line does not fit the format; the message is the reason."""


# --- writing


def encode_header(header: Header) -> bytes:
    """The header as the first line of a trace."""
    return _encode_line(_header_json(header))


def encode_event(event: Event) -> bytes:
    """The event as a line. Raises `TypeError` for a value of a type that the format does not have."""
    return _encode_line(_event_json(event))


def _encode_line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def _header_json(header: Header) -> dict[str, Any]:
    line = {
        "fencepost_trace": FORMAT_VERSION,
        "source": header.source,
        "order": header.order.value,
        "clock": header.clock,
        "settings": asdict(header.settings),
        "grace": header.grace,
        "implementation": _to_json(header.implementation),
    }
    if header.protocol != CLASSIC:
        line["protocol"] = header.protocol
    if header.limits:
        line["limits"] = dict(header.limits)
    if header.not_told:
        line["not_told"] = sorted(header.not_told)
    return line


def _event_json(event: Event) -> dict[str, Any]:
    line: dict[str, Any] = {
        "sequence": event.sequence,
        "time": event.time,
        "connection": event.connection,
        "member": event.member,
        "kind": event.kind.value,
        "api": event.api,
        "version": event.version,
        "body": _to_json(event.body),
    }
    if event.of is not None:
        line["of"] = event.of
    return line


def _to_json(value: object) -> object:
    """The JSON form of a body or of a value in a body."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return {_BYTES_KEY: b2a_base64(value, newline=False).decode("ascii")}
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"a trace cannot hold a body with the key {key!r}: not a string")
        plain = {key: _to_json(item) for key, item in value.items()}
        if len(plain) == 1 and _is_reserved(key):
            return {_ESCAPE + key: plain[key]}
        return plain
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    raise TypeError(f"a trace cannot hold a value of type {type(value).__name__}")


def _is_reserved(key: str) -> bool:
    return key.endswith(_BYTES_KEY) and not key[: -len(_BYTES_KEY)].strip(_ESCAPE)


# --- reading


def decode_header(line: bytes) -> Header:
    """The header in `line`. Raises `MalformedLineError`."""
    return _header_from(_decode_line(line))


def decode_event(line: bytes) -> Event:
    """The event in `line`. Raises `MalformedLineError`."""
    return _event_from(_decode_line(line))


def _decode_line(line: bytes) -> dict[str, Any]:
    value = _decode_fast(line)
    return _decode_strictly(line) if value is None else value


def _decode_fast(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line without escapes and without bytes, in half the time; None for any other line.

    In such a line a quotation mark before a colon ends a key, so their number shows whether a key is given twice.
    """
    if b"\\" in line or _BYTES_MARKER in line:
        return None
    try:
        value, end = _scan_json(line.decode("utf-8"), 0)
        body = value["body"]
        keys = len(value) + len(body) if line.count(b"{") == 2 else _count_keys(value)
    except (ValueError, LookupError, TypeError, StopIteration, RecursionError):
        return None
    return value if keys == line.count(b'":') and line[end:] == b"\n" else None


def _count_keys(value: dict[str, Any]) -> int:
    """The number of keys of an object and of the objects in it and in its arrays; too low if arrays hold arrays."""
    found = len(value)
    for item in value.values():
        if type(item) is dict:
            found += _count_keys(item)
        elif type(item) is list:
            found += sum(_count_keys(each) for each in item if type(each) is dict)
    return found


def _decode_strictly(line: bytes) -> dict[str, Any]:
    """The JSON object in a line. Raises `MalformedLineError`."""
    try:
        value = _JSON.decode(line.decode("utf-8"))
    except MalformedLineError:
        raise
    except RecursionError:
        raise MalformedLineError("nested too deeply") from None
    except UnicodeDecodeError as cause:
        if line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise MalformedLineError("is UTF-16; save it as UTF-8") from None
        raise MalformedLineError(f"not UTF-8 at byte {cause.start + 1}") from None
    except json.JSONDecodeError as cause:
        if line.startswith(BOM_UTF8):
            raise MalformedLineError("begins with a byte order mark; save it as UTF-8 without one") from None
        raise MalformedLineError(
            f"not JSON: {cause.msg} at column {cause.pos + 1}" if line.strip() else "empty line"
        ) from None
    except ValueError as cause:
        raise MalformedLineError(f"not JSON: {cause}") from None
    if type(value) is not dict:
        raise MalformedLineError("not a JSON object")
    return value


def _decode_object(pairs: list[tuple[str, Any]]) -> object:
    """The value that a JSON object stands for: a body, or bytes."""
    body = dict(pairs)
    if len(body) != len(pairs):
        keys = [key for key, _ in pairs]
        raise MalformedLineError(f"key {next(key for key in keys if keys.count(key) > 1)!r} is given twice")
    if len(body) == 1 and _is_reserved(pairs[0][0]):
        key, value = pairs[0]
        if key != _BYTES_KEY:
            return {key[len(_ESCAPE) :]: value}
        if type(value) is not str:
            raise MalformedLineError("base64 is not a string")
        try:
            return a2b_base64(value, strict_mode=True)
        except ValueError as cause:
            raise MalformedLineError(f"bad base64: {cause}") from None
    return body


def _refuse_constant(name: str) -> object:
    raise MalformedLineError(f"not JSON: {name}")


_JSON = json.JSONDecoder(object_pairs_hook=_decode_object, parse_constant=_refuse_constant)
_BYTES_MARKER = _BYTES_KEY.encode()
_scan_json: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(parse_constant=_refuse_constant).scan_once  # type: ignore[attr-defined]


# --- checks of headers and events

_KIND_BY_NAME = {kind.value: kind for kind in Kind}
_ORDER_BY_NAME = {order.value: order for order in Order}
_EVENT_TYPES = {
    "sequence": int,
    "time": int,
    "connection": int,
    "member": str,
    "kind": str,
    "api": str,
    "version": int,
    "body": dict,
}
_EVENT_LAYOUT = tuple(_EVENT_TYPES.values())
_event_values: Callable[[dict[str, Any]], tuple[Any, ...]] = itemgetter(*_EVENT_TYPES)
_ANNOTATION_TYPES: Mapping[str, Mapping[str, type]] = {
    "topics": {"topics": dict},
    "check": {"requirement": str},
    "routed": {"broker": int},
    SAVED: {"requirements": list},
}
_RESTART_TYPES: Mapping[str, type] = {"max_group_size": int}
_MOVE_TYPES: Mapping[str, Mapping[str, type]] = {
    "move": {"group": str},
    "moved": {"group": str, "old": int, "new": int},
}
_HEADER_TYPES = {
    "fencepost_trace": int,
    "source": str,
    "order": str,
    "clock": str,
    "settings": dict,
    "grace": int,
    "implementation": dict,
}
_HEADER_OPTIONS: Mapping[str, type] = {"protocol": str, "limits": dict, "not_told": list}
_SETTING_NAMES = frozenset(field.name for field in fields(Settings))
_TYPE_NAMES = {int: "an integer", str: "a string", dict: "an object", list: "a list", bytes: "bytes"}


def _require_types(line: dict[str, Any], types: Mapping[str, type]) -> None:
    """Raise `MalformedLineError` unless every key is present with its exact type (True is not a number)."""
    for key, wanted in types.items():
        if type(line.get(key)) is not wanted:
            if key not in line:
                raise MalformedLineError(f"key {key!r} is missing")
            raise MalformedLineError(f"{key!r} is not {_TYPE_NAMES[wanted]}")


def _refuse_unknown_keys(line: Iterable[str], known: Iterable[str], where: str = "") -> None:
    others = sorted(set(line) - set(known))
    if others:
        raise MalformedLineError(f"unknown key {others[0]!r}{where}")


def _event_from(line: dict[str, Any]) -> Event:
    try:
        values = _event_values(line)
    except KeyError:
        values = ()
    if tuple(map(type, values)) != _EVENT_LAYOUT:
        _require_types(line, _EVENT_TYPES)
    of = line.get("of")
    if len(line) > len(_EVENT_TYPES):
        if len(line) > len(_EVENT_TYPES) + 1 or "of" not in line:
            _refuse_unknown_keys(line, (*_EVENT_TYPES, "of"))
        if type(of) is not int:
            raise MalformedLineError("'of' is not an integer")
    sequence, time, connection, member, name, api, version, body = values
    kind = _KIND_BY_NAME.get(name)
    if kind is None:
        raise MalformedLineError(f"unknown kind {name!r}; known: {', '.join(_KIND_BY_NAME)}")
    if connection < 0:
        raise MalformedLineError("'connection' is negative")
    if kind is Kind.INTERNAL:
        _check_annotation(api, body)
    elif kind is Kind.FAULT and api == "restart" and body:
        _require_types(body, _RESTART_TYPES)
        _refuse_unknown_keys(body, _RESTART_TYPES, " in a restart")
    elif kind is Kind.FAULT and api in _MOVE_TYPES:
        _require_types(body, _MOVE_TYPES[api])
        _refuse_unknown_keys(body, _MOVE_TYPES[api], " in a move")
    return Event(sequence, time, connection, member, kind, api, version, body, of)


def _check_annotation(api: str, body: dict[str, Any]) -> None:
    _require_types(body, _ANNOTATION_TYPES.get(api, {}))
    if api == "topics" and not all(type(count) is int for count in body["topics"].values()):
        raise MalformedLineError("'topics' has a number of partitions that is not an integer")
    for key in ("ids", "decisions"):
        if api == "topics" and type(body.get(key, {})) is not dict:
            raise MalformedLineError(f"{key!r} is not an object")
    if api == "topics" and not all(type(topic_id) is str for topic_id in body.get("ids", {}).values()):
        raise MalformedLineError("'ids' has an id that is not a string")
    for key in ("requirements", "left_out"):
        told = body.get(key, []) if api == SAVED else []
        if type(told) is not list or not all(type(name) is str for name in told):
            raise MalformedLineError(f"{key!r} is not an array of strings")
    fields = body.get("fields", [])
    if api == "check" and not (type(fields) is list and all(type(name) is str for name in fields)):
        raise MalformedLineError("'fields' is not an array of strings")


class EventOrder:
    """Checks the order of events: sequence numbers rise, time never falls, responses belong to requests."""

    __slots__ = ("_dropped", "_open", "_order", "_sequence", "_time")

    def __init__(self, order: Order) -> None:
        self._order = order
        self._sequence = -1
        self._time = 0
        self._open: dict[int, str] = {}
        self._dropped: set[int] = set()

    def check(self, event: Event) -> None:
        if event.sequence <= self._sequence:
            raise MalformedLineError(f"sequence {event.sequence} does not rise: {self._sequence} came before")
        if event.time < self._time:
            raise MalformedLineError(f"time {event.time} falls: {self._time} came before")
        self._sequence = event.sequence
        self._time = event.time
        if event.kind is REQUEST:
            self._open[event.sequence] = event.api
        if event.of is not None:
            self._check_reference(event, event.of)
        elif event.kind is RESPONSE:
            raise MalformedLineError("a response without 'of'")

    def _check_reference(self, event: Event, of: int) -> None:
        if event.kind is INTERNAL:
            # It may refer to a request that ended long ago; remembering all requests would take unbounded memory.
            if not 0 <= of < event.sequence:
                raise MalformedLineError(f"'of' is {of}, but no earlier event has that number")
            return
        if event.kind is not RESPONSE and event.kind is not FAULT:
            raise MalformedLineError(
                f"'of' on an event of kind {event.kind}; only responses, faults and internal events have it"
            )
        api = self._open.get(of)
        if api is None:
            raise MalformedLineError(f"'of' is {of}, but no request {of} is awaiting a response")
        if event.kind is RESPONSE and event.api != api:
            raise MalformedLineError(f"a response of {event.api} to a request of {api}")
        if event.kind is FAULT and of in self._dropped:
            raise MalformedLineError(f"'of' is {of}, but request {of} has lost its connection before")
        if event.kind is FAULT and self._order is Order.TOTAL:
            self._dropped.add(of)  # a coordinator does not notice, and still answers
        else:
            del self._open[of]
            self._dropped.discard(of)


def _header_from(line: dict[str, Any]) -> Header:
    if "fencepost_trace" not in line:
        raise MalformedLineError("not a header: a trace begins with a line that has the key 'fencepost_trace'")
    version = line["fencepost_trace"]
    if type(version) is int and version > FORMAT_VERSION:
        raise MalformedLineError(
            f"trace format {version} is newer than {FORMAT_VERSION}, the newest this Fencepost reads"
        )
    if version != FORMAT_VERSION or type(version) is not int:
        raise MalformedLineError(f"trace format {version!r} is unknown; this Fencepost reads {FORMAT_VERSION}")
    _require_types(line, _HEADER_TYPES)
    _require_types(line, {name: wanted for name, wanted in _HEADER_OPTIONS.items() if name in line})
    _refuse_unknown_keys(line, (*_HEADER_TYPES, *_HEADER_OPTIONS))
    order = _ORDER_BY_NAME.get(line["order"])
    if order is None:
        raise MalformedLineError(f"unknown order {line['order']!r}; known: {', '.join(_ORDER_BY_NAME)}")
    if line["clock"] not in CLOCKS:
        raise MalformedLineError(f"unknown clock {line['clock']!r}; known: {', '.join(CLOCKS)}")
    if line["grace"] < 0:
        raise MalformedLineError("'grace' is negative")
    implementation = line["implementation"]
    for key, value in implementation.items():
        if type(value) is not str:
            raise MalformedLineError(f"{key!r} in 'implementation' is not a string")
    limits = line.get("limits", {})
    for key, value in limits.items():
        if type(value) is not int:
            raise MalformedLineError(f"{key!r} in 'limits' is not an integer")
    not_told = line.get("not_told", [])
    _refuse_unknown_keys(map(str, not_told), _SETTING_NAMES, " in 'not_told'")
    settings, protocol = _settings_from(line["settings"]), line.get("protocol", CLASSIC)
    return Header(
        line["source"],
        order,
        line["clock"],
        settings,
        line["grace"],
        implementation,
        protocol,
        limits,
        frozenset(not_told),
    )


def _settings_from(line: dict[str, Any]) -> Settings:
    """The settings in a header; a setting that is absent has Kafka's default."""
    _refuse_unknown_keys(line, _SETTING_NAMES, " in 'settings'")
    for key, value in line.items():
        if type(value) is not int:
            raise MalformedLineError(f"{key!r} in 'settings' is not an integer")
    return Settings(**line)
