"""The two steps in which a dynamic member joins (KIP-394): ids handed out, used, and gone."""

from fencepost.conformance.scenario.admin_requests import PREPARING
from fencepost.conformance.scenario.context import Member, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily

member_ids = ScenarioFamily()


async def reserve_id(context: ScenarioContext, label: str = "P", *, session: int | None = None) -> Member:
    """Somebody who was handed an id and does not come back yet."""
    member = context.member(label, session_timeout=session, rebalance_timeout=context.rebalance_timeout)
    body = await context.join(member, version=context.highest_version("JoinGroup", 4))
    context.require(body["error_code"] == 79, "no id was handed out")
    return member


@member_ids.add("JOIN-07", smoke=True)
async def id_is_required_in_every_state(context: ScenarioContext) -> None:
    """A stranger asks while there is no group, while it is Stable, in the join phase and in the sync phase."""
    version = context.highest_version("JoinGroup", 4)

    async def ask() -> Member:
        stranger = context.member("P", session_timeout=context.long_session_timeout)
        call = context.join(stranger, version=version)
        await call
        context.check("JOIN-07", call)
        context.check("JOIN-07", call, "generation")
        return stranger

    await context.leave(await ask())
    a, b = await context.form_stable_group(context.member("A"), context.member("B"))
    await context.leave(await ask())
    # Where that was taken for a departure, a rebalance is under way already (DIV-07).
    rejoined = context.join(a)
    await context.wait_for_state(PREPARING)
    await context.leave(await ask())
    await context.join(b)
    await rejoined
    await ask()


@member_ids.add("JOIN-08")
async def old_versions_join_in_one_step(context: ScenarioContext) -> None:
    """Up to version 3 the first JoinGroup parks like any other, and is answered with a success."""
    version = context.highest_version("JoinGroup", 0, 3)
    (a,) = await context.form_stable_group(context.member("A"))
    call = context.join(context.member("B"), version=version)
    await context.wait_for_state(PREPARING)
    await context.join(a)
    await call
    context.check("JOIN-08", call, "error", "time")


@member_ids.add("JOIN-09")
async def handing_out_an_id_disturbs_nobody(context: ScenarioContext) -> None:
    """The members of a Stable group notice nothing."""
    (a,) = await context.form_stable_group(context.member("A"))
    await reserve_id(context)
    await context.sleep(context.short_pause)
    call = context.heartbeat(a)
    await call
    context.check("JOIN-09", call)


@member_ids.add("JOIN-10")
async def handed_out_ids_are_fresh(context: ScenarioContext) -> None:
    """Twenty strangers get twenty ids."""
    version = context.highest_version("JoinGroup", 4)
    (a,) = await context.form_stable_group(context.member("A"))
    ids = [a.id]
    for number in range(20):
        call = context.join(context.member(f"P{number}"), version=version)
        ids.append((await call)["member_id"])
        context.check("JOIN-10", call, "member")


@member_ids.add("JOIN-11")
async def pending_id_joins(context: ScenarioContext) -> None:
    """The id that was handed out is the one the member has."""
    (a,) = await context.form_stable_group(context.member("A"))
    newcomer = await reserve_id(context)
    call = context.join(newcomer)
    await context.sleep(context.short_pause)
    await context.join(a)
    await call
    context.check("JOIN-11", call, "error", "member")


@member_ids.add("JOIN-12")
async def second_request_counts(context: ScenarioContext) -> None:
    """What the first request offered, and its session timeout, are forgotten."""
    version = context.highest_version("JoinGroup", 4)
    member = context.member("A")
    first = await context.join(
        member,
        version=version,
        session_timeout_ms=context.long_session_timeout,
        protocols=[{"name": "other", "metadata": b""}, {"name": "range", "metadata": b""}],
    )
    context.require(first["error_code"] == 79, "no id was handed out")
    call = context.join(member, version=version)
    await call
    context.check("JOIN-12", call, "members")
    await context.sync_all(member)
    await context.sleep_past(member.session_timeout)
    late = context.heartbeat(member)
    await late
    context.check(
        "JOIN-12",
        late,
        reached=context.long_session_timeout > member.session_timeout + 2 * context.grace + context.short_pause,
    )


@member_ids.add("JOIN-13")
async def pending_id_that_left(context: ScenarioContext) -> None:
    """An id given back is gone."""
    member = await reserve_id(context)
    await context.leave(member)
    call = context.join(member)
    await call
    context.check("JOIN-13", call)


@member_ids.add("JOIN-13")
async def pending_id_that_expired(context: ScenarioContext) -> None:
    """An id not used for a session timeout is gone."""
    await context.form_stable_group(
        context.member("A", session_timeout=context.long_session_timeout, rebalance_timeout=context.rebalance_timeout)
    )
    member = await reserve_id(context)
    await context.sleep_past(member.session_timeout)
    call = context.join(member)
    await call
    context.check("JOIN-13", call)


@member_ids.add("JOIN-13")
async def pending_id_of_a_deleted_group(context: ScenarioContext) -> None:
    """Nothing is left of a group that was deleted."""
    member = await reserve_id(context)
    await context.delete_groups()
    call = context.join(member)
    await call
    context.check("JOIN-13", call)


@member_ids.add("JOIN-14")
async def pending_id_with_an_instance(context: ScenarioContext) -> None:
    """An id handed out to a dynamic member does not suit a static one."""
    version = context.highest_version("JoinGroup", 5)
    await context.form_stable_group(context.member("A"))
    member = await reserve_id(context)
    call = context.join(member, group_instance_id="instance", version=version)
    await call
    context.check("JOIN-14", call)


@member_ids.add("JOIN-28")
async def pending_id_holds_up_the_phase(context: ScenarioContext) -> None:
    """Everyone has rejoined, but the round waits until the owner of the id says that it will not come."""
    (a,) = await context.form_stable_group(context.member("A"))
    stranger = await reserve_id(context, session=context.long_session_timeout)
    call = context.join(a)
    await context.sleep(3 * context.short_pause)
    await context.leave(stranger)
    await call
    context.check("JOIN-28", call, "time")


@member_ids.add("JOIN-28")
async def pending_id_completes_the_phase(context: ScenarioContext) -> None:
    """The round waits until the owner of the id comes, and is then complete."""
    (a,) = await context.form_stable_group(context.member("A"))
    stranger = await reserve_id(context, session=context.long_session_timeout)
    call = context.join(a)
    await context.sleep(3 * context.short_pause)
    await context.join(stranger)
    await call
    context.check("JOIN-28", call, "time", "members")
