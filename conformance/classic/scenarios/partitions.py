"""OffsetCommit: its results by partition, and the values that are stored."""

from fencepost.conformance.classic.scenarios.commits import act_regularly, is_commit_accepted, time_past_session
from fencepost.conformance.classic.scenarios.neighbours import check_bystander, commit_in_bystander
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import RANGE, Unsupported
from fencepost.traces.events import Body

partitions = ScenarioFamily()

ABSENT_TOPIC = "no-such-topic"
"""A topic that is assumed not to exist."""
MAX_OFFSET = (1 << 63) - 1
MAX_WAIT_MS = 300_000
"""The longest wait for offsets to expire."""
CLEANUP_PASSES = 2
"""The number of clean-up passes by which an expired offset has to be gone."""


@partitions.add("COMMIT-12", "ADMIN-21", "ADMIN-32", needs=("intrusive",))
async def empty_group_id_holds_offsets(group: ScenarioContext) -> None:
    """The empty group id stores offsets, returns them, and can be deleted.

    No other scenario may store offsets under the empty id, as all groups share it.
    """
    bystander, beside = await commit_in_bystander(group)
    call = group.commit(None, {0: 7}, group_id="")
    stored = await is_commit_accepted(call)

    await group.check("COMMIT-12", call)
    await group.check("COMMIT-12", group.fetch(groups=[""]), fields=("error", "offset"), reached=stored)
    await group.check("ADMIN-21", group.delete_groups(""), reached=stored)
    await check_bystander(group, bystander, beside)


@partitions.add("COMMIT-13")
async def commit_of_unknown_partitions(group: ScenarioContext) -> None:
    """Partitions that do not exist are refused, each for itself."""
    await group.check("COMMIT-13", group.commit(None, {0: 7, (ABSENT_TOPIC, 0): 8, 99: 9}))
    await group.check("COMMIT-13", group.fetch(), fields="offset")


@partitions.add("COMMIT-14")
async def commit_of_nothing(group: ScenarioContext) -> None:
    """A commit without topics is accepted without a look at the group, and creates none."""
    nothing: tuple[dict[tuple[str, int] | int, int | Body], ...] = ({}, {(ABSENT_TOPIC, 0): 7})
    for offsets in nothing:
        await group.check("COMMIT-14", group.commit(None, offsets, generation_id_or_member_epoch=5, member_id="nobody"))
        await group.check("COMMIT-14", group.commit(None, offsets))
    await group.check("COMMIT-14", group.describe_groups(), fields="state")


@partitions.add("COMMIT-14")
async def commits_of_nothing_do_not_extend_the_session(group: ScenarioContext) -> None:
    """A member that only commits to partitions that do not exist expires."""
    await group.keep_when_empty()
    (a,) = await group.form_stable_group(group.member("A"))

    async def commit() -> None:
        await group.check("COMMIT-14", group.commit(a, {(ABSENT_TOPIC, 0): 7}))

    await act_regularly(group, time_past_session(group), commit)

    await group.check("COMMIT-14", group.heartbeat(a))


@partitions.add("COMMIT-15")
async def metadata_has_a_limit(group: ScenarioContext) -> None:
    """Metadata of the maximum length is stored; longer metadata is refused for its partition alone."""
    limit = group.settings.max_offset_metadata
    await group.check(
        "COMMIT-15",
        group.commit(
            None,
            {
                0: {"committed_offset": 7, "committed_metadata": "m" * limit},
                1: {"committed_offset": 8, "committed_metadata": "m" * (limit + 1)},
            },
        ),
    )
    await group.check("COMMIT-15", group.fetch([0, 1]), fields=("offset", "metadata"))


@partitions.add("COMMIT-15")
async def refused_offset_is_not_under_way(group: ScenarioContext) -> None:
    """A fetch of stable offsets does not wait for a refused commit."""
    too_long = "m" * (group.settings.max_offset_metadata + 1)
    await group.commit(None, {0: 7, 1: {"committed_offset": 8, "committed_metadata": too_long}})
    await group.check(
        "COMMIT-15",
        group.fetch([0, 1], stable=True, version=group.highest_version("OffsetFetch", at_least=7)),
        fields=("error", "offset"),
    )


@partitions.add("COMMIT-16")
async def null_metadata_comes_back_empty(group: ScenarioContext) -> None:
    """Null metadata is returned as the empty string."""
    stored = await is_commit_accepted(group.commit(None, {0: {"committed_offset": 7, "committed_metadata": None}}))
    await group.check("COMMIT-16", group.fetch(), fields="metadata", reached=stored)


@partitions.add("COMMIT-17")
async def any_offset_is_stored(group: ScenarioContext) -> None:
    """A high offset, a lower one, and the extremes on either side are stored."""
    for offset in (100, 5, MAX_OFFSET, -5, -MAX_OFFSET - 1):
        stored = await is_commit_accepted(group.commit(None, {0: offset}))
        await group.check("COMMIT-17", group.fetch(), fields="offset", reached=stored)


@partitions.add("COMMIT-18")
async def leader_epoch_is_kept(group: ScenarioContext) -> None:
    """The leader epoch is stored; a commit without one resets it to -1."""
    commit = group.highest_version("OffsetCommit", at_least=6)
    fetch = group.highest_version("OffsetFetch", at_least=5)
    for row in ({"committed_offset": 7, "committed_leader_epoch": 7}, {"committed_offset": 8}):
        committed = group.commit(None, {0: row}, version=commit)
        stored = await is_commit_accepted(committed)
        await group.check("COMMIT-18", committed)
        await group.check("COMMIT-18", group.fetch(version=fetch), fields="epoch", reached=stored)


@partitions.add("COMMIT-25", needs=("restart",))
async def commits_survive_a_restart(group: ScenarioContext) -> None:
    """A restart does not lose an acknowledged commit."""
    stored = await is_commit_accepted(group.commit(None, {0: {"committed_offset": 7, "committed_metadata": "kept"}}))

    await group.check("COMMIT-25", group.fetch(), fields="offset", reached=stored)
    await group.restart()
    await group.check("COMMIT-25", group.fetch(), fields=("offset", "metadata"), reached=stored)


@partitions.add("COMMIT-25", needs=("restart",))
async def commits_after_a_restart_survive_another(group: ScenarioContext) -> None:
    """A second restart does not lose a commit that was acknowledged after the first."""
    await group.commit(None, {0: 5})
    await group.restart()
    stored = await is_commit_accepted(group.commit(None, {0: 7}))

    await group.restart()
    await group.check("COMMIT-25", group.fetch(), fields="offset", reached=stored)


@partitions.add("COMMIT-25", needs=("retention", "slow"))
async def commits_outlast_a_rebalance(group: ScenarioContext) -> None:
    """Offsets do not expire during a rebalance, in which the subscribed topics are not settled."""
    retention, interval = group.settings.offsets_retention, group.settings.retention_check_interval
    if retention + interval > MAX_WAIT_MS:
        raise Unsupported("offsets that expire within a few minutes")
    a, b = (group.member(label, (RANGE, group.metadata(label, ABSENT_TOPIC))) for label in "AB")
    a.rebalance_timeout = b.rebalance_timeout = retention + 4 * interval
    await group.form_stable_group(a, b)
    stored = await is_commit_accepted(group.commit(a, {0: 7}))

    parked = group.join_with_new_metadata(b)
    await group.keep_alive([a], retention + interval + 2 * group.grace)
    fetched = group.fetch()
    await fetched

    await group.check("COMMIT-25", fetched, fields="offset", reached=stored and not parked.done)


@partitions.add("COMMIT-26", "FETCH-01", needs=("retention",))
async def explicit_retention_expires(group: ScenarioContext) -> None:
    """Of three offsets, only the one whose retention is over is removed by one of the next clean-up passes."""
    version = group.highest_version("OffsetCommit", at_least=2, at_most=4)
    interval = group.settings.retention_check_interval
    long = 10 * interval + 60_000
    stored = await is_commit_accepted(group.commit(None, {0: 7}, version=version, retention_time_ms=1))

    await group.commit(None, {1: 8}, version=version, retention_time_ms=long)
    await group.commit(None, {2: 9}, version=version, retention_time_ms=-1)
    for _ in range(CLEANUP_PASSES):
        await group.sleep_past(interval)
        fetched = group.fetch([0, 1, 2])
        gone = offsets_in(await fetched)[0] == -1
        if gone:
            break
    kept = f"{CLEANUP_PASSES} clean-up intervals after its time was over the offset is still there"

    await group.check("COMMIT-26", fetched, fields="offset", reached=stored, unusual="" if gone else kept)
    await group.check("FETCH-01", fetched, fields="offset", reached=stored)


def offsets_in(body: Body) -> list[int]:
    """All offsets in an OffsetFetch response for one group."""
    topics = body["groups"][0]["topics"] if "groups" in body else body["topics"]
    return [row["committed_offset"] for topic in topics for row in topic["partitions"]]


@partitions.add("COMMIT-27")
async def commit_in_version_0(group: ScenarioContext) -> None:
    """A commit of version 0 is stored, or refused as that version stored offsets elsewhere."""
    await group.check("COMMIT-27", group.commit(None, {0: 7}, version=group.highest_version("OffsetCommit", at_most=0)))
