"""OffsetCommit: which members may commit, in which state of the group, and what is stored for each partition."""

from collections.abc import Awaitable, Callable

from fencepost.conformance.classic.scenarios.neighbours import check_bystander, commit_in_bystander
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import RANGE, Call, Member, Unsupported
from fencepost.traces.events import Body

commits = ScenarioFamily()


async def is_commit_accepted(call: Call) -> bool:
    """Await an OffsetCommit; returns whether every partition was accepted."""
    body = await call
    return all(row["error_code"] == 0 for topic in body["topics"] for row in topic["partitions"])


async def act_regularly(group: ScenarioContext, milliseconds: int, act: Callable[[], Awaitable[object]]) -> None:
    """Wait for that long, and call `act` every third of a session timeout."""
    left = milliseconds
    while left > 0:
        pause = min(left, group.session_timeout // 3)
        await group.sleep(pause)
        left -= pause
        await act()


def time_past_session(group: ScenarioContext) -> int:
    """The time, in milliseconds, after which a session without heartbeats has certainly expired."""
    return group.session_timeout + 2 * group.grace + group.short_pause


async def form_rejoining_group(group: ScenarioContext, follower: Member) -> None:
    """Form a group in its join phase: the leader has rejoined, the follower has not, and its timeout is long."""
    leader = group.member("A")
    leader.rebalance_timeout = follower.rebalance_timeout = 2 * time_past_session(group) + 4_000
    await group.form_led_generation(leader, follower)
    await group.sync_all(leader, follower)
    group.join(leader)
    await group.sleep(group.short_pause)


@commits.add("COMMIT-01", smoke=True)
async def commit_in_stable(group: ScenarioContext) -> None:
    """A member commits in Stable, and fetches its offset."""
    (a,) = await group.form_stable_group(group.member("A"))
    call = group.commit(a, {0: 7})
    stored = await is_commit_accepted(call)

    await group.check_versions("COMMIT-01", call)
    await group.check_versions("COMMIT-01", group.fetch(), fields="offset", reached=stored)


@commits.add("COMMIT-02")
async def commit_in_preparing(group: ScenarioContext) -> None:
    """A member that has yet to rejoin can commit in its generation."""
    b = group.member("B")
    await form_rejoining_group(group, b)
    await group.check_versions("COMMIT-02", group.commit(b, {0: 7}))


@commits.add("COMMIT-03")
async def commit_in_completing(group: ScenarioContext) -> None:
    """A commit before the assignment is known is refused, and nothing is stored."""
    (a,) = await group.form_generation(group.patient_member("A"))
    await group.check_versions("COMMIT-03", group.commit(a, {0: 7}))
    await group.check("COMMIT-03", group.fetch(), fields="offset")


@commits.add("COMMIT-04")
async def commit_in_another_generation(group: ScenarioContext) -> None:
    """Older and newer generations are refused in CompletingRebalance, Stable and PreparingRebalance."""
    a, b = await group.form_generation(group.patient_member("A"), group.patient_member("B"))
    await check_other_generations(group, b)
    await group.sync_all(a, b)

    await check_other_generations(group, b)
    group.join(a)
    await group.sleep(group.short_pause)
    await check_other_generations(group, b)

    await group.check("COMMIT-04", group.fetch(), fields="offset")


async def check_other_generations(group: ScenarioContext, member: Member) -> None:
    """Check that the generations before and after that of the member are refused."""
    for generation in (member.generation - 1, member.generation + 1):
        await group.check_versions("COMMIT-04", group.commit(member, {0: 7}, generation_id_or_member_epoch=generation))


@commits.add("COMMIT-05")
async def commit_of_a_stranger(group: ScenarioContext) -> None:
    """With a generation, an unknown or empty member id is refused in every state."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    # With an offset, no clean-up explains an answer as if the emptied group were gone.
    await group.commit(a, {1: 1})

    for member_id in ("nobody", ""):
        await group.check_versions("COMMIT-05", group.commit(a, {0: 7}, member_id=member_id))
    group.join(a)
    await group.sleep(group.short_pause)
    await group.check_versions("COMMIT-05", group.commit(b, {0: 7}, member_id="nobody"))
    for member in (a, b):
        await group.leave(member)
    await group.check_versions("COMMIT-05", group.commit(b, {0: 7}))


@commits.add("COMMIT-06")
async def commit_of_a_stranger_in_completing(group: ScenarioContext) -> None:
    """In CompletingRebalance, an unknown member id or a wrong generation is refused before the state counts."""
    (a,) = await group.form_generation(group.patient_member("A"))

    unknown = group.commit(a, {0: 7}, member_id="nobody")
    late = group.commit(a, {0: 7}, generation_id_or_member_epoch=a.generation - 1)

    for call in (unknown, late):
        await group.check_versions("COMMIT-06", call)


@commits.add("COMMIT-07", smoke=True)
async def commit_creates_a_simple_group(group: ScenarioContext) -> None:
    """A commit without member and generation creates the group."""
    await group.check_versions("COMMIT-07", group.commit(None, {0: 7}))
    await group.check("COMMIT-07", group.describe_groups(), fields=("state", "protocol_type"))


@commits.add("COMMIT-08")
async def commit_without_generation_in_empty(group: ScenarioContext) -> None:
    """A group without members accepts commits without a generation, whatever ids they carry."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    for call in (
        group.commit(None, {0: 7}),
        group.commit(None, {0: 8}, member_id="nobody"),
        group.commit(None, {0: 9}, member_id=a.id, group_instance_id="unknown"),
    ):
        await group.check_versions("COMMIT-08", call)


@commits.add("COMMIT-09", "COMMIT-10")
async def commit_without_generation_among_members(group: ScenarioContext) -> None:
    """A group with members refuses commits without a generation, with and without a member id."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.check_versions("COMMIT-09", group.commit(None, {0: 7}))
    await group.check_versions("COMMIT-10", group.commit(a, {0: 7}, generation_id_or_member_epoch=-1))


@commits.add("COMMIT-09", "COMMIT-10")
async def commit_without_generation_in_preparing(group: ScenarioContext) -> None:
    """A group with members refuses them during the join phase, too."""
    b = group.member("B")
    await form_rejoining_group(group, b)
    await group.check_versions("COMMIT-09", group.commit(None, {0: 7}))
    await group.check_versions("COMMIT-10", group.commit(b, {0: 7}, generation_id_or_member_epoch=-1))


@commits.add("COMMIT-11")
async def commit_to_an_unknown_group(group: ScenarioContext) -> None:
    """A commit with a generation to an unknown group is refused, and creates no group."""
    await group.check("COMMIT-11", group.commit(None, {0: 7}, generation_id_or_member_epoch=5, member_id="nobody"))
    await group.check("COMMIT-11", group.describe_groups(), fields="state")


@commits.add("COMMIT-11")
async def old_commit_to_an_unknown_group(group: ScenarioContext) -> None:
    """Up to version 8, a commit with a generation to an unknown group gets ILLEGAL_GENERATION."""
    version = group.highest_version("OffsetCommit", at_least=1, at_most=8)
    await group.check(
        "COMMIT-11", group.commit(None, {0: 7}, version=version, generation_id_or_member_epoch=5, member_id="nobody")
    )


@commits.add("COMMIT-11")
async def commits_of_all_versions_to_an_unknown_group(group: ScenarioContext) -> None:
    """From version 9 on, the error is one of two, and always the same one (DIV-05)."""
    for version in group.offered_versions("OffsetCommit"):
        await group.check(
            "COMMIT-11",
            group.commit(None, {0: 7}, version=version, generation_id_or_member_epoch=5, member_id="nobody"),
        )


@commits.add("COMMIT-19")
async def commits_extend_the_session(group: ScenarioContext) -> None:
    """Commits alone keep the session of a member of a Stable group."""
    (a,) = await group.form_stable_group(group.expiring_member("A"))
    await check_kept_by_commits(group, a)


async def check_kept_by_commits(group: ScenarioContext, member: Member) -> None:
    """Check that a member that only commits, for longer than a session timeout, is still known."""

    async def commit() -> None:
        await group.check("COMMIT-19", group.commit(member, {0: 7}))

    await act_regularly(group, time_past_session(group), commit)
    await group.check("COMMIT-19", group.heartbeat(member))


@commits.add("COMMIT-19")
async def commits_extend_the_session_in_preparing(group: ScenarioContext) -> None:
    """Commits alone keep the session of a member that has not rejoined yet."""
    b = group.expiring_member("B")
    await form_rejoining_group(group, b)
    await check_kept_by_commits(group, b)


@commits.add("COMMIT-20")
async def refused_commits_do_not_extend_the_session(group: ScenarioContext) -> None:
    """A member that only commits in another generation expires."""
    await group.keep_when_empty()
    (a,) = await group.form_stable_group(group.expiring_member("A"))

    wrong = a.generation + 1
    await act_regularly(
        group, time_past_session(group), lambda: group.commit(a, {0: 7}, generation_id_or_member_epoch=wrong)
    )

    await group.check("COMMIT-20", group.heartbeat(a))


@commits.add("COMMIT-21")
async def commit_with_another_instance_id(group: ScenarioContext) -> None:
    """The instance id is checked before the generation."""
    group.highest_version("OffsetCommit", at_least=7)
    (a,) = await group.form_stable_group(group.member("A", instance="a"))

    wrong = a.generation + 1
    for member_id, instance in (("nobody", a.instance), (a.id, "unknown")):
        for generation in (a.generation, wrong):
            await group.check_versions(
                "COMMIT-21",
                group.commit(
                    a,
                    {0: 7},
                    generation_id_or_member_epoch=generation,
                    member_id=member_id,
                    group_instance_id=instance,
                ),
                since=7,
            )


@commits.add("COMMIT-22")
async def refusal_of_every_partition(group: ScenarioContext) -> None:
    """An error that concerns the whole commit is returned for each partition."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.check_versions(
        "COMMIT-22", group.commit(a, {0: 7, 1: 8, 2: 9}, generation_id_or_member_epoch=a.generation + 1)
    )


@commits.add("COMMIT-23")
async def commit_after_the_next_generation(group: ScenarioContext) -> None:
    """After a rebalance, the generation before is fenced."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    old = b.generation
    leading = group.join(a)
    await group.sleep(group.short_pause)
    await group.join(b)
    await leading
    await group.sync_all(a, b)

    await group.check_versions(
        "COMMIT-23", group.commit(b, {0: 7}, generation_id_or_member_epoch=old), reached=a.generation > old
    )


@commits.add("COMMIT-24")
async def commits_leave_the_group_alone(group: ScenarioContext) -> None:
    """A commit, accepted or refused, changes neither state nor members."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    await group.commit(a, {0: 7})
    await group.commit(None, {0: 8})
    await group.commit(b, {0: 9}, generation_id_or_member_epoch=b.generation + 1)
    described, unmoved = group.describe_groups(), group.heartbeat(b)

    await group.check("COMMIT-24", described, fields=("state", "members"))
    await group.check("COMMIT-24", unmoved)


@commits.add("COMMIT-28")
async def simple_group_is_joined(group: ScenarioContext) -> None:
    """Members can join a group that only held offsets; the offsets stay."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("COMMIT-28", await group.join_new(group.member("A")), fields="error", reached=stored)
    await group.check("COMMIT-28", group.fetch(), fields="offset", reached=stored)


@commits.add("COMMIT-29")
async def commit_after_leaving(group: ScenarioContext) -> None:
    """A member that has left is unknown, also while others stay."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))

    await group.leave(b)
    await group.check_versions("COMMIT-29", group.commit(b, {0: 7}))
    await group.join(a)
    await group.check_versions("COMMIT-29", group.commit(b, {0: 7}))


@commits.add("COMMIT-29")
async def commit_after_expiry(group: ScenarioContext) -> None:
    """A member whose session has expired is unknown."""
    a, b = group.member("A"), group.expiring_member("B")
    await group.form_stable_group(a, b)
    await group.keep_alive([a], time_past_session(group))
    await group.check_versions("COMMIT-29", group.commit(b, {0: 7}))


@commits.add("COMMIT-21")
async def commit_after_being_replaced(group: ScenarioContext) -> None:
    """The replaced owner of an instance id is fenced."""
    group.highest_version("OffsetCommit", at_least=7)
    (a,) = await group.form_stable_group(group.member("A", instance="a"))

    replacement = group.member("A2", *a.protocols, instance="a")
    is_replaced = (await group.join(replacement))["error_code"] == 0

    await group.check_versions("COMMIT-21", group.commit(a, {0: 7}), reached=is_replaced, since=7)


# --- OffsetCommit: its results by partition, and the values that are stored.

ABSENT_TOPIC = "no-such-topic"
"""A topic that is assumed not to exist."""
MAX_OFFSET = (1 << 63) - 1
MAX_WAIT_MS = 300_000
"""The longest wait for offsets to expire."""
CLEANUP_PASSES = 2
"""The number of clean-up passes by which an expired offset has to be gone."""


@commits.add("COMMIT-12", "ADMIN-21", "ADMIN-32", needs=("intrusive",))
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


@commits.add("COMMIT-13")
async def commit_of_unknown_partitions(group: ScenarioContext) -> None:
    """Partitions that do not exist are refused, each for itself."""
    await group.check_versions("COMMIT-13", group.commit(None, {0: 7, (ABSENT_TOPIC, 0): 8, 99: 9}))
    await group.check("COMMIT-13", group.fetch(), fields="offset")


@commits.add("COMMIT-14")
async def commit_of_nothing(group: ScenarioContext) -> None:
    """A commit without topics is accepted without a look at the group, and creates none."""
    nothing: tuple[dict[tuple[str, int] | int, int | Body], ...] = ({}, {(ABSENT_TOPIC, 0): 7})
    for offsets in nothing:
        await group.check_versions(
            "COMMIT-14", group.commit(None, offsets, generation_id_or_member_epoch=5, member_id="nobody")
        )
        await group.check_versions("COMMIT-14", group.commit(None, offsets))
    await group.check("COMMIT-14", group.describe_groups(), fields="state")


@commits.add("COMMIT-14")
async def commits_of_nothing_do_not_extend_the_session(group: ScenarioContext) -> None:
    """A member that only commits to partitions that do not exist expires."""
    await group.keep_when_empty()
    (a,) = await group.form_stable_group(group.expiring_member("A"))

    async def commit() -> None:
        await group.check("COMMIT-14", group.commit(a, {(ABSENT_TOPIC, 0): 7}))

    await act_regularly(group, time_past_session(group), commit)

    await group.check("COMMIT-14", group.heartbeat(a))


@commits.add("COMMIT-15")
async def metadata_has_a_limit(group: ScenarioContext) -> None:
    """Metadata of the maximum length is stored; longer metadata is refused for its partition alone."""
    limit = group.settings.max_offset_metadata
    await group.check_versions(
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


@commits.add("COMMIT-15")
async def refused_offset_is_not_under_way(group: ScenarioContext) -> None:
    """A fetch of stable offsets does not wait for a refused commit."""
    too_long = "m" * (group.settings.max_offset_metadata + 1)
    await group.commit(None, {0: 7, 1: {"committed_offset": 8, "committed_metadata": too_long}})
    await group.check(
        "COMMIT-15",
        group.fetch([0, 1], stable=True, version=group.highest_version("OffsetFetch", at_least=7)),
        fields=("error", "offset"),
    )


@commits.add("COMMIT-16")
async def null_metadata_comes_back_empty(group: ScenarioContext) -> None:
    """Null metadata is returned as the empty string."""
    committed = group.commit(None, {0: {"committed_offset": 7, "committed_metadata": None}})
    stored = await is_commit_accepted(committed)
    await group.check_versions("COMMIT-16", committed, fields="error")
    await group.check_versions("COMMIT-16", group.fetch(), fields="metadata", reached=stored)


@commits.add("COMMIT-17")
async def any_offset_is_stored(group: ScenarioContext) -> None:
    """A high offset, a lower one, and the extremes on either side are stored."""
    for offset in (100, 5, MAX_OFFSET, -5, -MAX_OFFSET - 1):
        stored = await is_commit_accepted(group.commit(None, {0: offset}))
        await group.check_versions("COMMIT-17", group.fetch(), fields="offset", reached=stored)


@commits.add("COMMIT-18")
async def leader_epoch_is_kept(group: ScenarioContext) -> None:
    """The leader epoch is stored; a commit without one resets it to -1."""
    commit = group.highest_version("OffsetCommit", at_least=6)
    fetch = group.highest_version("OffsetFetch", at_least=5)
    for row in ({"committed_offset": 7, "committed_leader_epoch": 7}, {"committed_offset": 8}):
        committed = group.commit(None, {0: row}, version=commit)
        stored = await is_commit_accepted(committed)
        await group.check_versions("COMMIT-18", committed, since=6)
        await group.check_versions("COMMIT-18", group.fetch(version=fetch), fields="epoch", reached=stored, since=5)


@commits.add("COMMIT-25", needs=("restart",))
async def commits_survive_a_restart(group: ScenarioContext) -> None:
    """A restart does not lose an acknowledged commit."""
    stored = await is_commit_accepted(group.commit(None, {0: {"committed_offset": 7, "committed_metadata": "kept"}}))

    await group.check("COMMIT-25", group.fetch(), fields="offset", reached=stored)
    await group.restart()
    await group.check_versions("COMMIT-25", group.fetch(), fields=("offset", "metadata"), reached=stored)


@commits.add("COMMIT-25", needs=("restart",))
async def commits_after_a_restart_survive_another(group: ScenarioContext) -> None:
    """A second restart does not lose a commit that was acknowledged after the first."""
    await group.commit(None, {0: 5})
    await group.restart()
    stored = await is_commit_accepted(group.commit(None, {0: 7}))

    await group.restart()
    await group.check("COMMIT-25", group.fetch(), fields="offset", reached=stored)


@commits.add("COMMIT-25", needs=("retention", "slow"))
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


@commits.add("COMMIT-26", "COMMIT-25", needs=("retention",))
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
    await group.check_versions("COMMIT-25", fetched, fields="offset", reached=stored)


def offsets_in(body: Body) -> list[int]:
    """All offsets in an OffsetFetch response for one group."""
    topics = body["groups"][0]["topics"] if "groups" in body else body["topics"]
    return [row["committed_offset"] for topic in topics for row in topic["partitions"]]


@commits.add("COMMIT-27")
async def commit_in_version_0(group: ScenarioContext) -> None:
    """A commit of version 0 is stored, or refused as that version stored offsets elsewhere."""
    await group.check("COMMIT-27", group.commit(None, {0: 7}, version=group.highest_version("OffsetCommit", at_most=0)))
