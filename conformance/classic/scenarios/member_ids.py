"""The two steps in which a dynamic member joins (KIP-394): member ids are issued, used and expire."""

from fencepost.conformance.run.context import PREPARING, ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Member
from fencepost.model.errors import Error

member_ids = ScenarioFamily()


async def reserve_id(group: ScenarioContext, label: str = "P", *, session: int | None = None) -> Member:
    """A new member whose id is issued but not used yet."""
    member = group.member(label, session_timeout=session, rebalance_timeout=group.rebalance_timeout)
    body = await group.join(member, version=group.highest_version("JoinGroup", 4))
    group.require(body["error_code"] == Error.MEMBER_ID_REQUIRED, "no id was handed out")
    return member


@member_ids.add("JOIN-07", smoke=True)
async def id_is_required_in_every_state(group: ScenarioContext) -> None:
    """A member id is required in every state: without a group, in Stable, and in both phases of a rebalance."""
    version = group.highest_version("JoinGroup", 4)

    async def ask() -> Member:
        newcomer = group.member("P", session_timeout=group.long_session_timeout)
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


@member_ids.add("JOIN-08")
async def old_versions_join_in_one_step(group: ScenarioContext) -> None:
    """Up to version 3, the first JoinGroup parks like any other, and succeeds."""
    version = group.highest_version("JoinGroup", 0, 3)
    (a,) = await group.form_stable_group(group.member("A"))

    call = group.join(group.member("B"), version=version)
    await group.wait_for_state(PREPARING)
    await group.join(a)

    await group.check("JOIN-08", call, fields=("error", "time"))


@member_ids.add("JOIN-09")
async def handing_out_an_id_disturbs_nobody(group: ScenarioContext) -> None:
    """Issuing an id does not affect the members of a Stable group."""
    (a,) = await group.form_stable_group(group.member("A"))

    await reserve_id(group)
    await group.sleep(group.short_pause)

    await group.check("JOIN-09", group.heartbeat(a))


@member_ids.add("JOIN-10")
async def handed_out_ids_are_fresh(group: ScenarioContext) -> None:
    """Twenty new members get twenty member ids."""
    version = group.highest_version("JoinGroup", 4)
    await group.form_stable_group(group.member("A"))
    for number in range(20):
        await group.check("JOIN-10", group.join(group.member(f"P{number}"), version=version), fields="member")


@member_ids.add("JOIN-11")
async def pending_id_joins(group: ScenarioContext) -> None:
    """The member joins under the id that was issued to it."""
    (a,) = await group.form_stable_group(group.member("A"))

    newcomer = await reserve_id(group)
    call = group.join(newcomer)
    await group.sleep(group.short_pause)
    await group.join(a)

    await group.check("JOIN-11", call, fields=("error", "member"))


@member_ids.add("JOIN-12")
async def second_request_counts(group: ScenarioContext) -> None:
    """The protocols and the session timeout of the second JoinGroup count, not those of the first."""
    await group.keep_when_empty()
    version = group.highest_version("JoinGroup", 4)
    member = group.member("A")
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


@member_ids.add("JOIN-13")
async def pending_id_that_left(group: ScenarioContext) -> None:
    """An issued id that has left is unknown."""
    member = await reserve_id(group)
    await group.leave(member)
    await group.check("JOIN-13", group.join(member))


@member_ids.add("JOIN-13")
async def pending_id_that_expired(group: ScenarioContext) -> None:
    """An issued id that is not used within the session timeout is unknown."""
    await group.form_stable_group(
        group.member("A", session_timeout=group.long_session_timeout, rebalance_timeout=group.rebalance_timeout)
    )

    member = await reserve_id(group)
    await group.sleep_past(member.session_timeout)

    await group.check("JOIN-13", group.join(member))


@member_ids.add("JOIN-13")
async def pending_id_of_a_deleted_group(group: ScenarioContext) -> None:
    """The issued ids of a deleted group are unknown."""
    member = await reserve_id(group)
    await group.delete_groups()
    await group.check("JOIN-13", group.join(member))


@member_ids.add("JOIN-14")
async def pending_id_with_an_instance(group: ScenarioContext) -> None:
    """An id that was issued to a dynamic member is refused with an instance id."""
    version = group.highest_version("JoinGroup", 5)
    await group.form_stable_group(group.member("A"))

    member = await reserve_id(group)
    await group.check("JOIN-14", group.join(member, group_instance_id="instance", version=version))


@member_ids.add("JOIN-28")
async def pending_id_holds_up_the_phase(group: ScenarioContext) -> None:
    """A join phase with all members waits for an issued id until it leaves."""
    (a,) = await group.form_stable_group(group.member("A"))

    newcomer = await reserve_id(group, session=group.long_session_timeout)
    call = group.join(a)
    await group.sleep(3 * group.short_pause)
    await group.leave(newcomer)

    await group.check("JOIN-28", call, fields="time")


@member_ids.add("JOIN-28")
async def pending_id_completes_the_phase(group: ScenarioContext) -> None:
    """A join phase with all members waits for an issued id until it joins."""
    (a,) = await group.form_stable_group(group.member("A"))

    newcomer = await reserve_id(group, session=group.long_session_timeout)
    call = group.join(a)
    await group.sleep(3 * group.short_pause)
    await group.join(newcomer)

    await group.check("JOIN-28", call, fields=("time", "members"))
