"""LeaveGroup: who is let go, and what the others notice of it."""

from fencepost.conformance.scenario.context import Member, Stage
from fencepost.conformance.scenario.scenario import Collection
from fencepost.traces.events import Body

leaves = Collection()
BATCHED = 3
"""The first version with a list of members."""


def entry(member_id: str, instance: str | None = None, reason: str | None = None) -> Body:
    """One entry of a batch."""
    return {"member_id": member_id, "group_instance_id": instance, "reason": reason}


async def pair(stage: Stage) -> tuple[Member, Member]:
    """A Stable group of leader and follower."""
    leader, follower = await stage.stable(stage.member("A"), stage.member("B"))
    return leader, follower


@leaves.add("LEAVE-01")
async def leave_without_a_group(stage: Stage) -> None:
    """L with the empty group id."""
    version = stage.version("LeaveGroup", at_least=BATCHED)
    call = stage.leave(entry("nobody"), entry("nobody-else"), version=version, group_id="")
    await call
    stage.shows("LEAVE-01", call)


@leaves.add("LEAVE-02")
async def leave_an_unknown_group(stage: Stage) -> None:
    """Every entry is unknown."""
    call = stage.leave(entry("nobody"), entry(""), version=stage.version("LeaveGroup", at_least=BATCHED))
    await call
    stage.shows("LEAVE-02", call)


@leaves.add("LEAVE-02")
async def leave_an_unknown_group_in_old_versions(stage: Stage) -> None:
    """The only entry's error is the answer's."""
    call = stage.leave(entry("nobody"), version=stage.version("LeaveGroup", at_most=BATCHED - 1))
    await call
    stage.shows("LEAVE-02", call)


@leaves.add("LEAVE-03", "LEAVE-13", "LEAVE-16")
async def leave_of_nobody(stage: Stage) -> None:
    """An unknown id, no id at all, nobody at all: the member that is there stays."""
    version = stage.version("LeaveGroup", at_least=BATCHED)
    (a,) = await stage.stable(stage.member("A"))
    batches: tuple[tuple[str, tuple[Body, ...]], ...] = (
        ("LEAVE-03", (entry("nobody"),)),
        ("LEAVE-13", (entry(""),)),
        ("LEAVE-16", ()),
    )
    for requirement, entries in batches:
        call = stage.leave(*entries, version=version)
        await call
        stage.shows(requirement, call)
        unharmed = stage.heartbeat(a)
        await unharmed
        stage.shows(requirement, unharmed)


@leaves.add("LEAVE-04", "LEAVE-05", smoke=True)
async def leave_in_stable(stage: Stage) -> None:
    """The member is gone at once, and the other has to rejoin."""
    a, b = await pair(stage)
    call = stage.leave(b)
    await call
    stage.shows("LEAVE-04", call)
    gone, told = stage.heartbeat(b), stage.heartbeat(a)
    await gone
    await told
    stage.shows("LEAVE-04", gone)
    stage.shows("LEAVE-05", told)


@leaves.add("LEAVE-05")
async def leave_in_completing(stage: Stage) -> None:
    """A round that waits for its leader begins anew."""
    a, b = await stage.completing(stage.member("A"), stage.member("B"))
    await stage.leave(b)
    told = stage.heartbeat(a)
    await told
    stage.shows("LEAVE-05", told)


@leaves.add("LEAVE-06", smoke=True)
async def last_member_leaves(stage: Stage) -> None:
    """The group is Empty, and the departure counted as a generation."""
    (a,) = await stage.stable(stage.member("A"))
    before = a.generation
    await stage.leave(a)
    described = stage.describe()
    await described
    stage.shows("LEAVE-06", described, "state")
    again = await stage.enter(a)
    await again
    stage.shows("LEAVE-06", again, "generation", met=a.generation != before)


@leaves.add("LEAVE-07", "LEAVE-17")
async def leave_completes_the_join_phase(stage: Stage) -> None:
    """The last one waited for leaves; it was the leader, so the other takes over."""
    a, b = await pair(stage)
    changed = (("range", stage.metadata("changed")),)
    b.protocols = changed
    parked = stage.join(b)
    await stage.sleep(stage.step)
    waited = not parked.done
    await stage.leave(a)
    await parked
    stage.shows("LEAVE-07", parked, "error", "time", "generation", met=waited)
    stage.shows("LEAVE-17", parked, "leader", met=waited)


@leaves.add("LEAVE-08", needs=("initial-delay",))
async def leave_keeps_the_initial_delay(stage: Stage) -> None:
    """Of two that wait for the delay one leaves; the other still waits."""
    a, b = stage.member("A"), stage.member("B")
    parked = await stage.enter(a)
    other = await stage.enter(b)
    await stage.sleep(min(stage.step, stage.delay // 4))
    waited = not parked.done and not other.done
    await stage.leave(b)
    await parked
    stage.shows("LEAVE-08", parked, "time", met=waited)


@leaves.add("LEAVE-09")
async def leave_answers_the_parked_join(stage: Stage) -> None:
    """Whoever waits to join and leaves is told that it is unknown."""
    a, _ = await pair(stage)
    parked = stage.join(a)
    await stage.sleep(stage.step)
    waited = not parked.done
    await stage.leave(a)
    await parked
    stage.shows("LEAVE-09", parked, "error", "member", "time", met=waited)


@leaves.add("LEAVE-10")
async def pending_id_leaves(stage: Stage) -> None:
    """An id that was only handed out can be given back."""
    a = stage.member("A")
    first = stage.join(a, version=stage.version("JoinGroup", at_least=4))
    stage.need((await first)["error_code"] == 79, "no id was handed out")
    given_back = stage.leave(a)
    await given_back
    stage.shows("LEAVE-10", given_back)
    again = stage.join(a)
    await again
    stage.shows("LEAVE-10", again, "error")


@leaves.add("LEAVE-11")
async def batch_goes_on_after_a_failure(stage: Stage) -> None:
    """A stranger between two members: both go, ids are echoed in order."""
    version = stage.version("LeaveGroup", at_least=BATCHED)
    a, b = await pair(stage)
    call = stage.leave(b, entry("nobody", "unknown"), a, version=version)
    await call
    stage.shows("LEAVE-11", call, "error", "entries", "echo")
    gone = stage.heartbeat(a)
    await gone
    stage.shows("LEAVE-11", gone)


@leaves.add("LEAVE-12")
async def batch_names_a_member_twice(stage: Stage) -> None:
    """The second time it is unknown."""
    version = stage.version("LeaveGroup", at_least=BATCHED)
    (a,) = await stage.stable(stage.member("A"))
    call = stage.leave(a, a, version=version)
    await call
    stage.shows("LEAVE-12", call)


@leaves.add("LEAVE-14")
async def removal_by_instance_id(stage: Stage) -> None:
    """An administrator needs only the instance id; the empty member id is echoed."""
    version = stage.version("LeaveGroup", at_least=BATCHED)
    (a,) = await stage.stable(stage.member("A", instance="a"))
    call = stage.leave(entry("", a.instance), version=version)
    await call
    stage.shows("LEAVE-14", call, "error", "entries", "echo")
    gone = stage.heartbeat(a)
    await gone
    stage.shows("LEAVE-14", gone)


@leaves.add("LEAVE-15")
async def leave_with_another_instance_id(stage: Stage) -> None:
    """An unknown instance id, and a known one with an id that does not hold it."""
    version = stage.version("LeaveGroup", at_least=BATCHED)
    (a,) = await stage.stable(stage.member("A", instance="a"))
    for wrong in (entry(a.id, "unknown"), entry("", "unknown"), entry("nobody", a.instance)):
        call = stage.leave(wrong, version=version)
        await call
        stage.shows("LEAVE-15", call)


@leaves.add("LEAVE-18")
async def leave_with_a_reason(stage: Stage) -> None:
    """None, empty or long: the member goes."""
    version = stage.version("LeaveGroup", at_least=5)
    members = [stage.member(label) for label in "ABC"]
    await stage.stable(*members)
    for member, reason in zip(members, (None, "", "because " * 1_000), strict=True):
        call = stage.leave(entry(member.id, None, reason), version=version)
        await call
        stage.shows("LEAVE-18", call)
    gone = stage.heartbeat(members[-1])
    await gone
    stage.shows("LEAVE-18", gone)


@leaves.add("LEAVE-19")
async def leader_leaves_in_completing(stage: Stage) -> None:
    """Who waits for its assignment has to rejoin."""
    a, b = await stage.completing(stage.member("A"), stage.member("B"))
    parked = stage.sync(b)
    await stage.sleep(stage.step)
    waited = not parked.done
    await stage.leave(a)
    await parked
    stage.shows("LEAVE-19", parked, met=waited)


@leaves.add("LEAVE-20")
async def static_member_leaves_by_its_id(stage: Stage) -> None:
    """Old versions know no instance ids and need none; no version asks for a generation."""
    version = stage.version("LeaveGroup", at_most=BATCHED - 1)
    (a,) = await stage.stable(stage.member("A", instance="a"))
    call = stage.leave(entry(a.id), version=version)
    await call
    stage.shows("LEAVE-20", call)
    gone = stage.heartbeat(a)
    await gone
    stage.shows("LEAVE-20", gone)


@leaves.add("LEAVE-21")
async def offsets_outlive_members(stage: Stage) -> None:
    """What a member committed is still there when it has left."""
    (a,) = await stage.stable(stage.member("A"))
    committed = (await stage.commit(a, {0: 7}))["topics"][0]["partitions"][0]["error_code"] == 0
    await stage.leave(a)
    fetched = stage.fetch()
    await fetched
    stage.shows("LEAVE-21", fetched, "offset", met=committed)


@leaves.add("LEAVE-22")
async def batch_empties_the_group(stage: Stage) -> None:
    """All leave in one request."""
    version = stage.version("LeaveGroup", at_least=BATCHED)
    a, b = await pair(stage)
    await stage.leave(a, b, version=version)
    described = stage.describe()
    await described
    stage.shows("LEAVE-22", described, "state")
