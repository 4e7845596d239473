"""Offsets: where targets may differ from the reference, and what may not come back."""

from fencepost.model.classic.coordinator.dispatch import handle
from fencepost.model.classic.coordinator.offsets import over
from fencepost.model.classic.coordinator.state import Cluster, World
from fencepost.model.classic.core.state import Context, Dialect
from fencepost.model.classic.messages.parsing import Body, read_requests
from fencepost.model.classic.messages.requests import Offset
from fencepost.model.classic.messages.responses import Fetched, PartitionErrors
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.judge.classic.matching import Seen, compare

CLUSTER = Cluster(Settings(), {"t": 1})
COMMIT = {"group_id": "g", "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 7}]}]}
FETCH = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}


def answered(api: str, version: int, body: Body, *, keeps: bool) -> tuple[World, object]:
    """The world after a request, and its answer."""
    (request,) = read_requests(api, version, body, 1, ())
    outcome = handle(World(), request, Context(0, dialect=Dialect(keeps_version_0=keeps)), CLUSTER)
    return outcome.world, outcome.replies[0].answer


def row(error: int, **changes: object) -> dict[str, object]:
    """An OffsetFetch answer of one partition."""
    found = {"partition_index": 0, "committed_offset": -1, "metadata": "", "error_code": error} | changes
    return {"topics": [{"name": "t", "partitions": [found]}]}


def test_commit_of_version_0_is_stored_or_refused() -> None:
    world, answer = answered("OffsetCommit", 0, COMMIT, keeps=True)
    assert (answer, world.offsets) == (PartitionErrors({("t", 0): Error.NONE}), {("t", 0): Offset(7)})
    world, answer = answered("OffsetCommit", 0, COMMIT, keeps=False)
    assert isinstance(answer, PartitionErrors) and answer.errors == {("t", 0): Error.UNSUPPORTED_VERSION}
    assert world == World()


def test_other_versions_are_stored() -> None:
    world, _ = answered("OffsetCommit", 1, COMMIT, keeps=False)
    assert world.offsets


def test_fetch_of_version_0_is_answered_or_refused() -> None:
    _, found = answered("OffsetFetch", 0, FETCH, keeps=True)
    _, refused = answered("OffsetFetch", 0, FETCH, keeps=False)
    assert isinstance(found, Fetched) and isinstance(refused, Fetched)
    for expected, error, wrong in (
        (found, 0, set()),
        (found, 35, {"error"}),
        (refused, 35, set()),
        (refused, 0, {"error"}),
    ):
        assert next(compare(expected, Seen("OffsetFetch", 0, FETCH, row(error), "g"))).hard == wrong


def test_null_metadata_is_noticed() -> None:
    difference = next(
        compare(Fetched({("t", 0): Offset(7)}), Seen("OffsetFetch", 1, FETCH, row(0, committed_offset=7), "g"))
    )
    assert not difference.hard and not difference.soft
    null = row(0, committed_offset=7, metadata=None)
    difference = next(compare(Fetched({("t", 0): Offset(7)}), Seen("OffsetFetch", 1, FETCH, null, "g")))
    assert not difference.hard and difference.soft == {"metadata"}


def test_an_offset_may_go_when_its_own_retention_or_that_of_the_broker_is_over() -> None:
    kept = World(offsets={("t", 0): Offset(7, committed=1_000, expires=5_000)})
    assert [bool(over(kept, now, 10_000)) for now in (4_999, 5_000)] == [False, True]
    assert [bool(over(kept, now, 2_000)) for now in (2_999, 3_000)] == [False, True]
    asked_for_nothing = World(offsets={("t", 0): Offset(7, committed=1_000)})
    assert [bool(over(asked_for_nothing, now, 2_000)) for now in (2_999, 3_000)] == [False, True]
