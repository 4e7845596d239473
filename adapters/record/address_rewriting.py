"""The addresses in answers to Metadata and FindCoordinator: the only bytes that the proxy changes."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from fencepost.model.wire.codec import VERSIONS, decode_response, encode_response

Address: TypeAlias = tuple[str, int]
REWRITTEN = frozenset({"Metadata", "FindCoordinator"})


def is_known(api: str, version: int) -> bool:
    """Answers of this version can be read, and so kept on the proxy."""
    low, high = VERSIONS[api]
    return low <= version <= high


def addresses(api: str, version: int, frame: bytes) -> list[Address]:
    """The brokers that an answer names, each once."""
    return list(dict.fromkeys((row["host"], row["port"]) for row in _rows(decode_response(api, version, frame).body)))


def rewritten(api: str, version: int, frame: bytes, places: Mapping[Address, Address]) -> bytes:
    """The answer with other addresses; whatever else it holds stays, also what the kit cannot read."""
    response = decode_response(api, version, frame)
    plain = encode_response(api, version, response.correlation_id, response.body)
    if not frame.startswith(plain):
        return _patched(frame, places)
    for row in _rows(response.body):
        row["host"], row["port"] = places.get((row["host"], row["port"]), (row["host"], row["port"]))
    return encode_response(api, version, response.correlation_id, response.body) + frame[len(plain) :]


def _rows(body: Mapping[str, Any]) -> Iterator[Any]:
    """The parts of an answer that have an address."""
    for row in (*(body.get("brokers") or ()), *(body.get("coordinators") or ()), body):
        if isinstance(row, dict) and row.get("host") and row.get("port", -1) > 0:
            yield row


def _patched(frame: bytes, places: Mapping[Address, Address]) -> bytes:
    """An answer that is not written as the kit writes it: find the addresses by their bytes."""
    for old, new in places.items():
        for encode in (_classic, _compact):
            frame = frame.replace(encode(*old), encode(*new))
    return frame


def _classic(host: str, port: int) -> bytes:
    text = host.encode()
    return len(text).to_bytes(2) + text + port.to_bytes(4)


def _compact(host: str, port: int) -> bytes:
    text, length = host.encode(), len(host.encode()) + 1
    size = bytes((length,)) if length < 128 else bytes((length & 127 | 128, length >> 7))
    return size + text + port.to_bytes(4)
