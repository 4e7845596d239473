"""OffsetFetch: which offsets are returned, to which members, in which state."""

from fencepost.conformance.classic.scenarios.commits import act_regularly, is_commit_accepted, time_past_session
from fencepost.conformance.classic.scenarios.neighbours import find_neighbours, own_node
from fencepost.conformance.classic.scenarios.partitions import ABSENT_TOPIC
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily

fetches = ScenarioFamily()


@fetches.add("FETCH-01", smoke=True)
async def fetch_the_last_commit(group: ScenarioContext) -> None:
    """Offset and metadata of the last commit are returned; other partitions keep theirs."""
    await group.commit(None, {0: {"committed_offset": 5, "committed_metadata": "old"}, 1: 6})
    stored = await is_commit_accepted(group.commit(None, {0: {"committed_offset": 7, "committed_metadata": "new"}}))
    await group.check(
        "FETCH-01", group.fetch([0, 1]), fields=("error", "offset", "metadata", "partitions"), reached=stored
    )


@fetches.add("FETCH-02")
async def fetch_where_nothing_was_committed(group: ScenarioContext) -> None:
    """An uncommitted partition and an unknown topic name are no errors; an unknown topic id is one."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check(
        "FETCH-02",
        group.fetch([1, 99, (ABSENT_TOPIC, 0)]),
        fields=("error", "offset", "metadata", "partitions"),
        reached=stored,
    )


@fetches.add("FETCH-02")
async def fetch_by_name_where_nothing_was_committed(group: ScenarioContext) -> None:
    """By topic name, neither an uncommitted partition nor an unknown topic is an error."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check(
        "FETCH-02",
        group.fetch([1, 99, (ABSENT_TOPIC, 0)], version=group.highest_version("OffsetFetch", at_most=9)),
        fields=("error", "offset", "metadata", "partitions"),
        reached=stored,
    )


@fetches.add("FETCH-01", "FETCH-04")
async def topics_by_name_and_by_id(group: ScenarioContext) -> None:
    """Commit and fetch mean the same offset, by name or by id of its topic."""
    by_id = group.highest_version("OffsetCommit", at_least=10), group.highest_version("OffsetFetch", at_least=10)
    by_name = (
        group.highest_version("OffsetCommit", at_most=9),
        group.highest_version("OffsetFetch", at_least=2, at_most=9),
    )
    for partition, (commit, _), (_, fetch) in ((0, by_id, by_name), (1, by_name, by_id)):
        stored = await is_commit_accepted(group.commit(None, {partition: 7 + partition}, version=commit))
        listed, everything = group.fetch([partition], version=fetch), group.fetch(None, version=fetch)
        await group.check("FETCH-01", listed, fields=("error", "offset", "partitions"), reached=stored)
        await group.check("FETCH-04", everything, fields=("error", "offset", "partitions"), reached=stored)


@fetches.add("FETCH-03")
async def fetch_from_an_unknown_group(group: ScenarioContext) -> None:
    """An unknown group has no offsets, without an error."""
    await group.check("FETCH-03", group.fetch([0]), fields=("error", "offset", "partitions"))
    await group.check("FETCH-03", group.fetch(None), fields=("error", "partitions"))


@fetches.add("FETCH-03")
async def old_fetch_from_an_unknown_group(group: ScenarioContext) -> None:
    """Up to version 7, an unknown group has no offsets, without an error at top level."""
    await group.check(
        "FETCH-03",
        group.fetch(version=group.highest_version("OffsetFetch", at_least=2, at_most=7)),
        fields=("error", "offset", "partitions"),
    )


@fetches.add("FETCH-04", "FETCH-05")
async def fetch_everything_and_nothing(group: ScenarioContext) -> None:
    """A null list of topics asks for all committed offsets, an empty list for none."""
    version = group.highest_version("OffsetFetch", at_least=2)
    stored = await is_commit_accepted(group.commit(None, {0: 7, 1: 8, 3: 9}))

    await group.check(
        "FETCH-04", group.fetch(None, version=version), fields=("error", "offset", "partitions"), reached=stored
    )
    await group.check("FETCH-05", group.fetch([], version=version), fields=("error", "partitions"), reached=stored)


@fetches.add("FETCH-06")
async def fetch_from_several_groups(group: ScenarioContext) -> None:
    """Each group has an entry of its own, an unknown one too."""
    version = group.highest_version("OffsetFetch", at_least=8)
    other, unknown = await find_neighbours(group, 2)
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    stored = await is_commit_accepted(group.commit(None, {0: 8}, group_id=other)) and stored

    await group.check(
        "FETCH-06",
        group.fetch(groups=[group.group_id, other, unknown], version=version),
        fields=("groups", "error", "offset"),
        reached=stored,
    )


@fetches.add("FETCH-07")
async def fetch_in_every_state(group: ScenarioContext) -> None:
    """A fetch without a member returns the offset in Empty, CompletingRebalance, Stable and PreparingRebalance."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    empty = group.fetch()
    await empty
    a, b = await group.form_generation(group.member("A"), group.member("B"))
    completing = group.fetch()
    await completing
    await group.sync_all(a, b)

    stable = group.fetch()
    await stable
    group.join(a)
    await group.sleep(group.short_pause)
    preparing = group.fetch()
    await preparing

    for fetched in (empty, completing, stable, preparing):
        await group.check("FETCH-07", fetched, fields=("error", "offset", "partitions"), reached=stored)


@fetches.add("FETCH-08")
async def fetches_do_not_extend_the_session(group: ScenarioContext) -> None:
    """A member that only fetches expires."""
    await group.keep_when_empty()
    (a,) = await group.form_stable_group(group.member("A"))
    await act_regularly(group, time_past_session(group), group.fetch)
    await group.check("FETCH-08", group.heartbeat(a))


@fetches.add("FETCH-09")
async def fetch_with_a_member_epoch(group: ScenarioContext) -> None:
    """Member id and epoch of KIP-848 are ignored."""
    version = group.highest_version("OffsetFetch", at_least=9)
    stored = await is_commit_accepted(group.commit(None, {0: 7}))

    topics = [{**group.topic_entry(group.topic), "partition_indexes": [0]}]
    asked = {"group_id": group.group_id, "member_id": "nobody", "member_epoch": 99, "topics": topics}

    await group.check(
        "FETCH-09",
        group.send("OffsetFetch", {"groups": [asked], "require_stable": False}, version=version),
        fields=("error", "offset", "partitions"),
        reached=stored,
    )


@fetches.add("FETCH-13")
async def fetch_after_deletion(group: ScenarioContext) -> None:
    """A deleted offset is not returned, nor are those of a deleted group."""
    stored = await is_commit_accepted(group.commit(None, {0: 7, 1: 8}))

    await group.delete_offsets([0])
    await group.check("FETCH-13", group.fetch([0, 1]), fields="offset", reached=stored)
    await group.delete_groups()
    await group.check("FETCH-13", group.fetch([0, 1]), fields="offset", reached=stored)


@fetches.add("FETCH-14")
async def fetch_in_version_1(group: ScenarioContext) -> None:
    """In version 1 the response ends with its topics."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check(
        "FETCH-14",
        group.fetch(version=group.highest_version("OffsetFetch", at_least=1, at_most=1)),
        fields=("wire", "offset"),
        reached=stored,
    )


@fetches.add("FETCH-14")
async def fetch_in_version_0(group: ScenarioContext) -> None:
    """Version 0 finds no offset of the group, or is refused."""
    await group.check("FETCH-14", group.fetch(version=group.highest_version("OffsetFetch", at_most=0)))


@fetches.add("FETCH-15")
async def fetch_creates_nothing(group: ScenarioContext) -> None:
    """A fetch creates no group."""
    await group.fetch()
    await group.check("FETCH-15", group.describe_groups(), fields="state")
    await group.check(
        "FETCH-15",
        group.send("ListGroups", {"states_filter": [], "types_filter": []}, broker=await own_node(group)),
        fields="listed",
    )
