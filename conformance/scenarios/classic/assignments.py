"""SyncGroup: what the members are given."""

from fencepost.conformance.scenario.context import Stage
from fencepost.conformance.scenario.scenario import Collection

assignments = Collection()

"""What a coordinator may say while it loads; 27 is the older one's."""


@assignments.add("SYNC-12", smoke=True)
async def assignments_are_handed_on(stage: Stage) -> None:
    """Everyone gets the bytes meant for it, none changed."""
    leader, *followers = await stage.completing(*(stage.member(label) for label in "ABC"))
    plan = {leader.id: bytes(range(256)), followers[0].id: b"\0", followers[1].id: b"two"}
    calls = [stage.sync(leader, plan), *(stage.sync(follower) for follower in followers)]
    for call in calls:
        await call
        stage.shows("SYNC-12", call, "error", "assignment")


@assignments.add("SYNC-13")
async def left_out_member_gets_nothing(stage: Stage) -> None:
    """A follower that the leader did not think of, waiting already."""
    long = stage.session + 2 * stage.grace
    leader, follower = await stage.completing(stage.member("A", session=long), stage.member("B", session=long))
    call = stage.sync(follower)
    await stage.sleep(stage.step)
    led = stage.sync(leader, {leader.id: b"all"})
    await led
    stage.shows("SYNC-13", led, "error")
    await call
    stage.shows("SYNC-13", call, "error", "assignment")


@assignments.add("SYNC-13")
async def leader_that_assigns_nothing(stage: Stage) -> None:
    """A leader that thought of nobody, not even of itself."""
    (a,) = await stage.completing(stage.member("A"))
    call = stage.sync(a)
    await call
    stage.shows("SYNC-13", call, "error", "assignment")


@assignments.add("SYNC-14")
async def assignment_for_a_stranger(stage: Stage) -> None:
    """An assignment for somebody who is not there makes nobody a member."""
    (a,) = await stage.completing(stage.member("A"))
    call = stage.sync(a, {a.id: b"mine", "nobody": b"theirs"})
    await call
    stage.shows("SYNC-14", call, "error", "assignment")
    stranger = stage.sync(a, member_id="nobody")
    await stranger
    stage.shows("SYNC-14", stranger)


@assignments.add("SYNC-15")
async def assignments_of_a_follower(stage: Stage) -> None:
    """A follower brings assignments too; the leader's are those that count."""
    leader, follower = await stage.completing(stage.member("A"), stage.member("B"))
    call = stage.sync(follower, {leader.id: b"wrong", follower.id: b"wrong"})
    await stage.sleep(2 * stage.step)
    led = stage.sync(leader, {leader.id: b"right", follower.id: b"right"})
    for each in (led, call):
        await each
    stage.shows("SYNC-15", call, "assignment", "time")
    stage.shows("SYNC-15", led, "assignment")


@assignments.add("SYNC-16")
async def sync_in_stable(stage: Stage) -> None:
    """The stored assignment, as often as it is asked for, by leader and follower."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    for member in (b, b, b, a):
        call = stage.sync(member)
        await call
        stage.shows("SYNC-16", call, "error", "assignment")


@assignments.add("SYNC-16")
async def sync_after_an_unchanged_rejoin(stage: Stage) -> None:
    """A follower that joined again and changed nothing gets the share that it has."""
    _, follower = await stage.stable(stage.member("A"), stage.member("B"))
    await stage.join(follower)
    call = stage.sync(follower)
    await call
    stage.shows("SYNC-16", call, "error", "assignment")


@assignments.add("SYNC-17")
async def leader_assigns_again(stage: Stage) -> None:
    """In Stable the leader's other assignments change nothing, for itself or for others."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    for call in (stage.sync(a, {a.id: b"other", b.id: b"other"}), stage.sync(b)):
        await call
        stage.shows("SYNC-17", call, "error", "assignment")


@assignments.add("SYNC-19")
async def interrupted_assignment_is_forgotten(stage: Stage) -> None:
    """What the previous round gave, and what a follower brought before, does not show in a round without any."""
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    await stage.regroup(a, b)
    waiting = stage.sync(b, {a.id: b"stale", b.id: b"stale"})
    await stage.sleep(stage.step)
    rejoined = stage.join_changed(a)
    await waiting
    await stage.join(b)
    await rejoined
    for member in (a, b):
        call = stage.sync(member)
        await call
        stage.shows("SYNC-19", call, "assignment")


@assignments.add("SYNC-19", "GEN-16")
async def overtaken_assignment_is_forgotten(stage: Stage) -> None:
    """A round begins while an assignment is still being stored; those who wait in that round do not get it."""
    leader, follower = await stage.completing(stage.member("A"), stage.member("B"))
    overtaken = stage.sync(leader, {leader.id: b"stale", follower.id: b"stale"})
    rejoined = stage.join_changed(follower)
    await overtaken
    await stage.join(leader)
    await rejoined
    waiting = stage.sync(follower)
    await stage.sleep(3 * stage.step)
    settled = stage.sync(leader, {leader.id: b"fresh", follower.id: b"fresh"})
    await waiting
    stage.shows("SYNC-19", waiting, "error", "assignment", "time")
    stage.shows("GEN-16", waiting, "assignment", "time")
    await settled


@assignments.add("SYNC-21")
async def protocol_in_the_answer(stage: Stage) -> None:
    """From version 5 on a success says which protocol it is about."""
    version = stage.version("SyncGroup", 5)
    (a,) = await stage.completing(stage.member("A", "p", protocol_type="worker"))
    call = stage.sync(a, {a.id: b"plan"}, version=version)
    await call
    stage.shows("SYNC-21", call, "protocol", "protocol_type")


@assignments.add("SYNC-25", needs=("restart",))
async def assignment_survives_a_restart(stage: Stage) -> None:
    """A success was a promise: the bytes are there after the coordinator was killed."""
    (a,) = await stage.stable(stage.member("A", session=stage.long_session))
    await stage.restart()
    call = stage.sync(a)
    await call
    stage.shows("SYNC-25", call, "error", "assignment")
