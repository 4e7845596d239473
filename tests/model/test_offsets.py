"""Offsets: where targets may differ from the reference, and offsets that may be absent from a fetch."""

import pytest

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.group_protocol import CLASSIC_GROUP
from fencepost.model.classic.coordinator.internal_actions import restart_coordinator
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Context
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Body, read_requests
from fencepost.model.errors import Error
from fencepost.model.groups.messages import Offset, OffsetFetchResponse, PartitionErrors, Topics, names_topics_by_id
from fencepost.model.groups.offsets import apply_transaction_marker, expired_offsets
from fencepost.model.groups.protocol import NOTHING_DELETED, Cluster
from fencepost.model.settings import Settings
from fencepost.traces.classic.matching import ObservedResponse, compare_responses
from fencepost.traces.classic.stepping import states_after_cleanup
from fencepost.traces.events import Operation
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation

# --- Versions that name topics by their ids (KIP-848): their meaning, and their responses.

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


def respond_by_ids(
    api: str,
    body: Body,
    state: GroupState,
    topics: Topics | None = {"t": 1},  # noqa: B006
) -> tuple[GroupState, object]:
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
    world, response = respond_by_ids("OffsetCommit", commit((T, 0), (T, 9), (GHOST, 0)), GroupState())
    assert isinstance(response, PartitionErrors)
    assert response.errors == {
        ("t", 0): Error.NONE,
        ("t", 9): Error.UNKNOWN_TOPIC_OR_PARTITION,
        (GHOST, 0): Error.UNKNOWN_TOPIC_ID,
    }
    assert world.offsets == STORED.offsets


def test_ids_of_no_topic_never_reach_the_coordinator() -> None:
    claim = {"generation_id_or_member_epoch": 5, "member_id": "m"}
    world, response = respond_by_ids("OffsetCommit", commit((GHOST, 0), **claim), GroupState())
    assert isinstance(response, PartitionErrors) and response.errors == {(GHOST, 0): Error.UNKNOWN_TOPIC_ID}
    assert world == GroupState()


def test_a_fetch_needs_ids_of_topics_but_no_partitions() -> None:
    _, response = respond_by_ids("OffsetFetch", fetch((T, 0), (T, 9), (GHOST, 0)), STORED)
    assert isinstance(response, OffsetFetchResponse)
    assert response.offsets == {("t", 0): Offset(7), ("t", 9): Offset(-1), (GHOST, 0): Offset(-1)}
    assert response.nameless == {(GHOST, 0)}


def test_where_no_topics_are_known_all_ids_are_taken_for_granted() -> None:
    _, response = respond_by_ids("OffsetCommit", commit((GHOST, 0)), GroupState(), None)
    assert isinstance(response, PartitionErrors) and response.errors == {(GHOST, 0): Error.NONE}
    _, response = respond_by_ids("OffsetFetch", fetch((GHOST, 0)), STORED, None)
    assert isinstance(response, OffsetFetchResponse) and not response.nameless


def row_of_topic(topic: str, offset: int, error: int) -> Body:
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
        (T, row_of_topic(T, 7, 0), set()),
        (T, row_of_topic(T, 8, 0), {"offset"}),
        (T, row_of_topic(T, 7, 100), {"error"}),
        (T, row_of_topic(GHOST, 7, 0), {"partitions"}),
        (GHOST, row_of_topic(GHOST, -1, 100), set()),
        (GHOST, row_of_topic(GHOST, -1, 0), {"error"}),
        (GHOST, row_of_topic(GHOST, -1, 3), {"error"}),
        (GHOST, row_of_topic(GHOST, 7, 100), {"offset"}),
    ],
)
def test_what_a_fetch_may_say(asked: str, seen: Body, wrong: set[str]) -> None:
    body = fetch((asked, 0))
    _, response = respond_by_ids("OffsetFetch", body, STORED)
    assert isinstance(response, OffsetFetchResponse)
    assert (
        next(compare_responses(response, ObservedResponse("OffsetFetch", 10, body, seen, "g", NAMES))).required == wrong
    )


@pytest.mark.parametrize(("topic", "error"), [(T, 0), (GHOST, 100)])
def test_what_a_commit_may_say(topic: str, error: int) -> None:
    body = commit((topic, 0))
    _, response = respond_by_ids("OffsetCommit", body, GroupState())
    assert isinstance(response, PartitionErrors)
    for told in (0, 3, 100):
        seen = {"topics": [{"topic_id": topic, "partitions": [{"partition_index": 0, "error_code": told}]}]}
        wrong = set() if told == error else {"error"}
        assert (
            next(compare_responses(response, ObservedResponse("OffsetCommit", 10, body, seen, "g", NAMES))).required
            == wrong
        )


CLUSTER = Cluster(Settings(), {"t": 1})
COMMIT = {"group_id": "g", "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 7}]}]}
FETCH = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}


def respond_to(api: str, version: int, body: Body, *, keeps: bool) -> tuple[GroupState, object]:
    """The world after a request, and its answer."""
    (request,) = read_requests(api, version, body, 1, ())
    outcome = handle_request(GroupState(), request, Context(0, dialect=Dialect(keeps_version_0=keeps)), CLUSTER)
    return outcome.state, outcome.replies[0].response


def row(error: int, **changes: object) -> dict[str, object]:
    """An OffsetFetch answer of one partition."""
    found = {"partition_index": 0, "committed_offset": -1, "metadata": "", "error_code": error} | changes
    return {"topics": [{"name": "t", "partitions": [found]}]}


def test_commit_of_version_0_is_stored_or_refused() -> None:
    world, response = respond_to("OffsetCommit", 0, COMMIT, keeps=True)
    assert (response, world.offsets) == (PartitionErrors({("t", 0): Error.NONE}), {("t", 0): Offset(7)})
    world, response = respond_to("OffsetCommit", 0, COMMIT, keeps=False)
    assert isinstance(response, PartitionErrors) and response.errors == {("t", 0): Error.UNSUPPORTED_VERSION}
    assert world == GroupState()


def test_other_versions_are_stored() -> None:
    world, _ = respond_to("OffsetCommit", 1, COMMIT, keeps=False)
    assert world.offsets


def test_fetch_of_version_0_is_answered_or_refused() -> None:
    _, found = respond_to("OffsetFetch", 0, FETCH, keeps=True)
    _, refused = respond_to("OffsetFetch", 0, FETCH, keeps=False)
    assert isinstance(found, OffsetFetchResponse) and isinstance(refused, OffsetFetchResponse)
    for expected, error, wrong in (
        (found, 0, set()),
        (found, 35, {"error"}),
        (refused, 35, set()),
        (refused, 0, {"error"}),
    ):
        assert (
            next(compare_responses(expected, ObservedResponse("OffsetFetch", 0, FETCH, row(error), "g"))).required
            == wrong
        )


def test_null_metadata_is_noticed() -> None:
    difference = next(
        compare_responses(
            OffsetFetchResponse({("t", 0): Offset(7)}),
            ObservedResponse("OffsetFetch", 1, FETCH, row(0, committed_offset=7), "g"),
        )
    )
    assert not difference.required and not difference.advisory
    null = row(0, committed_offset=7, metadata=None)
    difference = next(
        compare_responses(
            OffsetFetchResponse({("t", 0): Offset(7)}), ObservedResponse("OffsetFetch", 1, FETCH, null, "g")
        )
    )
    assert not difference.required and difference.advisory == {"metadata"}


def test_an_offset_may_go_when_its_own_retention_or_that_of_the_broker_is_over() -> None:
    kept = GroupState(offsets={("t", 0): Offset(7, committed=1_000, expires=5_000)})
    assert [bool(expired_offsets(kept, now, 10_000, CLASSIC_GROUP)) for now in (4_999, 5_000)] == [False, True]
    assert [bool(expired_offsets(kept, now, 2_000, CLASSIC_GROUP)) for now in (2_999, 3_000)] == [False, True]
    plain = GroupState(offsets={("t", 0): Offset(7, committed=1_000)})
    assert [bool(expired_offsets(plain, now, 2_000, CLASSIC_GROUP)) for now in (2_999, 3_000)] == [
        False,
        True,
    ]


def transactional_commit(state: GroupState, now: int) -> GroupState:
    """The world after an offset is committed in an open transaction."""
    (request,) = read_requests("TxnOffsetCommit", 3, {**COMMIT, "producer_id": 1}, 2, ())
    return handle_request(state, request, Context(now), CLUSTER).state


def test_the_retention_of_a_transactional_offset_begins_with_its_commit() -> None:
    pending = transactional_commit(GroupState(), 100_000)
    (request,) = read_requests("EndTxn", 1, {"producer_id": 1, "committed": True}, 3, ("g",))
    ended = handle_request(pending, request, Context(101_000), CLUSTER).state
    kept = apply_transaction_marker(ended)
    assert [bool(expired_offsets(kept, now, 60_000, CLASSIC_GROUP)) for now in (159_999, 160_000)] == [False, True]


def test_an_offset_under_an_open_transaction_may_go_and_its_group_stays() -> None:
    pending = transactional_commit(GroupState(offsets={("t", 0): Offset(7)}), 100_000)
    assert expired_offsets(pending, 60_000, 60_000, CLASSIC_GROUP) == {("t", 0)}
    fetch, describe = (
        read_requests(api, 5, body, 4, ())[0]
        for api, body in (("OffsetFetch", FETCH), ("DescribeGroups", {"groups": ["g"]}))
    )
    for request, response, is_group_kept in (
        (fetch, row(0), [True]),
        (fetch, row(0, committed_offset=7), []),
        (describe, {"groups": [{"group_id": "g", "error_code": 0, "group_state": "Dead"}]}, []),
    ):
        api = type(request).__name__
        operation = Operation(4, api, 5, "", FETCH, 60_000, response, 60_000)
        part = GroupOperation(operation, request)
        cluster = Cluster(Settings(offsets_retention=60_000), {"t": 1})
        states = states_after_cleanup(Configuration(pending), part, 60_000, cluster)
        assert [state.group is not None for state in states] == is_group_kept


def delete_offset(state: GroupState, *, stays: bool) -> GroupState:
    """The world after OffsetDelete of the only partition, where an emptied group stays or not."""
    body = {"group_id": "g", "topics": [{"name": "t", "partitions": [{"partition_index": 0}]}]}
    (request,) = read_requests("OffsetDelete", 0, body, 5, ())
    return handle_request(state, request, Context(1, dialect=Dialect(emptied_group_stays=stays)), CLUSTER).state


def test_offset_delete_may_remove_an_empty_group_with_its_last_offset() -> None:
    kept, _ = respond_to("OffsetCommit", 1, COMMIT, keeps=True)
    assert [delete_offset(kept, stays=stays).group is not None for stays in (True, False)] == [True, False]
    two = GroupState(kept.group, offsets={**kept.offsets, ("t", 1): Offset(8)})
    assert delete_offset(two, stays=False).group is not None


def test_a_transaction_whose_pending_offsets_were_deleted_may_keep_its_group_or_not() -> None:
    pending = transactional_commit(GroupState(), 0)
    (describe,) = read_requests("DescribeGroups", 5, {"groups": ["g"]}, 6, ())
    part = GroupOperation(Operation(6, "DescribeGroups", 5, "", {}, 60_000, None, None), describe)
    assert list(states_after_cleanup(Configuration(pending), part, 60_000, CLUSTER)) == []
    for stays in (True, False):
        after = delete_offset(pending, stays=stays)
        assert after.group is not None
        (gone,) = states_after_cleanup(Configuration(after), part, 60_000, CLUSTER)
        assert gone.group is None and not gone.pending


def step_through(state: GroupState, *steps: tuple[str, Body]) -> GroupState:
    """The world after some requests."""
    for number, (api, body) in enumerate(steps):
        version = {"OffsetDelete": 0, "DeleteGroups": 1, "EndTxn": 1, "OffsetCommit": 1, "TxnOffsetCommit": 3}[api]
        for request in read_requests(api, version, body, 10 + number, ("g",)):
            state = handle_request(state, request, Context(1, dialect=Dialect()), CLUSTER).state
    return state


DELETE_OFFSET = ("OffsetDelete", {"group_id": "g", "topics": [{"name": "t", "partitions": [{"partition_index": 0}]}]})
DELETE_GROUP = ("DeleteGroups", {"groups_names": ["g"]})


def fail_over(state: GroupState, *, stays: bool) -> GroupState:
    """The world after a failover in which deleted offsets stay deleted or not."""
    return restart_coordinator(state, Context(2, dialect=Dialect(deleted_offsets_stay_deleted=stays))).state


@pytest.mark.parametrize("deletion", [DELETE_OFFSET, DELETE_GROUP], ids=["offset", "group"])
def test_a_failover_may_bring_back_offsets_deleted_in_an_open_transaction(deletion: tuple[str, Body]) -> None:
    pending = transactional_commit(GroupState(), 0)
    deleted = step_through(pending, deletion)
    assert not any(fail_over(deleted, stays=True).pending.values())
    back = fail_over(deleted, stays=False)
    assert back.group is not None and list(back.pending[1]) == [("t", 0)] and not back.offsets
    for committed in (True, False):
        ended = step_through(deleted, ("EndTxn", {"producer_id": 1, "committed": committed}))
        back = fail_over(ended, stays=False)
        assert (bool(back.offsets), any(back.pending.values())) == (committed, False)


def test_a_later_commit_takes_the_place_of_a_deleted_offset() -> None:
    deleted = step_through(transactional_commit(GroupState(), 0), DELETE_GROUP)
    ended = step_through(
        deleted, ("EndTxn", {"producer_id": 1, "committed": True}), ("OffsetCommit", COMMIT), DELETE_OFFSET
    )
    assert not fail_over(ended, stays=False).offsets
    again = step_through(deleted, ("TxnOffsetCommit", {**COMMIT, "producer_id": 1}))
    assert again.deleted == NOTHING_DELETED
