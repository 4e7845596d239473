"""Errors in the responses to Heartbeat, JoinGroup, SyncGroup, OffsetCommit and OffsetFetch."""

from typing import Any

from fencepost.adapters.client.cluster import edit, hang_up
from fencepost.conformance.clients.stage import ClientScenarioFamily, ClientStage, NotShown, StageBlocked, has_member_id
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body, DecodedRequest

FAMILY = ClientScenarioFamily()


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
    """Start the client; one that is static has joined once before it sends a JoinGroup with a member id."""
    await stage.start()
    if api == "JoinGroup" and stage.facts.is_static:
        await stage.become_stable()
        stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)


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
