"""JoinGroup at the door: what is refused before and because of the state of the group, and how a refusal looks."""

from fencepost.conformance.scenario.context import ScenarioContext, Unsupported
from fencepost.conformance.scenario.scenario import ScenarioFamily

admission = ScenarioFamily()

INT32_MAX = 2**31 - 1


@admission.add("JOIN-01")
async def join_without_a_group(context: ScenarioContext) -> None:
    """J with the empty group id; the member id comes back."""
    call = context.join(context.member("A"), group_id="", member_id="nobody")
    await call
    context.check("JOIN-01", call, "error", "member")


@admission.add("JOIN-02", smoke=True)
async def session_timeout_bounds(context: ScenarioContext) -> None:
    """Both bounds are good, one millisecond beyond either is not."""
    shortest, longest = context.settings.min_session_timeout, context.settings.max_session_timeout
    for session in (shortest - 1, shortest, longest, longest + 1):
        if session <= INT32_MAX:
            call = context.join(context.member("A"), session_timeout_ms=session)
            await call
            context.check("JOIN-02", call)


@admission.add("JOIN-03")
async def session_timeout_without_a_group(context: ScenarioContext) -> None:
    """A bad session timeout is told even if there is no group, and there is none afterwards."""
    call = context.join(context.member("A"), session_timeout_ms=context.settings.min_session_timeout - 1)
    await call
    context.check("JOIN-03", call)
    described = context.describe_groups()
    await described
    context.check("JOIN-03", described, "state")


@admission.add("JOIN-04")
async def rebalance_timeout_is_free(context: ScenarioContext) -> None:
    """Rebalance timeouts far outside the bounds of the session timeout."""
    longer = min(context.settings.max_session_timeout * 2, INT32_MAX)
    for rebalance in (1, longer):
        member = context.member("A", rebalance_timeout=rebalance)
        call = await context.join_new(member)
        await call
        context.check("JOIN-04", call)
        await context.leave(member)


@admission.add("JOIN-05")
async def id_for_an_unknown_group(context: ScenarioContext) -> None:
    """An id that cannot be known, with an instance id and without."""
    member = context.member("A")
    for instance in (None, "instance"):
        call = context.join(member, member_id="nobody", group_instance_id=instance)
        await call
        context.check("JOIN-05", call, "error", "member")
    described = context.describe_groups()
    await described
    context.check("JOIN-05", described, "state")


@admission.add("JOIN-06")
async def joining_makes_the_group(context: ScenarioContext) -> None:
    """A group nobody has heard of takes a member in."""
    (member,) = await context.form_generation(context.member("A"))
    call = context.heartbeat(member)
    await call
    context.check("JOIN-06", call)


@admission.add("JOIN-15")
async def no_protocol_type(context: ScenarioContext) -> None:
    """An empty protocol type does not make a group."""
    call = context.join(context.member("A"), protocol_type="")
    context.check("JOIN-15", call)
    await call


@admission.add("JOIN-15")
async def nothing_to_offer(context: ScenarioContext) -> None:
    """Nor does an empty list."""
    call = context.join(context.member("A"), protocols=[])
    context.check("JOIN-15", call)
    await call


@admission.add("JOIN-16")
async def foreign_protocol_type(context: ScenarioContext) -> None:
    """A worker of another kind knocks at a consumer group."""
    await context.form_stable_group(context.member("A"))
    call = context.join(context.member("B"), protocol_type="connect")
    await call
    context.check("JOIN-16", call)


@admission.add("JOIN-17")
async def no_common_protocol(context: ScenarioContext) -> None:
    """The newcomer offers what one member has and the other lacks."""
    await context.form_stable_group(context.member("A", "p", "q"), context.member("B", "p"))
    call = context.join(context.member("C", "q"))
    await call
    context.check("JOIN-17", call)


@admission.add("JOIN-17")
async def nothing_in_common(context: ScenarioContext) -> None:
    """The newcomer offers what the only member, which rejoins, lacks."""
    (a,) = await context.form_stable_group(context.member("A", "p"))
    rejoined, call = context.join(a), context.join(context.member("B", "q"))
    context.check("JOIN-17", call)
    await call
    await rejoined


@admission.add("JOIN-18")
async def one_common_protocol(context: ScenarioContext) -> None:
    """Lists that share one name."""
    (a,) = await context.form_stable_group(context.member("A", "p", "q"))
    newcomer = await context.join_new(context.member("B", "q", "r"))
    await context.sleep(context.short_pause)
    await context.join(a)
    await newcomer
    context.check("JOIN-18", newcomer)


@admission.add("JOIN-19")
async def protocols_before_membership(context: ScenarioContext) -> None:
    """A stranger with a foreign protocol type is told of the protocol, not of the id."""
    await context.form_stable_group(context.member("A"))
    call = context.join(context.member("B"), member_id="nobody", protocol_type="connect")
    await call
    context.check("JOIN-19", call)


@admission.add("JOIN-20")
async def lone_member_changes_its_list(context: ScenarioContext) -> None:
    """The stored list of the member itself counts among those of all members."""
    (a,) = await context.form_stable_group(context.member("A", "p"))
    call = context.join(a, protocols=[{"name": "q", "metadata": context.metadata("A")}])
    await call
    context.check("JOIN-20", call)


@admission.add("JOIN-21")
async def refusals_change_nothing(context: ScenarioContext) -> None:
    """Whatever the reason of the refusal, the group stays Stable in its generation."""
    (a,) = await context.form_stable_group(context.member("A", "p"))
    newcomer = context.member("B", "p")
    for changes in (
        {"protocol_type": "connect"},
        {"protocols": [{"name": "q", "metadata": b""}]},
        {"member_id": "nobody"},
        {"session_timeout_ms": context.settings.min_session_timeout - 1},
    ):
        refused = await context.join(newcomer, **changes)
        after = context.heartbeat(a)
        await after
        context.check("JOIN-21", after, reached=refused["error_code"] != 0)


@admission.add("JOIN-22")
async def emptied_group_changes_type(context: ScenarioContext) -> None:
    """Once everyone has left, another protocol type is welcome."""
    (a,) = await context.form_stable_group(context.member("A"))
    await context.leave(a)
    call = await context.join_new(context.member("B", protocol_type="connect"))
    await call
    context.check("JOIN-22", call)


@admission.add("JOIN-23")
async def unknown_id(context: ScenarioContext) -> None:
    """An id that was never given out, in a Stable group."""
    await context.form_stable_group(context.member("A"))
    call = context.join(context.member("B"), member_id="nobody")
    await call
    context.check("JOIN-23", call, "error", "member")


@admission.add("JOIN-53")
async def former_member_of_an_empty_group(context: ScenarioContext) -> None:
    """The id of the last member, after it left."""
    (a,) = await context.form_stable_group(context.member("A"))
    await context.leave(a)
    call = context.join(a)
    await call
    context.check("JOIN-53", call)


@admission.add("JOIN-41")
async def shape_of_a_refusal(context: ScenarioContext) -> None:
    """A refusal has no protocol name and no generation, in old versions and in new ones."""
    await context.form_stable_group(context.member("A"))
    seen = 0
    for lowest, highest in ((0, 6), (7, 99)):
        try:
            version = context.highest_version("JoinGroup", lowest, highest)
        except Unsupported:
            continue
        call = context.join(context.member("B"), member_id="nobody", version=version)
        await call
        context.check("JOIN-41", call, "protocol", "generation")
        seen += 1
    context.require(seen > 0, "no version of JoinGroup")


@admission.add("JOIN-40")
async def protocol_type_in_answers(context: ScenarioContext) -> None:
    """From version 7 on: there in a success, absent in a refusal."""
    version = context.highest_version("JoinGroup", 7)
    success = await context.join_new(context.member("A", protocol_type="worker"), version=version)
    await success
    context.check("JOIN-40", success, "protocol_type")
    refusal = context.join(context.member("B", protocol_type="worker"), member_id="nobody", version=version)
    await refusal
    context.check("JOIN-40", refusal, "protocol_type")


@admission.add("JOIN-43")
async def reason_is_ignored(context: ScenarioContext) -> None:
    """No reason, an empty one and a very long one make no difference."""
    version = context.highest_version("JoinGroup", 8)
    (a,) = await context.form_stable_group(context.member("A"))
    for reason in (None, "", "because " * 1_250):
        call = context.join(a, reason=reason, version=version)
        await call
        context.check("JOIN-43", call)
