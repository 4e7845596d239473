"""OffsetFetch: what is read back, by whom, and when."""

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.classic.commits import act_regularly, is_commit_accepted, time_past_session
from fencepost.conformance.scenarios.classic.neighbours import find_neighbours, own_node
from fencepost.conformance.scenarios.classic.partitions import ABSENT_TOPIC

fetches = ScenarioFamily()


@fetches.add("FETCH-01", smoke=True)
async def fetch_the_last_commit(context: ScenarioContext) -> None:
    """Offset and metadata of the last commit; other partitions keep theirs."""
    await context.commit(None, {0: {"committed_offset": 5, "committed_metadata": "old"}, 1: 6})
    stored = await is_commit_accepted(context.commit(None, {0: {"committed_offset": 7, "committed_metadata": "new"}}))
    fetched = context.fetch([0, 1])
    await fetched
    context.check("FETCH-01", fetched, "error", "offset", "metadata", "partitions", reached=stored)


@fetches.add("FETCH-02")
async def fetch_where_nothing_was_committed(context: ScenarioContext) -> None:
    """Neither an uncommitted partition nor an unknown topic is an error; an unknown id of a topic is."""
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    fetched = context.fetch([1, 99, (ABSENT_TOPIC, 0)])
    await fetched
    context.check("FETCH-02", fetched, "error", "offset", "metadata", "partitions", reached=stored)


@fetches.add("FETCH-02")
async def fetch_by_name_where_nothing_was_committed(context: ScenarioContext) -> None:
    """The same where topics go by their names, so that none is unknown."""
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    fetched = context.fetch([1, 99, (ABSENT_TOPIC, 0)], version=context.highest_version("OffsetFetch", at_most=9))
    await fetched
    context.check("FETCH-02", fetched, "error", "offset", "metadata", "partitions", reached=stored)


@fetches.add("FETCH-01", "FETCH-04")
async def topics_by_name_and_by_id(context: ScenarioContext) -> None:
    """An offset is one and the same, however commit and fetch name its topic."""
    by_id = context.highest_version("OffsetCommit", at_least=10), context.highest_version("OffsetFetch", at_least=10)
    by_name = (
        context.highest_version("OffsetCommit", at_most=9),
        context.highest_version("OffsetFetch", at_least=2, at_most=9),
    )
    for partition, (commit, _), (_, fetch) in ((0, by_id, by_name), (1, by_name, by_id)):
        stored = await is_commit_accepted(context.commit(None, {partition: 7 + partition}, version=commit))
        listed, everything = context.fetch([partition], version=fetch), context.fetch(None, version=fetch)
        await listed
        context.check("FETCH-01", listed, "error", "offset", "partitions", reached=stored)
        await everything
        context.check("FETCH-04", everything, "error", "offset", "partitions", reached=stored)


@fetches.add("FETCH-03")
async def fetch_from_an_unknown_group(context: ScenarioContext) -> None:
    """No group, no offsets, no error."""
    named = context.fetch([0])
    await named
    context.check("FETCH-03", named, "error", "offset", "partitions")
    everything = context.fetch(None)
    await everything
    context.check("FETCH-03", everything, "error", "partitions")


@fetches.add("FETCH-03")
async def old_fetch_from_an_unknown_group(context: ScenarioContext) -> None:
    """The same with the error at top level."""
    fetched = context.fetch(version=context.highest_version("OffsetFetch", at_least=2, at_most=7))
    await fetched
    context.check("FETCH-03", fetched, "error", "offset", "partitions")


@fetches.add("FETCH-04", "FETCH-05")
async def fetch_everything_and_nothing(context: ScenarioContext) -> None:
    """Null asks for all that was committed, an empty list for nothing."""
    version = context.highest_version("OffsetFetch", at_least=2)
    stored = await is_commit_accepted(context.commit(None, {0: 7, 1: 8, 3: 9}))
    everything = context.fetch(None, version=version)
    await everything
    context.check("FETCH-04", everything, "error", "offset", "partitions", reached=stored)
    nothing = context.fetch([], version=version)
    await nothing
    context.check("FETCH-05", nothing, "error", "partitions", reached=stored)


@fetches.add("FETCH-06")
async def fetch_from_several_groups(context: ScenarioContext) -> None:
    """Every group has its own entry, the unknown one too."""
    version = context.highest_version("OffsetFetch", at_least=8)
    other, unknown = await find_neighbours(context, 2)
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    stored = await is_commit_accepted(context.commit(None, {0: 8}, group_id=other)) and stored
    fetched = context.fetch(groups=[context.group, other, unknown], version=version)
    await fetched
    context.check("FETCH-06", fetched, "groups", "error", "offset", reached=stored)


@fetches.add("FETCH-07")
async def fetch_in_every_state(context: ScenarioContext) -> None:
    """Nobody in particular reads the offset in Empty, Completing, Stable and Preparing."""
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    empty = context.fetch()
    await empty
    a, b = await context.form_generation(context.member("A"), context.member("B"))
    completing = context.fetch()
    await completing
    await context.sync_all(a, b)
    stable = context.fetch()
    await stable
    context.join(a)
    await context.sleep(context.short_pause)
    preparing = context.fetch()
    await preparing
    for fetched in (empty, completing, stable, preparing):
        context.check("FETCH-07", fetched, "error", "offset", "partitions", reached=stored)


@fetches.add("FETCH-08")
async def fetches_do_not_extend_the_session(context: ScenarioContext) -> None:
    """A member that only reads is not heard."""
    (a,) = await context.form_stable_group(context.member("A"))
    await act_regularly(context, time_past_session(context), context.fetch)
    gone = context.heartbeat(a)
    await gone
    context.check("FETCH-08", gone)


@fetches.add("FETCH-09")
async def fetch_with_a_member_epoch(context: ScenarioContext) -> None:
    """Fields of the newer protocol say nothing here."""
    version = context.highest_version("OffsetFetch", at_least=9)
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    topics = [{**context.topic_entry(context.topic), "partition_indexes": [0]}]
    asked = {"group_id": context.group, "member_id": "nobody", "member_epoch": 99, "topics": topics}
    fetched = context.send("OffsetFetch", {"groups": [asked], "require_stable": False}, version=version)
    await fetched
    context.check("FETCH-09", fetched, "error", "offset", "partitions", reached=stored)


@fetches.add("FETCH-13")
async def fetch_after_deletion(context: ScenarioContext) -> None:
    """A deleted offset is gone, and those of a deleted group are."""
    stored = await is_commit_accepted(context.commit(None, {0: 7, 1: 8}))
    await context.delete_offsets([0])
    rest = context.fetch([0, 1])
    await rest
    context.check("FETCH-13", rest, "offset", reached=stored)
    await context.delete_groups()
    gone = context.fetch([0, 1])
    await gone
    context.check("FETCH-13", gone, "offset", reached=stored)


@fetches.add("FETCH-14")
async def fetch_in_version_1(context: ScenarioContext) -> None:
    """The answer ends with its topics."""
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    fetched = context.fetch(version=context.highest_version("OffsetFetch", at_least=1, at_most=1))
    await fetched
    context.check("FETCH-14", fetched, "wire", "offset", reached=stored)


@fetches.add("FETCH-14")
async def fetch_in_version_0(context: ScenarioContext) -> None:
    """Nothing is found there, or the version is refused."""
    fetched = context.fetch(version=context.highest_version("OffsetFetch", at_most=0))
    await fetched
    context.check("FETCH-14", fetched)


@fetches.add("FETCH-15")
async def fetch_creates_nothing(context: ScenarioContext) -> None:
    """A group that was only read does not exist."""
    await context.fetch()
    described = context.describe_groups()
    await described
    context.check("FETCH-15", described, "state")
    listed = context.send("ListGroups", {"states_filter": [], "types_filter": []}, broker=await own_node(context))
    await listed
    context.check("FETCH-15", listed, "listed")
