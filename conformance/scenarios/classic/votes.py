"""Which protocol a round is held under."""

from collections.abc import Sequence

from fencepost.conformance.scenario.context import Member, Stage
from fencepost.conformance.scenario.scenario import Collection
from fencepost.traces.events import Body

votes = Collection()


def offer(member: Member, names: Sequence[str]) -> list[Body]:
    """Protocols of these names, in this order, with the member's label for metadata."""
    member.protocols = tuple((name, member.label.encode()) for name in names)
    return [{"name": name, "metadata": metadata} for name, metadata in member.protocols]


def voter(stage: Stage, label: str, names: str, instance: str | None = None) -> Member:
    """A member that offers protocols of one letter each and need not heartbeat."""
    member = stage.silent(label, *names, instance=instance, protocol_type="worker")
    offer(member, names)
    return member


@votes.add("GEN-08")
async def protocol_suits_all(stage: Stage) -> None:
    """Each member likes something better that the other does not offer."""
    a, b = await stage.stable(voter(stage, "A", "pq"), voter(stage, "B", "rq"))
    for call in await stage.regroup(a, b):
        stage.shows("GEN-08", call, "protocol")


@votes.add("GEN-09")
async def members_disagree(stage: Stage) -> None:
    """Two members offer the same in another order: either has one vote, and both are told the same."""
    a, b = await stage.stable(stage.member("A", "p", "q"), stage.member("B", "p", "q"))
    first = stage.join(b, protocols=offer(b, "qp"))
    await stage.sleep(2 * stage.step)
    calls = (first, stage.join(a))
    for call in calls:
        stage.shows("GEN-09", call, "protocol")
    for call in calls:
        await call


@votes.add("GEN-09")
async def most_votes_win(stage: Stage) -> None:
    """Two of three members prefer the second of two protocols that all offer."""
    members = await stage.stable(voter(stage, "A", "pq"), voter(stage, "B", "qp"), voter(stage, "C", "qp"))
    for call in await stage.regroup(*members):
        stage.shows("GEN-09", call, "protocol")


@votes.add("GEN-09")
async def votes_are_for_what_all_offer(stage: Stage) -> None:
    """A vote goes to the first protocol that everyone has, not to the first of the list."""
    members = await stage.stable(voter(stage, "A", "pq"), voter(stage, "B", "xqp"), voter(stage, "C", "xqp"))
    for call in await stage.regroup(*members):
        stage.shows("GEN-09", call, "protocol")


@votes.add("GEN-10", smoke=True)
async def order_is_preference(stage: Stage) -> None:
    """Alone, a member gets the first of its list, and the other one once that comes first."""
    a = voter(stage, "A", "pq")
    call = await stage.enter(a)
    await call
    stage.shows("GEN-10", call, "protocol")
    call = stage.join(a, protocols=offer(a, "qp"))
    await call
    stage.shows("GEN-10", call, "protocol")


@votes.add("GEN-11")
async def rolling_upgrade(stage: Stage) -> None:
    """The new protocol waits until the last member offers it."""
    a, b = voter(stage, "A", "qp"), voter(stage, "B", "p")
    ordered = await stage.stable(a, b)
    for call in await stage.regroup(*ordered):
        stage.shows("GEN-11", call, "protocol")
    await stage.settle(*ordered)
    upgraded = stage.join(b, protocols=offer(b, "qp"))
    await stage.sleep(2 * stage.step)
    for call in (stage.join(a), upgraded):
        await call
        stage.shows("GEN-11", call, "protocol")


@votes.add("GEN-12")
async def protocol_type_is_the_groups(stage: Stage) -> None:
    """Both members of a group of workers, when they join and when they sync."""
    stage.version("JoinGroup", 7)
    a, b = await stage.stable(voter(stage, "A", "p"), voter(stage, "B", "p"))
    for call in (*await stage.regroup(a, b), stage.sync(a, version=stage.version("SyncGroup", 5))):
        await call
        stage.shows("GEN-12", call, "protocol_type")


@votes.add("GEN-19")
async def kept_members_vote(stage: Stage) -> None:
    """Two static members stay away; their preference outweighs that of the one member that came."""
    stage.version("JoinGroup", 5)
    a = voter(stage, "A", "qp")
    await stage.stable(a, voter(stage, "S", "pq", "one"), voter(stage, "T", "pq", "two"))
    call = stage.join_changed(a)
    await call
    stage.shows("GEN-19", call, "protocol")
