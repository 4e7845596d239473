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


def voting_member(group: ScenarioContext, label: str, names: str, instance: str | None = None) -> Member:
    """A member that offers protocols of one letter each and need not heartbeat."""
    member = group.member_without_heartbeats(label, *names, instance=instance, protocol_type="worker")
    protocols_named(member, names)
    return member


@votes.add("GEN-08")
async def protocol_suits_all(group: ScenarioContext) -> None:
    """Each member likes something better that the other does not offer."""
    a, b = await group.form_stable_group(voting_member(group, "A", "pq"), voting_member(group, "B", "rq"))
    for call in await group.rebalance(a, b):
        await group.check("GEN-08", call, fields="protocol")


@votes.add("GEN-09")
async def members_disagree(group: ScenarioContext) -> None:
    """Two members offer the same in another order: either has one vote, and both are told the same."""
    a, b = await group.form_stable_group(group.member("A", "p", "q"), group.member("B", "p", "q"))
    first = group.join(b, protocols=protocols_named(b, "qp"))
    await group.sleep(2 * group.short_pause)
    calls = (first, group.join(a))
    for call in calls:
        group.add_check("GEN-09", call, fields="protocol")
    for call in calls:
        await call


@votes.add("GEN-09")
async def most_votes_win(group: ScenarioContext) -> None:
    """Two of three members prefer the second of two protocols that all offer."""
    members = await group.form_stable_group(
        voting_member(group, "A", "pq"), voting_member(group, "B", "qp"), voting_member(group, "C", "qp")
    )
    for call in await group.rebalance(*members):
        await group.check("GEN-09", call, fields="protocol")


@votes.add("GEN-09")
async def votes_are_for_what_all_offer(group: ScenarioContext) -> None:
    """A vote goes to the first protocol that everyone has, not to the first of the list."""
    members = await group.form_stable_group(
        voting_member(group, "A", "pq"), voting_member(group, "B", "xqp"), voting_member(group, "C", "xqp")
    )
    for call in await group.rebalance(*members):
        await group.check("GEN-09", call, fields="protocol")


@votes.add("GEN-10", smoke=True)
async def order_is_preference(group: ScenarioContext) -> None:
    """Alone, a member gets the first of its list, and the other one once that comes first."""
    a = voting_member(group, "A", "pq")
    await group.check("GEN-10", await group.join_new(a), fields="protocol")
    await group.check("GEN-10", group.join(a, protocols=protocols_named(a, "qp")), fields="protocol")


@votes.add("GEN-11")
async def rolling_upgrade(group: ScenarioContext) -> None:
    """The new protocol waits until the last member offers it."""
    a, b = voting_member(group, "A", "qp"), voting_member(group, "B", "p")
    ordered = await group.form_stable_group(a, b)
    for call in await group.rebalance(*ordered):
        await group.check("GEN-11", call, fields="protocol")
    await group.sync_all(*ordered)
    upgraded = group.join(b, protocols=protocols_named(b, "qp"))
    await group.sleep(2 * group.short_pause)
    for call in (group.join(a), upgraded):
        await group.check("GEN-11", call, fields="protocol")


@votes.add("GEN-12")
async def protocol_type_is_the_groups(group: ScenarioContext) -> None:
    """Both members of a group of workers, when they join and when they sync."""
    group.highest_version("JoinGroup", 7)
    a, b = await group.form_stable_group(voting_member(group, "A", "p"), voting_member(group, "B", "p"))
    for call in (*await group.rebalance(a, b), group.sync(a, version=group.highest_version("SyncGroup", 5))):
        await group.check("GEN-12", call, fields="protocol_type")


@votes.add("GEN-19")
async def kept_members_vote(group: ScenarioContext) -> None:
    """Two static members stay away; their preference outweighs that of the one member that came."""
    group.highest_version("JoinGroup", 5)
    a = voting_member(group, "A", "qp")
    await group.form_stable_group(a, voting_member(group, "S", "pq", "one"), voting_member(group, "T", "pq", "two"))
    await group.check("GEN-19", group.join_with_new_metadata(a), fields="protocol")
