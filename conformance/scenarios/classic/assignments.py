"""SyncGroup: what the members are given."""

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

assignments = ScenarioFamily()

"""What a coordinator may say while it loads; 27 is the older one's."""


@assignments.add("SYNC-12", smoke=True)
async def assignments_are_handed_on(context: ScenarioContext) -> None:
    """Everyone gets the bytes meant for it, none changed."""
    leader, *followers = await context.form_generation(*(context.member(label) for label in "ABC"))
    plan = {leader.id: bytes(range(256)), followers[0].id: b"\0", followers[1].id: b"two"}
    calls = [context.sync(leader, plan), *(context.sync(follower) for follower in followers)]
    for call in calls:
        await call
        context.check("SYNC-12", call, "error", "assignment")


@assignments.add("SYNC-13")
async def left_out_member_gets_nothing(context: ScenarioContext) -> None:
    """A follower that the leader did not think of, waiting already."""
    long = context.session_timeout + 2 * context.grace
    leader, follower = await context.form_generation(
        context.member("A", session_timeout=long), context.member("B", session_timeout=long)
    )
    call = context.sync(follower)
    await context.sleep(context.short_pause)
    led = context.sync(leader, {leader.id: b"all"})
    await led
    context.check("SYNC-13", led, "error")
    await call
    context.check("SYNC-13", call, "error", "assignment")


@assignments.add("SYNC-13")
async def leader_that_assigns_nothing(context: ScenarioContext) -> None:
    """A leader that thought of nobody, not even of itself."""
    (a,) = await context.form_generation(context.member("A"))
    call = context.sync(a)
    await call
    context.check("SYNC-13", call, "error", "assignment")


@assignments.add("SYNC-14")
async def assignment_for_a_stranger(context: ScenarioContext) -> None:
    """An assignment for somebody who is not there makes nobody a member."""
    (a,) = await context.form_generation(context.member("A"))
    call = context.sync(a, {a.id: b"mine", "nobody": b"theirs"})
    await call
    context.check("SYNC-14", call, "error", "assignment")
    stranger = context.sync(a, member_id="nobody")
    await stranger
    context.check("SYNC-14", stranger)


@assignments.add("SYNC-15")
async def assignments_of_a_follower(context: ScenarioContext) -> None:
    """A follower brings assignments too; the leader's are those that count."""
    leader, follower = await context.form_generation(context.member("A"), context.member("B"))
    call = context.sync(follower, {leader.id: b"wrong", follower.id: b"wrong"})
    await context.sleep(2 * context.short_pause)
    led = context.sync(leader, {leader.id: b"right", follower.id: b"right"})
    for each in (led, call):
        await each
    context.check("SYNC-15", call, "assignment", "time")
    context.check("SYNC-15", led, "assignment")


@assignments.add("SYNC-16")
async def sync_in_stable(context: ScenarioContext) -> None:
    """The stored assignment, as often as it is asked for, by leader and follower."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    for member in (b, b, b, a):
        call = context.sync(member)
        await call
        context.check("SYNC-16", call, "error", "assignment")


@assignments.add("SYNC-16")
async def sync_after_an_unchanged_rejoin(context: ScenarioContext) -> None:
    """A follower that joined again and changed nothing gets the share that it has."""
    _, follower = await context.form_stable_group(context.member("A"), context.member("B"))
    await context.join(follower)
    call = context.sync(follower)
    await call
    context.check("SYNC-16", call, "error", "assignment")


@assignments.add("SYNC-17")
async def leader_assigns_again(context: ScenarioContext) -> None:
    """In Stable the leader's other assignments change nothing, for itself or for others."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    for call in (context.sync(a, {a.id: b"other", b.id: b"other"}), context.sync(b)):
        await call
        context.check("SYNC-17", call, "error", "assignment")


@assignments.add("SYNC-19")
async def interrupted_assignment_is_forgotten(context: ScenarioContext) -> None:
    """What the previous round gave, and what a follower brought before, does not show in a round without any."""
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    await context.rebalance(a, b)
    waiting = context.sync(b, {a.id: b"stale", b.id: b"stale"})
    await context.sleep(context.short_pause)
    rejoined = context.join_with_new_metadata(a)
    await waiting
    await context.join(b)
    await rejoined
    for member in (a, b):
        call = context.sync(member)
        await call
        context.check("SYNC-19", call, "assignment")


@assignments.add("SYNC-19", "GEN-16")
async def overtaken_assignment_is_forgotten(context: ScenarioContext) -> None:
    """A round begins while an assignment is still being stored; those who wait in that round do not get it."""
    leader, follower = await context.form_generation(context.member("A"), context.member("B"))
    overtaken = context.sync(leader, {leader.id: b"stale", follower.id: b"stale"})
    rejoined = context.join_with_new_metadata(follower)
    await overtaken
    await context.join(leader)
    await rejoined
    waiting = context.sync(follower)
    await context.sleep(3 * context.short_pause)
    settled = context.sync(leader, {leader.id: b"fresh", follower.id: b"fresh"})
    await waiting
    context.check("SYNC-19", waiting, "error", "assignment", "time")
    context.check("GEN-16", waiting, "assignment", "time")
    await settled


@assignments.add("SYNC-21")
async def protocol_in_the_answer(context: ScenarioContext) -> None:
    """From version 5 on a success says which protocol it is about."""
    version = context.highest_version("SyncGroup", 5)
    (a,) = await context.form_generation(context.member("A", "p", protocol_type="worker"))
    call = context.sync(a, {a.id: b"plan"}, version=version)
    await call
    context.check("SYNC-21", call, "protocol", "protocol_type")


@assignments.add("SYNC-25", needs=("restart",))
async def assignment_survives_a_restart(context: ScenarioContext) -> None:
    """A success was a promise: the bytes are there after the coordinator was killed."""
    (a,) = await context.form_stable_group(context.member("A", session_timeout=context.long_session_timeout))
    await context.restart()
    call = context.sync(a)
    await call
    context.check("SYNC-25", call, "error", "assignment")
