"""Frames, findings and refusals of the codec, by hand and under hostile bytes."""

import json
import random
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.model.errors import Error
from fencepost.model.wire import codec
from fencepost.model.wire.codec import UnencodableError, body_from_json, decode_body, encode_body
from fencepost.model.wire.schema import SCHEMAS, Field

PAIRS = [(name, version) for name, schema in SCHEMAS.items() for version in schema.versions]
pairs = st.sampled_from(PAIRS)

JOIN_V0 = bytes.fromhex("000b 0000 00000007 0002 6d65") + bytes.fromhex(
    "0001 67 00001770 0000 0008 636f6e73756d6572 00000001 0005 72616e6765 00000002 abcd"
)
JOIN_V9 = bytes.fromhex("000b 0009 00000007 0002 6d65 00") + bytes.fromhex(
    "02 67 00001770 0000ea60 01 02 69 09 636f6e73756d6572 02 06 72616e6765 03 abcd 00 00 00"
)
COMMIT_V1 = bytes.fromhex("0001 67 00000003 0001 6d 00000001 0001 74 00000001 00000000") + bytes.fromhex(
    "0000000000000005 ffffffffffffffff ffff"
)


def join_v0_body() -> dict[str, Any]:
    return {
        "group_id": "g",
        "session_timeout_ms": 6000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\xab\xcd"}],
    }


def join_v9_body() -> dict[str, Any]:
    return join_v0_body() | {"rebalance_timeout_ms": 60000, "group_instance_id": "i", "reason": ""}


def test_request_frames_by_hand() -> None:
    assert codec.encode_request("JoinGroup", 0, 7, "me", join_v0_body()) == JOIN_V0
    assert codec.decode_request(JOIN_V0) == codec.DecodedRequest("JoinGroup", 11, 0, 7, "me", join_v0_body(), ())
    body = join_v9_body() | {"reason": None}
    frame = codec.encode_request("JoinGroup", 9, 7, "me", body)
    assert frame == JOIN_V9
    assert codec.decode_request(frame).body == body


def test_versions_that_kio_has_dropped() -> None:
    body = {
        "group_id": "g",
        "generation_id_or_member_epoch": 3,
        "member_id": "m",
        "topics": [
            {
                "name": "t",
                "partitions": [
                    {"partition_index": 0, "committed_offset": 5, "commit_timestamp": -1, "committed_metadata": None}
                ],
            }
        ],
    }
    assert codec.encode_body("OffsetCommitRequest", 1, body) == COMMIT_V1
    assert codec.decode_body("OffsetCommitRequest", 1, COMMIT_V1) == codec.DecodedBody(body, ())
    old = bytes.fromhex("0001 67 00000001 0001 74 00000001 00000000 0000000000000005 0000")
    read = codec.decode_body("OffsetCommitRequest", 0, old)
    assert read.findings == () and read.body["topics"][0]["partitions"][0]["committed_offset"] == 5
    assert codec.encode_body("OffsetFetchRequest", 0, {"group_id": "g", "topics": []}) == b"\0\1g\0\0\0\0"
    response = bytes.fromhex("00000001 0001 74 00000001 00000002 0000000000000009 0000 0003")
    partition = codec.decode_body("OffsetFetchResponse", 0, response).body["topics"][0]["partitions"][0]
    assert partition == {
        "partition_index": 2,
        "committed_offset": 9,
        "metadata": "",
        "error_code": Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    topic = {"name": "t", "num_partitions": 4, "replication_factor": 1}
    created = bytes.fromhex("00000001 0001 74 00000004 0001 00000000 00000000 00000064")
    assert codec.encode_body("CreateTopicsRequest", 0, {"topics": [topic], "timeout_ms": 100}) == created
    assert codec.encode_body("CreateTopicsRequest", 1, {"topics": [topic], "timeout_ms": 100}) == created + b"\0"
    outcome = {"topics": [{"name": "t", "error_code": 36}]}
    assert codec.encode_body("CreateTopicsResponse", 0, outcome) == bytes.fromhex("00000001 0001 74 0024")
    assert codec.encode_body("CreateTopicsResponse", 1, outcome) == bytes.fromhex("00000001 0001 74 0024 0000")
    asked = {"resources": [{"resource_type": 4, "resource_name": "0", "configuration_keys": None}]}
    assert codec.encode_body("DescribeConfigsRequest", 0, asked) == bytes.fromhex("00000001 04 0001 30 ffffffff")
    config = {"name": "c", "value": None, "is_default": True}
    result = {"resource_type": 4, "resource_name": "0", "error_message": None, "configs": [config]}
    assert codec.encode_body("DescribeConfigsResponse", 0, {"results": [result]}) == bytes.fromhex(
        "00000000 00000001 0000 ffff 04 0001 30 00000001 0001 63 ffff 00 01 00"
    )


def test_an_api_versions_answer_never_has_a_tagged_header() -> None:
    frame = codec.encode_response("ApiVersions", 3, 9, {})
    assert frame == bytes.fromhex("00000009 0000 01 00000000 00")
    assert codec.decode_response("ApiVersions", 3, frame).correlation_id == 9
    assert codec.encode_response("Heartbeat", 4, 9, {}) == bytes.fromhex("00000009 00 00000000 0000 00")


def test_an_unsupported_api_versions_request_is_answered_in_version_0() -> None:
    body = {"error_code": Error.UNSUPPORTED_VERSION, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 3}]}
    frame = codec.encode_response("ApiVersions", 4, 1, body)
    assert frame == bytes.fromhex("00000001 0023 00000001 0012 0000 0003")
    assert codec.decode_response("ApiVersions", 4, frame) == codec.DecodedResponse(1, body, ())


def test_codec_reports_malformed_bytes_as_findings() -> None:
    nulls = {"leader": None, "members": [{"member_id": None}, {"member_id": None}]}
    response = codec.decode_response("JoinGroup", 5, codec.encode_response("JoinGroup", 5, 1, nulls))
    assert response.findings == ("null in non-nullable leader", "null in non-nullable members[].member_id")
    assert response.body["leader"] is None
    assert codec.decode_request(JOIN_V0 + b"abc").findings == ("3 surplus bytes",)
    assert codec.decode_request(JOIN_V0 + b"a").findings == ("1 surplus byte",)
    assert codec.decode_body("OffsetDeleteRequest", 0, b"\0\1\xff\0\0\0\0").findings == ("no UTF-8 in group_id",)
    lengths = codec.decode_body("OffsetDeleteRequest", 0, b"\xff\xf0\0\0\0\0")
    assert lengths.findings == ("null in non-nullable group_id", "length -16 in group_id")


def test_a_truncated_message_yields_what_was_read() -> None:
    members = [{"member_id": "a", "metadata": b"0123456789"}, {"member_id": "b", "metadata": b"0123456789"}]
    whole = codec.encode_body("JoinGroupResponse", 4, {"members": members})
    cut = codec.decode_body("JoinGroupResponse", 4, whole[:-7])
    assert cut.findings == ("truncated at members[1].metadata: need 10 bytes, have 3",)
    assert cut.body["members"] == [members[0], {"member_id": "b"}]
    assert codec.decode_body("JoinGroupResponse", 4, b"").body == {}
    assert codec.decode_body("JoinGroupResponse", 4, b"").findings == (
        "truncated at throttle_time_ms: need 4 bytes, have 0",
    )
    assert codec.decode_request(b"\0\x0b\0").findings == ("truncated at request_api_version: need 2 bytes, have 1",)
    assert codec.decode_request(b"").correlation_id == -1


def test_unknown_apis_and_versions_keep_their_header() -> None:
    frame = struct.pack(">hhih", 71, 2, 5, 2) + b"me" + b"body"
    request = codec.decode_request(frame)
    assert (request.api, request.key, request.version, request.correlation_id, request.client_id) == (
        None,
        71,
        2,
        5,
        "me",
    )
    assert request.findings == ("unknown api key 71",)
    frame = struct.pack(">hhih", 18, 77, 5, 2) + b"me" + b"body"
    request = codec.decode_request(frame)
    assert (request.api, request.version, request.correlation_id, request.body) == ("ApiVersions", 77, 5, {})
    assert request.findings == ("unknown version 77 of ApiVersions",)
    with pytest.raises(ValueError, match="JoinGroupRequest version 10 is not known; versions 0 to 9 are"):
        codec.encode_request("JoinGroup", 10, 1, None, {})
    with pytest.raises(ValueError, match="no message is called 'JoinGrupResponse'"):
        codec.decode_response("JoinGrup", 0, b"")


def test_tags_the_schema_does_not_know_survive() -> None:
    body = {"error_code": 0, "unknown_tags": {"9": b"nine", "3": b""}}
    data = codec.encode_body("HeartbeatResponse", 4, body)
    assert data == bytes.fromhex("00000000 0000 02 03 00 09 04") + b"nine"
    read = codec.decode_body("HeartbeatResponse", 4, data)
    assert read.findings == () and read.body["unknown_tags"] == body["unknown_tags"]
    assert codec.encode_body("HeartbeatResponse", 4, read.body) == data
    with pytest.raises(UnencodableError, match="no field 'unknown_tags'"):
        codec.encode_body("HeartbeatResponse", 3, body)
    swapped = bytes.fromhex("00000000 0000 02 09 00 03 00")
    assert codec.decode_body("HeartbeatResponse", 4, swapped).findings == ("tags out of order in the message",)


def test_a_fault_inside_a_tagged_field_does_not_end_the_message() -> None:
    data = codec.encode_body("ApiVersionsResponse", 3, {})[:-1] + bytes.fromhex("02 01 02 0000 03 02 01ff")
    read = codec.decode_body("ApiVersionsResponse", 3, data)
    assert read.findings == (
        "truncated at finalized_features_epoch: need 8 bytes, have 2",
        "1 surplus byte in zk_migration_ready of the message",
    )
    assert read.body["zk_migration_ready"] is True and read.body["finalized_features_epoch"] == -1


@pytest.mark.parametrize(
    ("version", "change", "complaint"),
    [
        (0, {"grup_id": "g"}, "JoinGroupRequest v0: there is no field 'grup_id'"),
        (4, {"reason": "x"}, "JoinGroupRequest v4: this version has no field 'reason', given as 'x'"),
        (4, {"protocols": [{"name": 5}]}, "JoinGroupRequest v4 protocols[0].name: 5 does not fit"),
        (4, {"protocols": [{}, 3]}, "JoinGroupRequest v4 protocols[1]: 3 is no mapping"),
        (4, {"protocols": "range"}, "JoinGroupRequest v4 protocols: 'range' does not fit (not a list)"),
        (4, {"session_timeout_ms": 1 << 31}, "JoinGroupRequest v4 session_timeout_ms: 2147483648 does not fit"),
        (4, {"session_timeout_ms": None}, "JoinGroupRequest v4 session_timeout_ms: None does not fit"),
        (4, {"member_id": "x" * 40_000}, "JoinGroupRequest v4 member_id: 'xxx"),
    ],
)
def test_codec_names_the_field_it_cannot_encode(version: int, change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UnencodableError) as refused:
        codec.encode_body("JoinGroupRequest", version, join_v0_body() | change)
    assert str(refused.value).startswith(complaint)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


def test_illegal_values_are_written_all_the_same() -> None:
    body = {"group_id": None, "member_id": b"\xff\xfe", "protocols": None, "session_timeout_ms": -(2**31)}
    read = codec.decode_body("JoinGroupRequest", 9, codec.encode_body("JoinGroupRequest", 9, body))
    assert read.body["group_id"] is None and read.body["protocols"] is None
    assert read.body["member_id"].encode(errors="surrogateescape") == b"\xff\xfe"
    assert len(read.findings) == 3


def test_a_field_the_version_lacks_may_be_given_if_it_says_nothing() -> None:
    quiet = join_v0_body() | {"rebalance_timeout_ms": -1, "group_instance_id": None, "reason": None}
    assert codec.encode_body("JoinGroupRequest", 0, quiet) == codec.encode_body("JoinGroupRequest", 0, join_v0_body())
    assert codec.fit_body("JoinGroupRequest", 0, join_v9_body()) == join_v0_body()
    assert codec.fields_of("JoinGroupRequest", 0) == dict.fromkeys(join_v0_body()) | {
        "protocols": {"name": None, "metadata": None}
    }


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """`data` after some bytes were flipped, dropped or put in."""
    raw = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(raw) + 1)
        match chance.randrange(4):
            case 0:
                raw[place : place + 1] = bytes([chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))])
            case 1:
                del raw[place : place + chance.randint(1, 8)]
            case 2:
                raw[place:place] = chance.randbytes(chance.randint(1, 8))
            case _:
                del raw[place:]
    return bytes(raw)


def fill_body(fields: tuple[Field, ...], version: int, chance: random.Random) -> dict[str, Any]:
    """A body with some structs in its arrays and all else left at its default."""
    return {
        field.name: [fill_body(field.fields, version, chance) for _ in range(chance.randint(0, 3))]
        for field in fields
        if field.kind == "struct" and field.array and version in field.versions
    }


@pytest.mark.slow
@given(pairs, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=4000)
def test_mutated_messages_never_raise(pair: tuple[str, int], chance: random.Random) -> None:
    name, version = pair
    data = codec.encode_body(name, version, fill_body(SCHEMAS[name].fields, version, chance))
    whole = codec.decode_body(name, version, data)
    assert whole.findings == ()
    assert codec.encode_body(name, version, whole.body) == data
    hostile = codec.decode_body(name, version, mutate_bytes(data, chance))
    if not any(finding.startswith(("truncated", "malformed")) for finding in hostile.findings):
        again = codec.encode_body(name, version, hostile.body)
        assert codec.decode_body(name, version, again).body == hostile.body


@given(pairs, st.binary(max_size=200))
@settings(deadline=None, max_examples=4000)
def test_random_bytes_never_raise(pair: tuple[str, int], data: bytes) -> None:
    name, version = pair
    read = codec.decode_body(name, version, data)
    json.dumps(read.body, default=bytes.hex)
    codec.decode_request(data)
    api = name.removesuffix("Request")
    if api in codec.API_KEYS:  # those of a draft have no number
        frame = struct.pack(">hhi", codec.API_KEYS[api], version, 1) + data
        assert codec.decode_request(frame).correlation_id == 1
        codec.decode_response(api, version, data)


def test_a_server_can_limit_what_a_frame_unpacks_to() -> None:
    protocols = [{"name": name} for name in "abc"]
    frame = codec.encode_request("JoinGroup", 9, 1, None, join_v9_body() | {"protocols": protocols})
    assert codec.decode_request(frame, max_items=3).findings == ()
    assert codec.decode_request(frame, max_items=2).findings == ("too much at protocols: 3 more items, 2 are allowed",)
    parts = [{"index": 0}, {"index": 1}]
    topics = [{"name": name, "partition_data": parts} for name in "ab"]
    frame = codec.encode_request("Produce", 9, 1, None, {"topic_data": topics})
    assert codec.decode_request(frame, max_items=6).findings == ()
    (finding,) = codec.decode_request(frame, max_items=5).findings
    assert finding.startswith("too much at topic_data[1].partition_data")


@pytest.mark.parametrize("count", [bytes.fromhex("7fffffff"), bytes.fromhex("00ffffff")])
def test_a_huge_count_costs_no_memory(count: bytes) -> None:
    codec.decode_body("DeleteGroupsRequest", 0, b"\0\0\0\0")
    tracemalloc.start()
    try:
        read = codec.decode_body("DeleteGroupsRequest", 0, count + b"\0\0" * 10)
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()
    assert read.findings[0].startswith("truncated at groups_names: need")
    endless = codec.decode_body("DeleteGroupsRequest", 2, b"\xff" * 30)
    assert endless.findings == ("malformed at groups_names: a variable-length number of more than 5 bytes",)


# --- A message in Kafka's JSON form has the same fields as its bytes.


def test_names_bytes_and_ids() -> None:
    asked = {"groupId": "g", "protocols": [{"name": "range", "metadata": "AAEC"}], "reason": None}
    body = body_from_json("JoinGroupRequest", 8, asked)
    assert body == {"group_id": "g", "protocols": [{"name": "range", "metadata": b"\0\1\2"}], "reason": None}
    topics = [{"topicId": "gfAv49rDRYq15WDYTeHCqg", "partitions": []}]
    body = body_from_json("OffsetCommitRequest", 10, {"groupId": "g", "topics": topics})
    assert body["topics"][0]["topic_id"] == "81f02fe3-dac3-458a-b5e5-60d84de1c2aa"
    assert decode_body("OffsetCommitRequest", 10, encode_body("OffsetCommitRequest", 10, body)).findings == ()


@pytest.mark.parametrize("name", ["generationId", "generationIdOrMemberEpoch"])
def test_a_name_that_kafka_has_changed(name: str) -> None:
    assert body_from_json("TxnOffsetCommitRequest", 3, {name: 4}) == {"generation_id": 4}
    assert body_from_json("OffsetCommitRequest", 8, {name: 4}) == {"generation_id_or_member_epoch": 4}


def test_sizes_stand_for_records() -> None:
    partition = {"partitionIndex": 0, "recordsSizeInBytes": 70}
    body = body_from_json("FetchResponse", 12, {"responses": [{"topic": "t", "partitions": [partition]}]})
    assert body == {"responses": [{"topic": "t", "partitions": [{"partition_index": 0}]}]}


@pytest.mark.parametrize(
    ("version", "value"),
    [
        (99, {}),
        (0, {"other": 1}),
        (0, {"reason": "a later version"}),
        (0, {"protocols": 3}),
        (0, {"protocols": [3]}),
        (0, {"protocols": [{"metadata": 3}]}),
        (0, {"protocols": [{"metadata": "?"}]}),
        (0, []),
    ],
)
def test_what_is_of_another_form(version: int, value: Any) -> None:
    with pytest.raises(ValueError):
        body_from_json("JoinGroupRequest", version, value)
