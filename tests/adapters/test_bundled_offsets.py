"""Offsets of the bundled coordinator: commit, fetch, delete, transactions; and the questions from outside."""

import struct
from typing import Any

import pytest

from fencepost.adapters.classic.subscription import UnreadableSubscription, read_topics
from fencepost.adapters.classic.topics import topic_id_of
from fencepost.model.errors import Error
from tests.support.group_driver import P_THEN_Q, BundledGroup, open_group, response_of, wait_for_response


def subscription(*topics: str) -> bytes:
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 1, len(topics)) + names + b"\xff\xff\xff\xff"


async def test_who_may_commit_in_which_state(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member(instance="i")
    simple: dict[str, Any] = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
    rows: list[dict[str, Any]] = [
        simple,
        {"generation_id_or_member_epoch": -1},
        simple | {"member_id": "x"},
        simple | {"group_instance_id": "i"},
        {"generation_id_or_member_epoch": 9},
        {"member_id": "x"},
        {"group_instance_id": "i"},
        {"group_instance_id": "x"},
        {},
    ]

    def errors() -> list[int]:
        return [a.commit(**row) for row in rows]

    await bundled.form_stable_group(a, b)
    assert errors() == [25, 22, 25, 82, 22, 25, 82, 25, 0]
    join = b.join(protocols=[{"name": "p", "metadata": b"x"}])
    assert errors() == [25, 22, 25, 82, 22, 25, 82, 25, 0]
    a.accept_join(response_of(a.join()))
    b.accept_join(response_of(join))
    assert errors() == [25, 22, 25, 82, 22, 25, 82, 25, 27]
    assert [a.leave(), b.leave()] == [Error.NONE, Error.NONE]
    assert errors() == [0, 0, 0, 0, 25, 25, 25, 25, 25]


async def test_commits_to_empty_and_unknown_groups(bundled: BundledGroup) -> None:
    a = bundled.member()
    a.generation = 5
    assert [a.commit(version=8), a.commit(version=9)] == [Error.ILLEGAL_GENERATION, Error.GROUP_ID_NOT_FOUND]
    assert await bundled.group_state() == "Dead"
    a.generation = -1
    assert a.commit(topic="ghost") == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert await bundled.group_state() == "Dead"
    assert [a.commit(), a.commit(member_id="x", group_instance_id="y")] == [Error.NONE, Error.NONE]
    assert a.commit(generation_id_or_member_epoch=0, member_id="x") == Error.UNKNOWN_MEMBER_ID
    described = (await bundled.request("DescribeGroups", 4, groups=["g"]))["groups"][0]
    assert (described["group_state"], described["protocol_type"]) == ("Empty", "")
    empty = bundled.member(group="")
    assert empty.commit(offset=3) == Error.NONE and empty.fetch()["committed_offset"] == 3
    await bundled.form_stable_group(a)
    assert a.fetch()["committed_offset"] == 7


async def test_each_partition_gets_its_own_error(bundled: BundledGroup) -> None:
    entries = [
        {"partition_index": 0, "committed_offset": -5, "committed_leader_epoch": 3, "committed_metadata": None},
        {"partition_index": 1, "committed_offset": 1, "committed_metadata": "x" * 4096},
        {"partition_index": 2, "committed_offset": 1, "committed_metadata": "x" * 4097},
        {"partition_index": 4, "committed_offset": 1, "committed_metadata": ""},
    ]
    told = await bundled.request("OffsetCommit", 6, group_id="g", topics=[{"name": "fencepost", "partitions": entries}])
    assert [p["error_code"] for p in told["topics"][0]["partitions"]] == [
        Error.NONE,
        Error.NONE,
        Error.OFFSET_METADATA_TOO_LARGE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    fetched = await bundled.request("OffsetFetch", 5, group_id="g", topics=None)
    partitions = fetched["topics"][0]["partitions"]
    assert [p["partition_index"] for p in partitions] == [0, 1]
    assert partitions[0] == {
        "partition_index": 0,
        "committed_offset": -5,
        "committed_leader_epoch": 3,
        "metadata": "",
        "error_code": 0,
    }
    wanted = [{"name": "ghost", "partition_indexes": [7]}]
    first = await bundled.request("OffsetFetch", 1, group_id="g", topics=wanted)
    assert set(first) == {"topics"}
    assert first["topics"][0]["partitions"][0] == {
        "partition_index": 7,
        "committed_offset": -1,
        "metadata": "",
        "error_code": 0,
    }
    groups = [{"group_id": name, "topics": topics} for name, topics in (("g", []), ("x", None), ("g", wanted))]
    many = await bundled.request("OffsetFetch", 8, groups=groups)
    assert [len(g["topics"]) for g in many["groups"]] == [0, 0, 1]
    assert await bundled.group_state("x") == "Dead"


async def test_topics_go_by_their_ids(bundled: BundledGroup) -> None:
    known, ghost = topic_id_of("fencepost"), topic_id_of("ghost")

    async def commit(*topics: tuple[str, int], **claim: Any) -> list[int]:
        rows = [
            {"topic_id": each, "partitions": [{"partition_index": index, "committed_offset": 7}]}
            for each, index in topics
        ]
        told = await bundled.request("OffsetCommit", 10, group_id="g", topics=rows, **claim)
        assert [topic["topic_id"] for topic in told["topics"]] == [each for each, _ in topics]
        return [row["error_code"] for topic in told["topics"] for row in topic["partitions"]]

    claim = {"generation_id_or_member_epoch": 5, "member_id": "m"}
    assert await commit((ghost, 0), **claim) == [Error.UNKNOWN_TOPIC_ID]
    assert await bundled.group_state("g") == "Dead"
    assert await commit((known, 0), (known, 9), (ghost, 0), **claim) == [
        Error.GROUP_ID_NOT_FOUND,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
    ]
    assert await commit((known, 1), (known, 9), (ghost, 0)) == [
        Error.NONE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
    ]

    async def fetch(topics: Any) -> list[tuple[str, int, int, int]]:
        told = await bundled.request("OffsetFetch", 10, groups=[{"group_id": "g", "topics": topics}])
        return [
            (topic["topic_id"], row["partition_index"], row["committed_offset"], row["error_code"])
            for topic in told["groups"][0]["topics"]
            for row in topic["partitions"]
        ]

    assert await fetch(None) == [(known, 1, 7, 0)]
    listed = [{"topic_id": known, "partition_indexes": [1, 9]}, {"topic_id": ghost, "partition_indexes": [0]}]
    assert await fetch(listed) == [(known, 1, 7, 0), (known, 9, -1, 0), (ghost, 0, -1, 100)]
    by_name = [{"name": "fencepost", "partition_indexes": [1]}]
    told = await bundled.request("OffsetFetch", 9, groups=[{"group_id": "g", "topics": by_name}])
    assert told["groups"][0]["topics"][0]["partitions"][0]["committed_offset"] == 7


async def test_transactional_offsets(bundled: BundledGroup) -> None:
    a = bundled.member()
    await bundled.form_stable_group(a)
    assert a.commit(offset=1) == Error.NONE
    producer = (await bundled.request("InitProducerId", 4, transactional_id="t"))["producer_id"]
    me = {"transactional_id": "t", "producer_id": producer, "producer_epoch": 0}
    assert (await bundled.request("AddOffsetsToTxn", 3, **me, group_id="g"))["error_code"] == Error.NONE

    async def commit(offset: int, **other: object) -> int:
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        body = me | {"group_id": "g", "topics": [{"name": "fencepost", "partitions": [partition]}]} | other
        told = await bundled.request("TxnOffsetCommit", 3, **body)
        return int(told["topics"][0]["partitions"][0]["error_code"])

    assert await commit(10) == Error.NONE
    assert [a.fetch()["committed_offset"], a.fetch(stable=True)["error_code"]] == [1, Error.UNSTABLE_OFFSET_COMMIT]
    assert (await bundled.request("EndTxn", 3, **me, committed=True))["error_code"] == Error.NONE
    assert a.fetch(stable=True)["committed_offset"] == 10
    assert await commit(20) == Error.NONE
    await bundled.request("EndTxn", 3, **me, committed=False)
    assert a.fetch()["committed_offset"] == 10
    assert [await commit(1, group_id=""), await commit(1, generation_id=2, member_id=a.id)] == [
        Error.INVALID_GROUP_ID,
        Error.ILLEGAL_GENERATION,
    ]
    assert await commit(1, group_id="none", generation_id=3) == Error.ILLEGAL_GENERATION
    assert await commit(30) == Error.NONE
    assert a.commit(offset=2) == Error.NONE
    await bundled.request("EndTxn", 3, **me, committed=True)
    assert a.fetch()["committed_offset"] == 2
    again = await bundled.request("InitProducerId", 4, transactional_id="t")
    assert (again["producer_id"], again["producer_epoch"]) == (producer, 1)
    assert (await bundled.request("EndTxn", 3, **me, committed=True))["error_code"] == 47
    assert (await bundled.request("EndTxn", 3, transactional_id="x", producer_id=9))["error_code"] == 49


async def test_offset_delete() -> None:
    async with open_group(topics={"one": 1, "two": 1, "three": 1}) as bundled:

        async def delete(group: str, *topics: str) -> list[int]:
            body = [{"name": topic, "partitions": [{"partition_index": 0}]} for topic in topics]
            told = await bundled.request("OffsetDelete", 0, group_id=group, topics=body)
            return [told["error_code"], *(t["partitions"][0]["error_code"] for t in told["topics"])]

        assert [await delete("", "one"), await delete("g", "one")] == [[24], [69]]
        a = bundled.member(type="consumer", protocols=(("range", subscription("one")),))
        b = bundled.member(type="consumer", protocols=(("range", subscription("two")),))
        await bundled.form_stable_group(a, b)
        assert [a.commit(topic=topic) for topic in ("one", "two", "three")] == [Error.NONE, Error.NONE, Error.NONE]
        assert await delete("g", "one", "two", "three", "ghost") == [0, 86, 86, 0, 3]
        assert [a.fetch(topic=topic)["committed_offset"] for topic in ("one", "two", "three")] == [7, 7, -1]
        assert [a.leave(), b.leave()] == [Error.NONE, Error.NONE]
        join = b.join()
        assert response_of(join)["error_code"] == Error.UNKNOWN_MEMBER_ID
        assert await delete("g", "one", "three") == [0, 0, 0]
        other = bundled.member(group="other", protocols=P_THEN_Q)
        await bundled.form_stable_group(other)
        assert await delete("other", "one") == [68]
        bad = bundled.member(group="bad", type="consumer", protocols=(("range", b"\x00"),))
        await bundled.form_stable_group(bad)
        assert await delete("bad", "one") == [0, 86]


async def test_absurd_metadata_does_not_hang_a_round(bundled: BundledGroup) -> None:
    for number, metadata in enumerate([b"", b"\x00\x00\x7f\xff\xff\xff", b"\x00\x00\x00\x00\x00\x01\x00\x02\xff\xfe"]):
        a = bundled.member(group=f"g{number}", type="consumer", protocols=(("range", metadata),))
        await a.obtain_id()
        assert (await wait_for_response(a.join()))["members"][0]["metadata"] == metadata


def test_reading_subscriptions() -> None:
    assert read_topics(subscription("one", "two")) == {"one", "two"}
    for bad in (
        b"",
        b"\x00\x01",
        b"\x00\x01\xff\xff\xff\xff",
        b"\x00\x01\x00\x00\x00\x01\xff\xff",
        b"\0\1\0\0\0\1\0\x09a",
    ):
        with pytest.raises(UnreadableSubscription):
            read_topics(bad)


async def test_describing_listing_deleting(bundled: BundledGroup) -> None:
    a, b = bundled.member(), bundled.member(group="empty")
    await bundled.form_stable_group(a)
    await b.obtain_id()

    async def list_groups(version: int = 5, **filters: list[str]) -> set[str]:
        told = await bundled.request("ListGroups", version, **filters)
        return {group["group_id"] for group in told["groups"]}

    assert await list_groups() == await list_groups(0) == {"g", "empty"}
    assert await list_groups(states_filter=["STABLE"]) == {"g"}
    assert await list_groups(states_filter=["stable", "Empty"], types_filter=["Classic"]) == {"g", "empty"}
    assert await list_groups(types_filter=["consumer"]) == await list_groups(states_filter=["nonsense"]) == set()
    assert (await bundled.request("ListGroups", 3))["groups"][0] == {"group_id": "g", "protocol_type": "test"}
    described = await bundled.request("DescribeGroups", 3, groups=["g", "x"])
    assert described["groups"][0] == {
        "error_code": 0,
        "group_id": "g",
        "group_state": "Stable",
        "protocol_type": "test",
        "protocol_data": "p",
        "members": [
            {
                "member_id": a.id,
                "client_id": "fencepost",
                "client_host": "/127.0.0.1",
                "member_metadata": b"mp",
                "member_assignment": b"for 0",
            }
        ],
        "authorized_operations": -2147483648,
    }
    assert (described["groups"][1]["error_code"], described["groups"][1]["group_state"]) == (Error.NONE, "Dead")
    newest = (await bundled.request("DescribeGroups", 6, groups=["x"]))["groups"][0]
    assert newest["error_code"] == Error.GROUP_ID_NOT_FOUND and newest["error_message"]
    told = await bundled.request("DeleteGroups", 2, groups_names=["g", "empty", "x", "empty"])
    assert [(r["group_id"], r["error_code"]) for r in told["results"]] == [("g", 68), ("empty", 0), ("x", 69)]
    assert response_of(b.join())["error_code"] == Error.UNKNOWN_MEMBER_ID
    assert response_of(a.join())["error_code"] == Error.NONE
    middle = (await bundled.request("DescribeGroups", 5, groups=["g"]))["groups"][0]
    assert (middle["group_state"], middle["protocol_data"]) == ("CompletingRebalance", "")
    assert (middle["members"][0]["member_metadata"], middle["members"][0]["member_assignment"]) == (b"", b"for 0")


async def test_finding_the_coordinator(bundled: BundledGroup) -> None:
    assert await bundled.request("FindCoordinator", 0, key="g") == {
        "error_code": 0,
        "node_id": 0,
        "host": "127.0.0.1",
        "port": 9092,
    }
    assert (await bundled.request("FindCoordinator", 3, key="g", key_type=9))["error_code"] == Error.INVALID_REQUEST
    many = await bundled.request("FindCoordinator", 4, key_type=0, coordinator_keys=["a", "b"])
    assert set(many) == {"throttle_time_ms", "coordinators"}
    assert [c["key"] for c in many["coordinators"]] == ["a", "b"]
    assert await bundled.group_state("a") == "Dead"
