"""Which protocol a round is held under."""

from collections.abc import Sequence

from fencepost.conformance.scenario.context import Member, ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.traces.events import Body

votes = ScenarioFamily()


def protocols_named(member: Member, names: Sequence[str]) -> list[Body]:
    """Protocols of these names, in this order, with the member's label for metadata."""
    member.protocols = tuple((name, member.label.encode()) for name in names)
    return [{"name": name, "metadata": metadata} for name, metadata in member.protocols]


def voting_member(context: ScenarioContext, label: str, names: str, instance: str | None = None) -> Member:
    """A member that offers protocols of one letter each and need not heartbeat."""
    member = context.member_without_heartbeats(label, *names, instance=instance, protocol_type="worker")
    protocols_named(member, names)
    return member


@votes.add("GEN-08")
async def protocol_suits_all(context: ScenarioContext) -> None:
    """Each member likes something better that the other does not offer."""
    a, b = await context.form_stable_group(voting_member(context, "A", "pq"), voting_member(context, "B", "rq"))
    for call in await context.rebalance(a, b):
        context.check("GEN-08", call, "protocol")


@votes.add("GEN-09")
async def members_disagree(context: ScenarioContext) -> None:
    """Two members offer the same in another order: either has one vote, and both are told the same."""
    a, b = await context.form_stable_group(context.member("A", "p", "q"), context.member("B", "p", "q"))
    first = context.join(b, protocols=protocols_named(b, "qp"))
    await context.sleep(2 * context.short_pause)
    calls = (first, context.join(a))
    for call in calls:
        context.check("GEN-09", call, "protocol")
    for call in calls:
        await call


@votes.add("GEN-09")
async def most_votes_win(context: ScenarioContext) -> None:
    """Two of three members prefer the second of two protocols that all offer."""
    members = await context.form_stable_group(
        voting_member(context, "A", "pq"), voting_member(context, "B", "qp"), voting_member(context, "C", "qp")
    )
    for call in await context.rebalance(*members):
        context.check("GEN-09", call, "protocol")


@votes.add("GEN-09")
async def votes_are_for_what_all_offer(context: ScenarioContext) -> None:
    """A vote goes to the first protocol that everyone has, not to the first of the list."""
    members = await context.form_stable_group(
        voting_member(context, "A", "pq"), voting_member(context, "B", "xqp"), voting_member(context, "C", "xqp")
    )
    for call in await context.rebalance(*members):
        context.check("GEN-09", call, "protocol")


@votes.add("GEN-10", smoke=True)
async def order_is_preference(context: ScenarioContext) -> None:
    """Alone, a member gets the first of its list, and the other one once that comes first."""
    a = voting_member(context, "A", "pq")
    call = await context.join_new(a)
    await call
    context.check("GEN-10", call, "protocol")
    call = context.join(a, protocols=protocols_named(a, "qp"))
    await call
    context.check("GEN-10", call, "protocol")


@votes.add("GEN-11")
async def rolling_upgrade(context: ScenarioContext) -> None:
    """The new protocol waits until the last member offers it."""
    a, b = voting_member(context, "A", "qp"), voting_member(context, "B", "p")
    ordered = await context.form_stable_group(a, b)
    for call in await context.rebalance(*ordered):
        context.check("GEN-11", call, "protocol")
    await context.sync_all(*ordered)
    upgraded = context.join(b, protocols=protocols_named(b, "qp"))
    await context.sleep(2 * context.short_pause)
    for call in (context.join(a), upgraded):
        await call
        context.check("GEN-11", call, "protocol")


@votes.add("GEN-12")
async def protocol_type_is_the_groups(context: ScenarioContext) -> None:
    """Both members of a group of workers, when they join and when they sync."""
    context.highest_version("JoinGroup", 7)
    a, b = await context.form_stable_group(voting_member(context, "A", "p"), voting_member(context, "B", "p"))
    for call in (*await context.rebalance(a, b), context.sync(a, version=context.highest_version("SyncGroup", 5))):
        await call
        context.check("GEN-12", call, "protocol_type")


@votes.add("GEN-19")
async def kept_members_vote(context: ScenarioContext) -> None:
    """Two static members stay away; their preference outweighs that of the one member that came."""
    context.highest_version("JoinGroup", 5)
    a = voting_member(context, "A", "qp")
    await context.form_stable_group(
        a, voting_member(context, "S", "pq", "one"), voting_member(context, "T", "pq", "two")
    )
    call = context.join_with_new_metadata(a)
    await call
    context.check("GEN-19", call, "protocol")
