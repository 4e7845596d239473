"""LeaveGroup: who is let go, and what the others notice of it."""

from fencepost.conformance.scenario.context import Member, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.traces.events import Body

leaves = ScenarioFamily()
BATCH_VERSION = 3
"""The first version with a list of members."""


def leave_entry(member_id: str, instance: str | None = None, reason: str | None = None) -> Body:
    """One entry of a batch."""
    return {"member_id": member_id, "group_instance_id": instance, "reason": reason}


async def form_pair(context: ScenarioContext) -> tuple[Member, Member]:
    """A Stable group of leader and follower."""
    leader, follower = await context.form_stable_group(context.member("A"), context.member("B"))
    return leader, follower


@leaves.add("LEAVE-01")
async def leave_without_a_group(context: ScenarioContext) -> None:
    """L with the empty group id."""
    version = context.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    call = context.leave(leave_entry("nobody"), leave_entry("nobody-else"), version=version, group_id="")
    await call
    context.check("LEAVE-01", call)


@leaves.add("LEAVE-02")
async def leave_an_unknown_group(context: ScenarioContext) -> None:
    """Every entry is unknown."""
    call = context.leave(
        leave_entry("nobody"), leave_entry(""), version=context.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    )
    await call
    context.check("LEAVE-02", call)


@leaves.add("LEAVE-02")
async def leave_an_unknown_group_in_old_versions(context: ScenarioContext) -> None:
    """The only entry's error is the answer's."""
    call = context.leave(
        leave_entry("nobody"), version=context.highest_version("LeaveGroup", at_most=BATCH_VERSION - 1)
    )
    await call
    context.check("LEAVE-02", call)


@leaves.add("LEAVE-03", "LEAVE-13", "LEAVE-16")
async def leave_of_nobody(context: ScenarioContext) -> None:
    """An unknown id, no id at all, nobody at all: the member that is there stays."""
    version = context.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    (a,) = await context.form_stable_group(context.member("A"))
    batches: tuple[tuple[str, tuple[Body, ...]], ...] = (
        ("LEAVE-03", (leave_entry("nobody"),)),
        ("LEAVE-13", (leave_entry(""),)),
        ("LEAVE-16", ()),
    )
    for requirement, entries in batches:
        call = context.leave(*entries, version=version)
        await call
        context.check(requirement, call)
        unharmed = context.heartbeat(a)
        await unharmed
        context.check(requirement, unharmed)


@leaves.add("LEAVE-04", "LEAVE-05", smoke=True)
async def leave_in_stable(context: ScenarioContext) -> None:
    """The member is gone at once, and the other has to rejoin."""
    a, b = await form_pair(context)
    call = context.leave(b)
    await call
    context.check("LEAVE-04", call)
    gone, told = context.heartbeat(b), context.heartbeat(a)
    await gone
    await told
    context.check("LEAVE-04", gone)
    context.check("LEAVE-05", told)


@leaves.add("LEAVE-05")
async def leave_in_completing(context: ScenarioContext) -> None:
    """A round that waits for its leader begins anew."""
    a, b = await context.form_generation(context.member("A"), context.member("B"))
    await context.leave(b)
    told = context.heartbeat(a)
    await told
    context.check("LEAVE-05", told)


@leaves.add("LEAVE-06", smoke=True)
async def last_member_leaves(context: ScenarioContext) -> None:
    """The group is Empty, and the departure counted as a generation."""
    (a,) = await context.form_stable_group(context.member("A"))
    before = a.generation
    await context.leave(a)
    described = context.describe_groups()
    await described
    context.check("LEAVE-06", described, "state")
    again = await context.join_new(a)
    await again
    context.check("LEAVE-06", again, "generation", reached=a.generation != before)


@leaves.add("LEAVE-07", "LEAVE-17")
async def leave_completes_the_join_phase(context: ScenarioContext) -> None:
    """The last one waited for leaves; it was the leader, so the other takes over."""
    a, b = await form_pair(context)
    changed = (("range", context.metadata("changed")),)
    b.protocols = changed
    parked = context.join(b)
    await context.sleep(context.short_pause)
    waited = not parked.done
    await context.leave(a)
    await parked
    context.check("LEAVE-07", parked, "error", "time", "generation", reached=waited)
    context.check("LEAVE-17", parked, "leader", reached=waited)


@leaves.add("LEAVE-08", needs=("initial-delay",))
async def leave_keeps_the_initial_delay(context: ScenarioContext) -> None:
    """Of two that wait for the delay one leaves; the other still waits."""
    a, b = context.member("A"), context.member("B")
    parked = await context.join_new(a)
    other = await context.join_new(b)
    await context.sleep(min(context.short_pause, context.initial_delay // 4))
    waited = not parked.done and not other.done
    await context.leave(b)
    await parked
    context.check("LEAVE-08", parked, "time", reached=waited)


@leaves.add("LEAVE-09")
async def leave_answers_the_parked_join(context: ScenarioContext) -> None:
    """Whoever waits to join and leaves is told that it is unknown."""
    a, _ = await form_pair(context)
    parked = context.join(a)
    await context.sleep(context.short_pause)
    waited = not parked.done
    await context.leave(a)
    await parked
    context.check("LEAVE-09", parked, "error", "member", "time", reached=waited)


@leaves.add("LEAVE-10")
async def pending_id_leaves(context: ScenarioContext) -> None:
    """An id that was only handed out can be given back."""
    a = context.member("A")
    first = context.join(a, version=context.highest_version("JoinGroup", at_least=4))
    context.require((await first)["error_code"] == 79, "no id was handed out")
    given_back = context.leave(a)
    await given_back
    context.check("LEAVE-10", given_back)
    again = context.join(a)
    await again
    context.check("LEAVE-10", again, "error")


@leaves.add("LEAVE-11")
async def batch_goes_on_after_a_failure(context: ScenarioContext) -> None:
    """A stranger between two members: both go, ids are echoed in order."""
    version = context.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    a, b = await form_pair(context)
    call = context.leave(b, leave_entry("nobody", "unknown"), a, version=version)
    await call
    context.check("LEAVE-11", call, "error", "entries", "echo")
    gone = context.heartbeat(a)
    await gone
    context.check("LEAVE-11", gone)


@leaves.add("LEAVE-12")
async def batch_names_a_member_twice(context: ScenarioContext) -> None:
    """The second time it is unknown."""
    version = context.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    (a,) = await context.form_stable_group(context.member("A"))
    call = context.leave(a, a, version=version)
    await call
    context.check("LEAVE-12", call)


@leaves.add("LEAVE-14")
async def removal_by_instance_id(context: ScenarioContext) -> None:
    """An administrator needs only the instance id; the empty member id is echoed."""
    version = context.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    (a,) = await context.form_stable_group(context.member("A", instance="a"))
    call = context.leave(leave_entry("", a.instance), version=version)
    await call
    context.check("LEAVE-14", call, "error", "entries", "echo")
    gone = context.heartbeat(a)
    await gone
    context.check("LEAVE-14", gone)


@leaves.add("LEAVE-15")
async def leave_with_another_instance_id(context: ScenarioContext) -> None:
    """An unknown instance id, and a known one with an id that does not hold it."""
    version = context.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    (a,) = await context.form_stable_group(context.member("A", instance="a"))
    for wrong in (leave_entry(a.id, "unknown"), leave_entry("", "unknown"), leave_entry("nobody", a.instance)):
        call = context.leave(wrong, version=version)
        await call
        context.check("LEAVE-15", call)


@leaves.add("LEAVE-18")
async def leave_with_a_reason(context: ScenarioContext) -> None:
    """None, empty or long: the member goes."""
    version = context.highest_version("LeaveGroup", at_least=5)
    members = [context.member(label) for label in "ABC"]
    await context.form_stable_group(*members)
    for member, reason in zip(members, (None, "", "because " * 1_000), strict=True):
        call = context.leave(leave_entry(member.id, None, reason), version=version)
        await call
        context.check("LEAVE-18", call)
    gone = context.heartbeat(members[-1])
    await gone
    context.check("LEAVE-18", gone)


@leaves.add("LEAVE-19")
async def leader_leaves_in_completing(context: ScenarioContext) -> None:
    """Who waits for its assignment has to rejoin."""
    a, b = await context.form_generation(context.member("A"), context.member("B"))
    parked = context.sync(b)
    await context.sleep(context.short_pause)
    waited = not parked.done
    await context.leave(a)
    await parked
    context.check("LEAVE-19", parked, reached=waited)


@leaves.add("LEAVE-20")
async def static_member_leaves_by_its_id(context: ScenarioContext) -> None:
    """Old versions know no instance ids and need none; no version asks for a generation."""
    version = context.highest_version("LeaveGroup", at_most=BATCH_VERSION - 1)
    (a,) = await context.form_stable_group(context.member("A", instance="a"))
    call = context.leave(leave_entry(a.id), version=version)
    await call
    context.check("LEAVE-20", call)
    gone = context.heartbeat(a)
    await gone
    context.check("LEAVE-20", gone)


@leaves.add("LEAVE-21")
async def offsets_outlive_members(context: ScenarioContext) -> None:
    """What a member committed is still there when it has left."""
    (a,) = await context.form_stable_group(context.member("A"))
    committed = (await context.commit(a, {0: 7}))["topics"][0]["partitions"][0]["error_code"] == 0
    await context.leave(a)
    fetched = context.fetch()
    await fetched
    context.check("LEAVE-21", fetched, "offset", reached=committed)


@leaves.add("LEAVE-22")
async def batch_empties_the_group(context: ScenarioContext) -> None:
    """All leave in one request."""
    version = context.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    a, b = await form_pair(context)
    await context.leave(a, b, version=version)
    described = context.describe_groups()
    await described
    context.check("LEAVE-22", described, "state")
