"""The server as seen byte by byte: order, refusals, hostile frames, and state that outlives connections."""

import asyncio
import logging
import random
import signal
import socket
import struct
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from fencepost.adapters.serve.coordination import OFFSETS_TOPIC
from fencepost.adapters.serve.record_apis import OFFERED_VERSIONS, Partition
from fencepost.adapters.serve.server import MAX_ARRAY_ITEMS, MAX_REQUEST_BYTES, start_server
from fencepost.model.errors import Error
from fencepost.model.wire.codec import VERSIONS, decode_response, encode_request, fit_body
from fencepost.model.wire.records import Record, control_batch, decode_batches, encode_batch, make_batch, records_of
from fencepost.traces.events import Body
from tests.support.tcp_peer import SETTINGS, TIMEOUT_S, RawClient, RunningServer, running_server

pytestmark = pytest.mark.real_time


@pytest.fixture
def server() -> AbstractAsyncContextManager[RunningServer]:
    """A server on a free port, for an async test."""
    return running_server()


def join_body(group: str = "g", member_id: str = "", metadata: bytes = b"m") -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": metadata}],
    }


async def create_topic(peer: RawClient, name: str, partitions: int = 1, **more: Any) -> int:
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, **more}
    (response,) = (await peer.request("CreateTopics", 5, {"topics": [topic]}))["topics"]
    return int(response["error_code"])


async def produce_records(peer: RawClient, data: bytes, topic: str = "t", acks: int = 1) -> dict[str, Any]:
    partitions = [{"index": 0, "records": data}]
    body = {"acks": acks, "timeout_ms": 1_000, "topic_data": [{"name": topic, "partition_data": partitions}]}
    response = await peer.request("Produce", 9, body)
    return dict(response["responses"][0]["partition_responses"][0])


def encode_fetch(offset: int, wait_ms: int = 0, max_bytes: int = 1 << 20, version: int = 11) -> bytes:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    body = {"max_wait_ms": wait_ms, "min_bytes": 1, "topics": [{"topic": "t", "partitions": [partition]}]}
    return encode_request("Fetch", version, 5, None, body)


async def read_fetch_response(peer: RawClient, version: int = 11) -> dict[str, Any]:
    response = decode_response("Fetch", version, await peer.read_frame())
    assert response.findings == ()
    return dict(response.body["responses"][0]["partitions"][0])


def offsets_and_values(data: bytes) -> list[tuple[int, bytes | None]]:
    found = decode_batches(data)
    assert found.findings == ()
    return [(record.offset, record.value) for batch in found.batches for record in records_of(batch)[0]]


async def test_every_version_it_offers_is_answered_as_the_schema_says(server: RunningServer) -> None:
    peer = await server.connect()
    assert await create_topic(peer, "t") == Error.NONE
    body: dict[str, Any] = {"JoinGroup": join_body(member_id="nobody"), "Metadata": {"topics": [{"name": "t"}]}}
    for api, (low, high) in OFFERED_VERSIONS.items():
        assert VERSIONS[api][0] <= low <= high <= VERSIONS[api][1]
        for version in range(low, high + 1):
            given = dict(body.get(api, {}))
            if version == 0:
                given.pop("rebalance_timeout_ms", None)
            await peer.request(api, version, given | ({"acks": 1} if api == "Produce" else {}))


async def test_versions_that_are_not_offered_are_refused(server: RunningServer) -> None:
    peer = await server.connect()
    for version in (5, 9999):
        peer.write_frame(struct.pack(">hhih", 18, version, 77, -1))
        refused = decode_response("ApiVersions", 4, await peer.read_frame())
        assert refused.body["error_code"] == Error.UNSUPPORTED_VERSION and refused.correlation_id == 77
        assert refused.body["api_keys"] == [{"api_key": 18, "min_version": 0, "max_version": 4}]
    peer.write_frame(encode_request("Fetch", 14, 1, None, {}))
    assert await peer.read_frame() == b""


async def test_pipelined_requests_are_answered_in_order_even_behind_a_parked_one(server: RunningServer) -> None:
    peer = await server.connect()
    peer.write_frame(encode_request("JoinGroup", 3, 1, None, join_body()))
    for number in (2, 3):
        peer.write_frame(encode_request("ListGroups", 0, number, None, {}))
    assert [decode_response("ListGroups", 0, await peer.read_frame()).correlation_id for _ in range(3)] == [1, 2, 3]


async def test_parked_join_outlives_its_connection(server: RunningServer) -> None:
    gone, stays = await server.connect(), await server.connect()
    gone.write_frame(encode_request("JoinGroup", 3, 1, None, join_body()))
    async with asyncio.timeout(TIMEOUT_S):
        while not (await stays.request("ListGroups", 0, {}))["groups"]:
            pass
    await gone.close()
    joined = await stays.request("JoinGroup", 3, join_body())
    described = await stays.request("DescribeGroups", 0, {"groups": ["g"]})
    assert joined["error_code"] == Error.NONE
    assert len(described["groups"][0]["members"]) == 2
    assert described["groups"][0]["members"][0]["client_host"] == "/127.0.0.1"


async def test_a_frame_of_very_many_items_is_not_unpacked(server: RunningServer) -> None:
    peer = await server.connect()
    for count in (MAX_ARRAY_ITEMS, MAX_ARRAY_ITEMS + 1):
        body = {"topics": [{"name": ""}] * count, "allow_auto_topic_creation": False}
        peer.write_frame(encode_request("Metadata", 4, 1, None, body))
        assert (await peer.read_frame() != b"") == (count == MAX_ARRAY_ITEMS)


@pytest.mark.parametrize(
    "data",
    [
        bytes.fromhex("ffffffff"),
        bytes.fromhex("00000000"),
        (MAX_REQUEST_BYTES + 1).to_bytes(4),
        b"GET / HTTP/1.1\r\n\r\n",
        bytes.fromhex("16030100c8010000c40303"),
        bytes.fromhex("00000002 000b"),
        bytes.fromhex("00000008 7fff 0000 00000000"),
        bytes.fromhex("0000000e 000b 0000 00000000 ffff 7fffffff"),
    ],
)
async def test_nonsense_closes_its_own_connection_only(server: RunningServer, data: bytes) -> None:
    peer, other = await server.connect(), await server.connect()
    await other.request("ListGroups", 0, {})
    peer.write_raw(data)
    assert await peer.read_frame() == b""
    assert (await other.request("ListGroups", 0, {}))["groups"] == []


async def test_a_null_where_none_may_be_closes_the_connection(server: RunningServer) -> None:
    peer = await server.connect()
    peer.write_frame(encode_request("JoinGroup", 5, 1, None, join_body(metadata=b"m") | {"protocols": None}))
    assert await peer.read_frame() == b""


FILLED: dict[str, dict[str, Any]] = {
    "JoinGroup": join_body(),
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
    api = chance.choice([*OFFERED_VERSIONS, *FILLED])
    version = chance.randint(*OFFERED_VERSIONS[api])
    frame = bytearray(encode_request(api, version, 1, "c", fit_body(api + "Request", version, FILLED.get(api, {}))))
    for _ in range(chance.randint(1, 3)):
        frame[chance.randrange(8, len(frame))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
    return bytes(frame)


async def test_hostile_frames_do_not_bring_it_down(server: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "fencepost.adapters.serve")  # a run on clients in this process silences it
    assert await create_topic(await server.connect(), "t") == Error.NONE
    chance = random.Random(4)
    for _ in range(1_000):
        peer = await server.connect()
        peer.write_frame(hostile_frame(chance))
        await peer.close()
    assert (await (await server.connect()).request("ApiVersions", 4, {}))["error_code"] == Error.NONE
    assert any("closing the connection" in record.message for record in caplog.records)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_records_outlive_the_server(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data") as server:
        peer = await server.connect()
        await create_topic(peer, "t")
        assert (await produce_records(peer, encode_batch(make_batch([Record(b"a"), Record(b"b")]))))["base_offset"] == 0

    with (tmp_path / "data" / "records" / "t" / "0.log").open("ab") as file:
        file.write(b"written in part")
    for offset, last in ((2, b"c"), (3, b"d")):
        async with running_server(tmp_path / "data") as server:
            peer = await server.connect()
            found = await produce_records(peer, encode_batch(make_batch([Record(last)])))
            assert found["base_offset"] == offset
            peer.write_frame(encode_fetch(0))
            records = offsets_and_values((await read_fetch_response(peer))["records"])
            assert records == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")][: offset + 1]


def test_transactions_outlive_the_server(tmp_path: Path) -> None:
    batch = make_batch([Record(b"a")])
    for producer, is_committed in ((1, True), (2, False), (3, None)):
        partition = Partition(tmp_path / "0.log")
        written = replace(batch, attributes=1 << 4, producer_id=producer, producer_epoch=0)
        partition.append(written, encode_batch(written))
        if is_committed is not None:
            assert partition.end_transaction(producer, 0, is_committed, 0)
    restored = Partition(tmp_path / "0.log")
    found = restored.read(0, 1 << 20, committed_only=True, at_least_one=True)
    assert [(one.producer_id, one.first, one.last) for one in found.aborted] == [(2, 2, 3)]
    assert (restored.last_stable_offset, restored.end_offset) == (4, 5)


async def test_records_are_fetched_by_the_id_of_their_topic(server: RunningServer) -> None:
    peer = await server.connect()
    await create_topic(peer, "t")
    await produce_records(peer, encode_batch(make_batch([Record(b"a")])))
    (topic,) = (await peer.request("Metadata", 12, {"topics": [{"name": "t"}]}))["topics"]
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}
    body = {"max_wait_ms": 0, "min_bytes": 1}
    for topic_id, error in ((topic["topic_id"], Error.NONE), (str(UUID(int=1)), Error.UNKNOWN_TOPIC_ID)):
        rows = [{"topic_id": topic_id, "partitions": [partition]}]
        (found,) = (await peer.request("Fetch", 13, {**body, "topics": rows}))["responses"]
        assert (found["topic_id"], found["partitions"][0]["error_code"]) == (topic_id, error)


async def test_topics_grow_and_are_deleted(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data") as server:
        peer = await server.connect()
        await create_topic(peer, "t")
        await produce_records(peer, encode_batch(make_batch([Record(b"a")])))
        for count, error in ((1, Error.INVALID_PARTITIONS), (3, Error.NONE), (10**6, Error.POLICY_VIOLATION)):
            body = {"topics": [{"name": "t", "count": count, "assignments": None}]}
            (row,) = (await peer.request("CreatePartitions", 3, body))["results"]
            assert row["error_code"] == error
        (topic,) = (await peer.request("Metadata", 12, {"topics": [{"name": "t"}]}))["topics"]
        assert len(topic["partitions"]) == 3
        for error in (Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION):
            (row,) = (await peer.request("DeleteTopics", 5, {"topic_names": ["t"]}))["responses"]
            assert row["error_code"] == error
        await create_topic(peer, "t")
        peer.write_frame(encode_fetch(0))
        assert (await read_fetch_response(peer))["records"] == b""


async def test_records_come_back_under_their_offsets(server: RunningServer) -> None:
    peer = await server.connect()
    await create_topic(peer, "t")
    two = encode_batch(make_batch([Record(b"a"), Record(b"b")], base_offset=99))
    assert (await produce_records(peer, two))["base_offset"] == 0
    assert (await produce_records(peer, two + two))["base_offset"] == 2
    peer.write_frame(encode_fetch(3))
    response = await read_fetch_response(peer)
    assert offsets_and_values(response["records"]) == [(2, b"a"), (3, b"b"), (4, b"a"), (5, b"b")]
    assert response["high_watermark"] == 6
    peer.write_frame(encode_fetch(0, max_bytes=1))
    assert offsets_and_values((await read_fetch_response(peer))["records"]) == [(0, b"a"), (1, b"b")]
    for offset in (7, -1):
        peer.write_frame(encode_fetch(offset, wait_ms=60_000))
        assert (await read_fetch_response(peer))["error_code"] == 1


async def test_a_reader_at_the_end_waits_for_records(server: RunningServer) -> None:
    reader, writer = await server.connect(), await server.connect()
    await create_topic(writer, "t")
    reader.write_frame(encode_fetch(0, wait_ms=60_000))
    await produce_records(writer, encode_batch(make_batch([Record(b"news")])))
    assert offsets_and_values((await read_fetch_response(reader))["records"]) == [(0, b"news")]
    reader.write_frame(encode_fetch(1, wait_ms=1))
    assert (await read_fetch_response(reader))["records"] == b""


async def test_produce_errors(server: RunningServer) -> None:
    peer = await server.connect()
    await create_topic(peer, "t")
    sound = encode_batch(make_batch([Record(b"v")]))
    assert (await produce_records(peer, sound, "no-such-topic"))["error_code"] == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert (await produce_records(peer, b""))["error_code"] == 2
    assert (await produce_records(peer, sound[:-1]))["error_code"] == 2
    assert (await produce_records(peer, encode_batch(control_batch(0, 1, 0, True, 0))))["error_code"] == 87
    peer.write_frame(
        encode_request("Produce", 9, 6, None, {"topic_data": [{"name": "t", "partition_data": [{"records": sound}]}]})
    )  # acks 0: no answer
    peer.write_frame(encode_fetch(0, wait_ms=1))
    assert offsets_and_values((await read_fetch_response(peer))["records"]) == [(0, b"v")]


async def test_offsets_by_time(server: RunningServer) -> None:
    peer = await server.connect()
    await create_topic(peer, "t")
    await produce_records(peer, encode_batch(make_batch([Record(b"a", timestamp=10), Record(b"b", timestamp=30)])))
    await produce_records(peer, encode_batch(make_batch([Record(b"c", timestamp=20)])))
    expected = {-1: (-1, 3), -2: (-1, 0), -3: (30, 1), 0: (10, 0), 11: (30, 1), 30: (30, 1), 31: (-1, -1)}
    partitions = [{"partition_index": 0, "timestamp": timestamp} for timestamp in expected]
    body = {"replica_id": -1, "topics": [{"name": "t", "partitions": partitions}]}
    (topic,) = (await peer.request("ListOffsets", 7, body))["topics"]
    assert [(one["timestamp"], one["offset"]) for one in topic["partitions"]] == list(expected.values())


async def test_topics(server: RunningServer) -> None:
    peer = await server.connect()
    assert await create_topic(peer, "t", 3) == Error.NONE
    assert await create_topic(peer, "t", 3) == 36
    assert await create_topic(peer, "a b") == 17
    assert await create_topic(peer, "..") == 17
    assert await create_topic(peer, "none", 0) == 37
    assert await create_topic(peer, "huge", 10_001) == 44
    assert await create_topic(peer, "copies", replication_factor=2) == 38
    elsewhere = [{"partition_index": 0, "broker_ids": [1]}]
    assert await create_topic(peer, "placed", -1, replication_factor=-1, assignments=elsewhere) == 39
    twice = await peer.request("CreateTopics", 5, {"topics": [{"name": "x"}, {"name": "x"}]})
    assert [topic["error_code"] for topic in twice["topics"]] == [Error.INVALID_REQUEST]
    shown = await peer.request("Metadata", 12, {"topics": None})
    assert [(topic["name"], len(topic["partitions"])) for topic in shown["topics"]] == [("t", 3)]
    assert (shown["brokers"][0]["host"], shown["brokers"][0]["port"]) == server.address
    by_id = {"topic_id": shown["topics"][0]["topic_id"], "name": None}
    assert (await peer.request("Metadata", 12, {"topics": [by_id]}))["topics"] == shown["topics"]
    unmade = {"topics": [{"name": "later"}], "allow_auto_topic_creation": False}
    assert (await peer.request("Metadata", 12, unmade))["topics"][0]["error_code"] == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert len((await peer.request("Metadata", 1, {"topics": [{"name": "later"}]}))["topics"][0]["partitions"]) == 4


async def test_the_settings_are_told_under_kafkas_names(server: RunningServer) -> None:
    peer = await server.connect()
    resource = {"resource_type": 4, "resource_name": "0", "configuration_keys": None}
    (broker,) = (await peer.request("DescribeConfigs", 4, {"resources": [resource]}))["results"]
    told = {config["name"]: config["value"] for config in broker["configs"]}
    assert told["group.max.size"] == "7" and told["offsets.retention.minutes"] == "10080"
    assert len(told) == 8
    one = resource | {"configuration_keys": ["group.min.session.timeout.ms"]}
    strange = [one, resource | {"resource_name": "9"}, {"resource_type": 2, "resource_name": "no"}]
    results = (await peer.request("DescribeConfigs", 1, {"resources": strange}))["results"]
    assert [result["error_code"] for result in results] == [
        Error.NONE,
        Error.INVALID_REQUEST,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [(config["name"], config["value"]) for config in results[0]["configs"]] == [
        ("group.min.session.timeout.ms", "100")
    ]


async def test_groups_offsets_and_topics_outlive_the_server(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data") as server:
        peer = await server.connect()
        await create_topic(peer, "t", 2)
        commit = {"partition_index": 1, "committed_offset": 42}
        body = {"group_id": "g", "topics": [{"name": "t", "partitions": [commit]}]}
        response = await peer.request("OffsetCommit", 9, body)
        assert response["topics"][0]["partitions"][0]["error_code"] == Error.NONE

    async with running_server(tmp_path / "data") as server:
        peer = await server.connect()
        body = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [1]}]}
        response = await peer.request("OffsetFetch", 5, body)
        assert response["topics"][0]["partitions"][0]["committed_offset"] == 42
        (topic,) = (await peer.request("Metadata", 12, {"topics": [{"name": "t"}]}))["topics"]
        body = {"groups": [{"group_id": "g", "topics": None}]}
        (found,) = (await peer.request("OffsetFetch", 10, body))["groups"][0]["topics"]
        assert (found["topic_id"], found["partitions"][0]["committed_offset"]) == (topic["topic_id"], 42)
        assert await create_topic(peer, "t", 2) == 36


def test_it_runs_until_interrupted() -> None:
    command = [sys.executable, "-m", "fencepost", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host, port = process.stdout.readline().strip().split(":")
        try:
            with socket.create_connection((host, int(port)), TIMEOUT_S):
                process.send_signal(signal.SIGINT)
                assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()


async def test_two_servers_cannot_have_one_address(server: RunningServer) -> None:
    with pytest.raises(OSError):
        await start_server(*server.address, SETTINGS)


# --- The bundled server with two nodes: the coordinator, the responses of the other node, and a move.

MAX_POLLS = 1_000
JOIN: Body = {
    "group_id": "g",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "member_id": "",
    "protocol_type": "consumer",
    "protocols": [{"name": "p", "metadata": b"m"}],
}
HEARTBEAT: Body = {"group_id": "g", "generation_id": 1, "member_id": "nobody"}


async def connect_to_nodes(place: RunningServer) -> list[RawClient]:
    """A connection to each node that Metadata names, in their order."""
    first = await place.connect()
    brokers = (await first.request("Metadata", 9, {"topics": []}))["brokers"]
    assert [broker["node_id"] for broker in brokers] == [0, 1]
    return [await place.connect((broker["host"], broker["port"])) for broker in brokers]


async def coordinator_at(peer: RawClient) -> int:
    """The coordinator of group g, as a node names it."""
    return int((await peer.request("FindCoordinator", 3, {"key": "g", "key_type": 0}))["node_id"])


async def leaders_at(peer: RawClient) -> set[int]:
    """The leaders of the partitions of the offsets topic, as a node tells them."""
    question = {"topics": [{"name": OFFSETS_TOPIC}], "allow_auto_topic_creation": False}
    (topic,) = (await peer.request("Metadata", 9, question))["topics"]
    assert (topic["error_code"], topic["is_internal"], len(topic["partitions"])) == (0, True, 50)
    return {row["leader_id"] for row in topic["partitions"]}


async def heartbeat_error(peer: RawClient) -> int:
    return int((await peer.request("Heartbeat", 3, HEARTBEAT))["error_code"])


@pytest.mark.parametrize("is_moved", [False, True])
async def test_all_nodes_agree_on_who_coordinates(is_moved: bool) -> None:
    async with running_server(nodes=2) as place:
        nodes = await connect_to_nodes(place)
        if is_moved:
            place.server.move()
        errors = [await heartbeat_error(node) for node in nodes]
        expected = [Error.UNKNOWN_MEMBER_ID, Error.NOT_COORDINATOR]
        assert errors == (expected[::-1] if is_moved else expected)
        for node in nodes:
            assert await coordinator_at(node) == int(is_moved)
            assert await leaders_at(node) == {int(is_moved)}


async def test_a_parked_join_ends_with_a_move() -> None:
    async with running_server(nodes=2) as place:
        nodes = await connect_to_nodes(place)
        parked = asyncio.ensure_future(nodes[0].request("JoinGroup", 2, JOIN))
        other = await place.connect()
        for _ in range(MAX_POLLS):
            (group,) = (await other.request("DescribeGroups", 3, {"groups": ["g"]}))["groups"]
            if group["group_state"] != "Dead":
                break
        place.server.move()
        response = await parked
        assert response["error_code"] == Error.NOT_COORDINATOR
        assert (await nodes[1].request("JoinGroup", 2, JOIN))["error_code"] == 0


def commit_body(offset: int) -> dict[str, Any]:
    row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    return {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "retention_time_ms": -1,
        "topics": [{"name": "t", "partitions": [row]}],
    }


async def commit_error(peer: RawClient, offset: int) -> int:
    (topic,) = (await peer.request("OffsetCommit", 3, commit_body(offset)))["topics"]
    return int(topic["partitions"][0]["error_code"])


async def committed_offset(peer: RawClient) -> int:
    body = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}
    (topic,) = (await peer.request("OffsetFetch", 3, body))["topics"]
    return int(topic["partitions"][0]["committed_offset"])


@pytest.mark.parametrize("is_stored", [False, True])
async def test_offsets_move_and_the_old_node_takes_no_more(is_stored: bool, tmp_path: Path) -> None:
    async with running_server(tmp_path if is_stored else None, nodes=2) as place:
        nodes = await connect_to_nodes(place)
        await nodes[0].request("Metadata", 9, {"topics": [{"name": "t"}], "allow_auto_topic_creation": True})
        assert await commit_error(nodes[0], 5) == 0
        assert await commit_error(nodes[1], 6) == Error.NOT_COORDINATOR
        place.server.move()
        assert await commit_error(nodes[0], 7) == Error.NOT_COORDINATOR
        assert await committed_offset(nodes[1]) == 5
        assert await commit_error(nodes[1], 8) == 0
        place.server.move()
        assert await committed_offset(nodes[0]) == 8


async def test_one_node_has_no_offsets_topic() -> None:
    async with running_server() as place:
        peer = await place.connect()
        question = {"topics": [{"name": OFFSETS_TOPIC}], "allow_auto_topic_creation": False}
        shown = await peer.request("Metadata", 9, question)
        assert len(shown["brokers"]) == 1
        assert shown["topics"][0]["error_code"] == Error.UNKNOWN_TOPIC_OR_PARTITION
