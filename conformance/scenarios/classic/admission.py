"""JoinGroup at the door: what is refused before and because of the state of the group, and how a refusal looks."""

from fencepost.conformance.scenario.context import Stage, Unsupported
from fencepost.conformance.scenario.scenario import Collection

admission = Collection()

INT32_MAX = 2**31 - 1


@admission.add("JOIN-01")
async def join_without_a_group(stage: Stage) -> None:
    """J with the empty group id; the member id comes back."""
    call = stage.join(stage.member("A"), group_id="", member_id="nobody")
    await call
    stage.shows("JOIN-01", call, "error", "member")


@admission.add("JOIN-02", smoke=True)
async def session_timeout_bounds(stage: Stage) -> None:
    """Both bounds are good, one millisecond beyond either is not."""
    shortest, longest = stage.settings.min_session_timeout, stage.settings.max_session_timeout
    for session in (shortest - 1, shortest, longest, longest + 1):
        if session <= INT32_MAX:
            call = stage.join(stage.member("A"), session_timeout_ms=session)
            await call
            stage.shows("JOIN-02", call)


@admission.add("JOIN-03")
async def session_timeout_without_a_group(stage: Stage) -> None:
    """A bad session timeout is told even if there is no group, and there is none afterwards."""
    call = stage.join(stage.member("A"), session_timeout_ms=stage.settings.min_session_timeout - 1)
    await call
    stage.shows("JOIN-03", call)
    described = stage.describe()
    await described
    stage.shows("JOIN-03", described, "state")


@admission.add("JOIN-04")
async def rebalance_timeout_is_free(stage: Stage) -> None:
    """Rebalance timeouts far outside the bounds of the session timeout."""
    longer = min(stage.settings.max_session_timeout * 2, INT32_MAX)
    for rebalance in (1, longer):
        member = stage.member("A", rebalance=rebalance)
        call = await stage.enter(member)
        await call
        stage.shows("JOIN-04", call)
        await stage.leave(member)


@admission.add("JOIN-05")
async def id_for_an_unknown_group(stage: Stage) -> None:
    """An id that cannot be known, with an instance id and without."""
    member = stage.member("A")
    for instance in (None, "instance"):
        call = stage.join(member, member_id="nobody", group_instance_id=instance)
        await call
        stage.shows("JOIN-05", call, "error", "member")
    described = stage.describe()
    await described
    stage.shows("JOIN-05", described, "state")


@admission.add("JOIN-06")
async def joining_makes_the_group(stage: Stage) -> None:
    """A group nobody has heard of takes a member in."""
    (member,) = await stage.completing(stage.member("A"))
    call = stage.heartbeat(member)
    await call
    stage.shows("JOIN-06", call)


@admission.add("JOIN-15")
async def no_protocol_type(stage: Stage) -> None:
    """An empty protocol type does not make a group."""
    call = stage.join(stage.member("A"), protocol_type="")
    stage.shows("JOIN-15", call)
    await call


@admission.add("JOIN-15")
async def nothing_to_offer(stage: Stage) -> None:
    """Nor does an empty list."""
    call = stage.join(stage.member("A"), protocols=[])
    stage.shows("JOIN-15", call)
    await call


@admission.add("JOIN-16")
async def foreign_protocol_type(stage: Stage) -> None:
    """A worker of another kind knocks at a consumer group."""
    await stage.stable(stage.member("A"))
    call = stage.join(stage.member("B"), protocol_type="connect")
    await call
    stage.shows("JOIN-16", call)


@admission.add("JOIN-17")
async def no_common_protocol(stage: Stage) -> None:
    """The newcomer offers what one member has and the other lacks."""
    await stage.stable(stage.member("A", "p", "q"), stage.member("B", "p"))
    call = stage.join(stage.member("C", "q"))
    await call
    stage.shows("JOIN-17", call)


@admission.add("JOIN-17")
async def nothing_in_common(stage: Stage) -> None:
    """The newcomer offers what the only member, which rejoins, lacks."""
    (a,) = await stage.stable(stage.member("A", "p"))
    rejoined, call = stage.join(a), stage.join(stage.member("B", "q"))
    stage.shows("JOIN-17", call)
    await call
    await rejoined


@admission.add("JOIN-18")
async def one_common_protocol(stage: Stage) -> None:
    """Lists that share one name."""
    (a,) = await stage.stable(stage.member("A", "p", "q"))
    newcomer = await stage.enter(stage.member("B", "q", "r"))
    await stage.sleep(stage.step)
    await stage.join(a)
    await newcomer
    stage.shows("JOIN-18", newcomer)


@admission.add("JOIN-19")
async def protocols_before_membership(stage: Stage) -> None:
    """A stranger with a foreign protocol type is told of the protocol, not of the id."""
    await stage.stable(stage.member("A"))
    call = stage.join(stage.member("B"), member_id="nobody", protocol_type="connect")
    await call
    stage.shows("JOIN-19", call)


@admission.add("JOIN-20")
async def lone_member_changes_its_list(stage: Stage) -> None:
    """The stored list of the member itself counts among those of all members."""
    (a,) = await stage.stable(stage.member("A", "p"))
    call = stage.join(a, protocols=[{"name": "q", "metadata": stage.metadata("A")}])
    await call
    stage.shows("JOIN-20", call)


@admission.add("JOIN-21")
async def refusals_change_nothing(stage: Stage) -> None:
    """Whatever the reason of the refusal, the group stays Stable in its generation."""
    (a,) = await stage.stable(stage.member("A", "p"))
    newcomer = stage.member("B", "p")
    for changes in (
        {"protocol_type": "connect"},
        {"protocols": [{"name": "q", "metadata": b""}]},
        {"member_id": "nobody"},
        {"session_timeout_ms": stage.settings.min_session_timeout - 1},
    ):
        refused = await stage.join(newcomer, **changes)
        after = stage.heartbeat(a)
        await after
        stage.shows("JOIN-21", after, met=refused["error_code"] != 0)


@admission.add("JOIN-22")
async def emptied_group_changes_type(stage: Stage) -> None:
    """Once everyone has left, another protocol type is welcome."""
    (a,) = await stage.stable(stage.member("A"))
    await stage.leave(a)
    call = await stage.enter(stage.member("B", protocol_type="connect"))
    await call
    stage.shows("JOIN-22", call)


@admission.add("JOIN-23")
async def unknown_id(stage: Stage) -> None:
    """An id that was never given out, in a Stable group."""
    await stage.stable(stage.member("A"))
    call = stage.join(stage.member("B"), member_id="nobody")
    await call
    stage.shows("JOIN-23", call, "error", "member")


@admission.add("JOIN-53")
async def former_member_of_an_empty_group(stage: Stage) -> None:
    """The id of the last member, after it left."""
    (a,) = await stage.stable(stage.member("A"))
    await stage.leave(a)
    call = stage.join(a)
    await call
    stage.shows("JOIN-53", call)


@admission.add("JOIN-41")
async def shape_of_a_refusal(stage: Stage) -> None:
    """A refusal has no protocol name and no generation, in old versions and in new ones."""
    await stage.stable(stage.member("A"))
    seen = 0
    for lowest, highest in ((0, 6), (7, 99)):
        try:
            version = stage.version("JoinGroup", lowest, highest)
        except Unsupported:
            continue
        call = stage.join(stage.member("B"), member_id="nobody", version=version)
        await call
        stage.shows("JOIN-41", call, "protocol", "generation")
        seen += 1
    stage.need(seen > 0, "no version of JoinGroup")


@admission.add("JOIN-40")
async def protocol_type_in_answers(stage: Stage) -> None:
    """From version 7 on: there in a success, absent in a refusal."""
    version = stage.version("JoinGroup", 7)
    success = await stage.enter(stage.member("A", protocol_type="worker"), version=version)
    await success
    stage.shows("JOIN-40", success, "protocol_type")
    refusal = stage.join(stage.member("B", protocol_type="worker"), member_id="nobody", version=version)
    await refusal
    stage.shows("JOIN-40", refusal, "protocol_type")


@admission.add("JOIN-43")
async def reason_is_ignored(stage: Stage) -> None:
    """No reason, an empty one and a very long one make no difference."""
    version = stage.version("JoinGroup", 8)
    (a,) = await stage.stable(stage.member("A"))
    for reason in (None, "", "because " * 1_250):
        call = stage.join(a, reason=reason, version=version)
        await call
        stage.shows("JOIN-43", call)
