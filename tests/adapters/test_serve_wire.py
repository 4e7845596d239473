"""The server as seen byte by byte: order, refusals, hostile frames, what outlives it."""

import asyncio
import random
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.serve.connection import MOST_BYTES, MOST_ITEMS
from fencepost.adapters.serve.server import serve
from fencepost.adapters.serve.versions import OFFERED
from fencepost.model.wire.codec import VERSIONS, decode_response, encode_request, fitted
from fencepost.model.wire.records import Record, control_batch, decode_batches, encode_batch, make_batch, records_of
from tests.support.tcp_peer import PATIENCE, SETTINGS, House, Peer, visit


def join(group: str = "g", member_id: str = "", metadata: bytes = b"m") -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": metadata}],
    }


async def create(peer: Peer, name: str, partitions: int = 1, **more: Any) -> int:
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, **more}
    (answer,) = (await peer.ask("CreateTopics", 5, {"topics": [topic]}))["topics"]
    return int(answer["error_code"])


async def produce(peer: Peer, data: bytes, topic: str = "t", acks: int = 1) -> dict[str, Any]:
    partitions = [{"index": 0, "records": data}]
    body = {"acks": acks, "timeout_ms": 1_000, "topic_data": [{"name": topic, "partition_data": partitions}]}
    answer = await peer.ask("Produce", 9, body)
    return dict(answer["responses"][0]["partition_responses"][0])


def fetching(offset: int, wait_ms: int = 0, most: int = 1 << 20, version: int = 11) -> bytes:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": most}
    body = {"max_wait_ms": wait_ms, "min_bytes": 1, "topics": [{"topic": "t", "partitions": [partition]}]}
    return encode_request("Fetch", version, 5, None, body)


async def fetched(peer: Peer, version: int = 11) -> dict[str, Any]:
    response = decode_response("Fetch", version, await peer.frame())
    assert response.findings == ()
    return dict(response.body["responses"][0]["partitions"][0])


def values(data: bytes) -> list[tuple[int, bytes | None]]:
    found = decode_batches(data)
    assert found.findings == ()
    return [(record.offset, record.value) for batch in found.batches for record in records_of(batch)[0]]


def test_every_version_it_offers_is_answered_as_the_schema_says() -> None:
    async def story(place: House) -> None:
        peer = await place.peer()
        assert await create(peer, "t") == 0
        body: dict[str, Any] = {"JoinGroup": join(member_id="nobody"), "Metadata": {"topics": [{"name": "t"}]}}
        for api, (low, high) in OFFERED.items():
            assert VERSIONS[api][0] <= low <= high <= VERSIONS[api][1]
            for version in range(low, high + 1):
                given = dict(body.get(api, {}))
                if version == 0:
                    given.pop("rebalance_timeout_ms", None)
                await peer.ask(api, version, given | ({"acks": 1} if api == "Produce" else {}))

    visit(story)


def test_what_is_not_offered() -> None:
    async def story(place: House) -> None:
        peer = await place.peer()
        for version in (5, 9999):
            peer.write(struct.pack(">hhih", 18, version, 77, -1))
            refused = decode_response("ApiVersions", 4, await peer.frame())
            assert refused.body["error_code"] == 35 and refused.correlation_id == 77
            assert refused.body["api_keys"] == [{"api_key": 18, "min_version": 0, "max_version": 4}]
        peer.write(encode_request("Fetch", 12, 1, None, {}))
        assert await peer.frame() == b""

    visit(story)


def test_pipelined_requests_are_answered_in_order_even_behind_a_parked_one() -> None:
    async def story(place: House) -> None:
        peer = await place.peer()
        peer.write(encode_request("JoinGroup", 3, 1, None, join()))
        for number in (2, 3):
            peer.write(encode_request("ListGroups", 0, number, None, {}))
        assert [decode_response("ListGroups", 0, await peer.frame()).correlation_id for _ in range(3)] == [1, 2, 3]

    visit(story)


def test_who_hangs_up_leaves_a_parked_join_behind() -> None:
    async def story(place: House) -> None:
        gone, stays = await place.peer(), await place.peer()
        gone.write(encode_request("JoinGroup", 3, 1, None, join()))
        async with asyncio.timeout(PATIENCE):
            while not (await stays.ask("ListGroups", 0, {}))["groups"]:
                pass
        await gone.close()
        joined = await stays.ask("JoinGroup", 3, join())
        described = await stays.ask("DescribeGroups", 0, {"groups": ["g"]})
        assert joined["error_code"] == 0
        assert len(described["groups"][0]["members"]) == 2
        assert described["groups"][0]["members"][0]["client_host"] == "/127.0.0.1"

    visit(story)


def test_a_frame_of_very_many_items_is_not_unpacked() -> None:
    async def story(place: House) -> None:
        peer = await place.peer()
        for count in (MOST_ITEMS, MOST_ITEMS + 1):
            body = {"topics": [{"name": ""}] * count, "allow_auto_topic_creation": False}
            peer.write(encode_request("Metadata", 4, 1, None, body))
            assert (await peer.frame() != b"") == (count == MOST_ITEMS)

    visit(story)


@pytest.mark.parametrize(
    "data",
    [
        bytes.fromhex("ffffffff"),
        bytes.fromhex("00000000"),
        (MOST_BYTES + 1).to_bytes(4),
        b"GET / HTTP/1.1\r\n\r\n",
        bytes.fromhex("16030100c8010000c40303"),
        bytes.fromhex("00000002 000b"),
        bytes.fromhex("00000008 7fff 0000 00000000"),
        bytes.fromhex("0000000e 000b 0000 00000000 ffff 7fffffff"),
    ],
)
def test_nonsense_closes_its_own_connection_only(data: bytes) -> None:
    async def story(place: House) -> None:
        peer, other = await place.peer(), await place.peer()
        await other.ask("ListGroups", 0, {})
        peer.write_raw(data)
        assert await peer.frame() == b""
        assert (await other.ask("ListGroups", 0, {}))["groups"] == []

    visit(story)


def test_a_null_where_none_may_be_closes_the_connection() -> None:
    async def story(place: House) -> None:
        peer = await place.peer()
        peer.write(encode_request("JoinGroup", 5, 1, None, join(metadata=b"m") | {"protocols": None}))
        assert await peer.frame() == b""

    visit(story)


FILLED: dict[str, dict[str, Any]] = {
    "JoinGroup": join(),
    "SyncGroup": {"group_id": "g", "assignments": [{"member_id": "m"}]},
    "OffsetCommit": {"group_id": "g", "topics": [{"name": "t", "partitions": [{"committed_metadata": "m"}]}]},
    "Metadata": {"topics": [{"name": "t"}]},
    "CreateTopics": {"topics": [{"name": "t", "configs": [{"name": "c"}], "assignments": [{"broker_ids": [0]}]}]},
    "DescribeConfigs": {"resources": [{"resource_type": 4, "configuration_keys": ["group.max.size"]}]},
    "Produce": {"acks": 1, "topic_data": [{"name": "t", "partition_data": [{"records": bytes(61)}]}]},
    "Fetch": {"max_wait_ms": 1, "topics": [{"topic": "t", "partitions": [{"partition": 0}]}]},
    "ListOffsets": {"topics": [{"name": "t", "partitions": [{"timestamp": 0}]}]},
    "AddPartitionsToTxn": {"v3_and_below_topics": [{"name": "t", "partitions": [0]}]},
}


def hostile_frame(chance: random.Random) -> bytes:
    """A request that was legal before some bytes changed."""
    api = chance.choice([*OFFERED, *FILLED])
    version = chance.randint(*OFFERED[api])
    frame = bytearray(encode_request(api, version, 1, "c", fitted(api + "Request", version, FILLED.get(api, {}))))
    for _ in range(chance.randint(1, 3)):
        frame[chance.randrange(8, len(frame))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
    return bytes(frame)


def test_hostile_frames_do_not_bring_it_down(caplog: pytest.LogCaptureFixture) -> None:
    async def story(place: House) -> None:
        assert await create(await place.peer(), "t") == 0
        chance = random.Random(4)
        for _ in range(1_000):
            peer = await place.peer()
            peer.write(hostile_frame(chance))
            await peer.close()
        assert (await (await place.peer()).ask("ApiVersions", 4, {}))["error_code"] == 0

    visit(story)
    assert any("closing the connection" in record.message for record in caplog.records)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_records_come_back_under_their_offsets() -> None:
    async def story(place: House) -> None:
        peer = await place.peer()
        await create(peer, "t")
        two = encode_batch(make_batch([Record(b"a"), Record(b"b")], base_offset=99))
        assert (await produce(peer, two))["base_offset"] == 0
        assert (await produce(peer, two + two))["base_offset"] == 2
        peer.write(fetching(3))
        answer = await fetched(peer)
        assert values(answer["records"]) == [(2, b"a"), (3, b"b"), (4, b"a"), (5, b"b")]
        assert answer["high_watermark"] == 6
        peer.write(fetching(0, most=1))
        assert values((await fetched(peer))["records"]) == [(0, b"a"), (1, b"b")]
        for offset in (7, -1):
            peer.write(fetching(offset, wait_ms=60_000))
            assert (await fetched(peer))["error_code"] == 1

    visit(story)


def test_a_reader_at_the_end_waits_for_records() -> None:
    async def story(place: House) -> None:
        reader, writer = await place.peer(), await place.peer()
        await create(writer, "t")
        reader.write(fetching(0, wait_ms=60_000))
        await produce(writer, encode_batch(make_batch([Record(b"news")])))
        assert values((await fetched(reader))["records"]) == [(0, b"news")]
        reader.write(fetching(1, wait_ms=1))
        assert (await fetched(reader))["records"] == b""

    visit(story)


def test_what_cannot_be_written() -> None:
    async def story(place: House) -> None:
        peer = await place.peer()
        await create(peer, "t")
        sound = encode_batch(make_batch([Record(b"v")]))
        assert (await produce(peer, sound, "no-such-topic"))["error_code"] == 3
        assert (await produce(peer, b""))["error_code"] == 2
        assert (await produce(peer, sound[:-1]))["error_code"] == 2
        assert (await produce(peer, encode_batch(control_batch(0, 1, 0, True, 0))))["error_code"] == 87
        peer.write(
            encode_request(
                "Produce", 9, 6, None, {"topic_data": [{"name": "t", "partition_data": [{"records": sound}]}]}
            )
        )  # acks 0: no answer
        peer.write(fetching(0, wait_ms=1))
        assert values((await fetched(peer))["records"]) == [(0, b"v")]

    visit(story)


def test_offsets_by_time() -> None:
    async def story(place: House) -> None:
        peer = await place.peer()
        await create(peer, "t")
        await produce(peer, encode_batch(make_batch([Record(b"a", timestamp=10), Record(b"b", timestamp=30)])))
        await produce(peer, encode_batch(make_batch([Record(b"c", timestamp=20)])))
        expected = {-1: (-1, 3), -2: (-1, 0), -3: (30, 1), 0: (10, 0), 11: (30, 1), 30: (30, 1), 31: (-1, -1)}
        partitions = [{"partition_index": 0, "timestamp": timestamp} for timestamp in expected]
        body = {"replica_id": -1, "topics": [{"name": "t", "partitions": partitions}]}
        (topic,) = (await peer.ask("ListOffsets", 7, body))["topics"]
        assert [(one["timestamp"], one["offset"]) for one in topic["partitions"]] == list(expected.values())

    visit(story)


def test_topics() -> None:
    async def story(place: House) -> None:
        peer = await place.peer()
        assert await create(peer, "t", 3) == 0
        assert await create(peer, "t", 3) == 36
        assert await create(peer, "a b") == 17
        assert await create(peer, "..") == 17
        assert await create(peer, "none", 0) == 37
        assert await create(peer, "huge", 10_001) == 44
        assert await create(peer, "copies", replication_factor=2) == 38
        elsewhere = [{"partition_index": 0, "broker_ids": [1]}]
        assert await create(peer, "placed", -1, replication_factor=-1, assignments=elsewhere) == 39
        twice = await peer.ask("CreateTopics", 5, {"topics": [{"name": "x"}, {"name": "x"}]})
        assert [topic["error_code"] for topic in twice["topics"]] == [42]
        shown = await peer.ask("Metadata", 12, {"topics": None})
        assert [(topic["name"], len(topic["partitions"])) for topic in shown["topics"]] == [("t", 3)]
        assert (shown["brokers"][0]["host"], shown["brokers"][0]["port"]) == place.server.address
        by_id = {"topic_id": shown["topics"][0]["topic_id"], "name": None}
        assert (await peer.ask("Metadata", 12, {"topics": [by_id]}))["topics"] == shown["topics"]
        unmade = {"topics": [{"name": "later"}], "allow_auto_topic_creation": False}
        assert (await peer.ask("Metadata", 12, unmade))["topics"][0]["error_code"] == 3
        assert len((await peer.ask("Metadata", 1, {"topics": [{"name": "later"}]}))["topics"][0]["partitions"]) == 4

    visit(story)


def test_the_settings_are_told_under_kafkas_names() -> None:
    async def story(place: House) -> None:
        peer = await place.peer()
        resource = {"resource_type": 4, "resource_name": "0", "configuration_keys": None}
        (broker,) = (await peer.ask("DescribeConfigs", 4, {"resources": [resource]}))["results"]
        told = {config["name"]: config["value"] for config in broker["configs"]}
        assert told["group.max.size"] == "7" and told["offsets.retention.minutes"] == "10080"
        assert len(told) == 8
        one = resource | {"configuration_keys": ["group.min.session.timeout.ms"]}
        strange = [one, resource | {"resource_name": "9"}, {"resource_type": 2, "resource_name": "no"}]
        results = (await peer.ask("DescribeConfigs", 1, {"resources": strange}))["results"]
        assert [result["error_code"] for result in results] == [0, 42, 3]
        assert [(config["name"], config["value"]) for config in results[0]["configs"]] == [
            ("group.min.session.timeout.ms", "100")
        ]

    visit(story)


def test_groups_offsets_and_topics_outlive_the_server(tmp_path: Path) -> None:
    async def before(place: House) -> None:
        peer = await place.peer()
        await create(peer, "t", 2)
        commit = {"partition_index": 1, "committed_offset": 42}
        body = {"group_id": "g", "topics": [{"name": "t", "partitions": [commit]}]}
        answer = await peer.ask("OffsetCommit", 9, body)
        assert answer["topics"][0]["partitions"][0]["error_code"] == 0

    async def after(place: House) -> None:
        peer = await place.peer()
        body = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [1]}]}
        answer = await peer.ask("OffsetFetch", 5, body)
        assert answer["topics"][0]["partitions"][0]["committed_offset"] == 42
        (topic,) = (await peer.ask("Metadata", 12, {"topics": [{"name": "t"}]}))["topics"]
        body = {"groups": [{"group_id": "g", "topics": None}]}
        (found,) = (await peer.ask("OffsetFetch", 10, body))["groups"][0]["topics"]
        assert (found["topic_id"], found["partitions"][0]["committed_offset"]) == (topic["topic_id"], 42)
        assert await create(peer, "t", 2) == 36

    visit(before, tmp_path / "data")
    visit(after, tmp_path / "data")


def test_it_runs_until_interrupted() -> None:
    command = [sys.executable, "-m", "fencepost", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host, port = process.stdout.readline().strip().split(":")
        with socket.create_connection((host, int(port)), PATIENCE):
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0


def test_two_servers_cannot_have_one_address() -> None:
    async def story(place: House) -> None:
        with pytest.raises(OSError):
            await serve(*place.server.address, SETTINGS)

    visit(story)
