"""The bundled server with two nodes: the coordinator, the responses of the other node, and a move."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.serve.coordination import OFFSETS_TOPIC
from fencepost.model.errors import Error
from fencepost.traces.events import Body
from tests.support.tcp_peer import RawClient, RunningServer, running_server

pytestmark = pytest.mark.real_time

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
