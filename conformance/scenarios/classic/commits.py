"""OffsetCommit: who may commit, and in which state of the group."""

from collections.abc import Awaitable, Callable

from fencepost.conformance.scenario.context import Call, Member, Stage
from fencepost.conformance.scenario.scenario import Collection

commits = Collection()


async def accepted(call: Call) -> bool:
    """Every partition of an OffsetCommit was accepted."""
    body = await call
    return all(row["error_code"] == 0 for topic in body["topics"] for row in topic["partitions"])


async def busy(stage: Stage, milliseconds: int, act: Callable[[], Awaitable[object]]) -> None:
    """Let time pass and act every third of a session."""
    left = milliseconds
    while left > 0:
        pause = min(left, stage.session // 3)
        await stage.sleep(pause)
        left -= pause
        await act()


def beyond_session(stage: Stage) -> int:
    """So long that a session nobody extends is over for certain."""
    return stage.session + 2 * stage.grace + stage.step


async def rejoining(stage: Stage) -> tuple[Member, Member]:
    """A group in its join phase: the leader has rejoined and waits for the other member, which has time."""
    patient = 2 * beyond_session(stage) + 4_000
    leader, follower = await stage.stable(*(stage.member(label, rebalance=patient) for label in "AB"))
    stage.join(leader)
    await stage.sleep(stage.step)
    return leader, follower


@commits.add("COMMIT-01", smoke=True)
async def commit_in_stable(stage: Stage) -> None:
    """A member commits, and reads it back."""
    (a,) = await stage.stable(stage.member("A"))
    call = stage.commit(a, {0: 7})
    stored = await accepted(call)
    stage.shows("COMMIT-01", call)
    fetched = stage.fetch()
    await fetched
    stage.shows("COMMIT-01", fetched, "offset", met=stored)


@commits.add("COMMIT-02")
async def commit_in_preparing(stage: Stage) -> None:
    """A member that has yet to rejoin still commits in its generation."""
    _, b = await rejoining(stage)
    call = stage.commit(b, {0: 7})
    await call
    stage.shows("COMMIT-02", call)


@commits.add("COMMIT-03")
async def commit_in_completing(stage: Stage) -> None:
    """Nothing is taken before the assignment is known."""
    (a,) = await stage.completing(stage.member("A"))
    call = stage.commit(a, {0: 7})
    await call
    stage.shows("COMMIT-03", call)
    fetched = stage.fetch()
    await fetched
    stage.shows("COMMIT-03", fetched, "offset")


@commits.add("COMMIT-04")
async def commit_in_another_generation(stage: Stage) -> None:
    """Older and newer generations are refused in Completing, Stable and Preparing, and nothing is stored."""
    a, b = await stage.completing(stage.member("A"), stage.member("B"))
    await refused_in_other_generations(stage, b)
    await stage.settle(a, b)
    await refused_in_other_generations(stage, b)
    stage.join(a)
    await stage.sleep(stage.step)
    await refused_in_other_generations(stage, b)
    fetched = stage.fetch()
    await fetched
    stage.shows("COMMIT-04", fetched, "offset")


async def refused_in_other_generations(stage: Stage, member: Member) -> None:
    """The generations before and after the member's are not its own."""
    for generation in (member.generation - 1, member.generation + 1):
        call = stage.commit(member, {0: 7}, generation_id_or_member_epoch=generation)
        await call
        stage.shows("COMMIT-04", call)


@commits.add("COMMIT-05")
async def commit_of_a_stranger(stage: Stage) -> None:
    """With a generation, an unknown or empty id is refused in every state."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    for member_id in ("nobody", ""):
        call = stage.commit(a, {0: 7}, member_id=member_id)
        await call
        stage.shows("COMMIT-05", call)
    stage.join(a)
    await stage.sleep(stage.step)
    preparing = stage.commit(b, {0: 7}, member_id="nobody")
    await preparing
    stage.shows("COMMIT-05", preparing)
    for member in (a, b):
        await stage.leave(member)
    empty = stage.commit(b, {0: 7})
    await empty
    stage.shows("COMMIT-05", empty)


@commits.add("COMMIT-06")
async def commit_of_a_stranger_in_completing(stage: Stage) -> None:
    """Who is nobody, or late, hears that first."""
    (a,) = await stage.completing(stage.member("A"))
    stranger = stage.commit(a, {0: 7}, member_id="nobody")
    late = stage.commit(a, {0: 7}, generation_id_or_member_epoch=a.generation - 1)
    for call in (stranger, late):
        await call
        stage.shows("COMMIT-06", call)


@commits.add("COMMIT-07", smoke=True)
async def commit_creates_a_simple_group(stage: Stage) -> None:
    """A commit without member and generation makes the group."""
    call = stage.commit(None, {0: 7})
    await call
    stage.shows("COMMIT-07", call)
    described = stage.describe()
    await described
    stage.shows("COMMIT-07", described, "state", "protocol_type")


@commits.add("COMMIT-08")
async def commit_without_generation_in_empty(stage: Stage) -> None:
    """Without members nobody is asked who they are."""
    (a,) = await stage.stable(stage.member("A"))
    await stage.leave(a)
    for call in (
        stage.commit(None, {0: 7}),
        stage.commit(None, {0: 8}, member_id="nobody"),
        stage.commit(None, {0: 9}, member_id=a.id, group_instance_id="unknown"),
    ):
        await call
        stage.shows("COMMIT-08", call)


@commits.add("COMMIT-09", "COMMIT-10")
async def commit_without_generation_among_members(stage: Stage) -> None:
    """Neither nobody nor a member may go without a generation."""
    (a,) = await stage.stable(stage.member("A"))
    simple = stage.commit(None, {0: 7})
    await simple
    stage.shows("COMMIT-09", simple)
    member = stage.commit(a, {0: 7}, generation_id_or_member_epoch=-1)
    await member
    stage.shows("COMMIT-10", member)


@commits.add("COMMIT-09", "COMMIT-10")
async def commit_without_generation_in_preparing(stage: Stage) -> None:
    """Nor may they while the group rejoins."""
    _, b = await rejoining(stage)
    simple = stage.commit(None, {0: 7})
    await simple
    stage.shows("COMMIT-09", simple)
    member = stage.commit(b, {0: 7}, generation_id_or_member_epoch=-1)
    await member
    stage.shows("COMMIT-10", member)


@commits.add("COMMIT-11")
async def commit_to_an_unknown_group(stage: Stage) -> None:
    """With a generation there has to be a group, and none is made."""
    call = stage.commit(None, {0: 7}, generation_id_or_member_epoch=5, member_id="nobody")
    await call
    stage.shows("COMMIT-11", call)
    described = stage.describe()
    await described
    stage.shows("COMMIT-11", described, "state")


@commits.add("COMMIT-11")
async def old_commit_to_an_unknown_group(stage: Stage) -> None:
    """Up to version 8 the generation is what is wrong."""
    version = stage.version("OffsetCommit", at_least=1, at_most=8)
    call = stage.commit(None, {0: 7}, version=version, generation_id_or_member_epoch=5, member_id="nobody")
    await call
    stage.shows("COMMIT-11", call)


@commits.add("COMMIT-11")
async def commits_of_all_versions_to_an_unknown_group(stage: Stage) -> None:
    """From version 9 on the error has one of two names, and always the same (DIV-05)."""
    lowest, highest = stage.description.versions.get("OffsetCommit", (0, -1))
    for version in range(max(lowest, 1), highest + 1):
        call = stage.commit(None, {0: 7}, version=version, generation_id_or_member_epoch=5, member_id="nobody")
        await call
        stage.shows("COMMIT-11", call)


@commits.add("COMMIT-19")
async def commits_extend_the_session(stage: Stage) -> None:
    """Commits alone keep a member of a Stable group."""
    (a,) = await stage.stable(stage.member("A"))
    await kept_by_commits(stage, a)


async def kept_by_commits(stage: Stage, member: Member) -> None:
    """A member commits and does nothing else for longer than a session, and is there afterwards."""

    async def commit() -> None:
        call = stage.commit(member, {0: 7})
        await call
        stage.shows("COMMIT-19", call)

    await busy(stage, beyond_session(stage), commit)
    alive = stage.heartbeat(member)
    await alive
    stage.shows("COMMIT-19", alive)


@commits.add("COMMIT-19")
async def commits_extend_the_session_in_preparing(stage: Stage) -> None:
    """Commits alone keep a member that has not rejoined yet."""
    _, b = await rejoining(stage)
    await kept_by_commits(stage, b)


@commits.add("COMMIT-20")
async def refused_commits_do_not_extend_the_session(stage: Stage) -> None:
    """A member that only commits in another generation is not heard."""
    (a,) = await stage.stable(stage.member("A"))
    wrong = a.generation + 1
    await busy(stage, beyond_session(stage), lambda: stage.commit(a, {0: 7}, generation_id_or_member_epoch=wrong))
    gone = stage.heartbeat(a)
    await gone
    stage.shows("COMMIT-20", gone)


@commits.add("COMMIT-21")
async def commit_with_another_instance_id(stage: Stage) -> None:
    """The instance id is looked at before the generation."""
    stage.version("OffsetCommit", at_least=7)
    (a,) = await stage.stable(stage.member("A", instance="a"))
    wrong = a.generation + 1
    for member_id, instance in (("nobody", a.instance), (a.id, "unknown")):
        for generation in (a.generation, wrong):
            call = stage.commit(
                a,
                {0: 7},
                generation_id_or_member_epoch=generation,
                member_id=member_id,
                group_instance_id=instance,
            )
            await call
            stage.shows("COMMIT-21", call)


@commits.add("COMMIT-22")
async def refusal_of_every_partition(stage: Stage) -> None:
    """One thing is wrong with the commit, so it is wrong with all of it."""
    (a,) = await stage.stable(stage.member("A"))
    call = stage.commit(a, {0: 7, 1: 8, 2: 9}, generation_id_or_member_epoch=a.generation + 1)
    await call
    stage.shows("COMMIT-22", call)


@commits.add("COMMIT-23")
async def commit_after_the_next_generation(stage: Stage) -> None:
    """Once the others are in the next generation, the previous one is over for everybody."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    old = b.generation
    leading = stage.join(a)
    await stage.sleep(stage.step)
    await stage.join(b)
    await leading
    await stage.settle(a, b)
    call = stage.commit(b, {0: 7}, generation_id_or_member_epoch=old)
    await call
    stage.shows("COMMIT-23", call, met=a.generation > old)


@commits.add("COMMIT-24")
async def commits_leave_the_group_alone(stage: Stage) -> None:
    """Accepted or refused, a commit moves nobody."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    await stage.commit(a, {0: 7})
    await stage.commit(None, {0: 8})
    await stage.commit(b, {0: 9}, generation_id_or_member_epoch=b.generation + 1)
    described, unmoved = stage.describe(), stage.heartbeat(b)
    await described
    await unmoved
    stage.shows("COMMIT-24", described, "state", "members")
    stage.shows("COMMIT-24", unmoved)


@commits.add("COMMIT-28")
async def simple_group_is_joined(stage: Stage) -> None:
    """Members may come to a group that only held offsets, which stay."""
    stored = await accepted(stage.commit(None, {0: 7}))
    join = await stage.enter(stage.member("A"))
    await join
    stage.shows("COMMIT-28", join, "error", met=stored)
    fetched = stage.fetch()
    await fetched
    stage.shows("COMMIT-28", fetched, "offset", met=stored)


@commits.add("COMMIT-29")
async def commit_after_leaving(stage: Stage) -> None:
    """A member that left is nobody, also while others stay."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    await stage.leave(b)
    call = stage.commit(b, {0: 7})
    await call
    stage.shows("COMMIT-29", call)
    await stage.join(a)
    again = stage.commit(b, {0: 7})
    await again
    stage.shows("COMMIT-29", again)


@commits.add("COMMIT-29")
async def commit_after_expiry(stage: Stage) -> None:
    """A member that was silent for too long is nobody."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    await stage.alive([a], beyond_session(stage))
    call = stage.commit(b, {0: 7})
    await call
    stage.shows("COMMIT-29", call)


@commits.add("COMMIT-21")
async def commit_after_being_replaced(stage: Stage) -> None:
    """The old owner of an instance id is fenced."""
    stage.version("OffsetCommit", at_least=7)
    (a,) = await stage.stable(stage.member("A", instance="a"))
    successor = stage.member("A2", *a.protocols, instance="a")
    taken_over = (await stage.join(successor))["error_code"] == 0
    call = stage.commit(a, {0: 7})
    await call
    stage.shows("COMMIT-21", call, met=taken_over)
