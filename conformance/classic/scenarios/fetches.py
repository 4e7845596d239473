"""OffsetFetch: which offsets are returned, to which members, in which state, and during transactions."""

from fencepost.conformance.classic.scenarios.commits import (
    ABSENT_TOPIC,
    CLEANUP_PASSES,
    act_regularly,
    is_commit_accepted,
    offsets_in,
    time_past_session,
)
from fencepost.conformance.classic.scenarios.neighbours import find_neighbours, own_node
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.run.requests import MAX_ATTEMPTS, Call, Member, TransactionalProducer
from fencepost.model.errors import TRANSIENT_ERRORS, Error
from fencepost.traces.events import Body
from fencepost.traces.judge.diagnosis.diagnosis import errors_in

fetches = ScenarioFamily()


@fetches.add("FETCH-01", smoke=True)
async def fetch_the_last_commit(group: ScenarioContext) -> None:
    """Offset and metadata of the last commit are returned; other partitions keep theirs."""
    await group.commit(None, {0: {"committed_offset": 5, "committed_metadata": "old"}, 1: 6})
    stored = await is_commit_accepted(group.commit(None, {0: {"committed_offset": 7, "committed_metadata": "new"}}))
    await group.check_versions(
        "FETCH-01", group.fetch([0, 1]), fields=("error", "offset", "metadata", "partitions"), reached=stored
    )


@fetches.add("FETCH-02")
async def fetch_where_nothing_was_committed(group: ScenarioContext) -> None:
    """An uncommitted partition and an unknown topic name are no errors; an unknown topic id is one."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check(
        "FETCH-02",
        group.fetch([1, 99, (ABSENT_TOPIC, 0)]),
        fields=("error", "offset", "metadata", "partitions"),
        reached=stored,
    )


@fetches.add("FETCH-02")
async def fetch_by_name_where_nothing_was_committed(group: ScenarioContext) -> None:
    """By topic name, neither an uncommitted partition nor an unknown topic is an error."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check_versions(
        "FETCH-02",
        group.fetch([1, 99, (ABSENT_TOPIC, 0)], version=group.highest_version("OffsetFetch", at_most=9)),
        fields=("error", "offset", "metadata", "partitions"),
        reached=stored,
        until=9,
    )


@fetches.add("FETCH-01", "FETCH-04")
async def topics_by_name_and_by_id(group: ScenarioContext) -> None:
    """Commit and fetch mean the same offset, by name or by id of its topic."""
    by_id = group.highest_version("OffsetCommit", at_least=10), group.highest_version("OffsetFetch", at_least=10)
    by_name = (
        group.highest_version("OffsetCommit", at_most=9),
        group.highest_version("OffsetFetch", at_least=2, at_most=9),
    )
    for partition, (commit, _), (_, fetch) in ((0, by_id, by_name), (1, by_name, by_id)):
        stored = await is_commit_accepted(group.commit(None, {partition: 7 + partition}, version=commit))
        listed, everything = group.fetch([partition], version=fetch), group.fetch(None, version=fetch)
        await group.check("FETCH-01", listed, fields=("error", "offset", "partitions"), reached=stored)
        await group.check("FETCH-04", everything, fields=("error", "offset", "partitions"), reached=stored)


@fetches.add("FETCH-03")
async def fetch_from_an_unknown_group(group: ScenarioContext) -> None:
    """An unknown group has no offsets, without an error."""
    await group.check_versions("FETCH-03", group.fetch([0]), fields=("error", "offset", "partitions"))
    await group.check_versions("FETCH-03", group.fetch(None), fields=("error", "partitions"), since=2)


@fetches.add("FETCH-03")
async def old_fetch_from_an_unknown_group(group: ScenarioContext) -> None:
    """Up to version 7, an unknown group has no offsets, without an error at top level."""
    await group.check_versions(
        "FETCH-03",
        group.fetch(version=group.highest_version("OffsetFetch", at_least=2, at_most=7)),
        fields=("error", "offset", "partitions"),
        since=2,
        until=7,
    )


@fetches.add("FETCH-04", "FETCH-05")
async def fetch_everything_and_nothing(group: ScenarioContext) -> None:
    """A null list of topics asks for all committed offsets, an empty list for none."""
    version = group.highest_version("OffsetFetch", at_least=2)
    stored = await is_commit_accepted(group.commit(None, {0: 7, 1: 8, 3: 9}))

    await group.check_versions(
        "FETCH-04",
        group.fetch(None, version=version),
        fields=("error", "offset", "partitions"),
        reached=stored,
        since=2,
    )
    await group.check_versions(
        "FETCH-05", group.fetch([], version=version), fields=("error", "partitions"), reached=stored, since=2
    )


@fetches.add("FETCH-06")
async def fetch_from_several_groups(group: ScenarioContext) -> None:
    """Each group has an entry of its own, an unknown one too."""
    version = group.highest_version("OffsetFetch", at_least=8)
    other, unknown = await find_neighbours(group, 2)
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    stored = await is_commit_accepted(group.commit(None, {0: 8}, group_id=other)) and stored

    await group.check_versions(
        "FETCH-06",
        group.fetch(groups=[group.group_id, other, unknown], version=version),
        fields=("groups", "error", "offset"),
        reached=stored,
        since=8,
    )


@fetches.add("FETCH-07")
async def fetch_in_every_state(group: ScenarioContext) -> None:
    """A fetch without a member returns the offset in Empty, CompletingRebalance, Stable and PreparingRebalance."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    empty = group.fetch()
    await empty
    a, b = await group.form_generation(group.member("A"), group.member("B"))
    completing = group.fetch()
    await completing
    await group.sync_all(a, b)

    stable = group.fetch()
    await stable
    group.join(a)
    await group.sleep(group.short_pause)
    preparing = group.fetch()
    await preparing

    for fetched in (empty, completing, stable, preparing):
        await group.check("FETCH-07", fetched, fields=("error", "offset", "partitions"), reached=stored)


@fetches.add("FETCH-08")
async def fetches_do_not_extend_the_session(group: ScenarioContext) -> None:
    """A member that only fetches expires."""
    await group.keep_when_empty()
    (a,) = await group.form_stable_group(group.expiring_member("A"))
    await act_regularly(group, time_past_session(group), group.fetch)
    await group.check("FETCH-08", group.heartbeat(a))


@fetches.add("FETCH-09")
async def fetch_with_a_member_epoch(group: ScenarioContext) -> None:
    """Member id and epoch of KIP-848 are ignored."""
    version = group.highest_version("OffsetFetch", at_least=9)
    stored = await is_commit_accepted(group.commit(None, {0: 7}))

    topics = [{**group.topic_entry(group.topic), "partition_indexes": [0]}]
    asked = {"group_id": group.group_id, "member_id": "nobody", "member_epoch": 99, "topics": topics}

    await group.check_versions(
        "FETCH-09",
        group.send("OffsetFetch", {"groups": [asked], "require_stable": False}, version=version),
        fields=("error", "offset", "partitions"),
        reached=stored,
        since=9,
    )


@fetches.add("FETCH-13")
async def fetch_after_deletion(group: ScenarioContext) -> None:
    """A deleted offset is not returned, nor are those of a deleted group."""
    stored = await is_commit_accepted(group.commit(None, {0: 7, 1: 8}))

    await group.delete_offsets([0])
    await group.check_versions("FETCH-13", group.fetch([0, 1]), fields="offset", reached=stored)
    await group.delete_groups()
    await group.check_versions("FETCH-13", group.fetch([0, 1]), fields="offset", reached=stored)


@fetches.add("FETCH-14")
async def fetch_in_version_1(group: ScenarioContext) -> None:
    """In version 1 the response ends with its topics."""
    stored = await is_commit_accepted(group.commit(None, {0: 7}))
    await group.check(
        "FETCH-14",
        group.fetch(version=group.highest_version("OffsetFetch", at_least=1, at_most=1)),
        fields=("wire", "offset"),
        reached=stored,
    )


@fetches.add("FETCH-14")
async def fetch_in_version_0(group: ScenarioContext) -> None:
    """Version 0 finds no offset of the group, or is refused."""
    await group.check("FETCH-14", group.fetch(version=group.highest_version("OffsetFetch", at_most=0)))


@fetches.add("FETCH-15")
async def fetch_creates_nothing(group: ScenarioContext) -> None:
    """A fetch creates no group."""
    await group.fetch()
    await group.check("FETCH-15", group.describe_groups(), fields="state")
    await group.check(
        "FETCH-15",
        group.send("ListGroups", {"states_filter": [], "types_filter": []}, broker=await own_node(group)),
        fields="listed",
    )


# --- Offsets committed in transactions: the responses to OffsetFetch during a transaction and after it.


class Producer(TransactionalProducer):
    """A transactional producer and its one transaction in the group under test."""

    def __init__(self, context: ScenarioContext, name: str = "") -> None:
        super().__init__(context, context.group_id, name)
        self.context = context

    def send_offset(self, partition: int, offset: int, sender: Member | None = None) -> Call:
        """Send the commit of an offset in the transaction, for a member if it has a `sender`."""
        rows: dict[tuple[str, int] | int, Body] = {
            partition: {"committed_offset": offset, "committed_metadata": "", "committed_leader_epoch": -1}
        }
        told = {} if sender is None else {"member_id": sender.id, "generation_id": sender.generation}
        return self.send_commit(self.context.partitions_by_topic(rows, {}), **told)

    async def commit(self, partition: int, offset: int) -> bool:
        """Commit an offset in the transaction; was it accepted?"""
        return await is_commit_accepted(self.send_offset(partition, offset))


async def begin_transaction(group: ScenarioContext) -> tuple[Producer, bool]:
    """Commit offsets, and another in an open transaction; returns the producer, and whether all were accepted."""
    stored = await is_commit_accepted(group.commit(None, {0: 7, 1: 8}))
    producer = Producer(group)
    await producer.begin()
    return producer, await producer.commit(0, 70) and stored


async def fetch_when_stable(group: ScenarioContext, partition: int = 0) -> Call:
    """Fetch a stable offset until no transaction is open and the coordinator is ready; returns the last call, with its
    response."""
    call = group.fetch([partition], stable=True)
    for _ in range(MAX_ATTEMPTS):
        if not errors_in(await call) & {Error.UNSTABLE_OFFSET_COMMIT, *TRANSIENT_ERRORS}:
            break
        await group.sleep(group.short_pause)
        call = group.fetch([partition], stable=True)
    return call


async def commit_when_ready(producer: Producer, partition: int, offset: int) -> Call:
    """Commit an offset until the coordinators of a restarted target are ready; returns the last call."""
    call = producer.send_offset(partition, offset)
    for _ in range(MAX_ATTEMPTS):
        if not errors_in(await call) & TRANSIENT_ERRORS:
            break
        await producer.context.sleep(producer.context.short_pause)
        call = producer.send_offset(partition, offset)
    return call


@fetches.add("FETCH-10", "FETCH-11", needs=("transactions",))
async def fetch_during_a_transaction(group: ScenarioContext) -> None:
    """During a transaction, stable offsets are not available; other fetches return the committed offset."""
    group.highest_version("OffsetFetch", at_least=7)
    _, pending = await begin_transaction(group)

    await group.check_versions(
        "FETCH-10", group.fetch([0, 1], stable=True), fields=("error", "offset"), reached=pending, since=7
    )
    await group.check_versions("FETCH-11", group.fetch([0, 1]), fields=("offset", "error"), reached=pending)


@fetches.add("FETCH-10", needs=("transactions",))
async def fetch_of_a_first_transactional_offset(group: ScenarioContext) -> None:
    """During a transaction, stable offsets are not available for a partition without a committed offset either."""
    group.highest_version("OffsetFetch", at_least=7)
    producer = Producer(group)
    await producer.begin()
    pending = await producer.commit(2, 70)

    await group.check("FETCH-10", group.fetch([2], stable=True), fields=("error", "offset"), reached=pending)


@fetches.add("FETCH-12", needs=("transactions",))
async def fetch_after_a_committed_transaction(group: ScenarioContext) -> None:
    """After a committed transaction, its offset has replaced the old one."""
    group.highest_version("OffsetFetch", at_least=7)
    producer, pending = await begin_transaction(group)

    await producer.end(committed=True)
    await group.check("FETCH-12", await fetch_when_stable(group), fields=("offset", "error"), reached=pending)


@fetches.add("FETCH-12", needs=("transactions",))
async def fetch_after_an_aborted_transaction(group: ScenarioContext) -> None:
    """After an aborted transaction, the old offset is unchanged."""
    group.highest_version("OffsetFetch", at_least=7)
    producer, pending = await begin_transaction(group)

    await producer.end(committed=False)
    await group.check("FETCH-12", await fetch_when_stable(group), fields=("offset", "error"), reached=pending)


@fetches.add("FETCH-16", needs=("transactions",))
async def stable_fetch_after_a_transaction(group: ScenarioContext) -> None:
    """After the end of a transaction, stable offsets are available again, if it commits and if it aborts."""
    group.highest_version("OffsetFetch", at_least=7)
    for committed in (True, False):
        producer = Producer(group)
        await producer.begin()
        pending = await producer.commit(0, 70)
        await producer.end(committed=committed)
        await group.check("FETCH-16", await fetch_when_stable(group), fields="error", reached=pending)


@fetches.add("COMMIT-31", needs=("transactions",))
async def commit_of_an_older_epoch(group: ScenarioContext) -> None:
    """A producer whose transaction was ended by a newer epoch commits nothing more."""
    group.highest_version("OffsetFetch", at_least=7)
    older, pending = await begin_transaction(group)
    await Producer(group).begin_epoch()

    await group.check("COMMIT-31", older.send_offset(0, 71), fields="error", reached=pending)
    await group.check("COMMIT-31", await fetch_when_stable(group), fields=("offset", "error"), reached=pending)


@fetches.add("COMMIT-32", needs=("restart", "transactions"))
async def commit_of_an_older_epoch_after_a_restart(group: ScenarioContext) -> None:
    """After a restart of the coordinator, the newer epoch is still known."""
    group.highest_version("OffsetFetch", at_least=7)
    older, pending = await begin_transaction(group)
    await Producer(group).begin_epoch()
    await group.restart()

    await group.check("COMMIT-32", await commit_when_ready(older, 0, 71), fields="error", reached=pending)
    await group.check("COMMIT-32", await fetch_when_stable(group), fields="offset", reached=pending)


@fetches.add("COMMIT-33", needs=("transactions",))
async def commit_in_a_transaction(group: ScenarioContext) -> None:
    """A producer that names no member commits in a group that is new, Stable, in CompletingRebalance, and Empty; one
    that names a member of the present generation does so in Stable and CompletingRebalance."""
    a, producer = group.member("A"), Producer(group)
    await producer.begin()
    await group.check("COMMIT-33", producer.send_offset(0, 70), fields="error")
    await group.form_stable_group(a)
    await group.check("COMMIT-33", producer.send_offset(0, 71), fields="error")
    await group.check("COMMIT-33", producer.send_offset(1, 71, a), fields="error")
    await group.join(a)
    await group.check("COMMIT-33", producer.send_offset(0, 72), fields="error")
    await group.check("COMMIT-33", producer.send_offset(1, 72, a), fields="error")
    await group.leave(a)
    await group.check("COMMIT-33", producer.send_offset(0, 73), fields="error")
    await producer.end(committed=False)


# --- transactions and clean-up passes ------------------------------------------------------------------------------


def time_past_cleanups(group: ScenarioContext) -> int:
    """A transaction timeout, in milliseconds, that outlasts some clean-up passes."""
    return (CLEANUP_PASSES + 1) * (group.settings.retention_check_interval + 2 * group.grace) + 60_000


@fetches.add("COMMIT-30", needs=("retention", "transactions"))
async def open_transaction_protects_an_expired_offset(group: ScenarioContext) -> None:
    """An offset whose retention is over stays while a transaction has another one of its partition."""
    version = group.highest_version("OffsetCommit", at_least=2, at_most=4)
    producer = Producer(group)
    await producer.begin(time_past_cleanups(group))
    pending = await producer.commit(0, 70)
    stored = await is_commit_accepted(group.commit(None, {0: 7}, version=version, retention_time_ms=1))

    for _ in range(CLEANUP_PASSES):
        await group.sleep_past(group.settings.retention_check_interval)
    fetched = group.fetch()
    gone = "the offset has expired although a transaction of its partition is open"
    is_gone = offsets_in(await fetched) == [-1]

    await group.check(
        "COMMIT-30", fetched, fields="offset", reached=pending and stored, unusual=gone if is_gone else ""
    )
    await producer.end(committed=False)


@fetches.add("COMMIT-34", needs=("retention", "transactions"))
async def staged_offset_outlasts_the_committed_one(group: ScenarioContext) -> None:
    """What a transaction has staged is there once it commits, whether the offset before it has expired or not."""
    group.highest_version("OffsetFetch", at_least=7)
    version = group.highest_version("OffsetCommit", at_least=2, at_most=4)
    stored = await is_commit_accepted(group.commit(None, {0: 7}, version=version, retention_time_ms=1))
    producer = Producer(group)
    await producer.begin(time_past_cleanups(group))
    pending = await producer.commit(0, 70)

    for _ in range(CLEANUP_PASSES):
        await group.sleep_past(group.settings.retention_check_interval)
    await producer.end(committed=True)
    await group.check("COMMIT-34", await fetch_when_stable(group), fields="offset", reached=pending and stored)


@fetches.add("ADMIN-36", needs=("retention", "transactions"))
async def open_transaction_keeps_the_group(group: ScenarioContext) -> None:
    """A group with nothing but offsets of an open transaction outlasts clean-up passes, and then has the offsets."""
    group.highest_version("OffsetFetch", at_least=7)
    producer = Producer(group)
    await producer.begin(time_past_cleanups(group))
    pending = await producer.commit(2, 70)

    for passes in range(CLEANUP_PASSES + 1):
        if passes:
            await group.sleep_past(group.settings.retention_check_interval)
        described = group.describe_groups()
        await group.check("ADMIN-36", described, fields="state", reached=pending)
        if (await described)["groups"][0]["group_state"] == "Dead":
            return
    await producer.end(committed=True)
    await group.check("ADMIN-36", await fetch_when_stable(group, 2), fields=("offset", "error"), reached=pending)
