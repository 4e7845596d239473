"""LeaveGroup: which members leave, and its effect on the others."""

from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Member
from fencepost.model.errors import Error
from fencepost.traces.events import Body

leaves = ScenarioFamily()
BATCH_VERSION = 3
"""The first version with a list of members."""


def leave_entry(member_id: str, instance: str | None = None, reason: str | None = None) -> Body:
    """One entry in the list of members."""
    return {"member_id": member_id, "group_instance_id": instance, "reason": reason}


async def form_pair(group: ScenarioContext) -> tuple[Member, Member]:
    """Form a Stable group of a leader and a follower."""
    leader, follower = await group.form_stable_group(group.member("A"), group.member("B"))
    return leader, follower


@leaves.add("LEAVE-01")
async def leave_without_a_group(group: ScenarioContext) -> None:
    """A LeaveGroup with the empty group id is refused."""
    version = group.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    await group.check_versions(
        "LEAVE-01", group.leave(leave_entry("nobody"), leave_entry("nobody-else"), version=version, group_id="")
    )


@leaves.add("LEAVE-02")
async def leave_an_unknown_group(group: ScenarioContext) -> None:
    """An unknown group refuses each entry."""
    await group.check_versions(
        "LEAVE-02",
        group.leave(
            leave_entry("nobody"), leave_entry(""), version=group.highest_version("LeaveGroup", at_least=BATCH_VERSION)
        ),
        since=BATCH_VERSION,
    )


@leaves.add("LEAVE-02")
async def leave_an_unknown_group_in_old_versions(group: ScenarioContext) -> None:
    """Before version 3, the error of the only entry is that of the response."""
    await group.check_versions(
        "LEAVE-02",
        group.leave(leave_entry("nobody"), version=group.highest_version("LeaveGroup", at_most=BATCH_VERSION - 1)),
        until=BATCH_VERSION - 1,
    )


@leaves.add("LEAVE-03", "LEAVE-13", "LEAVE-16")
async def leave_of_nobody(group: ScenarioContext) -> None:
    """An unknown id, an empty id and an empty list leave the member where it is."""
    version = group.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    (a,) = await group.form_stable_group(group.member("A"))

    batches: tuple[tuple[str, tuple[Body, ...]], ...] = (
        ("LEAVE-03", (leave_entry("nobody"),)),
        ("LEAVE-13", (leave_entry(""),)),
        ("LEAVE-16", ()),
    )
    for requirement, entries in batches:
        await group.check_versions(
            requirement, group.leave(*entries, version=version), since=0 if entries else BATCH_VERSION
        )
        await group.check_versions(requirement, group.heartbeat(a))


@leaves.add("LEAVE-04", "LEAVE-05", smoke=True)
async def leave_in_stable(group: ScenarioContext) -> None:
    """The member is removed at once, and the other has to rejoin."""
    a, b = await form_pair(group)

    await group.check("LEAVE-04", group.leave(b))
    gone, other = group.heartbeat(b), group.heartbeat(a)
    await group.check_versions("LEAVE-04", gone)
    await group.check_versions("LEAVE-05", other)


@leaves.add("LEAVE-05")
async def leave_in_completing(group: ScenarioContext) -> None:
    """A departure in CompletingRebalance begins another join phase."""
    a, b = await group.form_generation(group.member("A"), group.member("B"))
    await group.leave(b)
    await group.check("LEAVE-05", group.heartbeat(a))


@leaves.add("LEAVE-06", smoke=True)
async def last_member_leaves(group: ScenarioContext) -> None:
    """The departure of the last member leaves the group Empty, and raises the generation."""
    (a,) = await group.form_stable_group(group.member("A"))

    before = a.generation
    await group.leave(a)

    await group.check("LEAVE-06", group.describe_groups(), fields="state")
    again = await group.join_new(a)
    await again
    await group.check("LEAVE-06", again, fields="generation", reached=a.generation != before)


@leaves.add("LEAVE-04", "LEAVE-07", "LEAVE-17")
async def leave_completes_the_join_phase(group: ScenarioContext) -> None:
    """The departure of the last absent member completes the join phase; it led, so the other becomes leader."""
    a, b = await form_pair(group)

    changed = (("range", group.metadata("changed")),)
    b.protocols = changed
    parked = group.join(b)
    await group.sleep(group.short_pause)
    is_parked = not parked.done
    await group.check("LEAVE-04", group.leave(a), reached=is_parked)

    await group.check("LEAVE-07", parked, fields=("error", "time", "generation"), reached=is_parked)
    await group.check("LEAVE-17", parked, fields="leader", reached=is_parked)


@leaves.add("LEAVE-08", needs=("initial-delay",))
async def leave_keeps_the_initial_delay(group: ScenarioContext) -> None:
    """A departure during the initial delay does not shorten it."""
    a, b = group.member("A"), group.member("B")
    parked = await group.join_new(a)
    other = await group.join_new(b)
    await group.sleep(min(group.short_pause, group.initial_delay // 4))
    is_parked = not parked.done and not other.done
    await group.leave(b)

    await group.check("LEAVE-08", parked, fields="time", reached=is_parked)


@leaves.add("LEAVE-09")
async def leave_answers_the_parked_join(group: ScenarioContext) -> None:
    """The parked JoinGroup of a member that leaves gets UNKNOWN_MEMBER_ID."""
    a, _ = await form_pair(group)

    parked = group.join(a)
    await group.sleep(group.short_pause)
    is_parked = not parked.done
    await group.leave(a)

    await group.check("LEAVE-09", parked, fields=("error", "member", "time"), reached=is_parked)


@leaves.add("LEAVE-10")
async def pending_id_leaves(group: ScenarioContext) -> None:
    """A member id that was only issued can leave, and is unknown afterwards."""
    a = group.member("A")
    first = group.join(a, version=group.highest_version("JoinGroup", at_least=4))
    group.require((await first)["error_code"] == Error.MEMBER_ID_REQUIRED, "no id was handed out")

    await group.check("LEAVE-10", group.leave(a))
    await group.check("LEAVE-10", group.join(a), fields="error")


@leaves.add("LEAVE-11")
async def batch_goes_on_after_a_failure(group: ScenarioContext) -> None:
    """An unknown id between two members: both leave, and the ids are echoed in order."""
    version = group.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    a, b = await form_pair(group)

    await group.check(
        "LEAVE-11",
        group.leave(b, leave_entry("nobody", "unknown"), a, version=version),
        fields=("error", "entries", "echo"),
    )
    await group.check("LEAVE-11", group.heartbeat(a))


@leaves.add("LEAVE-12")
async def batch_names_a_member_twice(group: ScenarioContext) -> None:
    """A member that is named twice is unknown the second time."""
    version = group.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    (a,) = await group.form_stable_group(group.member("A"))
    await group.check("LEAVE-12", group.leave(a, a, version=version))


@leaves.add("LEAVE-14")
async def removal_by_instance_id(group: ScenarioContext) -> None:
    """The instance id alone is enough to remove a member; the empty member id is echoed."""
    version = group.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    (a,) = await group.form_stable_group(group.member("A", instance="a"))

    await group.check(
        "LEAVE-14", group.leave(leave_entry("", a.instance), version=version), fields=("error", "entries", "echo")
    )
    await group.check("LEAVE-14", group.heartbeat(a))


@leaves.add("LEAVE-15")
async def leave_with_another_instance_id(group: ScenarioContext) -> None:
    """An unknown instance id is refused, and so is one of another member."""
    version = group.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    (a,) = await group.form_stable_group(group.member("A", instance="a"))
    for wrong in (leave_entry(a.id, "unknown"), leave_entry("", "unknown"), leave_entry("nobody", a.instance)):
        await group.check_versions("LEAVE-15", group.leave(wrong, version=version), since=BATCH_VERSION)


@leaves.add("LEAVE-18")
async def leave_with_a_reason(group: ScenarioContext) -> None:
    """Members leave with a missing, an empty and a long reason."""
    version = group.highest_version("LeaveGroup", at_least=5)
    members = [group.member(label) for label in "ABC"]
    await group.form_stable_group(*members)

    for member, reason in zip(members, (None, "", "because " * 1_000), strict=True):
        await group.check("LEAVE-18", group.leave(leave_entry(member.id, None, reason), version=version))
    await group.check("LEAVE-18", group.heartbeat(members[-1]))


@leaves.add("LEAVE-19")
async def leader_leaves_in_completing(group: ScenarioContext) -> None:
    """The parked SyncGroup of a follower gets REBALANCE_IN_PROGRESS when the leader leaves."""
    a, b = await group.form_generation(group.member("A"), group.member("B"))

    parked = group.sync(b)
    await group.sleep(group.short_pause)
    is_parked = not parked.done
    await group.leave(a)

    await group.check("LEAVE-19", parked, reached=is_parked)


@leaves.add("LEAVE-20")
async def static_member_leaves_by_its_id(group: ScenarioContext) -> None:
    """A static member can leave by its member id, without instance id and generation."""
    version = group.highest_version("LeaveGroup", at_most=BATCH_VERSION - 1)
    (a,) = await group.form_stable_group(group.member("A", instance="a"))

    await group.check("LEAVE-20", group.leave(leave_entry(a.id), version=version))
    await group.check("LEAVE-20", group.heartbeat(a))


@leaves.add("LEAVE-21")
async def offsets_outlive_members(group: ScenarioContext) -> None:
    """The offsets of a member stay when it leaves."""
    (a,) = await group.form_stable_group(group.member("A"))

    committed = (await group.commit(a, {0: 7}))["topics"][0]["partitions"][0]["error_code"] == 0
    await group.leave(a)

    await group.check("LEAVE-21", group.fetch(), fields="offset", reached=committed)


@leaves.add("LEAVE-22")
async def batch_empties_the_group(group: ScenarioContext) -> None:
    """All members leave in one request."""
    version = group.highest_version("LeaveGroup", at_least=BATCH_VERSION)
    a, b = await form_pair(group)

    await group.leave(a, b, version=version)
    await group.check("LEAVE-22", group.describe_groups(), fields="state")
