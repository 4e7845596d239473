"""Bugs of members: what is committed, when, and what a failed commit does; and where a partition begins."""

from collections import defaultdict
from typing import Any

from fencepost.adapters.classic.client.client import ReferenceClient
from fencepost.conformance.classic.zoo.clients.membership import NEVER, stop_consuming
from fencepost.conformance.classic.zoo.clients.reference import (
    COOPERATIVE,
    LATEST,
    client_family,
    instead_of,
    replace_function,
)
from fencepost.conformance.zoo.fault import Patch, Shipped, Side
from fencepost.model.classic.member import commits, heartbeats, leaving, lookup
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import (
    Client,
    ClientContext,
    CommitPurpose,
    Position,
    Problem,
    is_rebalancing,
)
from fencepost.model.classic.member.member import Member, MemberState, MemberStep, PartitionCommit, SentRequest
from fencepost.model.classic.member.step import ClientStep, Poll, then
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Offset, OffsetFetchResponse

commit_bugs = client_family(Side.MEMBER)
THROWN_OUT = (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID)


def commit_whatever_the_state(patch: Patch, allowed: Any) -> None:
    """Have commits sent in these states, too."""
    local = commits.local_failure

    def send(member: Member, handle: Any, wanted: Any) -> MemberStep:
        partitions = tuple(wanted)
        sent = SentRequest(PartitionCommit(core.commit_request(member, handle), partitions), any(partitions))
        return MemberStep(member, (sent,), "member.commit")

    replace_function(patch, local, lambda client: None if allowed(client) else local(client))
    replace_function(patch, core.commit, send)


@commit_bugs.add("BUG-63", "KAFKA-6362, https://github.com/apache/kafka/commit/ac267dc5cec", "MCOMMIT-17")
def commits_find_no_coordinator(patch: Patch) -> None:
    """A client with partitions of its own does not look for the coordinator to commit."""
    find, periodically = heartbeats.find_if_needed, commits.commit_periodically

    def find_for_offsets(client: Client, context: ClientContext) -> ClientStep:
        return find(client, context) if any(one.offset is None for one in client.positions) else ClientStep(client)

    def commit_if_known(client: Client, context: ClientContext) -> ClientStep:
        is_lost = client.is_manual and client.coordinator is None
        return ClientStep(client) if is_lost else periodically(client, context)

    replace_function(patch, find, find_for_offsets)
    replace_function(patch, periodically, commit_if_known)


@commit_bugs.add("BUG-64", "KAFKA-6606, https://github.com/apache/kafka/commit/604b93cfdee", "MCOMMIT-17")
def every_poll_commits_again(patch: Patch) -> None:
    """The time of the next auto-commit is set when a commit is over: until then every poll sends another."""
    periodically = commits.commit_periodically

    def commit_again(client: Client, context: ClientContext) -> ClientStep:
        step = periodically(client, context)
        return ClientStep(evolve(step.client, clocks=client.clocks), step.outputs, step.rules)

    def finish(client: Client, commit: Any, failure: Any, context: ClientContext) -> ClientStep:
        step = finished(client, commit, failure, context)
        due = context.now + client.settings.auto_commit_interval
        return ClientStep(
            evolve(step.client, clocks=evolve(step.client.clocks, auto_commit=due)), step.outputs, step.rules
        )

    finished = lookup.finish_commit
    replace_function(patch, periodically, commit_again)
    replace_function(patch, finished, finish)


@commit_bugs.add(
    "BUG-74", "KAFKA-14024, https://github.com/apache/kafka/commit/eee40200df5", "MEMBER-10", setting=COOPERATIVE
)
def each_poll_commits_before_the_join(patch: Patch) -> None:
    """Each poll begins another commit before the rebalance, none is waited for, and JoinGroup never comes."""
    before = commits.commit_before_rebalance

    def begin_again(client: Client, context: ClientContext) -> ClientStep:
        if not client.settings.auto_commit or not client.positions or commits.local_failure(client) is not None:
            return before(client, context)
        return commits.start_commit(client, CommitPurpose.PREPARE, commits.offsets_to_commit(client, None), context)

    def finish(client: Client, commit: Any, failure: Any, context: ClientContext) -> ClientStep:
        step = finished(client, commit, failure, context)
        is_before = commit.purpose is CommitPurpose.PREPARE
        return ClientStep(evolve(step.client, is_committed=False), step.outputs) if is_before else step

    finished = lookup.finish_commit
    replace_function(patch, before, begin_again)
    replace_function(patch, finished, finish)


@commit_bugs.add("BUG-75", "KAFKA-19242, https://github.com/apache/kafka/pull/19631", "MCOMMIT-08", setting=COOPERATIVE)
@instead_of(commits.local_failure)
def a_commit_in_a_rebalance_fails_for_good(shipped: Shipped[Any], client: Client) -> Any:
    """A commit while the member joins fails as one of a member that was thrown out."""
    failure = shipped(client)
    return Problem.COMMIT_FAILED if failure is not None else None


@commit_bugs.add(
    "BUG-78", "librdkafka issues 1605, 2933, https://github.com/confluentinc/librdkafka/commit/d0a9a8a6f", "PREFETCH-03"
)
@instead_of(lookup.finish_commit)
def a_failed_commit_stops_the_fetching(
    shipped: Shipped[ClientStep], client: Client, commit: Any, failure: Any, context: ClientContext
) -> ClientStep:
    """After a commit that has failed no partition that is assigned is fetched."""
    step = shipped(client, commit, failure, context)
    if failure is None:
        return step
    return ClientStep(
        evolve(step.client, clocks=evolve(step.client.clocks, offsets_retry=NEVER)), step.outputs, step.rules
    )


@commit_bugs.add(
    "BUG-79",
    "librdkafka issue 2782, https://github.com/confluentinc/librdkafka/commit/562437c9b",
    "MCOMMIT-18",
    "MCOMMIT-05",
)
def a_stored_offset_survives_its_partition(patch: Patch) -> None:
    """A partition that comes back is committed at the offset that it had before, until its records come."""
    stored: dict[Any, int] = {}
    wanted = commits.offsets_to_commit

    def commit_stored(client: Client, chosen: Any) -> Any:
        rows = dict(wanted(client, chosen))
        stored.update({partition: offset.offset for partition, offset in rows.items()})
        missing = [one.partition for one in client.positions if one.offset is None and one.partition in stored]
        return tuple((rows | {partition: Offset(stored[partition]) for partition in missing}).items())

    replace_function(patch, wanted, commit_stored)


@commit_bugs.add(
    "BUG-80", "librdkafka 1.7.0, https://github.com/confluentinc/librdkafka/commit/fee6b90c6", "MCOMMIT-08"
)
def auto_commit_runs_in_a_rebalance(patch: Patch) -> None:
    """Auto-commit goes on while JoinGroup has no response."""
    commit_whatever_the_state(patch, lambda client: client.member.state == MemberState.PREPARING_REBALANCE)
    rebalance = heartbeats.rebalance

    def rebalance_and_commit(client: Client, context: ClientContext) -> ClientStep:
        return then(rebalance(client, context), context, commits.commit_periodically)

    replace_function(patch, rebalance, rebalance_and_commit)


@commit_bugs.add(
    "BUG-86", "franz-go issue 1326, https://github.com/twmb/franz-go/commit/824e34d2", "MEMBER-12", "MEMBER-13"
)
@instead_of(commits.judge_commit)
def a_fenced_commit_is_only_logged(shipped: Shipped[Any], client: Client, request: Any, error: Error) -> Any:
    """UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION in the response to a commit change nothing."""
    return (client, None, "client.commit.done") if error in THROWN_OUT else shipped(client, request, error)


@commit_bugs.add(
    "BUG-89", "franz-go issue 57, https://github.com/twmb/franz-go/commit/28bba437", "MCOMMIT-04", "MCOMMIT-01"
)
@instead_of(ReferenceClient.poll)
def auto_commit_covers_what_was_just_returned(
    shipped: Shipped[None], client: ReferenceClient, timeout_ms: int = 0
) -> None:
    """The auto-commit of a poll covers the records that the same poll returns."""
    kept: list[Any] = []
    vars(client)["on_records"] = kept.append
    shipped(client, timeout_ms)
    del vars(client)["on_records"]
    client.give(Poll(timeout_ms))
    for records in kept:
        client.on_records(records)


@commit_bugs.add(
    "BUG-92", "franz-go issue 409, https://github.com/twmb/franz-go/commit/ee709306", "MCOMMIT-08", setting=COOPERATIVE
)
def commits_are_sent_before_the_sync(patch: Patch) -> None:
    """Commits are sent between JoinGroup and the response to SyncGroup."""
    commit_whatever_the_state(patch, is_rebalancing)


@commit_bugs.add("BUG-93", "franz-go, https://github.com/twmb/franz-go/commit/46cfcb72", "MCOMMIT-07")
@instead_of(leaving.close)
def the_last_commit_is_cancelled(shipped: Shipped[ClientStep], client: Client, context: ClientContext) -> ClientStep:
    """A client that closes leaves without its last commit."""
    settings = client.settings
    step = shipped(evolve(client, settings=evolve(settings, auto_commit=False)), context)
    return ClientStep(evolve(step.client, settings=settings), step.outputs, step.rules)


@commit_bugs.add(
    "BUG-101", "kafka-python PR 2614, https://github.com/dpkp/kafka-python/commit/d9c2009d", "MCOMMIT-09", "MEMBER-12"
)
def a_commit_told_of_a_rebalance_costs_the_id(patch: Patch) -> None:
    """REBALANCE_IN_PROGRESS in the response to a commit, and ILLEGAL_GENERATION anywhere, throw the member id away."""
    answered, lose = core.on_commit_response, core.lose_generation

    def on_response(member: Member, request: Any, response: Any) -> MemberStep:
        if response.error == Error.REBALANCE_IN_PROGRESS:
            return MemberStep(core.lose_membership(member), (), "member.commit.rebalance")
        return answered(member, request, response)

    replace_function(patch, answered, on_response)
    replace_function(patch, lose, lambda member: evolve(lose(member), id=None))


@commit_bugs.add("BUG-102", "kafka-python PR 2629, https://github.com/dpkp/kafka-python/commit/3463f595", "MCOMMIT-19")
@instead_of(lookup.on_offsets)
def offsets_that_do_not_come_are_reset(
    shipped: Shipped[ClientStep], client: Client, handle: int, response: OffsetFetchResponse, context: ClientContext
) -> ClientStep:
    """A partition whose committed offset cannot be fetched begins where the reset policy says."""
    if response.error == Error.NONE:
        return shipped(client, handle, response, context)
    asked = tuple(one.partition for one in client.positions if one.asked == handle)
    return lookup.reset_positions(ClientStep(client), asked, context) if asked else ClientStep(client)


@commit_bugs.add(
    "BUG-106", "kafkajs issue 1009, https://github.com/tulios/kafkajs/commit/5ec2806d", "MEMBER-12", "MEMBER-13"
)
@instead_of(commits.judge_commit)
def a_fenced_commit_is_fatal(shipped: Shipped[Any], client: Client, request: Any, error: Error) -> Any:
    """ILLEGAL_GENERATION and UNKNOWN_MEMBER_ID in the response to a commit end the application."""
    if error in THROWN_OUT and not client.is_manual:
        return stop_consuming(client, error), error, "client.commit.refused"
    return shipped(client, request, error)


@commit_bugs.add("BUG-107", "kafka-go issue 1308, https://github.com/segmentio/kafka-go/issues/1308", "MCOMMIT-18")
def old_work_is_committed_under_the_new_generation(patch: Patch) -> None:
    """A commit covers partitions that the member has lost, under its new generation."""
    read: dict[str, dict[Any, int]] = defaultdict(dict)  # by group: each client has its own
    wanted, core_commit = commits.offsets_to_commit, commits.core_commit

    def commit_all(client: Client, chosen: Any) -> Any:
        rows = dict(wanted(client, chosen))
        known = read[client.settings.group]
        known.update({partition: offset.offset for partition, offset in rows.items()})
        everything = {partition: Offset(offset) for partition, offset in known.items()} if chosen is None else {}
        return tuple((everything | rows).items())

    def allow_all(client: Client, handle: Any, partitions: Any) -> Any:
        request, _ = core_commit(client, handle, partitions)
        return request, frozenset(partitions)

    replace_function(patch, wanted, commit_all)
    replace_function(patch, core_commit, allow_all)


@commit_bugs.add(
    "BUG-108", "kafka-go, https://github.com/segmentio/kafka-go/commit/9066af4", "MCOMMIT-02", "MCOMMIT-19"
)
@instead_of(commits.offsets_to_commit)
def the_last_record_is_committed(shipped: Shipped[Any], client: Client, chosen: Any) -> Any:
    """A commit has the offset of the last record that was returned, in the place of the next one."""
    return tuple((partition, Offset(max(offset.offset - 1, 0))) for partition, offset in shipped(client, chosen))


@commit_bugs.add("BUG-109", "kafka-go, https://github.com/segmentio/kafka-go/commit/1aea340", "MCOMMIT-05")
@instead_of(commits.commit_before_rebalance)
def queued_commits_are_dropped(shipped: Shipped[ClientStep], client: Client, context: ClientContext) -> ClientStep:
    """What is not committed yet when a generation ends never is."""
    return ClientStep(evolve(client, is_committed=True))


@commit_bugs.add("BUG-113", "brod, https://github.com/kafka4beam/brod/commit/4ab2f70", "MCOMMIT-19", setting=LATEST)
@instead_of(lookup.on_offsets)
def a_committed_zero_is_none(
    shipped: Shipped[ClientStep], client: Client, handle: int, response: OffsetFetchResponse, context: ClientContext
) -> ClientStep:
    """A committed offset of 0 counts as none, and the partition begins at its end."""
    offsets = {one: Offset(-1) if offset and not offset.offset else offset for one, offset in response.offsets.items()}
    return shipped(client, handle, OffsetFetchResponse(offsets, response.error), context)


@commit_bugs.add("BUG-114", "ruby-kafka, https://github.com/zendesk/ruby-kafka/commit/1ef03bd", "MCOMMIT-19")
def a_position_survives_its_partition(patch: Patch) -> None:
    """A partition that comes back goes on at the position that it had, whatever is committed."""
    cached: dict[Any, int] = {}
    install = commits.install_assignment

    def install_cached(client: Client, context: ClientContext) -> ClientStep:
        step = install(client, context)
        rows = tuple(
            Position(one.partition, cached.get(one.partition)) if one.offset is None else one
            for one in step.client.positions
        )
        return ClientStep(evolve(step.client, positions=rows), step.outputs, step.rules)

    def return_and_keep(client: Client, given: Any, context: ClientContext) -> ClientStep:
        cached[given.partition] = given.following
        return returned(client, given, context)

    returned = lookup.return_records
    replace_function(patch, install, install_cached)
    replace_function(patch, returned, return_and_keep)


@commit_bugs.add("BUG-117", "Dekaf issue 892, https://github.com/thomhurst/Dekaf/commit/f4ea9d07b", "MCOMMIT-17")
@instead_of(heartbeats.poll)
def each_poll_restarts_the_timer(
    shipped: Shipped[ClientStep], client: Client, given: Poll, context: ClientContext
) -> ClientStep:
    """Each poll begins the auto-commit interval anew."""
    due = context.now + client.settings.auto_commit_interval
    return shipped(evolve(client, clocks=evolve(client.clocks, auto_commit=due)), given, context)
