"""The two steps in which a dynamic member joins (KIP-394): ids handed out, used, and gone."""

from fencepost.conformance.scenario.admin_requests import PREPARING
from fencepost.conformance.scenario.context import Member, Stage
from fencepost.conformance.scenario.scenario import Collection

member_ids = Collection()


async def pending(stage: Stage, label: str = "P", *, session: int | None = None) -> Member:
    """Somebody who was handed an id and does not come back yet."""
    member = stage.member(label, session=session, rebalance=stage.rebalance)
    body = await stage.join(member, version=stage.version("JoinGroup", 4))
    stage.need(body["error_code"] == 79, "no id was handed out")
    return member


@member_ids.add("JOIN-07", smoke=True)
async def id_is_required_in_every_state(stage: Stage) -> None:
    """A stranger asks while there is no group, while it is Stable, in the join phase and in the sync phase."""
    version = stage.version("JoinGroup", 4)

    async def ask() -> Member:
        stranger = stage.member("P", session=stage.long_session)
        call = stage.join(stranger, version=version)
        await call
        stage.shows("JOIN-07", call)
        stage.shows("JOIN-07", call, "generation")
        return stranger

    await stage.leave(await ask())
    a, b = await stage.stable(stage.member("A"), stage.member("B"))
    await stage.leave(await ask())
    # Where that was taken for a departure, a rebalance is under way already (DIV-07).
    rejoined = stage.join(a)
    await stage.reaches(PREPARING)
    await stage.leave(await ask())
    await stage.join(b)
    await rejoined
    await ask()


@member_ids.add("JOIN-08")
async def old_versions_join_in_one_step(stage: Stage) -> None:
    """Up to version 3 the first JoinGroup parks like any other, and is answered with a success."""
    version = stage.version("JoinGroup", 0, 3)
    (a,) = await stage.stable(stage.member("A"))
    call = stage.join(stage.member("B"), version=version)
    await stage.reaches(PREPARING)
    await stage.join(a)
    await call
    stage.shows("JOIN-08", call, "error", "time")


@member_ids.add("JOIN-09")
async def handing_out_an_id_disturbs_nobody(stage: Stage) -> None:
    """The members of a Stable group notice nothing."""
    (a,) = await stage.stable(stage.member("A"))
    await pending(stage)
    await stage.sleep(stage.step)
    call = stage.heartbeat(a)
    await call
    stage.shows("JOIN-09", call)


@member_ids.add("JOIN-10")
async def handed_out_ids_are_fresh(stage: Stage) -> None:
    """Twenty strangers get twenty ids."""
    version = stage.version("JoinGroup", 4)
    (a,) = await stage.stable(stage.member("A"))
    ids = [a.id]
    for number in range(20):
        call = stage.join(stage.member(f"P{number}"), version=version)
        ids.append((await call)["member_id"])
        stage.shows("JOIN-10", call, "member")


@member_ids.add("JOIN-11")
async def pending_id_joins(stage: Stage) -> None:
    """The id that was handed out is the one the member has."""
    (a,) = await stage.stable(stage.member("A"))
    newcomer = await pending(stage)
    call = stage.join(newcomer)
    await stage.sleep(stage.step)
    await stage.join(a)
    await call
    stage.shows("JOIN-11", call, "error", "member")


@member_ids.add("JOIN-12")
async def second_request_counts(stage: Stage) -> None:
    """What the first request offered, and its session timeout, are forgotten."""
    version = stage.version("JoinGroup", 4)
    member = stage.member("A")
    first = await stage.join(
        member,
        version=version,
        session_timeout_ms=stage.long_session,
        protocols=[{"name": "other", "metadata": b""}, {"name": "range", "metadata": b""}],
    )
    stage.need(first["error_code"] == 79, "no id was handed out")
    call = stage.join(member, version=version)
    await call
    stage.shows("JOIN-12", call, "members")
    await stage.settle(member)
    await stage.sleep_past(member.session)
    late = stage.heartbeat(member)
    await late
    stage.shows("JOIN-12", late, met=stage.long_session > member.session + 2 * stage.grace + stage.step)


@member_ids.add("JOIN-13")
async def pending_id_that_left(stage: Stage) -> None:
    """An id given back is gone."""
    member = await pending(stage)
    await stage.leave(member)
    call = stage.join(member)
    await call
    stage.shows("JOIN-13", call)


@member_ids.add("JOIN-13")
async def pending_id_that_expired(stage: Stage) -> None:
    """An id not used for a session timeout is gone."""
    await stage.stable(stage.member("A", session=stage.long_session, rebalance=stage.rebalance))
    member = await pending(stage)
    await stage.sleep_past(member.session)
    call = stage.join(member)
    await call
    stage.shows("JOIN-13", call)


@member_ids.add("JOIN-13")
async def pending_id_of_a_deleted_group(stage: Stage) -> None:
    """Nothing is left of a group that was deleted."""
    member = await pending(stage)
    await stage.delete()
    call = stage.join(member)
    await call
    stage.shows("JOIN-13", call)


@member_ids.add("JOIN-14")
async def pending_id_with_an_instance(stage: Stage) -> None:
    """An id handed out to a dynamic member does not suit a static one."""
    version = stage.version("JoinGroup", 5)
    await stage.stable(stage.member("A"))
    member = await pending(stage)
    call = stage.join(member, group_instance_id="instance", version=version)
    await call
    stage.shows("JOIN-14", call)


@member_ids.add("JOIN-28")
async def pending_id_holds_up_the_phase(stage: Stage) -> None:
    """Everyone has rejoined, but the round waits until the owner of the id says that it will not come."""
    (a,) = await stage.stable(stage.member("A"))
    stranger = await pending(stage, session=stage.long_session)
    call = stage.join(a)
    await stage.sleep(3 * stage.step)
    await stage.leave(stranger)
    await call
    stage.shows("JOIN-28", call, "time")


@member_ids.add("JOIN-28")
async def pending_id_completes_the_phase(stage: Stage) -> None:
    """The round waits until the owner of the id comes, and is then complete."""
    (a,) = await stage.stable(stage.member("A"))
    stranger = await pending(stage, session=stage.long_session)
    call = stage.join(a)
    await stage.sleep(3 * stage.step)
    await stage.join(stranger)
    await call
    stage.shows("JOIN-28", call, "time", "members")
