"""What a cluster does to any client: it leads, it follows, gets errors, loses its coordinator or its assignment, and
closes."""

import asyncio
from contextlib import suppress
from typing import Any

from fencepost.adapters.client.cluster import CLIENT_LABEL, delay, double, edit, hang_up, hold, lose
from fencepost.adapters.client.program import ScriptedMember
from fencepost.conformance.clients.stage import (
    CLOSING_S,
    PARTITIONS,
    ClientScenarioFamily,
    ClientStage,
    NotShown,
    StageBlocked,
    has_member_id,
)
from fencepost.model.assignors.consumer_protocol import encode_assignment
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body, DecodedRequest
from fencepost.traces.events import Event, Kind

# -- rebalances -------------------------------------------------------------------------------------------------------

FAMILY = ClientScenarioFamily()
MAX_PARKED_S = 8
"""The longest rebalance timeout that is waited out."""
FIRST_REQUIRING_ID = 4
"""The first version of JoinGroup whose response gives a member its id before it is in a generation."""


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
    await plan_round(stage, member, [(stage.place.topic, number) for number in range(1, PARTITIONS)])
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

    def is_of_the_other(event: Event) -> bool:
        return event.kind is Kind.REQUEST and event.api == "Heartbeat" and event.member != CLIENT_LABEL

    await stage.wait_for("Heartbeat of the other member", is_of_the_other, since=since)
    taking_part.cancel()
    since = stage.mark()
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    await stage.request("JoinGroup", since=since)
    rebalance_s = stage.facts.rebalance_timeout / 1000
    await stage.watch(rebalance_s + 1 if rebalance_s <= MAX_PARKED_S else 4)
    stage.start_task(member.take_part())
    await stage.become_stable(since=since)
    await stage.watch(1.5)


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


# -- errors in responses ----------------------------------------------------------------------------------------------


@FAMILY.add("MEMBER-12", "COOP-17")
async def a_heartbeat_of_an_old_generation(stage: ClientStage) -> None:
    """A heartbeat is told that its generation is over."""
    await stage.start_and_become_stable()
    await stage.watch(1.5)  # until then it may be at work on its assignment
    since = stage.mark()
    stage.refuse("Heartbeat", Error.ILLEGAL_GENERATION)
    await stage.response("Heartbeat", Error.ILLEGAL_GENERATION, since=since)
    await stage.watch_rejoin(since)


@FAMILY.add("MEMBER-13", "COOP-17")
async def a_heartbeat_of_a_forgotten_member(stage: ClientStage) -> None:
    """A heartbeat is told that the coordinator does not know the member."""
    await stage.start_and_become_stable()
    since = stage.mark()
    stage.evict("Heartbeat")
    await stage.response("Heartbeat", Error.UNKNOWN_MEMBER_ID, since=since)
    await stage.watch_rejoin(since)


@FAMILY.add("MEMBER-11", "MEMBER-16")
async def a_sync_during_a_rebalance(stage: ClientStage) -> None:
    """SyncGroup is told of another rebalance."""
    await refuse_first(stage, "SyncGroup", Error.REBALANCE_IN_PROGRESS)


@FAMILY.add("MEMBER-12", "MEMBER-16")
async def a_sync_of_an_old_generation(stage: ClientStage) -> None:
    """SyncGroup is told that its generation is over."""
    await refuse_first(stage, "SyncGroup", Error.ILLEGAL_GENERATION)


@FAMILY.add("MEMBER-13", "MEMBER-16")
async def a_sync_of_a_forgotten_member(stage: ClientStage) -> None:
    """SyncGroup is told that the coordinator does not know the member."""
    await forget_first(stage, "SyncGroup")


@FAMILY.add("MEMBER-14", "MEMBER-16", "MEMBER-39")
async def a_sync_elsewhere(stage: ClientStage) -> None:
    """SyncGroup is told that another node coordinates."""
    await refuse_first(stage, "SyncGroup", Error.NOT_COORDINATOR)


@FAMILY.add("MEMBER-14", "MEMBER-16")
async def a_sync_that_loses_its_connection(stage: ClientStage) -> None:
    """The connection ends after SyncGroup."""
    stage.play("SyncGroup", hang_up(), "the connection is closed after SyncGroup")
    await stage.start()
    await stage.request("SyncGroup", seconds=stage.start_seconds)
    await stage.watch_rejoin(stage.mark())


@FAMILY.add("MEMBER-34")
async def a_join_during_a_rebalance(stage: ClientStage) -> None:
    """JoinGroup is told of another rebalance."""
    await refuse_first(stage, "JoinGroup", Error.REBALANCE_IN_PROGRESS, matches=has_member_id)


@FAMILY.add("MEMBER-13")
async def a_join_of_a_forgotten_member(stage: ClientStage) -> None:
    """JoinGroup with a member id is told that the coordinator does not know it."""
    await forget_first(stage, "JoinGroup")


@FAMILY.add("MEMBER-14", "MEMBER-17")
async def a_join_while_loading(stage: ClientStage) -> None:
    """JoinGroup is told three times that the coordinator is loading."""
    await refuse_first(stage, "JoinGroup", Error.COORDINATOR_LOAD_IN_PROGRESS, times=3, matches=has_member_id)


@FAMILY.add("MEMBER-14", "MEMBER-39")
async def a_join_elsewhere(stage: ClientStage) -> None:
    """JoinGroup is told that another node coordinates."""
    await refuse_first(stage, "JoinGroup", Error.NOT_COORDINATOR, matches=has_member_id)


@FAMILY.add("MEMBER-14")
async def a_join_that_loses_its_connection(stage: ClientStage) -> None:
    """The connection ends after JoinGroup."""
    stage.play("JoinGroup", hang_up(), "the connection is closed after JoinGroup", matches=has_member_id)
    await start_joining(stage, "JoinGroup")
    await stage.wait_for(
        "JoinGroup without a response", lambda event: event.api == "hangup", seconds=stage.start_seconds
    )
    await stage.watch_rejoin(stage.mark())


@FAMILY.add("MEMBER-12", "MCOMMIT-10")
async def a_commit_of_an_old_generation(stage: ClientStage) -> None:
    """A commit is told that its generation is over."""
    await refuse_commit(stage, Error.ILLEGAL_GENERATION)


@FAMILY.add("MCOMMIT-09")
async def a_commit_during_a_rebalance(stage: ClientStage) -> None:
    """A commit is told of a rebalance."""
    await refuse_commit(stage, Error.REBALANCE_IN_PROGRESS)


@FAMILY.add("MCOMMIT-20")
async def offsets_that_are_unstable(stage: ClientStage) -> None:
    """OffsetFetch is told that an offset is unstable, which no broker says to a client that takes such offsets."""
    note = "the next OffsetFetch gets UNSTABLE_OFFSET_COMMIT"
    stage.play("OffsetFetch", edit(make_unstable), note, matches=wants_stable_offsets)
    await stage.start_and_become_stable()
    await stage.request("OffsetFetch")
    await stage.watch(7)


async def refuse_first(stage: ClientStage, api: str, error: Error, **options: Any) -> None:
    """Refuse the first JoinGroup or SyncGroup of a client, and watch how it joins again."""
    stage.refuse(api, error, **options)
    await watch_failure(stage, api, error)


async def forget_first(stage: ClientStage, api: str) -> None:
    """Have the coordinator forget a member before its first JoinGroup or SyncGroup, and watch how it joins again."""
    stage.evict(api)
    await watch_failure(stage, api, Error.UNKNOWN_MEMBER_ID)


async def start_joining(stage: ClientStage, api: str) -> None:
    """Start the client; one that gets its id with its generation has joined once before JoinGroup has a member id."""
    await stage.start()
    if api == "JoinGroup" and not await gets_id_first(stage):
        await stage.become_stable()
        stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)


async def gets_id_first(stage: ClientStage) -> bool:
    """Whether a client that was started gets its member id before it is in a generation (KIP-394)."""
    join = await stage.request("JoinGroup", seconds=stage.start_seconds)
    return join.version >= FIRST_REQUIRING_ID and not stage.facts.is_static


async def watch_failure(stage: ClientStage, api: str, error: Error) -> None:
    """Start the client, and watch how it joins again after this error of its JoinGroup or SyncGroup."""
    await start_joining(stage, api)
    failed = await stage.response(api, error, seconds=stage.start_seconds)
    await stage.watch_rejoin(failed.sequence)


async def refuse_commit(stage: ClientStage, error: Error) -> None:
    """Refuse the first commit of a stable client."""
    stage.refuse("OffsetCommit", error)
    await stage.start_and_become_stable()
    try:
        commit = await stage.request("OffsetCommit")
    except StageBlocked as reason:
        raise NotShown("the client does not commit by itself") from reason
    await stage.watch_rejoin(commit.sequence)


def wants_stable_offsets(request: DecodedRequest) -> bool:
    """Whether an OffsetFetch asks for stable offsets only."""
    return bool(request.body.get("require_stable"))


def make_unstable(body: Body) -> Body:
    """A response to OffsetFetch in which every offset is unstable."""

    def change(value: Any) -> Any:
        if isinstance(value, dict):
            row = {name: change(each) for name, each in value.items()}
            return row | {"error_code": Error.UNSTABLE_OFFSET_COMMIT} if "partition_index" in row else row
        return [change(each) for each in value] if isinstance(value, list) else value

    changed: Body = change(dict(body))
    return changed


# -- a coordinator that moves -----------------------------------------------------------------------------------------

MAX_SILENCE_S = 14
"""How long a silent coordinator is waited out."""


@FAMILY.add("MEMBER-14", "MEMBER-39")
async def a_coordinator_that_moves(stage: ClientStage) -> None:
    """Another node coordinates the group, with everything that is known of it."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    await stage.cluster.move()
    await stage.request("FindCoordinator", since=since)
    await stage.response("Heartbeat", since=since)
    await stage.watch(0.5)


@FAMILY.add("MEMBER-14")
async def connections_that_end(stage: ClientStage) -> None:
    """Every connection ends, and the client may come back at once."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    stage.cluster.hang_up()
    await stage.response("Heartbeat", since=since)
    await stage.watch(0.5)


@FAMILY.add("HBT-11", "MEMBER-14")
async def a_coordinator_that_falls_silent(stage: ClientStage) -> None:
    """Nothing more comes on the connection to the coordinator, which is there over another one."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    stage.play("Heartbeat", lose(), "nothing more comes on the connection of the next Heartbeat")
    patience = stage.facts.session_timeout / 1000 + 4
    await stage.watch_request("FindCoordinator", since=since, seconds=min(patience, MAX_SILENCE_S))
    await stage.watch(2)


@FAMILY.add("MEMBER-14")
async def a_response_that_comes_twice(stage: ClientStage) -> None:
    """The response to a heartbeat comes twice: the client may close the connection, and keeps its membership."""
    await stage.start_and_become_stable()
    await stage.request("Heartbeat")
    since = stage.mark()
    stage.play("Heartbeat", double(), "the response to the next Heartbeat comes twice")
    await stage.response("Heartbeat", since=since)
    await stage.response("Heartbeat", since=stage.mark())
    await stage.watch(1)


# -- assignments ------------------------------------------------------------------------------------------------------

METADATA_S = 8.0
"""How long a client may take to notice that a topic has grown, for this to be seen."""


@FAMILY.add("MEMBER-20")
async def an_assignment_outside_the_subscription(stage: ClientStage) -> None:
    """The client is assigned a partition of a topic that it does not subscribe to."""
    foreign = f"{stage.place.topic}-foreign"
    await stage.cluster.create_topic(foreign, 1, 1)

    def change(body: Body) -> Body:
        return {**body, "assignment": encode_assignment([(foreign, 0), (stage.place.topic, 0)], version=0)}

    stage.play("SyncGroup", edit(change), "the response to SyncGroup has a topic that is not subscribed")
    await stage.start()
    told = await stage.response("SyncGroup", seconds=stage.start_seconds)
    await stage.watch_rejoin(told.sequence + 1)


@FAMILY.add("MEMBER-21")
async def a_topic_that_grows(stage: ClientStage) -> None:
    """The topic gets more partitions while the client leads."""
    await stage.start_and_become_stable()
    since = stage.mark()
    await stage.cluster.grow_topic(stage.place.topic, PARTITIONS + 2)
    try:
        await stage.request("Metadata", since=since, seconds=METADATA_S)
    except StageBlocked as reason:
        raise NotShown(f"the client asked for no metadata within {METADATA_S:g} s") from reason
    await stage.watch_rejoin(since)


# -- closing ----------------------------------------------------------------------------------------------------------


@FAMILY.add("MEMBER-24")
async def closing_with_a_pending_id(stage: ClientStage) -> None:
    """The client is asked to close when it has nothing but a member id."""
    release = asyncio.Event()
    stage.play("JoinGroup", hold(release), "JoinGroup with the new id is parked", matches=has_member_id)
    await stage.start()
    if not await gets_id_first(stage):
        raise NotShown("the client is a member as soon as it has an id")
    await stage.request("JoinGroup", seconds=stage.start_seconds, where=lambda event: bool(event.body["member_id"]))
    await stage.watch(0.5)
    stage.start_task(release_later(stage, release))
    await stage.ask_to_end()


async def release_later(stage: ClientStage, release: asyncio.Event) -> None:
    """Go on with what is parked once the client has left: LeaveGroup waits for its response behind it."""
    with suppress(StageBlocked):
        await stage.request("LeaveGroup", seconds=CLOSING_S)
    release.set()


@FAMILY.add("MEMBER-22", "MEMBER-25")
async def a_leave_that_fails(stage: ClientStage) -> None:
    """The response to LeaveGroup is an error."""
    stage.refuse("LeaveGroup", Error.COORDINATOR_NOT_AVAILABLE, times=1_000)
    await stage.start_and_become_stable()
    await stage.watch(0.5)
    await stage.ask_to_end()
