"""JoinGroup: requests that are refused, and member ids that are issued, used and expire (KIP-394)."""

from typing import Any

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Member, Unsupported
from fencepost.model.errors import Error

admission = ScenarioFamily()

INT32_MAX = 2**31 - 1


@admission.add("JOIN-01")
async def join_without_a_group(group: ScenarioContext) -> None:
    """A JoinGroup with the empty group id is refused; the response echoes the member id."""
    await group.check_versions(
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
    await group.check_versions(
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
        await group.check_versions(
            "JOIN-05",
            group.join(member, member_id="nobody", group_instance_id=instance),
            fields=("error", "member"),
            since=0 if instance is None else 5,
        )
    await group.check_versions("JOIN-05", group.describe_groups(), fields="state")


@admission.add("JOIN-06")
async def joining_makes_the_group(group: ScenarioContext) -> None:
    """The first JoinGroup creates the group."""
    (member,) = await group.form_generation(group.member("A"))
    await group.check("JOIN-06", group.heartbeat(member))


@admission.add("JOIN-15")
async def no_protocol_type(group: ScenarioContext) -> None:
    """An empty protocol type does not create a group."""
    await group.check_versions("JOIN-15", group.join(group.member("A"), protocol_type=""))


@admission.add("JOIN-15")
async def nothing_to_offer(group: ScenarioContext) -> None:
    """An empty list of protocols does not create a group."""
    await group.check_versions("JOIN-15", group.join(group.member("A"), protocols=[]))


@admission.add("JOIN-16")
async def foreign_protocol_type(group: ScenarioContext) -> None:
    """A consumer group refuses a member with another protocol type."""
    await group.form_stable_group(group.member("A"))
    await group.check_versions("JOIN-16", group.join(group.member("B"), protocol_type="connect"))


@admission.add("JOIN-17")
async def no_common_protocol(group: ScenarioContext) -> None:
    """A newcomer is refused if its only protocol is supported by one member but not by the other."""
    await group.form_stable_group(group.member("A", "p", "q"), group.member("B", "p"))
    await group.check_versions("JOIN-17", group.join(group.member("C", "q")))


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
    await group.check_versions("JOIN-19", group.join(group.member("B"), member_id="nobody", protocol_type="connect"))


@admission.add("JOIN-20")
async def lone_member_changes_its_list(group: ScenarioContext) -> None:
    """The stored list of the sender counts among those of all members, even if the sender is the only one."""
    (a,) = await group.form_stable_group(group.member("A", "p"))
    await group.check_versions("JOIN-20", group.join(a, protocols=[{"name": "q", "metadata": group.metadata("A")}]))


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
    await group.check_versions("JOIN-23", group.join(group.member("B"), member_id="nobody"), fields=("error", "member"))


@admission.add("JOIN-53")
async def former_member_of_an_empty_group(group: ScenarioContext) -> None:
    """The id of the last member is unknown after that member has left."""
    (a,) = await group.form_stable_group(group.member("A"))
    await group.leave(a)
    await group.check_versions("JOIN-53", group.join(a))


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
        await group.sync_all(a)


# --- The two steps in which a dynamic member joins (KIP-394): member ids are issued, used and expire.


async def reserve_id(group: ScenarioContext, member: Member) -> Member:
    """Have an id issued to a new member, which does not use it yet; returns the member."""
    body = await group.join(member, version=group.highest_version("JoinGroup", 4))
    group.require(body["error_code"] == Error.MEMBER_ID_REQUIRED, "no id was handed out")
    return member


@admission.add("JOIN-07", smoke=True)
async def id_is_required_in_every_state(group: ScenarioContext) -> None:
    """A member id is required in every state: without a group, in Stable, and in both phases of a rebalance."""
    version = group.highest_version("JoinGroup", 4)

    async def ask() -> Member:
        newcomer = group.member("P")
        call = group.join(newcomer, version=version)
        await group.check("JOIN-07", call)
        await group.check("JOIN-07", call, fields="generation")
        return newcomer

    await group.leave(await ask())
    a, b = await group.form_stable_group(group.member("A"), group.member("B"))
    await group.leave(await ask())
    # Where that was taken for a departure, a rebalance is under way already (DIV-07).
    rejoined = group.join(a)
    await group.wait_for_state(PREPARING)
    await group.leave(await ask())
    await group.join(b)
    await rejoined
    await ask()


@admission.add("JOIN-08")
async def old_versions_join_in_one_step(group: ScenarioContext) -> None:
    """Up to version 3, the first JoinGroup parks like any other, and succeeds."""
    version = group.highest_version("JoinGroup", 0, 3)
    (a,) = await group.form_stable_group(group.member("A"))

    call = group.join(group.member("B"), version=version)
    await group.wait_for_state(PREPARING)
    await group.join(a)

    await group.check("JOIN-08", call, fields=("error", "time"))


@admission.add("JOIN-09")
async def handing_out_an_id_disturbs_nobody(group: ScenarioContext) -> None:
    """Issuing an id does not affect the members of a Stable group."""
    (a,) = await group.form_stable_group(group.member("A"))

    await reserve_id(group, group.member("P"))
    await group.sleep(group.short_pause)

    await group.check("JOIN-09", group.heartbeat(a))


@admission.add("JOIN-10")
async def handed_out_ids_are_fresh(group: ScenarioContext) -> None:
    """Twenty new members get twenty member ids."""
    group.highest_version("JoinGroup", 4)
    await group.form_stable_group(group.member("A"))
    versions = group.offered_versions("JoinGroup", since=4)
    for number in range(20):
        version = versions[number % len(versions)]
        await group.check("JOIN-10", group.join(group.member(f"P{number}"), version=version), fields="member")


@admission.add("JOIN-11")
async def pending_id_joins(group: ScenarioContext) -> None:
    """The member joins under the id that was issued to it."""
    (a,) = await group.form_stable_group(group.member("A"))

    newcomer = await reserve_id(group, group.member("P"))
    call = group.join(newcomer)
    await group.sleep(group.short_pause)
    await group.join(a)

    await group.check("JOIN-11", call, fields=("error", "member"))


@admission.add("JOIN-12")
async def second_request_counts(group: ScenarioContext) -> None:
    """The protocols and the session timeout of the second JoinGroup count, not those of the first."""
    await group.keep_when_empty()
    version = group.highest_version("JoinGroup", 4)
    member = group.expiring_member("A")
    first = await group.join(
        member,
        version=version,
        session_timeout_ms=group.long_session_timeout,
        protocols=[{"name": "other", "metadata": b""}, {"name": "range", "metadata": b""}],
    )
    group.require(first["error_code"] == Error.MEMBER_ID_REQUIRED, "no id was handed out")

    await group.check("JOIN-12", group.join(member, version=version), fields="members")
    await group.sync_all(member)
    await group.sleep_past(member.session_timeout)
    await group.check(
        "JOIN-12",
        group.heartbeat(member),
        reached=group.long_session_timeout > member.session_timeout + 2 * group.grace + group.short_pause,
    )


@admission.add("JOIN-13")
async def pending_id_that_left(group: ScenarioContext) -> None:
    """An issued id that has left is unknown."""
    member = await reserve_id(group, group.member("P"))
    await group.leave(member)
    await group.check_versions("JOIN-13", group.join(member))


@admission.add("JOIN-13")
async def pending_id_that_expired(group: ScenarioContext) -> None:
    """An issued id that is not used within the session timeout is unknown."""
    await group.form_stable_group(group.member("A"))

    member = await reserve_id(group, group.expiring_member("P"))
    await group.sleep_past(member.session_timeout)

    await group.check("JOIN-13", group.join(member))


@admission.add("JOIN-13")
async def pending_id_of_a_deleted_group(group: ScenarioContext) -> None:
    """The issued ids of a deleted group are unknown."""
    member = await reserve_id(group, group.member("P"))
    await group.delete_groups()
    await group.check("JOIN-13", group.join(member))


@admission.add("JOIN-14")
async def pending_id_with_an_instance(group: ScenarioContext) -> None:
    """An id that was issued to a dynamic member is refused with an instance id."""
    version = group.highest_version("JoinGroup", 5)
    await group.form_stable_group(group.member("A"))

    member = await reserve_id(group, group.member("P"))
    await group.check_versions("JOIN-14", group.join(member, group_instance_id="instance", version=version), since=5)


@admission.add("JOIN-28")
async def pending_id_holds_up_the_phase(group: ScenarioContext) -> None:
    """A join phase with all members waits for an issued id until it leaves."""
    (a,) = await group.form_stable_group(group.member("A"))

    newcomer = await reserve_id(group, group.member("P"))
    call = group.join(a)
    await group.sleep(3 * group.short_pause)
    await group.leave(newcomer)

    await group.check("JOIN-28", call, fields="time")


@admission.add("JOIN-28")
async def pending_id_completes_the_phase(group: ScenarioContext) -> None:
    """A join phase with all members waits for an issued id until it joins."""
    (a,) = await group.form_stable_group(group.member("A"))

    newcomer = await reserve_id(group, group.member("P"))
    call = group.join(a)
    await group.sleep(3 * group.short_pause)
    await group.join(newcomer)

    await group.check("JOIN-28", call, fields=("time", "members"))
