"""Bugs of committed offsets: checks of commits, storage, and responses to OffsetFetch."""

from typing import Any

from fencepost.adapters.bundled.classic.cleanup import Cleanup
from fencepost.adapters.bundled.classic.commits import Commit, Commits, Results
from fencepost.adapters.bundled.classic.group import Group, Offset, State
from fencepost.adapters.bundled.classic.messages import Body, Error, Request
from fencepost.adapters.bundled.classic.offsets import Offsets
from fencepost.adapters.bundled.classic.subscription import CONSUMER
from fencepost.conformance.zoo.classic import environments
from fencepost.conformance.zoo.classic.bug import BugFamily
from fencepost.conformance.zoo.classic.environments import OFFSETS_REFUSED
from fencepost.conformance.zoo.classic.error_responses import error_body
from fencepost.conformance.zoo.mutation.patching import Patch
from fencepost.model.wire.primitives import ZERO_UUID

offsets = BugFamily()
UNKNOWN_PRODUCER = -2
"""A producer that no transaction has."""
REQUEST_TIMED_OUT = 7


@offsets.add("BUG-01", "KAFKA-2596, https://github.com/apache/kafka/commit/6a06e22ef81", "COMMIT-11")
def unknown_group_takes_every_commit(patch: Patch) -> None:
    """A group that there is no state for takes any commit, also one of a member of some generation."""
    patch.replace(Commits, "check_unknown_group", lambda commits, commit: Error.NONE)


@offsets.add("BUG-20", "KAFKA-13636, https://github.com/apache/kafka/commit/78a37894965", "COMMIT-25")
def offsets_expire_during_a_rebalance(patch: Patch) -> None:
    """The clean-up trusts the subscriptions of a group that is rebalancing, and removes offsets of topics in use."""

    def has_base_time(cleanup: Cleanup, group: Group) -> bool:
        return group.state is State.EMPTY or (group.protocol_type == CONSUMER and group.subscribed is not None)

    patch.replace(Cleanup, "has_base_time", has_base_time)


@offsets.add("BUG-22", "KAFKA-14201, https://github.com/apache/kafka/commit/706adc39f6a", "COMMIT-08")
def instance_id_makes_a_member(patch: Patch) -> None:
    """A commit without member and generation is checked as a member's if it carries an instance id."""
    check, check_unknown = Commits.check, Commits.check_unknown_group

    def check_instance(commits: Commits, group: Group, commit: Commit) -> Error:
        if commit.instance_id is not None and (error := group.check_member(commit.member_id, commit.instance_id)):
            return error
        return check(commits, group, commit)

    def check_unknown_instance(commits: Commits, commit: Commit) -> Error:
        if commit.instance_id is not None and commit.generation < 0:
            return Error.UNKNOWN_MEMBER_ID
        return check_unknown(commits, commit)

    patch.replace(Commits, "check", check_instance)
    patch.replace(Commits, "check_unknown_group", check_unknown_instance)


@offsets.add("BUG-23", "KAFKA-16371, https://github.com/apache/kafka/commit/da3304ecb6f", "COMMIT-15", "FETCH-10")
def refused_entry_stays_pending(patch: Patch) -> None:
    """An entry that is refused for its long metadata stays noted as under way, and no stable fetch gets past it."""
    store = Commits.store

    def store_and_keep(commits: Commits, commit: Commit) -> Results:
        results = store(commits, commit)
        group = commits._runtime.groups.get(commit.group_id)
        for (topic, index), error in results.items():
            if error is Error.OFFSET_METADATA_TOO_LARGE and group is not None and topic is not None:
                group.uncommitted.setdefault(UNKNOWN_PRODUCER, {})[topic, index] = Offset(-1, -1, "", 0, None, 0)
        return results

    patch.replace(Commits, "store", store_and_keep)


@offsets.add(
    "BUG-24",
    "KAFKA-17267, https://github.com/apache/kafka/commit/7a8edffad10",
    "FETCH-10",
    environment=OFFSETS_REFUSED,
)
def stable_fetch_times_out(patch: Patch) -> None:
    """A stable fetch that waits for the log too long is told REQUEST_TIMED_OUT, after which no client tries again."""

    def time_out(offsets: Offsets, request: Request) -> None:
        offsets._runtime.respond(request, error_body(request, REQUEST_TIMED_OUT))

    patch.replace(environments, "refuse_stable_fetch", time_out)


@offsets.add("BUG-30", "franz-go kfake, https://github.com/twmb/franz-go/commit/718aef16", "FETCH-01")
def answer_begins_with_nameless_topics(patch: Patch) -> None:
    """OffsetFetch answers with as many nameless topics as were asked for, and only then with these."""
    fetch_group = Offsets.fetch_group

    def fetch_after_blanks(offsets: Offsets, request: Request, entry: Body, stable: bool) -> list[dict[str, Any]]:
        topics = fetch_group(offsets, request, entry, stable)
        return [offsets._runtime.topic_reference(request, "", ZERO_UUID) | {"partitions": []} for _ in topics] + topics

    patch.replace(Offsets, "fetch_group", fetch_after_blanks)


@offsets.add("BUG-34", "franz-go kfake, https://github.com/twmb/franz-go/commit/05542e81", "COMMIT-13")
def absent_partitions_are_committed(patch: Patch) -> None:
    """Nobody asks whether the partitions of a commit exist."""

    def refuse_nameless(commits: Commits, request: Request) -> Results:
        entries = commits.entries(request)
        return {(None, row["partition_index"]): Error.UNKNOWN_TOPIC_ID for topic, row in entries if topic is None}

    def all_partitions(commits: Commits, request: Request) -> list[tuple[str, Body]]:
        return [(topic, row) for topic, row in commits.entries(request) if topic is not None]

    patch.replace(Commits, "refuse_absent", refuse_nameless)
    patch.replace(Commits, "partitions", all_partitions)


@offsets.add("BUG-44", "Redpanda, https://github.com/redpanda-data/redpanda/commit/ee8d507d40", "COMMIT-06")
def commit_looks_at_the_state_first(patch: Patch) -> None:
    """While the assignment is awaited, strangers and stale members are told of a rebalance, not that they are wrong."""
    check = Commits.check

    def check_state_first(commits: Commits, group: Group, commit: Commit) -> Error:
        if group.state is State.COMPLETING and not commit.is_transactional:
            return Error.REBALANCE_IN_PROGRESS
        return check(commits, group, commit)

    patch.replace(Commits, "check", check_state_first)


@offsets.add(
    "BUG-55",
    "SeaweedFS, handleOffsetCommit at cc8364a03 (offset_management.go)",
    "COMMIT-05",
    "COMMIT-09",
    "COMMIT-29",
)
def strangers_commit(patch: Patch) -> None:
    """A commit is held against the generation only, and in a group without members against nothing."""

    def check_generation(commits: Commits, group: Group, commit: Commit) -> Error:
        if not group.members:
            return Error.NONE
        if commit.generation != group.generation:
            return Error.ILLEGAL_GENERATION
        return Error.REBALANCE_IN_PROGRESS if group.state is State.COMPLETING else Error.NONE

    patch.replace(Commits, "check", check_generation)
