"""A client alone, under a leader, and as the leader of another member."""

import asyncio

from fencepost.adapters.client.cluster import CLIENT_LABEL, delay
from fencepost.adapters.client.program import ScriptedMember
from fencepost.conformance.clients.stage import PARTITIONS, ClientScenarioFamily, ClientStage, NotShown, StageBlocked
from fencepost.model.errors import Error
from fencepost.traces.events import Event, Kind

FAMILY = ClientScenarioFamily()
MAX_PARKED_S = 8
"""The longest rebalance timeout that is waited out."""


@FAMILY.add(
    "MEMBER-01",
    "MEMBER-02",
    "MEMBER-03",
    "MEMBER-04",
    "MEMBER-05",
    "MEMBER-06",
    "MEMBER-08",
    "MEMBER-22",
    "MEMBER-23",
    "MEMBER-33",
    "HBT-01",
    "HBT-02",
    "MCOMMIT-03",
    "MCOMMIT-18",
    "WIRE-01",
    "WIRE-04",
    "WIRE-05",
    "WIRE-06",
    "PREFETCH-05",
    "PREFETCH-08",
)
async def a_client_alone(stage: ClientStage) -> None:
    """A client joins, consumes for a while, and closes."""
    await stage.start_and_become_stable()
    for _ in range(2):
        await stage.request("Heartbeat", since=stage.mark())
    await stage.watch(1)
    await stage.ask_to_end()


@FAMILY.add(
    "MEMBER-08",
    "MEMBER-10",
    "ASSIGN-01",
    "ASSIGN-02",
    "ASSIGN-03",
    "ASSIGN-04",
    "RANGE-01",
    "RANGE-02",
    "RR-01",
    "RR-04",
    "STICKY-01",
    "STICKY-02",
    "STICKY-03",
    "STICKY-18",
    "COOP-01",
    "COOP-08",
    "COOP-09",
    "COOP-10",
    "WIRE-03",
)
async def a_leader_of_two(stage: ClientStage) -> None:
    """Another member joins: the client is told with a heartbeat, joins again and plans for both."""
    await stage.start_and_become_stable()
    since = stage.mark()
    member = stage.add_member()
    stage.start_task(member.take_part())
    await stage.watch_rejoin(since)
    await stage.watch(1.5)


@FAMILY.add("MEMBER-07", "MEMBER-21")
async def a_follower(stage: ClientStage) -> None:
    """Another member leads and gives the client partitions; then the topic grows, which is the leader's affair."""
    member = await lead(stage)
    await stage.request("JoinGroup", seconds=stage.start_seconds)
    await plan_for_all(stage, member)
    await stage.become_stable()
    since = stage.mark()
    stage.start_task(keep_alive(member))
    await stage.cluster.grow_topic(stage.place.topic, PARTITIONS + 2)
    try:
        await stage.request("Metadata", since=since, seconds=4)
    except StageBlocked as reason:
        raise NotShown("the client asked for no metadata within 4 s") from reason
    await stage.watch(2)


@FAMILY.add("MEMBER-10", "COOP-03", "COOP-04", "WIRE-03")
async def a_partition_taken_away(stage: ClientStage) -> None:
    """The leader gives the client everything first, and one partition less in the next round."""
    member = await lead(stage)
    await stage.request("JoinGroup", seconds=stage.start_seconds)
    everything = [(stage.place.topic, number) for number in range(PARTITIONS)]
    client = await plan_round(stage, member, everything)
    await stage.become_stable()
    since = stage.mark()
    await join_as_leader(stage, member)
    await member.sync({client: everything[1:], member.id: []})
    await stage.become_stable(since=since)
    since = stage.mark()
    stage.start_task(rejoin_when_told(member, {client: everything[1:]}, everything[:1]))
    await stage.watch_rejoin(since)


@FAMILY.add("HBT-03")
async def a_late_assignment(stage: ClientStage) -> None:
    """The response to SyncGroup takes its time."""
    stage.play("SyncGroup", delay(5), "the response to SyncGroup takes 5 s")
    await stage.start()
    await stage.become_stable()


@FAMILY.add("HBT-04", "HBT-16", "MEMBER-06", "MEMBER-32")
async def a_parked_join(stage: ClientStage) -> None:
    """A JoinGroup is parked for longer than several heartbeats, as another member does not join; for longer than the
    rebalance timeout if that is short."""
    await stage.start_and_become_stable()
    since = stage.mark()
    member = stage.add_member()
    taking_part = stage.start_task(member.take_part())
    await stage.become_stable(since=since)
    await stage.wait_for("Heartbeat of the other member", is_heartbeat_of_another, since=since)
    taking_part.cancel()
    since = stage.mark()
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    await stage.request("JoinGroup", since=since)
    rebalance_s = stage.facts.rebalance_timeout / 1000
    await stage.watch(rebalance_s + 1 if rebalance_s <= MAX_PARKED_S else 4)
    stage.start_task(member.take_part())
    await stage.become_stable(since=since)
    await stage.watch(1.5)


def is_heartbeat_of_another(event: Event) -> bool:
    """Whether an event is a heartbeat of a scripted member."""
    return event.kind is Kind.REQUEST and event.api == "Heartbeat" and event.member != CLIENT_LABEL


async def lead(stage: ClientStage) -> ScriptedMember:
    """Start the client when another member leads the group already."""
    member = stage.add_member()
    await member.join()
    await member.sync({member.id: []})
    await stage.start()
    return member


async def join_as_leader(stage: ClientStage, member: ScriptedMember) -> str:
    """Have the leader join again, and wait for the client; its member id."""
    async with asyncio.timeout(20):
        await member.join()
    return next((id for id in member.members if id != member.id), "")


async def plan_round(stage: ClientStage, member: ScriptedMember, partitions: list[tuple[str, int]]) -> str:
    """A round in which the client gets these partitions; its member id."""
    async with asyncio.timeout(stage.start_seconds):
        await keep_alive(member)
    client = await join_as_leader(stage, member)
    await member.sync({client: partitions, member.id: []})
    return client


async def plan_for_all(stage: ClientStage, member: ScriptedMember) -> None:
    """A round in which the client gets all but the first partition."""
    await plan_round(stage, member, [(stage.place.topic, number) for number in range(1, PARTITIONS)])


async def keep_alive(member: ScriptedMember) -> None:
    """Have the leader send heartbeats until it is told of a rebalance."""
    while await member.heartbeat() == Error.NONE:
        await asyncio.sleep(0.2)


async def rejoin_when_told(
    member: ScriptedMember, plan: dict[str, list[tuple[str, int]]], own: list[tuple[str, int]]
) -> None:
    """Have the leader send heartbeats until it is told of a rebalance, and plan the next round."""
    await keep_alive(member)
    await member.join()
    await member.sync({**plan, member.id: own})
    await keep_alive(member)
