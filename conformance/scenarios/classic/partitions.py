"""OffsetCommit: what becomes of the partitions and values that are sent."""

from fencepost.conformance.scenario.context import RANGE, Stage, Unsupported
from fencepost.conformance.scenario.scenario import Collection
from fencepost.conformance.scenarios.classic.commits import accepted, beyond_session, busy
from fencepost.traces.events import Body

partitions = Collection()

GHOST = "no-such-topic"
"""A topic that no cluster has, one hopes."""
LARGEST = (1 << 63) - 1
LONGEST_WAIT_MS = 300_000
"""The longest that offsets are waited for to expire."""
PASSES = 2
"""How many clean-up passes an offset whose time is over is given to go."""


@partitions.add("COMMIT-12", "ADMIN-21")
async def empty_group_id_holds_offsets(stage: Stage) -> None:
    """The empty id is an ordinary one: it takes offsets, gives them back, and can be deleted.

    The only scenario that leaves its own group: no other may store anything under the empty id.
    """
    call = stage.commit(None, {0: 7}, group_id="")
    stored = await accepted(call)
    stage.shows("COMMIT-12", call)
    fetched = stage.fetch(groups=[""])
    await fetched
    stage.shows("COMMIT-12", fetched, "error", "offset", met=stored)
    deleted = stage.delete("")
    await deleted
    stage.shows("ADMIN-21", deleted, met=stored)


@partitions.add("COMMIT-13")
async def commit_of_unknown_partitions(stage: Stage) -> None:
    """What the cluster does not have is refused by itself."""
    call = stage.commit(None, {0: 7, (GHOST, 0): 8, 99: 9})
    await call
    stage.shows("COMMIT-13", call)
    fetched = stage.fetch()
    await fetched
    stage.shows("COMMIT-13", fetched, "offset")


@partitions.add("COMMIT-14")
async def commit_of_nothing(stage: Stage) -> None:
    """With nothing to commit nobody asks about the group, and none is made."""
    nothing: tuple[dict[tuple[str, int] | int, int | Body], ...] = ({}, {(GHOST, 0): 7})
    for offsets in nothing:
        call = stage.commit(None, offsets, generation_id_or_member_epoch=5, member_id="nobody")
        await call
        stage.shows("COMMIT-14", call)
        simple = stage.commit(None, offsets)
        await simple
        stage.shows("COMMIT-14", simple)
    described = stage.describe()
    await described
    stage.shows("COMMIT-14", described, "state")


@partitions.add("COMMIT-14")
async def commits_of_nothing_do_not_extend_the_session(stage: Stage) -> None:
    """A member that commits only what does not exist is not heard."""
    (a,) = await stage.stable(stage.member("A"))

    async def commit() -> None:
        call = stage.commit(a, {(GHOST, 0): 7})
        await call
        stage.shows("COMMIT-14", call)

    await busy(stage, beyond_session(stage), commit)
    gone = stage.heartbeat(a)
    await gone
    stage.shows("COMMIT-14", gone)


@partitions.add("COMMIT-15")
async def metadata_has_a_limit(stage: Stage) -> None:
    """The longest that is allowed is stored; one character more is not, and only for its partition."""
    limit = stage.settings.max_offset_metadata
    call = stage.commit(
        None,
        {
            0: {"committed_offset": 7, "committed_metadata": "m" * limit},
            1: {"committed_offset": 8, "committed_metadata": "m" * (limit + 1)},
        },
    )
    await call
    stage.shows("COMMIT-15", call)
    fetched = stage.fetch([0, 1])
    await fetched
    stage.shows("COMMIT-15", fetched, "offset", "metadata")


@partitions.add("COMMIT-15")
async def refused_offset_is_not_under_way(stage: Stage) -> None:
    """A fetch that requires stable offsets does not wait for what was refused."""
    too_long = "m" * (stage.settings.max_offset_metadata + 1)
    await stage.commit(None, {0: 7, 1: {"committed_offset": 8, "committed_metadata": too_long}})
    fetched = stage.fetch([0, 1], stable=True, version=stage.version("OffsetFetch", at_least=7))
    await fetched
    stage.shows("COMMIT-15", fetched, "error", "offset")


@partitions.add("COMMIT-16")
async def null_metadata_comes_back_empty(stage: Stage) -> None:
    """There is no null where a string is promised."""
    stored = await accepted(stage.commit(None, {0: {"committed_offset": 7, "committed_metadata": None}}))
    fetched = stage.fetch()
    await fetched
    stage.shows("COMMIT-16", fetched, "metadata", met=stored)


@partitions.add("COMMIT-17")
async def any_offset_is_stored(stage: Stage) -> None:
    """High, then low again, then as far as it goes on either side."""
    for offset in (100, 5, LARGEST, -5, -LARGEST - 1):
        stored = await accepted(stage.commit(None, {0: offset}))
        fetched = stage.fetch()
        await fetched
        stage.shows("COMMIT-17", fetched, "offset", met=stored)


@partitions.add("COMMIT-18")
async def leader_epoch_is_kept(stage: Stage) -> None:
    """Given, it comes back; not given, it is -1, also where there was one before."""
    commit = stage.version("OffsetCommit", at_least=6)
    fetch = stage.version("OffsetFetch", at_least=5)
    for row in ({"committed_offset": 7, "committed_leader_epoch": 7}, {"committed_offset": 8}):
        committed = stage.commit(None, {0: row}, version=commit)
        stored = await accepted(committed)
        stage.shows("COMMIT-18", committed)
        fetched = stage.fetch(version=fetch)
        await fetched
        stage.shows("COMMIT-18", fetched, "epoch", met=stored)


@partitions.add("COMMIT-25", needs=("restart",))
async def commits_survive_a_restart(stage: Stage) -> None:
    """What was promised is still there when the coordinator was killed."""
    stored = await accepted(stage.commit(None, {0: {"committed_offset": 7, "committed_metadata": "kept"}}))
    visible = stage.fetch()
    await visible
    stage.shows("COMMIT-25", visible, "offset", met=stored)
    await stage.restart()
    kept = stage.fetch()
    await kept
    stage.shows("COMMIT-25", kept, "offset", "metadata", met=stored)


@partitions.add("COMMIT-25", needs=("restart",))
async def commits_after_a_restart_survive_another(stage: Stage) -> None:
    """A coordinator that has just come up keeps what it accepts as well as one that has run for a while."""
    await stage.commit(None, {0: 5})
    await stage.restart()
    stored = await accepted(stage.commit(None, {0: 7}))
    await stage.restart()
    kept = stage.fetch()
    await kept
    stage.shows("COMMIT-25", kept, "offset", met=stored)


@partitions.add("COMMIT-25", needs=("retention", "slow"))
async def commits_outlast_a_rebalance(stage: Stage) -> None:
    """No clean-up takes an offset away while it is not settled who consumes its topic."""
    retention, interval = stage.settings.offsets_retention, stage.settings.retention_check_interval
    if retention + interval > LONGEST_WAIT_MS:
        raise Unsupported("offsets that expire within a few minutes")
    a, b = (stage.member(label, (RANGE, stage.metadata(label, GHOST))) for label in "AB")
    a.rebalance = b.rebalance = retention + 4 * interval
    await stage.stable(a, b)
    stored = await accepted(stage.commit(a, {0: 7}))
    parked = stage.join_changed(b)
    await stage.alive([a], retention + interval + 2 * stage.grace)
    fetched = stage.fetch()
    await fetched
    stage.shows("COMMIT-25", fetched, "offset", met=stored and not parked.done)


@partitions.add("COMMIT-26", "FETCH-01", needs=("retention",))
async def explicit_retention_expires(stage: Stage) -> None:
    """Of three offsets the one whose time is over goes with one of the next clean-up passes, and no other."""
    version = stage.version("OffsetCommit", at_least=2, at_most=4)
    interval = stage.settings.retention_check_interval
    long = 10 * interval + 60_000
    stored = await accepted(stage.commit(None, {0: 7}, version=version, retention_time_ms=1))
    await stage.commit(None, {1: 8}, version=version, retention_time_ms=long)
    await stage.commit(None, {2: 9}, version=version, retention_time_ms=-1)
    for _ in range(PASSES):
        await stage.sleep_past(interval)
        fetched = stage.fetch([0, 1, 2])
        gone = offsets_in(await fetched)[0] == -1
        if gone:
            break
    kept = f"{PASSES} clean-up intervals after its time was over the offset is still there"
    stage.shows("COMMIT-26", fetched, "offset", met=stored, unusual="" if gone else kept)
    stage.shows("FETCH-01", fetched, "offset", met=stored)


def offsets_in(body: Body) -> list[int]:
    """Every offset in an OffsetFetch answer of one group."""
    topics = body["groups"][0]["topics"] if "groups" in body else body["topics"]
    return [row["committed_offset"] for topic in topics for row in topic["partitions"]]


@partitions.add("COMMIT-27")
async def commit_in_version_0(stage: Stage) -> None:
    """Stored, or refused because that version went elsewhere."""
    call = stage.commit(None, {0: 7}, version=stage.version("OffsetCommit", at_most=0))
    await call
    stage.shows("COMMIT-27", call)
