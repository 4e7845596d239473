"""Addresses in answers: those change, and nothing else does."""

from typing import Any

import pytest

from fencepost.adapters.record.recorder import is_known, read_addresses, rewrite_addresses
from fencepost.model.errors import Error
from fencepost.model.wire.codec import VERSIONS, decode_response, encode_response

OLD, NEW = ("broker-1.example", 9092), ("127.0.0.1", 40_001)
BROKER = {"node_id": 1, "host": OLD[0], "port": OLD[1]}
RESPONSES: list[tuple[str, int, dict[str, Any]]] = [
    *(("Metadata", version, {"brokers": [BROKER]}) for version in range(VERSIONS["Metadata"][1] + 1)),
    *(("FindCoordinator", version, dict(BROKER)) for version in range(4)),
    *(
        ("FindCoordinator", version, {"coordinators": [{**BROKER, "key": "g"}]})
        for version in range(4, VERSIONS["FindCoordinator"][1] + 1)
    ),
]


@pytest.mark.parametrize(("api", "version", "body"), RESPONSES)
@pytest.mark.parametrize("tail", [b"", b"tail"])
def test_an_address_becomes_another(api: str, version: int, body: dict[str, Any], tail: bytes) -> None:
    frame = encode_response(api, version, 5, body) + tail
    assert read_addresses(api, version, frame) == [OLD]
    moved = rewrite_addresses(api, version, frame, {OLD: NEW})
    assert read_addresses(api, version, moved) == [NEW]
    assert rewrite_addresses(api, version, moved, {NEW: OLD}) == frame


def test_a_broker_without_an_address_stays_so() -> None:
    frame = encode_response(
        "FindCoordinator", 2, 5, {"error_code": Error.COORDINATOR_NOT_AVAILABLE, "node_id": -1, "host": "", "port": -1}
    )
    assert read_addresses("FindCoordinator", 2, frame) == []
    assert rewrite_addresses("FindCoordinator", 2, frame, {}) == frame


def test_an_answer_that_the_kit_would_write_otherwise_is_patched() -> None:
    plain = encode_response("Metadata", 12, 5, {"brokers": [BROKER], "cluster_id": "c"})
    # A length that takes one byte more than it needs: allowed, and nobody writes it so.
    odd = plain.replace(b"\x02c", b"\x82\x00c")
    assert odd != plain and decode_response("Metadata", 12, odd).body["cluster_id"] == "c"
    moved = rewrite_addresses("Metadata", 12, odd, {OLD: NEW})
    assert read_addresses("Metadata", 12, moved) == [NEW]
    assert rewrite_addresses("Metadata", 12, moved, {NEW: OLD}) == odd


def test_versions_beyond_the_kit_are_not_known() -> None:
    assert is_known("Metadata", VERSIONS["Metadata"][1]) and not is_known("Metadata", VERSIONS["Metadata"][1] + 1)
