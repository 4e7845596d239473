"""SyncGroup: what the members are given."""

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

assignments = ScenarioFamily()


@assignments.add("SYNC-12", smoke=True)
async def assignments_are_handed_on(group: ScenarioContext) -> None:
    """Everyone gets the bytes meant for it, none changed."""
    leader, *followers = await group.form_generation(*(group.member(label) for label in "ABC"))
    plan = {leader.id: bytes(range(256)), followers[0].id: b"\0", followers[1].id: b"two"}
    calls = [group.sync(leader, plan), *(group.sync(follower) for follower in followers)]
    for call in calls:
        await group.check("SYNC-12", call, fields=("error", "assignment"))


@assignments.add("SYNC-13")
async def left_out_member_gets_nothing(group: ScenarioContext) -> None:
    """A follower that the leader did not think of, waiting already."""
    long = group.session_timeout + 2 * group.grace
    leader, follower = await group.form_generation(
        group.member("A", session_timeout=long), group.member("B", session_timeout=long)
    )
    call = group.sync(follower)
    await group.sleep(group.short_pause)
    await group.check("SYNC-13", group.sync(leader, {leader.id: b"all"}), fields="error")
    await group.check("SYNC-13", call, fields=("error", "assignment"))


@assignments.add("SYNC-13")
async def leader_that_assigns_nothing(group: ScenarioContext) -> None:
    """A leader that thought of nobody, not even of itself."""
    (a,) = await group.form_generation(group.member("A"))
    await group.check("SYNC-13", group.sync(a), fields=("error", "assignment"))


@assignments.add("SYNC-14")
async def assignment_for_a_stranger(group: ScenarioContext) -> None:
    """An assignment for somebody who is not there makes nobody a member."""
    (a,) = await group.form_generation(group.member("A"))
    await group.check("SYNC-14", group.sync(a, {a.id: b"mine", "nobody": b"theirs"}), fields=("error", "assignment"))
    await group.check("SYNC-14", group.sync(a, member_id="nobody"))


@assignments.add("SYNC-15")
async def assignments_of_a_follower(group: ScenarioContext) -> None:
    """A follower brings assignments too; the leader's are those that count."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))
    call = group.sync(follower, {leader.id: b"wrong", follower.id: b"wrong"})
    await group.sleep(2 * group.short_pause)
    led = group.sync(leader, {leader.id: b"right", follower.id: b"right"})
    await led
    await group.check("SYNC-15", call, fields=("assignment", "time"))
    await group.check("SYNC-15", led, fields="assignment")


@assignments.add("SYNC-16")
async def sync_in_stable(group: ScenarioContext) -> None:
    """The stored assignment, as often as it is asked for, by leader and follower."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    for member in (b, b, b, a):
        await group.check("SYNC-16", group.sync(member), fields=("error", "assignment"))


@assignments.add("SYNC-16")
async def sync_after_an_unchanged_rejoin(group: ScenarioContext) -> None:
    """A follower that joined again and changed nothing gets the share that it has."""
    _, follower = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.join(follower)
    await group.check("SYNC-16", group.sync(follower), fields=("error", "assignment"))


@assignments.add("SYNC-17")
async def leader_assigns_again(group: ScenarioContext) -> None:
    """In Stable the leader's other assignments change nothing, for itself or for others."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    for call in (group.sync(a, {a.id: b"other", b.id: b"other"}), group.sync(b)):
        await group.check("SYNC-17", call, fields=("error", "assignment"))


@assignments.add("SYNC-19")
async def interrupted_assignment_is_forgotten(group: ScenarioContext) -> None:
    """What the previous round gave, and what a follower brought before, does not show in a round without any."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.rebalance(a, b)
    waiting = group.sync(b, {a.id: b"stale", b.id: b"stale"})
    await group.sleep(group.short_pause)
    rejoined = group.join_with_new_metadata(a)
    await waiting
    await group.join(b)
    await rejoined
    for member in (a, b):
        await group.check("SYNC-19", group.sync(member), fields="assignment")


@assignments.add("SYNC-19", "GEN-16")
async def overtaken_assignment_is_forgotten(group: ScenarioContext) -> None:
    """A round begins while an assignment is still being stored; those who wait in that round do not get it."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))
    overtaken = group.sync(leader, {leader.id: b"stale", follower.id: b"stale"})
    rejoined = group.join_with_new_metadata(follower)
    await overtaken
    await group.join(leader)
    await rejoined
    waiting = group.sync(follower)
    await group.sleep(3 * group.short_pause)
    settled = group.sync(leader, {leader.id: b"fresh", follower.id: b"fresh"})
    await group.check("SYNC-19", waiting, fields=("error", "assignment", "time"))
    await group.check("GEN-16", waiting, fields=("assignment", "time"))
    await settled


@assignments.add("SYNC-21")
async def protocol_in_the_answer(group: ScenarioContext) -> None:
    """From version 5 on a success says which protocol it is about."""
    version = group.highest_version("SyncGroup", 5)
    (a,) = await group.form_generation(group.member("A", "p", protocol_type="worker"))
    await group.check("SYNC-21", group.sync(a, {a.id: b"plan"}, version=version), fields=("protocol", "protocol_type"))


@assignments.add("SYNC-25", needs=("restart",))
async def assignment_survives_a_restart(group: ScenarioContext) -> None:
    """A success was a promise: the bytes are there after the coordinator was killed."""
    (a,) = await group.form_stable_group(group.member("A", session_timeout=group.long_session_timeout))
    await group.restart()
    await group.check("SYNC-25", group.sync(a), fields=("error", "assignment"))
