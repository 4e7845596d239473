"""Versions that name topics by their ids (KIP-848): their meaning, and their responses."""

import pytest

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Context
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Body, names_topics_by_id, read_requests
from fencepost.model.errors import Error
from fencepost.model.groups.messages import Offset, OffsetFetchResponse, PartitionErrors, Topics
from fencepost.model.groups.protocol import Cluster
from fencepost.model.settings import Settings
from fencepost.traces.classic.matching import ObservedResponse, compare_responses

T, GHOST = "11111111-0000-0000-0000-000000000000", "22222222-0000-0000-0000-000000000000"
NAMES = {T: "t"}
STORED = GroupState(offsets={("t", 0): Offset(7)})


def commit(*partitions: tuple[str, int], **claim: object) -> Body:
    rows = [
        {"topic_id": topic, "partitions": [{"partition_index": index, "committed_offset": 7}]}
        for topic, index in partitions
    ]
    return {"group_id": "g", "topics": rows, **claim}


def fetch(*partitions: tuple[str, int]) -> Body:
    rows = [{"topic_id": topic, "partition_indexes": [index]} for topic, index in partitions]
    return {"groups": [{"group_id": "g", "topics": rows}]}


def respond_to(api: str, body: Body, state: GroupState, topics: Topics | None = {"t": 1}) -> tuple[GroupState, object]:  # noqa: B006
    (request,) = read_requests(api, 10, body, 1, (), NAMES)
    outcome = handle_request(state, request, Context(0, dialect=Dialect()), Cluster(Settings(), topics, NAMES))
    return outcome.state, outcome.replies[0].response


@pytest.mark.parametrize(
    ("api", "version", "by_ids"),
    [
        ("OffsetCommit", 9, False),
        ("OffsetCommit", 10, True),
        ("OffsetFetch", 10, True),
        ("OffsetDelete", 10, False),
        ("TxnOffsetCommit", 10, False),
    ],
)
def test_versions_that_name_topics_by_id(api: str, version: int, by_ids: bool) -> None:
    assert names_topics_by_id(api, version) is by_ids


def test_an_offset_is_stored_under_the_name() -> None:
    world, response = respond_to("OffsetCommit", commit((T, 0), (T, 9), (GHOST, 0)), GroupState())
    assert isinstance(response, PartitionErrors)
    assert response.errors == {
        ("t", 0): Error.NONE,
        ("t", 9): Error.UNKNOWN_TOPIC_OR_PARTITION,
        (GHOST, 0): Error.UNKNOWN_TOPIC_ID,
    }
    assert world.offsets == STORED.offsets


def test_ids_of_no_topic_never_reach_the_coordinator() -> None:
    claim = {"generation_id_or_member_epoch": 5, "member_id": "m"}
    world, response = respond_to("OffsetCommit", commit((GHOST, 0), **claim), GroupState())
    assert isinstance(response, PartitionErrors) and response.errors == {(GHOST, 0): Error.UNKNOWN_TOPIC_ID}
    assert world == GroupState()


def test_a_fetch_needs_ids_of_topics_but_no_partitions() -> None:
    _, response = respond_to("OffsetFetch", fetch((T, 0), (T, 9), (GHOST, 0)), STORED)
    assert isinstance(response, OffsetFetchResponse)
    assert response.offsets == {("t", 0): Offset(7), ("t", 9): Offset(-1), (GHOST, 0): Offset(-1)}
    assert response.nameless == {(GHOST, 0)}


def test_where_no_topics_are_known_all_ids_are_taken_for_granted() -> None:
    _, response = respond_to("OffsetCommit", commit((GHOST, 0)), GroupState(), None)
    assert isinstance(response, PartitionErrors) and response.errors == {(GHOST, 0): Error.NONE}
    _, response = respond_to("OffsetFetch", fetch((GHOST, 0)), STORED, None)
    assert isinstance(response, OffsetFetchResponse) and not response.nameless


def row(topic: str, offset: int, error: int) -> Body:
    found = {
        "partition_index": 0,
        "committed_offset": offset,
        "committed_leader_epoch": -1,
        "metadata": "",
        "error_code": error,
    }
    return {"groups": [{"group_id": "g", "error_code": 0, "topics": [{"topic_id": topic, "partitions": [found]}]}]}


@pytest.mark.parametrize(
    ("asked", "seen", "wrong"),
    [
        (T, row(T, 7, 0), set()),
        (T, row(T, 8, 0), {"offset"}),
        (T, row(T, 7, 100), {"error"}),
        (T, row(GHOST, 7, 0), {"partitions"}),
        (GHOST, row(GHOST, -1, 100), set()),
        (GHOST, row(GHOST, -1, 0), {"error"}),
        (GHOST, row(GHOST, -1, 3), {"error"}),
        (GHOST, row(GHOST, 7, 100), {"offset"}),
    ],
)
def test_what_a_fetch_may_say(asked: str, seen: Body, wrong: set[str]) -> None:
    body = fetch((asked, 0))
    _, response = respond_to("OffsetFetch", body, STORED)
    assert isinstance(response, OffsetFetchResponse)
    assert (
        next(compare_responses(response, ObservedResponse("OffsetFetch", 10, body, seen, "g", NAMES))).required == wrong
    )


@pytest.mark.parametrize(("topic", "error"), [(T, 0), (GHOST, 100)])
def test_what_a_commit_may_say(topic: str, error: int) -> None:
    body = commit((topic, 0))
    _, response = respond_to("OffsetCommit", body, GroupState())
    assert isinstance(response, PartitionErrors)
    for told in (0, 3, 100):
        seen = {"topics": [{"topic_id": topic, "partitions": [{"partition_index": 0, "error_code": told}]}]}
        wrong = set() if told == error else {"error"}
        assert (
            next(compare_responses(response, ObservedResponse("OffsetCommit", 10, body, seen, "g", NAMES))).required
            == wrong
        )
