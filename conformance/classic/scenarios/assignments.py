"""SyncGroup: the assignments that members receive."""

from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily

assignments = ScenarioFamily()


@assignments.add("SYNC-12", smoke=True)
async def assignments_are_handed_on(group: ScenarioContext) -> None:
    """Each member receives the bytes that the leader assigned to it, unchanged."""
    leader, *followers = await group.form_generation(*(group.member(label) for label in "ABC"))

    plan = {leader.id: bytes(range(256)), followers[0].id: b"\0", followers[1].id: b"two"}
    calls = [group.sync(leader, plan), *(group.sync(follower) for follower in followers)]

    for call in calls:
        await group.check("SYNC-12", call, fields=("error", "assignment"))


@assignments.add("SYNC-13")
async def left_out_member_gets_nothing(group: ScenarioContext) -> None:
    """A parked follower without an assignment by the leader receives an empty one."""
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
    """A leader that assigns nothing, not even to itself, receives an empty assignment."""
    (a,) = await group.form_generation(group.member("A"))
    await group.check("SYNC-13", group.sync(a), fields=("error", "assignment"))


@assignments.add("SYNC-14")
async def assignment_for_a_stranger(group: ScenarioContext) -> None:
    """An assignment for an unknown id is accepted, and does not make that id a member."""
    (a,) = await group.form_generation(group.member("A"))
    await group.check("SYNC-14", group.sync(a, {a.id: b"mine", "nobody": b"theirs"}), fields=("error", "assignment"))
    await group.check("SYNC-14", group.sync(a, member_id="nobody"))


@assignments.add("SYNC-15")
async def assignments_of_a_follower(group: ScenarioContext) -> None:
    """A follower sends assignments too; only those of the leader count."""
    leader, follower = await group.form_generation(group.member("A"), group.member("B"))

    call = group.sync(follower, {leader.id: b"wrong", follower.id: b"wrong"})
    await group.sleep(2 * group.short_pause)
    led = group.sync(leader, {leader.id: b"right", follower.id: b"right"})
    await led

    await group.check("SYNC-15", call, fields=("assignment", "time"))
    await group.check("SYNC-15", led, fields="assignment")


@assignments.add("SYNC-16")
async def sync_in_stable(group: ScenarioContext) -> None:
    """In Stable, each SyncGroup of leader or follower returns the stored assignment."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    for member in (b, b, b, a):
        await group.check("SYNC-16", group.sync(member), fields=("error", "assignment"))


@assignments.add("SYNC-16")
async def sync_after_an_unchanged_rejoin(group: ScenarioContext) -> None:
    """A follower that rejoins unchanged receives its stored assignment."""
    _, follower = await group.form_stable_group(group.member("A"), group.member("B"))
    generation = follower.generation
    await group.join(follower)
    group.require(follower.generation == generation, "the unchanged rejoin began a rebalance")
    await group.check("SYNC-16", group.sync(follower), fields=("error", "assignment"))


@assignments.add("SYNC-17")
async def leader_assigns_again(group: ScenarioContext) -> None:
    """In Stable, other assignments by the leader change nothing, for itself or for others."""
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    for call in (group.sync(a, {a.id: b"other", b.id: b"other"}), group.sync(b)):
        await group.check("SYNC-17", call, fields=("error", "assignment"))


@assignments.add("SYNC-19")
async def interrupted_assignment_is_forgotten(group: ScenarioContext) -> None:
    """After a rebalance without assignments, no member receives an assignment of the one before."""
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
    """A rebalance starts while an assignment is being stored; its members do not receive that assignment."""
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
    """From version 5 on, a success names protocol and protocol type."""
    version = group.highest_version("SyncGroup", 5)
    (a,) = await group.form_generation(group.member("A", "p", protocol_type="worker"))
    await group.check("SYNC-21", group.sync(a, {a.id: b"plan"}, version=version), fields=("protocol", "protocol_type"))


@assignments.add("SYNC-25", needs=("restart",))
async def assignment_survives_a_restart(group: ScenarioContext) -> None:
    """A restart does not lose an assignment that was acknowledged."""
    (a,) = await group.form_stable_group(group.member("A", session_timeout=group.long_session_timeout))
    await group.restart()
    await group.check("SYNC-25", group.sync(a), fields=("error", "assignment"))
