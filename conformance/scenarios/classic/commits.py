"""OffsetCommit: who may commit, and in which state of the group."""

from collections.abc import Awaitable, Callable

from fencepost.conformance.scenario.context import Call, Member, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

commits = ScenarioFamily()


async def is_commit_accepted(call: Call) -> bool:
    """Every partition of an OffsetCommit was accepted."""
    body = await call
    return all(row["error_code"] == 0 for topic in body["topics"] for row in topic["partitions"])


async def act_regularly(context: ScenarioContext, milliseconds: int, act: Callable[[], Awaitable[object]]) -> None:
    """Let time pass and act every third of a session."""
    left = milliseconds
    while left > 0:
        pause = min(left, context.session_timeout // 3)
        await context.sleep(pause)
        left -= pause
        await act()


def time_past_session(context: ScenarioContext) -> int:
    """So long that a session nobody extends is over for certain."""
    return context.session_timeout + 2 * context.grace + context.short_pause


async def form_rejoining_group(context: ScenarioContext) -> tuple[Member, Member]:
    """A group in its join phase: the leader has rejoined and waits for the other member, which has time."""
    patient = 2 * time_past_session(context) + 4_000
    leader, follower = await context.form_stable_group(
        *(context.member(label, rebalance_timeout=patient) for label in "AB")
    )
    context.join(leader)
    await context.sleep(context.short_pause)
    return leader, follower


@commits.add("COMMIT-01", smoke=True)
async def commit_in_stable(context: ScenarioContext) -> None:
    """A member commits, and reads it back."""
    (a,) = await context.form_stable_group(context.member("A"))
    call = context.commit(a, {0: 7})
    stored = await is_commit_accepted(call)
    context.check("COMMIT-01", call)
    fetched = context.fetch()
    await fetched
    context.check("COMMIT-01", fetched, "offset", reached=stored)


@commits.add("COMMIT-02")
async def commit_in_preparing(context: ScenarioContext) -> None:
    """A member that has yet to rejoin still commits in its generation."""
    _, b = await form_rejoining_group(context)
    call = context.commit(b, {0: 7})
    await call
    context.check("COMMIT-02", call)


@commits.add("COMMIT-03")
async def commit_in_completing(context: ScenarioContext) -> None:
    """Nothing is taken before the assignment is known."""
    (a,) = await context.form_generation(context.member("A"))
    call = context.commit(a, {0: 7})
    await call
    context.check("COMMIT-03", call)
    fetched = context.fetch()
    await fetched
    context.check("COMMIT-03", fetched, "offset")


@commits.add("COMMIT-04")
async def commit_in_another_generation(context: ScenarioContext) -> None:
    """Older and newer generations are refused in Completing, Stable and Preparing, and nothing is stored."""
    a, b = await context.form_generation(context.member("A"), context.member("B"))
    await check_other_generations(context, b)
    await context.sync_all(a, b)
    await check_other_generations(context, b)
    context.join(a)
    await context.sleep(context.short_pause)
    await check_other_generations(context, b)
    fetched = context.fetch()
    await fetched
    context.check("COMMIT-04", fetched, "offset")


async def check_other_generations(context: ScenarioContext, member: Member) -> None:
    """The generations before and after the member's are not its own."""
    for generation in (member.generation - 1, member.generation + 1):
        call = context.commit(member, {0: 7}, generation_id_or_member_epoch=generation)
        await call
        context.check("COMMIT-04", call)


@commits.add("COMMIT-05")
async def commit_of_a_stranger(context: ScenarioContext) -> None:
    """With a generation, an unknown or empty id is refused in every state."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    for member_id in ("nobody", ""):
        call = context.commit(a, {0: 7}, member_id=member_id)
        await call
        context.check("COMMIT-05", call)
    context.join(a)
    await context.sleep(context.short_pause)
    preparing = context.commit(b, {0: 7}, member_id="nobody")
    await preparing
    context.check("COMMIT-05", preparing)
    for member in (a, b):
        await context.leave(member)
    empty = context.commit(b, {0: 7})
    await empty
    context.check("COMMIT-05", empty)


@commits.add("COMMIT-06")
async def commit_of_a_stranger_in_completing(context: ScenarioContext) -> None:
    """Who is nobody, or late, hears that first."""
    (a,) = await context.form_generation(context.member("A"))
    stranger = context.commit(a, {0: 7}, member_id="nobody")
    late = context.commit(a, {0: 7}, generation_id_or_member_epoch=a.generation - 1)
    for call in (stranger, late):
        await call
        context.check("COMMIT-06", call)


@commits.add("COMMIT-07", smoke=True)
async def commit_creates_a_simple_group(context: ScenarioContext) -> None:
    """A commit without member and generation makes the group."""
    call = context.commit(None, {0: 7})
    await call
    context.check("COMMIT-07", call)
    described = context.describe_groups()
    await described
    context.check("COMMIT-07", described, "state", "protocol_type")


@commits.add("COMMIT-08")
async def commit_without_generation_in_empty(context: ScenarioContext) -> None:
    """Without members nobody is asked who they are."""
    (a,) = await context.form_stable_group(context.member("A"))
    await context.leave(a)
    for call in (
        context.commit(None, {0: 7}),
        context.commit(None, {0: 8}, member_id="nobody"),
        context.commit(None, {0: 9}, member_id=a.id, group_instance_id="unknown"),
    ):
        await call
        context.check("COMMIT-08", call)


@commits.add("COMMIT-09", "COMMIT-10")
async def commit_without_generation_among_members(context: ScenarioContext) -> None:
    """Neither nobody nor a member may go without a generation."""
    (a,) = await context.form_stable_group(context.member("A"))
    simple = context.commit(None, {0: 7})
    await simple
    context.check("COMMIT-09", simple)
    member = context.commit(a, {0: 7}, generation_id_or_member_epoch=-1)
    await member
    context.check("COMMIT-10", member)


@commits.add("COMMIT-09", "COMMIT-10")
async def commit_without_generation_in_preparing(context: ScenarioContext) -> None:
    """Nor may they while the group rejoins."""
    _, b = await form_rejoining_group(context)
    simple = context.commit(None, {0: 7})
    await simple
    context.check("COMMIT-09", simple)
    member = context.commit(b, {0: 7}, generation_id_or_member_epoch=-1)
    await member
    context.check("COMMIT-10", member)


@commits.add("COMMIT-11")
async def commit_to_an_unknown_group(context: ScenarioContext) -> None:
    """With a generation there has to be a group, and none is made."""
    call = context.commit(None, {0: 7}, generation_id_or_member_epoch=5, member_id="nobody")
    await call
    context.check("COMMIT-11", call)
    described = context.describe_groups()
    await described
    context.check("COMMIT-11", described, "state")


@commits.add("COMMIT-11")
async def old_commit_to_an_unknown_group(context: ScenarioContext) -> None:
    """Up to version 8 the generation is what is wrong."""
    version = context.highest_version("OffsetCommit", at_least=1, at_most=8)
    call = context.commit(None, {0: 7}, version=version, generation_id_or_member_epoch=5, member_id="nobody")
    await call
    context.check("COMMIT-11", call)


@commits.add("COMMIT-11")
async def commits_of_all_versions_to_an_unknown_group(context: ScenarioContext) -> None:
    """From version 9 on the error has one of two names, and always the same (DIV-05)."""
    lowest, highest = context.description.versions.get("OffsetCommit", (0, -1))
    for version in range(max(lowest, 1), highest + 1):
        call = context.commit(None, {0: 7}, version=version, generation_id_or_member_epoch=5, member_id="nobody")
        await call
        context.check("COMMIT-11", call)


@commits.add("COMMIT-19")
async def commits_extend_the_session(context: ScenarioContext) -> None:
    """Commits alone keep a member of a Stable group."""
    (a,) = await context.form_stable_group(context.member("A"))
    await check_kept_by_commits(context, a)


async def check_kept_by_commits(context: ScenarioContext, member: Member) -> None:
    """A member commits and does nothing else for longer than a session, and is there afterwards."""

    async def commit() -> None:
        call = context.commit(member, {0: 7})
        await call
        context.check("COMMIT-19", call)

    await act_regularly(context, time_past_session(context), commit)
    alive = context.heartbeat(member)
    await alive
    context.check("COMMIT-19", alive)


@commits.add("COMMIT-19")
async def commits_extend_the_session_in_preparing(context: ScenarioContext) -> None:
    """Commits alone keep a member that has not rejoined yet."""
    _, b = await form_rejoining_group(context)
    await check_kept_by_commits(context, b)


@commits.add("COMMIT-20")
async def refused_commits_do_not_extend_the_session(context: ScenarioContext) -> None:
    """A member that only commits in another generation is not heard."""
    (a,) = await context.form_stable_group(context.member("A"))
    wrong = a.generation + 1
    await act_regularly(
        context, time_past_session(context), lambda: context.commit(a, {0: 7}, generation_id_or_member_epoch=wrong)
    )
    gone = context.heartbeat(a)
    await gone
    context.check("COMMIT-20", gone)


@commits.add("COMMIT-21")
async def commit_with_another_instance_id(context: ScenarioContext) -> None:
    """The instance id is looked at before the generation."""
    context.highest_version("OffsetCommit", at_least=7)
    (a,) = await context.form_stable_group(context.member("A", instance="a"))
    wrong = a.generation + 1
    for member_id, instance in (("nobody", a.instance), (a.id, "unknown")):
        for generation in (a.generation, wrong):
            call = context.commit(
                a,
                {0: 7},
                generation_id_or_member_epoch=generation,
                member_id=member_id,
                group_instance_id=instance,
            )
            await call
            context.check("COMMIT-21", call)


@commits.add("COMMIT-22")
async def refusal_of_every_partition(context: ScenarioContext) -> None:
    """One thing is wrong with the commit, so it is wrong with all of it."""
    (a,) = await context.form_stable_group(context.member("A"))
    call = context.commit(a, {0: 7, 1: 8, 2: 9}, generation_id_or_member_epoch=a.generation + 1)
    await call
    context.check("COMMIT-22", call)


@commits.add("COMMIT-23")
async def commit_after_the_next_generation(context: ScenarioContext) -> None:
    """Once the others are in the next generation, the previous one is over for everybody."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    old = b.generation
    leading = context.join(a)
    await context.sleep(context.short_pause)
    await context.join(b)
    await leading
    await context.sync_all(a, b)
    call = context.commit(b, {0: 7}, generation_id_or_member_epoch=old)
    await call
    context.check("COMMIT-23", call, reached=a.generation > old)


@commits.add("COMMIT-24")
async def commits_leave_the_group_alone(context: ScenarioContext) -> None:
    """Accepted or refused, a commit moves nobody."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    await context.commit(a, {0: 7})
    await context.commit(None, {0: 8})
    await context.commit(b, {0: 9}, generation_id_or_member_epoch=b.generation + 1)
    described, unmoved = context.describe_groups(), context.heartbeat(b)
    await described
    await unmoved
    context.check("COMMIT-24", described, "state", "members")
    context.check("COMMIT-24", unmoved)


@commits.add("COMMIT-28")
async def simple_group_is_joined(context: ScenarioContext) -> None:
    """Members may come to a group that only held offsets, which stay."""
    stored = await is_commit_accepted(context.commit(None, {0: 7}))
    join = await context.join_new(context.member("A"))
    await join
    context.check("COMMIT-28", join, "error", reached=stored)
    fetched = context.fetch()
    await fetched
    context.check("COMMIT-28", fetched, "offset", reached=stored)


@commits.add("COMMIT-29")
async def commit_after_leaving(context: ScenarioContext) -> None:
    """A member that left is nobody, also while others stay."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    await context.leave(b)
    call = context.commit(b, {0: 7})
    await call
    context.check("COMMIT-29", call)
    await context.join(a)
    again = context.commit(b, {0: 7})
    await again
    context.check("COMMIT-29", again)


@commits.add("COMMIT-29")
async def commit_after_expiry(context: ScenarioContext) -> None:
    """A member that was silent for too long is nobody."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    await context.keep_alive([a], time_past_session(context))
    call = context.commit(b, {0: 7})
    await call
    context.check("COMMIT-29", call)


@commits.add("COMMIT-21")
async def commit_after_being_replaced(context: ScenarioContext) -> None:
    """The old owner of an instance id is fenced."""
    context.highest_version("OffsetCommit", at_least=7)
    (a,) = await context.form_stable_group(context.member("A", instance="a"))
    successor = context.member("A2", *a.protocols, instance="a")
    taken_over = (await context.join(successor))["error_code"] == 0
    call = context.commit(a, {0: 7})
    await call
    context.check("COMMIT-21", call, reached=taken_over)
