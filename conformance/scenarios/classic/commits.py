"""OffsetCommit: who may commit, and in which state of the group."""

from collections.abc import Awaitable, Callable

from fencepost.conformance.scenario.context import Call, Member, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

commits = ScenarioFamily()


async def is_commit_accepted(call: Call) -> bool:
    """Every partition of an OffsetCommit was accepted."""
    body = await call
    return all(row["error_code"] == 0 for topic in body["topics"] for row in topic["partitions"])


async def act_regularly(group: ScenarioContext, milliseconds: int, act: Callable[[], Awaitable[object]]) -> None:
    """Let time pass and act every third of a session."""
    left = milliseconds
    while left > 0:
        pause = min(left, group.session_timeout // 3)
        await group.sleep(pause)
        left -= pause
        await act()


def time_past_session(group: ScenarioContext) -> int:
    """So long that a session nobody extends is over for certain."""
    return group.session_timeout + 2 * group.grace + group.short_pause


async def form_rejoining_group(group: ScenarioContext) -> tuple[Member, Member]:
    """A group in its join phase: the leader has rejoined and waits for the other member, which has time."""
    patient = 2 * time_past_session(group) + 4_000
    leader, follower = await group.form_stable_group(
        *(group.member(label, rebalance_timeout=patient) for label in "AB")
    )
    group.join(leader)
    await group.sleep(group.short_pause)
    return leader, follower


@commits.add("COMMIT-01", smoke=True)
async def commit_in_stable(group: ScenarioContext) -> None:
    """A member commits, and reads it back."""
    (a,) = await group.form_stable_group(group.member("A"))
    call = group.commit(a, {0: 7})
    stored = await is_commit_accepted(call)
    await group.check("COMMIT-01", call)
    await group.check("COMMIT-01", group.fetch(), fields="offset", reached=stored)


@commits.add("COMMIT-02")
async def commit_in_preparing(group: ScenarioContext) -> None:
    """A member that has yet to rejoin still commits in its generation."""
    _, b = await form_rejoining_group(group)
    await group.check("COMMIT-02", group.commit(b, {0: 7}))


@commits.add("COMMIT-03")
async def commit_in_completing(group: ScenarioContext) -> None:
    """Nothing is taken before the assignment is known."""
    (a,) = await group.form_generation(group.member("A"))
    await group.check("COMMIT-03", group.commit(a, {0: 7}))
    await group.check("COMMIT-03", group.fetch(), fields="offset")


@commits.add("COMMIT-04")
async def commit_in_another_generation(group: ScenarioContext) -> None:
    """Older and newer generations are refused in Completing, Stable and Preparing, and nothing is stored."""
    a, b = await group.form_generation(group.member("A"), group.member("B"))
    await check_other_generations(group, b)
    await group.sync_all(a, b)
    await check_other_generations(group, b)
    group.join(a)
    await group.sleep(group.short_pause)
    await check_other_generations(group, b)
    await group.check("COMMIT-04", group.fetch(), fields="offset")


async def check_other_generations(group: ScenarioContext, member: Member) -> None:
    """The generations before and after the member's are not its own."""
    for generation in (member.generation - 1, member.generation + 1):
        await group.check("COMMIT-04", group.commit(member, {0: 7}, generation_id_or_member_epoch=generation))


@commits.add("COMMIT-05")
async def commit_of_a_stranger(group: ScenarioContext) -> None:
    """With a generation, an unknown or empty id is refused in every state."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    for member_id in ("nobody", ""):
        await group.check("COMMIT-05", group.commit(a, {0: 7}, member_id=member_id))
    group.join(a)
    await group.sleep(group.short_pause)
    await group.check("COMMIT-05", group.commit(b, {0: 7}, member_id="nobody"))
    for member in (a, b):
        await group.leave(member)
    await group.check("COMMIT-05", group.commit(b, {0: 7}))


@commits.add("COMMIT-06")
async def commit_of_a_stranger_in_completing(group: ScenarioContext) -> None:
    """Who is nobody, or late, hears that first."""
    (a,) = await group.form_generation(group.member("A"))
    stranger = group.commit(a, {0: 7}, member_id="nobody")
    late = group.commit(a, {0: 7}, generation_id_or_member_epoch=a.generation - 1)
    for call in (stranger, late):
        await group.check("COMMIT-06", call)


@commits.add("COMMIT-07", smoke=True)
async def commit_creates_a_simple_group(group: ScenarioContext) -> None:
    """A commit without member and generation makes the group."""
    await group.check("COMMIT-07", group.commit(None, {0: 7}))
    await group.check("COMMIT-07", group.describe_groups(), fields=("state", "protocol_type"))


@commits.add("COMMIT-08")
async def commit_without_generation_in_empty(group: ScenarioContext) -> None:
    """Without members nobody is asked who they are."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    for call in (
        group.commit(None, {0: 7}),
        group.commit(None, {0: 8}, member_id="nobody"),
        group.commit(None, {0: 9}, member_id=a.id, group_instance_id="unknown"),
    ):
        await group.check("COMMIT-08", call)


@commits.add("COMMIT-09", "COMMIT-10")
async def commit_without_generation_among_members(group: ScenarioContext) -> None:
    """Neither nobody nor a member may go without a generation."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.check("COMMIT-09", group.commit(None, {0: 7}))
    await group.check("COMMIT-10", group.commit(a, {0: 7}, generation_id_or_member_epoch=-1))


@commits.add("COMMIT-09", "COMMIT-10")
async def commit_without_generation_in_preparing(group: ScenarioContext) -> None:
    """Nor may they while the group rejoins."""
    _, b = await form_rejoining_group(group)
    await group.check("COMMIT-09", group.commit(None, {0: 7}))
    await group.check("COMMIT-10", group.commit(b, {0: 7}, generation_id_or_member_epoch=-1))


@commits.add("COMMIT-11")
async def commit_to_an_unknown_group(group: ScenarioContext) -> None:
    """With a generation there has to be a group, and none is made."""
    await group.check("COMMIT-11", group.commit(None, {0: 7}, generation_id_or_member_epoch=5, member_id="nobody"))
    await group.check("COMMIT-11", group.describe_groups(), fields="state")


@commits.add("COMMIT-11")
async def old_commit_to_an_unknown_group(group: ScenarioContext) -> None:
    """Up to version 8 the generation is what is wrong."""
    version = group.highest_version("OffsetCommit", at_least=1, at_most=8)
    await group.check(
        "COMMIT-11", group.commit(None, {0: 7}, version=version, generation_id_or_member_epoch=5, member_id="nobody")
    )


@commits.add("COMMIT-11")
async def commits_of_all_versions_to_an_unknown_group(group: ScenarioContext) -> None:
    """From version 9 on the error has one of two names, and always the same (DIV-05)."""
    lowest, highest = group.description.versions.get("OffsetCommit", (0, -1))
    for version in range(max(lowest, 1), highest + 1):
        await group.check(
            "COMMIT-11",
            group.commit(None, {0: 7}, version=version, generation_id_or_member_epoch=5, member_id="nobody"),
        )


@commits.add("COMMIT-19")
async def commits_extend_the_session(group: ScenarioContext) -> None:
    """Commits alone keep a member of a Stable group."""
    (a,) = await group.form_stable_group(group.member("A"))
    await check_kept_by_commits(group, a)


async def check_kept_by_commits(group: ScenarioContext, member: Member) -> None:
    """A member commits and does nothing else for longer than a session, and is there afterwards."""

    async def commit() -> None:
        await group.check("COMMIT-19", group.commit(member, {0: 7}))

    await act_regularly(group, time_past_session(group), commit)
    await group.check("COMMIT-19", group.heartbeat(member))


@commits.add("COMMIT-19")
async def commits_extend_the_session_in_preparing(group: ScenarioContext) -> None:
    """Commits alone keep a member that has not rejoined yet."""
    _, b = await form_rejoining_group(group)
    await check_kept_by_commits(group, b)


@commits.add("COMMIT-20")
async def refused_commits_do_not_extend_the_session(group: ScenarioContext) -> None:
    """A member that only commits in another generation is not heard."""
    (a,) = await group.form_stable_group(group.member("A"))
    wrong = a.generation + 1
    await act_regularly(
        group, time_past_session(group), lambda: group.commit(a, {0: 7}, generation_id_or_member_epoch=wrong)
    )
    await group.check("COMMIT-20", group.heartbeat(a))


@commits.add("COMMIT-21")
async def commit_with_another_instance_id(group: ScenarioContext) -> None:
    """The instance id is looked at before the generation."""
    group.highest_version("OffsetCommit", at_least=7)
    (a,) = await group.form_stable_group(group.member("A", instance="a"))
    wrong = a.generation + 1
    for member_id, instance in (("nobody", a.instance), (a.id, "unknown")):
        for generation in (a.generation, wrong):
            await group.check(
                "COMMIT-21",
                group.commit(
                    a,
                    {0: 7},
                    generation_id_or_member_epoch=generation,
                    member_id=member_id,
                    group_instance_id=instance,
                ),
            )


@commits.add("COMMIT-22")
async def refusal_of_every_partition(group: ScenarioContext) -> None:
    """One thing is wrong with the commit, so it is wrong with all of it."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.check("COMMIT-22", group.commit(a, {0: 7, 1: 8, 2: 9}, generation_id_or_member_epoch=a.generation + 1))


@commits.add("COMMIT-23")
async def commit_after_the_next_generation(group: ScenarioContext) -> None:
    """Once the others are in the next generation, the previous one is over for everybody."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    old = b.generation
    leading = group.join(a)
    await group.sleep(group.short_pause)
    await group.join(b)
    await leading
    await group.sync_all(a, b)
    await group.check(
        "COMMIT-23", group.commit(b, {0: 7}, generation_id_or_member_epoch=old), reached=a.generation > old
    )


@commits.add("COMMIT-24")
async def commits_leave_the_group_alone(group: ScenarioContext) -> None:
    """Accepted or refused, a commit moves nobody."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.commit(a, {0: 7})
    await group.commit(None, {0: 8})
    await group.commit(b, {0: 9}, generation_id_or_member_epoch=b.generation + 1)
    described, unmoved = group.describe_groups(), group.heartbeat(b)
    await group.check("COMMIT-24", described, fields=("state", "members"))
    await group.check("COMMIT-24", unmoved)


@commits.add("COMMIT-28")
async def simple_group_is_joined(group: ScenarioContext) -> None:
    """Members may come to a group that only held offsets, which stay."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check("COMMIT-28", await group.join_new(group.member("A")), fields="error", reached=stored)
    await group.check("COMMIT-28", group.fetch(), fields="offset", reached=stored)


@commits.add("COMMIT-29")
async def commit_after_leaving(group: ScenarioContext) -> None:
    """A member that left is nobody, also while others stay."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.leave(b)
    await group.check("COMMIT-29", group.commit(b, {0: 7}))
    await group.join(a)
    await group.check("COMMIT-29", group.commit(b, {0: 7}))


@commits.add("COMMIT-29")
async def commit_after_expiry(group: ScenarioContext) -> None:
    """A member that was silent for too long is nobody."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.keep_alive([a], time_past_session(group))
    await group.check("COMMIT-29", group.commit(b, {0: 7}))


@commits.add("COMMIT-21")
async def commit_after_being_replaced(group: ScenarioContext) -> None:
    """The old owner of an instance id is fenced."""
    group.highest_version("OffsetCommit", at_least=7)
    (a,) = await group.form_stable_group(group.member("A", instance="a"))
    successor = group.member("A2", *a.protocols, instance="a")
    taken_over = (await group.join(successor))["error_code"] == 0
    await group.check("COMMIT-21", group.commit(a, {0: 7}), reached=taken_over)
