"""The messages of the draft of client-side assignment, byte by byte, and where Kafka's version 0 differs."""

from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body, decode_body, encode_body

JOIN: Body = {
    "group_id": "g",
    "session_timeout": 10_000,
    "member_id": "",
    "protocol_type": "consumer",
    "group_protocols": [{"protocol": "range", "metadata": b"\x01\x02"}],
}
FAILED: Body = {
    "group_id": "g",
    "group_generation": 3,
    "member_id": "a",
    "sync_error_code": int(Error.INCONSISTENT_GROUP_PROTOCOL),
    "group_state": [],
}
STATE: Body = {
    "version": 0,
    "topic_partitions": [{"topic": "t", "partitions": [0, 2]}],
    "user_data": b"",
}


def test_join_group_is_kafkas_version_0() -> None:
    kafka = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\x01\x02"}],
    }
    encoded = encode_body("ProposedJoinGroupRequest", 0, JOIN)
    assert encoded == encode_body("JoinGroupRequest", 0, kafka)
    assert decode_body("ProposedJoinGroupRequest", 0, encoded).body == JOIN
    answer: Body = {
        "error_code": 0,
        "group_generation": 3,
        "group_protocol": "range",
        "group_leader_id": "a",
        "member_id": "a",
        "members": [{"member_id": "a", "metadata": b"\x01\x02"}],
    }
    told = {"error_code": 0, "generation_id": 3, "protocol_name": "range", "leader": "a", "member_id": "a"}
    encoded = encode_body("ProposedJoinGroupResponse", 0, answer)
    assert encoded == encode_body("JoinGroupResponse", 0, told | {"members": answer["members"]})
    assert decode_body("ProposedJoinGroupResponse", 0, encoded).body == answer


def test_sync_group_carries_the_error_of_an_assignment() -> None:
    encoded = encode_body("ProposedSyncGroupRequest", 0, FAILED)
    assert encoded == b"\x00\x01g\x00\x00\x00\x03\x00\x01a\x00\x17\x00\x00\x00\x00"
    decoded = decode_body("ProposedSyncGroupRequest", 0, encoded)
    assert decoded.body == FAILED and not decoded.findings
    kafka = {"group_id": "g", "generation_id": 3, "member_id": "a", "assignments": []}
    assert len(encoded) == len(encode_body("SyncGroupRequest", 0, kafka)) + 2
    answer = {"error_code": 0, "state": encode_body("ProposedMemberState", 0, STATE)}
    encoded = encode_body("ProposedSyncGroupResponse", 0, answer)
    assert decode_body("ProposedSyncGroupResponse", 0, encoded).body == answer


def test_state_and_metadata_of_a_consumer() -> None:
    encoded = encode_body("ProposedMemberState", 0, STATE)
    expected = b"\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x02"
    assert encoded == expected + b"\x00\x00\x00\x00"
    assert decode_body("ProposedMemberState", 0, encoded).body == STATE
    metadata: Body = {"version": 0, "topics": ["t"], "user_data": b"x", "assignment_strategies": ["range"]}
    encoded = encode_body("ProposedMemberMetadata", 0, metadata)
    assert decode_body("ProposedMemberMetadata", 0, encoded).body == metadata


def test_a_message_that_is_cut_short_says_so() -> None:
    encoded = encode_body("ProposedSyncGroupRequest", 0, FAILED)
    assert decode_body("ProposedSyncGroupRequest", 0, encoded[:-1]).findings
