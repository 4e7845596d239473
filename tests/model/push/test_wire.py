"""The bytes of the draft's messages: fixed vectors, round trips, and frames that are none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.model.push.dialect import DRAFT, REPAIRED, PushDialect
from fencepost.model.push.wire import (
    MAX_FRAME_BYTES,
    REQUEST_TYPES,
    MalformedFrame,
    WireField,
    decode_push_request,
    decode_push_response,
    encode_push_request,
    encode_push_response,
    frame_size,
    request_fields,
    response_fields,
    response_name,
)

DIALECTS = pytest.mark.parametrize("dialect", [DRAFT, REPAIRED], ids=["drafted", "repaired"])
NAMES = pytest.mark.parametrize("name", list(REQUEST_TYPES))
VALUES = {
    "bool": st.booleans(),
    "i16": st.integers(-(1 << 15), (1 << 15) - 1),
    "i32": st.integers(-(1 << 31), (1 << 31) - 1),
    "i64": st.integers(-(1 << 63), (1 << 63) - 1),
    "string": st.text(max_size=5),
}


def values(field: WireField) -> st.SearchStrategy[Any]:
    return st.lists(bodies(field.entries), max_size=2) if field.kind == "list" else VALUES[field.kind]


def bodies(layout: tuple[WireField, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({field.name: values(field) for field in layout})


@DIALECTS
@NAMES
@given(data=st.data())
def test_every_message_round_trips(name: str, dialect: PushDialect, data: st.DataObject) -> None:
    request = data.draw(bodies(request_fields(name, dialect)))
    response = data.draw(bodies(response_fields(name, dialect)))
    first, second = encode_push_request(name, request, dialect), encode_push_response(name, response, dialect)
    assert [frame_size(each[:4]) for each in (first, second)] == [len(first) - 4, len(second) - 4]
    assert decode_push_request(first[4:], dialect) == (name, request)
    assert decode_push_response(name, second[4:], dialect) == response


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (encode_push_request("ClusterMetadata", {}, DRAFT), "00000002 0014"),
        (encode_push_request("Ping", {"num_retries": 3}, DRAFT), "00000004 0016 0003"),
        (encode_push_request("Stop", {}, DRAFT), "00000002 0017"),
        (encode_push_response("Ping", {}, DRAFT), "00000000"),
        (encode_push_response("Ping", {"partitions": []}, DRAFT), "00000002 0000"),
        (encode_push_response("Start", {"error_code": 0}, DRAFT), "00000002 0000"),
        (encode_push_response("Start", {"error_code": 0, "attempt": 7}, REPAIRED), "00000008 0018 00000007 0000"),
        (
            encode_push_request("Start", {"partitions": [{"topic": "t", "partition": "0-1", "offset": 5}]}, DRAFT),
            "00000014 0018 0001 000174 0003302d31 0000000000000005",
        ),
    ],
)
def test_the_sizes_are_those_of_the_draft(frame: bytes, expected: str) -> None:
    assert frame == bytes.fromhex(expected.replace(" ", ""))


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\0", "a request of 1 bytes has no type"),
        (b"\0\1", "request type 1 is none of [20, 21, 22, 23, 24]"),
        (b"\0\x16\0", "Ping: num_retries wants 2 bytes at byte 2, 1 are there"),
        (b"\0\x17\0", "Stop: 1 bytes too many"),
        (b"\0\x18\xff\xff", "Start: partitions has -1 entries"),
    ],
)
def test_a_request_that_is_none_is_refused(payload: bytes, message: str) -> None:
    with pytest.raises(MalformedFrame) as caught:
        decode_push_request(payload, DRAFT)
    assert str(caught.value) == message


@pytest.mark.parametrize("size", [-1, MAX_FRAME_BYTES + 1])
def test_a_size_that_cannot_be_is_refused(size: int) -> None:
    with pytest.raises(MalformedFrame, match=f"a frame of {size} bytes"):
        frame_size(size.to_bytes(4, "big", signed=True))


def test_a_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(MalformedFrame, match="ClusterMetadata: coordinator_id cannot be 65537"):
        encode_push_response("ClusterMetadata", {"coordinator_id": 65537}, DRAFT)


def test_a_repaired_response_says_what_it_responds_to() -> None:
    payload = encode_push_response("Stop", {"attempt": 1}, REPAIRED)[4:]
    assert response_name(payload) == "Stop"
    with pytest.raises(MalformedFrame, match="00 17 is not the type of a response to Start"):
        decode_push_response("Start", payload, REPAIRED)
