"""The addresses in responses to Metadata and FindCoordinator, the only bytes that the proxy changes."""

from collections.abc import Iterator, Mapping
from typing import Any

from fencepost.adapters.address import Address
from fencepost.model.wire.codec import VERSIONS, decode_response, encode_response

REWRITTEN_APIS = frozenset({"Metadata", "FindCoordinator"})


def is_known(api: str, version: int) -> bool:
    """Whether the kit can decode responses of this version, and so rewrite their addresses."""
    low, high = VERSIONS[api]
    return low <= version <= high


def read_addresses(api: str, version: int, frame: bytes) -> list[Address]:
    """The distinct broker addresses in a response."""
    return list(
        dict.fromkeys((row["host"], row["port"]) for row in _address_rows(decode_response(api, version, frame).body))
    )


def rewrite_addresses(api: str, version: int, frame: bytes, new_addresses: Mapping[Address, Address]) -> bytes:
    """Return the response with other addresses; all other bytes stay, also those that the kit cannot decode."""
    response = decode_response(api, version, frame)
    plain = encode_response(api, version, response.correlation_id, response.body)
    if not frame.startswith(plain):
        return _replace_bytes(frame, new_addresses)
    for row in _address_rows(response.body):
        row["host"], row["port"] = new_addresses.get((row["host"], row["port"]), (row["host"], row["port"]))
    return encode_response(api, version, response.correlation_id, response.body) + frame[len(plain) :]


def _address_rows(body: Mapping[str, Any]) -> Iterator[Any]:
    """The parts of a response that have an address."""
    for row in (*(body.get("brokers") or ()), *(body.get("coordinators") or ()), body):
        if isinstance(row, dict) and row.get("host") and row.get("port", -1) > 0:
            yield row


def _replace_bytes(frame: bytes, new_addresses: Mapping[Address, Address]) -> bytes:
    """Replace the encoded addresses in a response that the kit would encode differently."""
    for old, new in new_addresses.items():
        for encode in (_encode_address, _encode_compact_address):
            frame = frame.replace(encode(*old), encode(*new))
    return frame


def _encode_address(host: str, port: int) -> bytes:
    text = host.encode()
    return len(text).to_bytes(2) + text + port.to_bytes(4)


def _encode_compact_address(host: str, port: int) -> bytes:
    text, length = host.encode(), len(host.encode()) + 1
    size = bytes((length,)) if length < 128 else bytes((length & 127 | 128, length >> 7))
    return size + text + port.to_bytes(4)
