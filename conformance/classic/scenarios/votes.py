"""The vote on the protocol of a generation."""

from collections.abc import Sequence

from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import Member
from fencepost.traces.events import Body

votes = ScenarioFamily()


def protocols_named(member: Member, names: Sequence[str]) -> list[Body]:
    """Let a member support the protocols, with its label as metadata; returns them for the body of JoinGroup."""
    member.protocols = tuple((name, member.label.encode()) for name in names)
    return [{"name": name, "metadata": metadata} for name, metadata in member.protocols]


def voting_member(group: ScenarioContext, label: str, names: str, instance: str | None = None) -> Member:
    """A new member that supports protocols of one letter each, and need not heartbeat."""
    member = group.member_without_heartbeats(label, *names, instance=instance, protocol_type="worker")
    protocols_named(member, names)
    return member


@votes.add("GEN-08")
async def protocol_suits_all(group: ScenarioContext) -> None:
    """The selected protocol is supported by all members, though each prefers another."""
    a, b = await group.form_stable_group(voting_member(group, "A", "pq"), voting_member(group, "B", "rq"))
    for call in await group.rebalance(a, b):
        await group.check("GEN-08", call, fields="protocol")


@votes.add("GEN-09")
async def members_disagree(group: ScenarioContext) -> None:
    """Two members with the same protocols in another order have one vote each, and get the same protocol."""
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
    """The protocol that two of three members prefer is selected."""
    members = await group.form_stable_group(
        voting_member(group, "A", "pq"), voting_member(group, "B", "qp"), voting_member(group, "C", "qp")
    )
    for call in await group.rebalance(*members):
        await group.check("GEN-09", call, fields="protocol")


@votes.add("GEN-09")
async def votes_are_for_what_all_offer(group: ScenarioContext) -> None:
    """A vote goes to the first protocol of the list that all members support."""
    members = await group.form_stable_group(
        voting_member(group, "A", "pq"), voting_member(group, "B", "xqp"), voting_member(group, "C", "xqp")
    )
    for call in await group.rebalance(*members):
        await group.check("GEN-09", call, fields="protocol")


@votes.add("GEN-10", smoke=True)
async def order_is_preference(group: ScenarioContext) -> None:
    """A lone member gets the first protocol of its list, also when the order changes."""
    a = voting_member(group, "A", "pq")
    await group.check("GEN-10", await group.join_new(a), fields="protocol")
    await group.check("GEN-10", group.join(a, protocols=protocols_named(a, "qp")), fields="protocol")


@votes.add("GEN-11")
async def rolling_upgrade(group: ScenarioContext) -> None:
    """A new protocol is selected once the last member supports it."""
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
    """In a group of another protocol type, JoinGroup and SyncGroup return that type."""
    group.highest_version("JoinGroup", 7)
    a, b = await group.form_stable_group(voting_member(group, "A", "p"), voting_member(group, "B", "p"))
    for call in (*await group.rebalance(a, b), group.sync(a, version=group.highest_version("SyncGroup", 5))):
        await group.check("GEN-12", call, fields="protocol_type")


@votes.add("GEN-19")
async def kept_members_vote(group: ScenarioContext) -> None:
    """Static members that do not rejoin vote: their preference outweighs that of the member that rejoins."""
    group.highest_version("JoinGroup", 5)
    a = voting_member(group, "A", "qp")
    await group.form_stable_group(a, voting_member(group, "S", "pq", "one"), voting_member(group, "T", "pq", "two"))

    await group.check("GEN-19", group.join_with_new_metadata(a), fields="protocol")
