"""Scenarios in which requests are refused, one error after the other, or never get a response."""

from fencepost.adapters.client.cluster import delay, edit, hang_up, lose
from fencepost.conformance.classic.clients.draining import PROGRESS_S
from fencepost.conformance.classic.clients.driven import (
    MAX_INTERVAL_MS,
    consume,
    poll_interval,
    produce,
    require_instance,
)
from fencepost.conformance.classic.clients.rebalances import make_unstable, wants_stable_offsets
from fencepost.conformance.clients.stage import RECORDS, ClientScenarioFamily, ClientStage, NotShown
from fencepost.model.errors import Error
from fencepost.model.wire.codec import Body
from fencepost.traces.events import Kind

# -- commits and fetches, with a driver -------------------------------------------------------------------------------

FAMILY = ClientScenarioFamily()


@FAMILY.add("MCOMMIT-14", needs=("driver",))
async def a_commit_that_is_lost(stage: ClientStage) -> None:
    """The connection of the application's commit is closed in the place of its response."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    stage.play("OffsetCommit", hang_up(), "the connection of the next OffsetCommit is closed")
    stage.start_task(stage.do("commit"))
    await stage.watch(8)
    stage.application.go_on_polling()


@FAMILY.add("MCOMMIT-09", needs=("driver",))
async def a_commit_that_tells_of_a_rebalance(stage: ClientStage) -> None:
    """A commit of the application is told of a rebalance, of which no heartbeat tells."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    since = stage.mark()
    stage.refuse("OffsetCommit", Error.REBALANCE_IN_PROGRESS)
    await stage.do("commit")
    stage.application.go_on_polling()
    await stage.watch_rejoin(since)
    await stage.watch(2)


@FAMILY.add("MCOMMIT-15", needs=("driver", "auto-commit", "static-membership"))
async def a_periodic_commit_of_a_fenced_member(stage: ClientStage) -> None:
    """A commit of a static member is fenced that its application does not wait for."""
    require_instance(stage)
    await consume(stage, RECORDS)
    stage.refuse("OffsetCommit", Error.FENCED_INSTANCE_ID)
    await stage.watch(4)


@FAMILY.add("CALLBACK-07", "MCOMMIT-07", needs=("driver", "auto-commit"))
async def a_last_commit_that_takes_long(stage: ClientStage) -> None:
    """The application closes its client, and the response to its last commit takes 1 s."""
    await consume(stage, RECORDS)
    await produce(stage, 3)
    await stage.watch(0.5)
    stage.play("OffsetCommit", delay(1), "the response to OffsetCommit takes 1 s", times=1_000)
    await stage.ask_to_end()


@FAMILY.add("PREFETCH-05", needs=("driver",))
async def fetches_that_take_long(stage: ClientStage) -> None:
    """Each Fetch takes 1.5 s for its response, while records are written."""
    await consume(stage, RECORDS)
    slow = stage.play("Fetch", delay(1.5), "the response to Fetch takes 1.5 s", times=1_000)
    for _ in range(3):
        await produce(stage, 3)
        await stage.watch(1.5)
    stage.cluster.script.drop(slow)
    await stage.watch(1)


# -- one error after the other ----------------------------------------------------------------------------------------

MANY = 5
"""How many refusals of one kind show whether a client waits before it asks again."""
PASSING = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE)
COMMIT_ERRORS = (
    *PASSING,
    Error.REQUEST_TIMED_OUT,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.OFFSET_METADATA_TOO_LARGE,
    Error.TOPIC_AUTHORIZATION_FAILED,
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.UNKNOWN_SERVER_ERROR,
)
"""The errors of OffsetCommit that say nothing of the membership."""
MEMBERSHIP_ERRORS = (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID)
QUIET_S = 2.0
"""How long an application polls until it has been told what came of a commit."""


@FAMILY.add("MEMBER-17", "MEMBER-01")
async def a_coordinator_that_is_not_available(stage: ClientStage) -> None:
    """The first lookups of the coordinator fail."""
    stage.refuse("FindCoordinator", Error.COORDINATOR_NOT_AVAILABLE, times=MANY)
    await stage.start_and_become_stable()
    await stage.watch(1)


@FAMILY.add("MEMBER-17", "MCOMMIT-20", "PREFETCH-03")
async def offsets_that_cannot_be_told(stage: ClientStage) -> None:
    """OffsetFetch gets errors that may pass, and then offsets that are unstable."""
    for error in PASSING:
        stage.refuse("OffsetFetch", error, times=MANY if error is PASSING[0] else 1)
    note = "the next OffsetFetch gets UNSTABLE_OFFSET_COMMIT"
    stage.play("OffsetFetch", edit(make_unstable), note, times=MANY, matches=wants_stable_offsets)
    await stage.start_and_become_stable()
    await stage.watch(10)


@FAMILY.add("MCOMMIT-14", "MEMBER-17", needs=("driver",))
async def commits_that_are_refused(stage: ClientStage) -> None:
    """Commits of the application get one error after the other."""
    await consume(stage, RECORDS)
    for number, error in enumerate((PASSING[0], *COMMIT_ERRORS)):
        stage.application.stop_polling()
        cue = stage.refuse("OffsetCommit", error, times=1 if number else MANY)
        await stage.do("commit")
        stage.cluster.script.drop(cue)
        stage.application.go_on_polling()
        await stage.watch(0.7)
    await stage.watch(QUIET_S)


@FAMILY.add("MCOMMIT-14", "MCOMMIT-16", needs=("driver",))
async def commits_that_nobody_waits_for(stage: ClientStage) -> None:
    """The application commits twice without waiting, and then once more, for which it waits."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    stage.play("OffsetCommit", delay(0.5), "the response to OffsetCommit takes 500 ms", times=2)
    for command in ("commit_async", "commit_async", "commit"):
        await stage.do(command)
    stage.application.go_on_polling()
    await stage.watch(QUIET_S)


@FAMILY.add("MCOMMIT-10", "MCOMMIT-14", needs=("driver",))
async def commits_that_fail_unawaited(stage: ClientStage) -> None:
    """Commits for which the application does not wait get one error after the other."""
    await consume(stage, RECORDS)
    for error in (*COMMIT_ERRORS, *MEMBERSHIP_ERRORS):
        since = stage.mark()
        await refuse_unawaited_commit(stage, error)
        if error in MEMBERSHIP_ERRORS:
            await stage.watch_rejoin(since)
        await stage.watch(QUIET_S)


async def refuse_unawaited_commit(stage: ClientStage, error: Error) -> None:
    """The application commits and does not wait, which is refused."""
    stage.application.stop_polling()
    cue = stage.refuse("OffsetCommit", error)
    since = stage.mark()
    await stage.do("commit_async")
    await stage.watch_request("OffsetCommit", since=since, seconds=1)
    stage.application.go_on_polling()
    await stage.watch(0.1)
    stage.cluster.script.drop(cue)


@FAMILY.add("MCOMMIT-14", needs=("driver",))
async def commits_of_which_one_partition_is_refused(stage: ClientStage) -> None:
    """The application commits, once waiting and once without, and the last partition alone gets an error that may
    pass."""
    await consume(stage, RECORDS)
    for command in ("commit", "commit_async"):
        await produce(stage, 5)
        await stage.watch(1)
        stage.application.stop_polling()
        note = "the last partition of the next OffsetCommit gets UNKNOWN_TOPIC_OR_PARTITION"
        cue = stage.play("OffsetCommit", edit(refuse_last_partition), note)
        await stage.do(command)
        await stage.watch(0.2)
        stage.cluster.script.drop(cue)
        stage.application.go_on_polling()
        await stage.watch(QUIET_S)


def refuse_last_partition(body: Body) -> Body:
    """A response to OffsetCommit in which the last partition has an error."""
    *topics, last = body["topics"]
    *rows, row = last["partitions"]
    refused = row | {"error_code": Error.UNKNOWN_TOPIC_OR_PARTITION}
    return dict(body) | {"topics": [*topics, last | {"partitions": [*rows, refused]}]}


@FAMILY.add("MCOMMIT-17", needs=("driver", "auto-commit"))
async def a_periodic_commit_while_loading(stage: ClientStage) -> None:
    """A commit for which the application has not asked is told that the coordinator is loading."""
    await consume(stage, RECORDS)
    for error in (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.UNKNOWN_TOPIC_OR_PARTITION):
        await produce(stage, 5)
        since = stage.mark()
        cue = stage.refuse("OffsetCommit", error)
        await stage.watch_request("OffsetCommit", since=since, seconds=7)
        await stage.watch(QUIET_S)
        stage.cluster.script.drop(cue)


@FAMILY.add("POLL-03", needs=("driver",))
async def commands_about_partitions_that_are_not_assigned(stage: ClientStage) -> None:
    """The application seeks, pauses and resumes a partition that it does not have."""
    other = f"{stage.place.topic}-other"
    await stage.cluster.create_topic(other, 1, RECORDS)
    await consume(stage, RECORDS)
    await stage.do("seek", topic=other, partition=0, offset=5)
    for command in ("pause", "resume"):
        await stage.do(command, partitions=[[other, 0]])
    await produce(stage, 10)
    await stage.watch(QUIET_S)


# -- no response ------------------------------------------------------------------------------------------------------

SLACK_S = 4.0
"""How much later than its request timeout a client may give a request up."""


def request_timeout(stage: ClientStage) -> float:
    """The request timeout of the client in seconds. Raises `NotShown` if it is not known, or takes too long."""
    events = stage.cluster.events
    told = next((event for event in events if event.kind is Kind.INTERNAL and event.api == "driver"), None)
    timeout = int(told.body.get("timeouts", {}).get("request", 0)) if told is not None else 0
    if not 0 < timeout <= MAX_INTERVAL_MS:
        raise NotShown(f"the request timeout of the client is {timeout or 'not known'}; {MAX_INTERVAL_MS} ms is waited")
    return timeout / 1000


def lose_next(stage: ClientStage, api: str) -> None:
    """The next request to an API gets no response, nor does anything else on its connection."""
    stage.play(api, lose(), f"nothing more comes on the connection of the next {api}")


@FAMILY.add("MEMBER-01", needs=("driver",))
async def a_lookup_without_a_response(stage: ClientStage) -> None:
    """The first FindCoordinator gets no response."""
    lose_next(stage, "FindCoordinator")
    await stage.start()
    first = await stage.request("FindCoordinator", seconds=stage.start_seconds)
    timeout = request_timeout(stage)
    await stage.request("FindCoordinator", since=first.sequence + 1, seconds=timeout + SLACK_S)
    await stage.become_stable(since=first.sequence)
    await stage.watch(1)


@FAMILY.add("MEMBER-14", "MEMBER-32", needs=("driver", "poll-interval"))
async def a_join_without_a_response(stage: ClientStage) -> None:
    """A JoinGroup gets no response."""
    await consume(stage, RECORDS)
    interval = poll_interval(stage)
    since = stage.mark()
    lose_next(stage, "JoinGroup")
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    first = await stage.request("JoinGroup", since=since)
    timeout = max(interval + 5, request_timeout(stage))
    await stage.request("JoinGroup", since=first.sequence + 1, seconds=timeout + SLACK_S)
    await stage.become_stable(since=first.sequence)
    await stage.watch(1)


@FAMILY.add("MEMBER-14", "MEMBER-16", needs=("driver",))
async def a_sync_without_a_response(stage: ClientStage) -> None:
    """A SyncGroup gets no response."""
    await consume(stage, RECORDS)
    since = stage.mark()
    lose_next(stage, "SyncGroup")
    stage.refuse("Heartbeat", Error.REBALANCE_IN_PROGRESS)
    first = await stage.request("SyncGroup", since=since)
    await stage.request("JoinGroup", since=first.sequence, seconds=request_timeout(stage) + SLACK_S)
    await stage.become_stable(since=first.sequence)
    await stage.watch(1)


@FAMILY.add("PREFETCH-03", "MCOMMIT-19", needs=("driver",))
async def first_offsets_without_a_response(stage: ClientStage) -> None:
    """The first OffsetFetch gets no response, and later the first ListOffsets."""
    for api in ("OffsetFetch", "ListOffsets"):
        lose_next(stage, api)
    await stage.start_and_become_stable()
    await stage.watch(stage.facts.session_timeout / 1000 + request_timeout(stage) + SLACK_S + PROGRESS_S)


@FAMILY.add("MCOMMIT-14", needs=("driver",))
async def a_commit_without_a_response(stage: ClientStage) -> None:
    """A commit that the application waits for gets no response."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    lose_next(stage, "OffsetCommit")
    stage.start_task(stage.do("commit"))
    await stage.watch(request_timeout(stage) + SLACK_S + 7)
    stage.application.go_on_polling()
    await stage.watch(1)


@FAMILY.add("MCOMMIT-14", needs=("driver",))
async def an_unawaited_commit_without_a_response(stage: ClientStage) -> None:
    """A commit that the application does not wait for gets no response."""
    await consume(stage, RECORDS)
    stage.application.stop_polling()
    lose_next(stage, "OffsetCommit")
    await stage.do("commit_async")
    stage.application.go_on_polling()
    await stage.watch(request_timeout(stage) + SLACK_S + 3)
