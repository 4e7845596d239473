"""JoinGroup requests that are refused: before the group is looked up, by the state of the group, and in which shape."""

from typing import Any

from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Unsupported

admission = ScenarioFamily()

INT32_MAX = 2**31 - 1


@admission.add("JOIN-01")
async def join_without_a_group(group: ScenarioContext) -> None:
    """A JoinGroup with the empty group id is refused; the response echoes the member id."""
    await group.check(
        "JOIN-01", group.join(group.member("A"), group_id="", member_id="nobody"), fields=("error", "member")
    )


@admission.add("JOIN-02", smoke=True)
async def session_timeout_bounds(group: ScenarioContext) -> None:
    """Session timeouts at both bounds are accepted; one millisecond beyond either is refused."""
    shortest, longest = group.settings.min_session_timeout, group.settings.max_session_timeout
    for session in (shortest - 1, shortest, longest, longest + 1):
        if session <= INT32_MAX:
            await group.check("JOIN-02", group.join(group.member("A"), session_timeout_ms=session))


@admission.add("JOIN-03")
async def session_timeout_without_a_group(group: ScenarioContext) -> None:
    """A session timeout out of bounds is refused even if the group does not exist, and creates no group."""
    await group.check(
        "JOIN-03", group.join(group.member("A"), session_timeout_ms=group.settings.min_session_timeout - 1)
    )
    await group.check("JOIN-03", group.describe_groups(), fields="state")


@admission.add("JOIN-04")
async def rebalance_timeout_is_free(group: ScenarioContext) -> None:
    """Rebalance timeouts far outside the bounds of the session timeout are accepted."""
    longer = min(group.settings.max_session_timeout * 2, INT32_MAX)
    for rebalance in (1, longer):
        member = group.member("A", rebalance_timeout=rebalance)
        await group.check("JOIN-04", await group.join_new(member))
        await group.leave(member)


@admission.add("JOIN-05")
async def id_for_an_unknown_group(group: ScenarioContext) -> None:
    """An unknown group refuses every member id, with and without an instance id, and is not created."""
    member = group.member("A")
    for instance in (None, "instance"):
        await group.check(
            "JOIN-05", group.join(member, member_id="nobody", group_instance_id=instance), fields=("error", "member")
        )
    await group.check("JOIN-05", group.describe_groups(), fields="state")


@admission.add("JOIN-06")
async def joining_makes_the_group(group: ScenarioContext) -> None:
    """The first JoinGroup creates the group."""
    (member,) = await group.form_generation(group.member("A"))
    await group.check("JOIN-06", group.heartbeat(member))


@admission.add("JOIN-15")
async def no_protocol_type(group: ScenarioContext) -> None:
    """An empty protocol type does not create a group."""
    call = group.join(group.member("A"), protocol_type="")
    group.add_check("JOIN-15", call)
    await call


@admission.add("JOIN-15")
async def nothing_to_offer(group: ScenarioContext) -> None:
    """An empty list of protocols does not create a group."""
    call = group.join(group.member("A"), protocols=[])
    group.add_check("JOIN-15", call)
    await call


@admission.add("JOIN-16")
async def foreign_protocol_type(group: ScenarioContext) -> None:
    """A consumer group refuses a member with another protocol type."""
    await group.form_stable_group(group.member("A"))
    await group.check("JOIN-16", group.join(group.member("B"), protocol_type="connect"))


@admission.add("JOIN-17")
async def no_common_protocol(group: ScenarioContext) -> None:
    """A newcomer is refused if its only protocol is supported by one member but not by the other."""
    await group.form_stable_group(group.member("A", "p", "q"), group.member("B", "p"))
    await group.check("JOIN-17", group.join(group.member("C", "q")))


@admission.add("JOIN-17")
async def nothing_in_common(group: ScenarioContext) -> None:
    """A newcomer is refused if it does not support the protocol of the only member, which is rejoining."""
    (a,) = await group.form_stable_group(group.member("A", "p"))

    rejoined, call = group.join(a), group.join(group.member("B", "q"))
    group.add_check("JOIN-17", call)
    await call
    await rejoined


@admission.add("JOIN-18")
async def one_common_protocol(group: ScenarioContext) -> None:
    """A newcomer is accepted if its list of protocols shares one name with the list of the member."""
    (a,) = await group.form_stable_group(group.member("A", "p", "q"))

    newcomer = await group.join_new(group.member("B", "q", "r"))
    await group.sleep(group.short_pause)
    await group.join(a)

    await group.check("JOIN-18", newcomer)


@admission.add("JOIN-19")
async def protocols_before_membership(group: ScenarioContext) -> None:
    """An unknown member id with a foreign protocol type gets the error of the protocol, not that of the id."""
    await group.form_stable_group(group.member("A"))
    await group.check("JOIN-19", group.join(group.member("B"), member_id="nobody", protocol_type="connect"))


@admission.add("JOIN-20")
async def lone_member_changes_its_list(group: ScenarioContext) -> None:
    """The stored list of the sender counts among those of all members, even if the sender is the only one."""
    (a,) = await group.form_stable_group(group.member("A", "p"))
    await group.check("JOIN-20", group.join(a, protocols=[{"name": "q", "metadata": group.metadata("A")}]))


@admission.add("JOIN-21")
async def refusals_change_nothing(group: ScenarioContext) -> None:
    """After a refusal, for whatever reason, the group stays Stable in its generation."""
    (a,) = await group.form_stable_group(group.member("A", "p"))
    newcomer = group.member("B", "p")
    refusable: list[dict[str, Any]] = [
        {"protocol_type": "connect"},
        {"protocols": [{"name": "q", "metadata": b""}]},
        {"member_id": "nobody"},
    ]
    if group.description.knows("min_session_timeout"):
        refusable.append({"session_timeout_ms": group.settings.min_session_timeout - 1})
    for changes in refusable:
        refused = await group.join(newcomer, **changes)
        await group.check("JOIN-21", group.heartbeat(a), reached=refused["error_code"] != 0)


@admission.add("JOIN-22")
async def emptied_group_changes_type(group: ScenarioContext) -> None:
    """A group that all members have left accepts another protocol type."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    newcomer = group.member("B", protocol_type="connect")
    await group.check("JOIN-22", await group.check_join_new("JOIN-22", newcomer))


@admission.add("JOIN-23")
async def unknown_id(group: ScenarioContext) -> None:
    """A Stable group refuses a member id that was never issued."""
    await group.form_stable_group(group.member("A"))
    await group.check("JOIN-23", group.join(group.member("B"), member_id="nobody"), fields=("error", "member"))


@admission.add("JOIN-53")
async def former_member_of_an_empty_group(group: ScenarioContext) -> None:
    """The id of the last member is unknown after that member has left."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    await group.check("JOIN-53", group.join(a))


@admission.add("JOIN-41")
async def shape_of_a_refusal(group: ScenarioContext) -> None:
    """A refusal carries no protocol name and no generation, in old versions and in new ones."""
    await group.form_stable_group(group.member("A"))

    seen = 0
    for lowest, highest in ((0, 6), (7, 99)):
        try:
            version = group.highest_version("JoinGroup", lowest, highest)
        except Unsupported:
            continue
        await group.check(
            "JOIN-41",
            group.join(group.member("B"), member_id="nobody", version=version),
            fields=("protocol", "generation"),
        )
        seen += 1
    group.require(seen > 0, "no version of JoinGroup")


@admission.add("JOIN-40")
async def protocol_type_in_answers(group: ScenarioContext) -> None:
    """From version 7 on, a success carries the protocol type, and a refusal does not."""
    version = group.highest_version("JoinGroup", 7)
    await group.check(
        "JOIN-40",
        await group.join_new(group.member("A", protocol_type="worker"), version=version),
        fields="protocol_type",
    )
    await group.check(
        "JOIN-40",
        group.join(group.member("B", protocol_type="worker"), member_id="nobody", version=version),
        fields="protocol_type",
    )


@admission.add("JOIN-43")
async def reason_is_ignored(group: ScenarioContext) -> None:
    """A missing, an empty and a very long reason make no difference."""
    version = group.highest_version("JoinGroup", 8)
    (a,) = await group.form_stable_group(group.member("A"))
    for reason in (None, "", "because " * 1_250):
        await group.check("JOIN-43", group.join(a, reason=reason, version=version))
