"""A message in Kafka's JSON form has the same fields as its bytes."""

from typing import Any

import pytest

from fencepost.model.wire.codec import decode_body, encode_body
from fencepost.model.wire.kafka_json import body_from_json


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
