"""OffsetFetch: what is read back, by whom, and when."""

from fencepost.conformance.scenario.context import Stage
from fencepost.conformance.scenario.scenario import Collection
from fencepost.conformance.scenarios.classic.commits import accepted, beyond_session, busy
from fencepost.conformance.scenarios.classic.neighbours import home, neighbours
from fencepost.conformance.scenarios.classic.partitions import GHOST

fetches = Collection()


@fetches.add("FETCH-01", smoke=True)
async def fetch_the_last_commit(stage: Stage) -> None:
    """Offset and metadata of the last commit; other partitions keep theirs."""
    await stage.commit(None, {0: {"committed_offset": 5, "committed_metadata": "old"}, 1: 6})
    stored = await accepted(stage.commit(None, {0: {"committed_offset": 7, "committed_metadata": "new"}}))
    fetched = stage.fetch([0, 1])
    await fetched
    stage.shows("FETCH-01", fetched, "error", "offset", "metadata", "partitions", met=stored)


@fetches.add("FETCH-02")
async def fetch_where_nothing_was_committed(stage: Stage) -> None:
    """Neither an uncommitted partition nor an unknown topic is an error; an unknown id of a topic is."""
    stored = await accepted(stage.commit(None, {0: 7}))
    fetched = stage.fetch([1, 99, (GHOST, 0)])
    await fetched
    stage.shows("FETCH-02", fetched, "error", "offset", "metadata", "partitions", met=stored)


@fetches.add("FETCH-02")
async def fetch_by_name_where_nothing_was_committed(stage: Stage) -> None:
    """The same where topics go by their names, so that none is unknown."""
    stored = await accepted(stage.commit(None, {0: 7}))
    fetched = stage.fetch([1, 99, (GHOST, 0)], version=stage.version("OffsetFetch", at_most=9))
    await fetched
    stage.shows("FETCH-02", fetched, "error", "offset", "metadata", "partitions", met=stored)


@fetches.add("FETCH-01", "FETCH-04")
async def topics_by_name_and_by_id(stage: Stage) -> None:
    """An offset is one and the same, however commit and fetch name its topic."""
    by_id = stage.version("OffsetCommit", at_least=10), stage.version("OffsetFetch", at_least=10)
    by_name = stage.version("OffsetCommit", at_most=9), stage.version("OffsetFetch", at_least=2, at_most=9)
    for partition, (commit, _), (_, fetch) in ((0, by_id, by_name), (1, by_name, by_id)):
        stored = await accepted(stage.commit(None, {partition: 7 + partition}, version=commit))
        listed, everything = stage.fetch([partition], version=fetch), stage.fetch(None, version=fetch)
        await listed
        stage.shows("FETCH-01", listed, "error", "offset", "partitions", met=stored)
        await everything
        stage.shows("FETCH-04", everything, "error", "offset", "partitions", met=stored)


@fetches.add("FETCH-03")
async def fetch_from_an_unknown_group(stage: Stage) -> None:
    """No group, no offsets, no error."""
    named = stage.fetch([0])
    await named
    stage.shows("FETCH-03", named, "error", "offset", "partitions")
    everything = stage.fetch(None)
    await everything
    stage.shows("FETCH-03", everything, "error", "partitions")


@fetches.add("FETCH-03")
async def old_fetch_from_an_unknown_group(stage: Stage) -> None:
    """The same with the error at top level."""
    fetched = stage.fetch(version=stage.version("OffsetFetch", at_least=2, at_most=7))
    await fetched
    stage.shows("FETCH-03", fetched, "error", "offset", "partitions")


@fetches.add("FETCH-04", "FETCH-05")
async def fetch_everything_and_nothing(stage: Stage) -> None:
    """Null asks for all that was committed, an empty list for nothing."""
    version = stage.version("OffsetFetch", at_least=2)
    stored = await accepted(stage.commit(None, {0: 7, 1: 8, 3: 9}))
    everything = stage.fetch(None, version=version)
    await everything
    stage.shows("FETCH-04", everything, "error", "offset", "partitions", met=stored)
    nothing = stage.fetch([], version=version)
    await nothing
    stage.shows("FETCH-05", nothing, "error", "partitions", met=stored)


@fetches.add("FETCH-06")
async def fetch_from_several_groups(stage: Stage) -> None:
    """Every group has its own entry, the unknown one too."""
    version = stage.version("OffsetFetch", at_least=8)
    other, unknown = await neighbours(stage, 2)
    stored = await accepted(stage.commit(None, {0: 7}))
    stored = await accepted(stage.commit(None, {0: 8}, group_id=other)) and stored
    fetched = stage.fetch(groups=[stage.group, other, unknown], version=version)
    await fetched
    stage.shows("FETCH-06", fetched, "groups", "error", "offset", met=stored)


@fetches.add("FETCH-07")
async def fetch_in_every_state(stage: Stage) -> None:
    """Nobody in particular reads the offset in Empty, Completing, Stable and Preparing."""
    stored = await accepted(stage.commit(None, {0: 7}))
    empty = stage.fetch()
    await empty
    a, b = await stage.completing(stage.member("A"), stage.member("B"))
    completing = stage.fetch()
    await completing
    await stage.settle(a, b)
    stable = stage.fetch()
    await stable
    stage.join(a)
    await stage.sleep(stage.step)
    preparing = stage.fetch()
    await preparing
    for fetched in (empty, completing, stable, preparing):
        stage.shows("FETCH-07", fetched, "error", "offset", "partitions", met=stored)


@fetches.add("FETCH-08")
async def fetches_do_not_extend_the_session(stage: Stage) -> None:
    """A member that only reads is not heard."""
    (a,) = await stage.stable(stage.member("A"))
    await busy(stage, beyond_session(stage), stage.fetch)
    gone = stage.heartbeat(a)
    await gone
    stage.shows("FETCH-08", gone)


@fetches.add("FETCH-09")
async def fetch_with_a_member_epoch(stage: Stage) -> None:
    """Fields of the newer protocol say nothing here."""
    version = stage.version("OffsetFetch", at_least=9)
    stored = await accepted(stage.commit(None, {0: 7}))
    topics = [{**stage.topic_row(stage.topic), "partition_indexes": [0]}]
    asked = {"group_id": stage.group, "member_id": "nobody", "member_epoch": 99, "topics": topics}
    fetched = stage.send("OffsetFetch", {"groups": [asked], "require_stable": False}, version=version)
    await fetched
    stage.shows("FETCH-09", fetched, "error", "offset", "partitions", met=stored)


@fetches.add("FETCH-13")
async def fetch_after_deletion(stage: Stage) -> None:
    """A deleted offset is gone, and those of a deleted group are."""
    stored = await accepted(stage.commit(None, {0: 7, 1: 8}))
    await stage.delete_offsets([0])
    rest = stage.fetch([0, 1])
    await rest
    stage.shows("FETCH-13", rest, "offset", met=stored)
    await stage.delete()
    gone = stage.fetch([0, 1])
    await gone
    stage.shows("FETCH-13", gone, "offset", met=stored)


@fetches.add("FETCH-14")
async def fetch_in_version_1(stage: Stage) -> None:
    """The answer ends with its topics."""
    stored = await accepted(stage.commit(None, {0: 7}))
    fetched = stage.fetch(version=stage.version("OffsetFetch", at_least=1, at_most=1))
    await fetched
    stage.shows("FETCH-14", fetched, "wire", "offset", met=stored)


@fetches.add("FETCH-14")
async def fetch_in_version_0(stage: Stage) -> None:
    """Nothing is found there, or the version is refused."""
    fetched = stage.fetch(version=stage.version("OffsetFetch", at_most=0))
    await fetched
    stage.shows("FETCH-14", fetched)


@fetches.add("FETCH-15")
async def fetch_creates_nothing(stage: Stage) -> None:
    """A group that was only read does not exist."""
    await stage.fetch()
    described = stage.describe()
    await described
    stage.shows("FETCH-15", described, "state")
    listed = stage.send("ListGroups", {"states_filter": [], "types_filter": []}, broker=await home(stage))
    await listed
    stage.shows("FETCH-15", listed, "listed")
