"""Committed offsets of one group: commit, transactional commit, fetch, delete and expiry (coordinator.md 2.6, 2.7)."""

from collections.abc import Iterable, Mapping

from fencepost.model.classic.coordinator.state import Cluster, Outcome, Pending, World, answer
from fencepost.model.classic.core.membership import commit
from fencepost.model.classic.core.state import CommitAnswer, Context, Group, Output, Phase
from fencepost.model.classic.messages.requests import (
    IDS_SINCE,
    Commit,
    DeleteOffsets,
    EndTransaction,
    Fetch,
    Offset,
    Partition,
    TransactionalCommit,
)
from fencepost.model.classic.messages.responses import NO_OFFSET, Fetched, PartitionErrors, Single
from fencepost.model.classic.messages.subscription import CONSUMER
from fencepost.model.errors import Error
from fencepost.model.frozen import alter
from fencepost.model.logic import Time


def exists(cluster: Cluster, partition: Partition) -> bool:
    """The partition is in the cluster; taken for granted where the topics are not known."""
    topic, number = partition
    return cluster.topics is None or 0 <= number < cluster.topics.get(topic, 0)


def absence(cluster: Cluster, partition: Partition, version: int) -> Error:
    """What a commit or a fetch of this version gets for a partition that is not there."""
    by_id = version >= IDS_SINCE and cluster.topics is not None and partition[0] not in cluster.topics
    return Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION


def core_error(outputs: tuple[Output, ...]) -> Error:
    """What membership says of a commit."""
    verdict = outputs[0].answer
    assert isinstance(verdict, CommitAnswer)
    return verdict.error


def on_commit(world: World, request: Commit, context: Context, cluster: Cluster) -> Outcome:
    """OffsetCommit. Partitions that do not exist never reach the coordinator (COMMIT-13, COMMIT-14)."""
    asked = [(where, offset) for where, offset in request.offsets if exists(cluster, where)]
    unknown = {
        where: absence(cluster, where, request.version) for where, _ in request.offsets if not exists(cluster, where)
    }
    if not asked:
        return answer(world, request, PartitionErrors(unknown), "commit.nothing-to-ask")
    if request.version == 0 and not context.dialect.keeps_version_0:
        errors = PartitionErrors({where: Error.UNSUPPORTED_VERSION for where, _ in request.offsets})
        return answer(world, request, errors, "commit.version-0")
    if world.group is None:
        if request.core.generation >= 0:
            named = request.version >= 9 and context.dialect.unknown_group_named
            error = Error.GROUP_ID_NOT_FOUND if named else Error.ILLEGAL_GENERATION
            errors = PartitionErrors(dict.fromkeys((where for where, _ in asked), error) | unknown)
            return answer(world, request, errors, "commit.unknown-group")
        world = alter(world, group=Group(), stored=Group())
    assert world.group is not None
    step = commit(world.group, request.core, context)
    error = core_error(step.outputs)
    if error != Error.NONE:
        errors = PartitionErrors(dict.fromkeys((where for where, _ in asked), error) | unknown)
        return answer(world, request, errors, step.rule)
    expires = None if request.retention is None else context.now + request.retention
    kept, results = split(asked, cluster.settings.max_offset_metadata)
    stored = {
        where: alter(
            offset, expires=expires, committed=context.now, number=next_number(world, where) if world.pending else 0
        )
        for where, offset in kept
    }
    after = alter(world, group=step.group, offsets={**world.offsets, **stored})
    return answer(after, request, PartitionErrors(results | unknown), step.rule)


def split(
    asked: Iterable[tuple[Partition, Offset]], limit: int
) -> tuple[list[tuple[Partition, Offset]], dict[Partition, Error]]:
    """What may be stored, and the error of each partition: metadata has a limit (COMMIT-15)."""
    kept: list[tuple[Partition, Offset]] = []
    errors: dict[Partition, Error] = {}
    for where, offset in asked:
        if len(offset.metadata) > limit:
            errors[where] = Error.OFFSET_METADATA_TOO_LARGE
        else:
            errors[where] = Error.NONE
            kept.append((where, offset))
    return kept, errors


def on_transactional_commit(world: World, request: TransactionalCommit, context: Context, cluster: Cluster) -> Outcome:
    """TxnOffsetCommit, where it differs (coordinator.md 2.12): no barrier in Completing, no session extended."""
    asked = [(where, offset) for where, offset in request.offsets if exists(cluster, where)]
    unknown = {where: Error.UNKNOWN_TOPIC_OR_PARTITION for where, _ in request.offsets if not exists(cluster, where)}
    if not asked:
        return answer(world, request, PartitionErrors(unknown), "transaction.nothing-to-ask")
    error, rule, world = transactional_verdict(world, request, context)
    if error != Error.NONE:
        errors = PartitionErrors(dict.fromkeys((where for where, _ in asked), error) | unknown)
        return answer(world, request, errors, rule)
    kept, results = split(asked, cluster.settings.max_offset_metadata)
    mine = {where: alter(offset, number=next_number(world, where)) for where, offset in kept}
    after = alter(world, pending=added_to(world.pending, request.producer, mine))
    return answer(after, request, PartitionErrors(results | unknown), rule)


def next_number(world: World, where: Partition) -> int:
    """A number for a commit of this partition, above those of the commits it may meet when a transaction ends."""
    met = (mine[where].number for mine in (world.offsets, *world.pending.values()) if where in mine)
    return max(met, default=0) + 1


def added_to(pending: Pending, producer: int, mine: Mapping[Partition, Offset]) -> Pending:
    """Open transactions with some more offsets in one of them."""
    return {**pending, producer: {**pending.get(producer, {}), **mine}} if mine else pending


def transactional_verdict(world: World, request: TransactionalCommit, context: Context) -> tuple[Error, str, World]:
    """The error of a TxnOffsetCommit, the rule, and the world with the group that it may create."""
    core = request.core
    if request.group == "":
        return Error.INVALID_GROUP_ID, "transaction.invalid-group", world
    if world.group is None:
        if core.generation >= 0 and context.dialect.unknown_group_fences_transaction:
            return Error.ILLEGAL_GENERATION, "transaction.unknown-group", world
        world = alter(world, group=Group(), stored=Group())
    assert world.group is not None
    if core.generation < 0 and core.member is None and core.instance is None:
        return Error.NONE, "transaction.simple", world
    # Membership and generation are checked alike in every state with members, and nothing else is.
    seen_as = Phase.EMPTY if world.group.phase == Phase.EMPTY else Phase.STABLE
    step = commit(alter(world.group, phase=seen_as), core, context)
    error = core_error(step.outputs)
    return error, "transaction.fenced" if error else "transaction.member", world


def on_end_transaction(world: World, request: EndTransaction, context: Context) -> Outcome:
    """EndTxn is accepted; the offsets follow when its marker reaches the group (FETCH-12)."""
    after = world
    if request.producer in world.pending:
        after = alter(world, ending=(*world.ending, (request.producer, request.committed, context.now)))
    return answer(after, request, Single(Error.NONE), "transaction.end")


def apply_end(world: World) -> World:
    """The marker of the transaction that ended first takes effect; offsets committed later than its own stay."""
    producer, committed, _ = world.ending[0]
    mine = {
        where: offset
        for where, offset in world.pending.get(producer, {}).items()
        if where not in world.offsets or world.offsets[where].number < offset.number
    }
    rest = {other: offsets for other, offsets in world.pending.items() if other != producer}
    offsets = {**world.offsets, **mine} if committed else world.offsets
    return alter(world, offsets=offsets, pending=rest, ending=world.ending[1:])


def on_fetch(world: World, request: Fetch, context: Context, cluster: Cluster) -> Outcome:
    """OffsetFetch: in every state, for anyone (FETCH-07), of any partition; but an id has to be some topic's."""
    if request.version == 0 and not context.dialect.keeps_version_0:
        return answer(world, request, Fetched(error=Error.UNSUPPORTED_VERSION), "fetch.version-0")
    partitions = tuple(world.offsets) if request.partitions is None else request.partitions
    unstable = {where for mine in world.pending.values() for where in mine} if request.require_stable else set()
    found = {where: None if where in unstable else world.offsets.get(where, NO_OFFSET) for where in partitions}
    rule = "fetch.unknown-group" if world.group is None else "fetch.offsets"
    nameless = frozenset(
        where for where in partitions if absence(cluster, where, request.version) == Error.UNKNOWN_TOPIC_ID
    )
    return answer(world, request, Fetched(found, nameless=nameless), rule)


def on_delete(world: World, request: DeleteOffsets, cluster: Cluster) -> Outcome:
    """OffsetDelete (KIP-496)."""
    group = world.group
    if request.group == "":
        return answer(world, request, PartitionErrors(error=Error.INVALID_GROUP_ID), "offset-delete.invalid-group")
    if group is None:
        refused = PartitionErrors(error=Error.GROUP_ID_NOT_FOUND)
        return answer(world, request, refused, "offset-delete.unknown-group")
    if group.phase != Phase.EMPTY and group.protocol_type != CONSUMER:
        return answer(world, request, PartitionErrors(error=Error.NON_EMPTY_GROUP), "offset-delete.active")
    errors = {where: deletion_error(world, group, where, cluster) for where in request.partitions}
    gone = {where for where, error in errors.items() if error == Error.NONE}
    after = alter(
        world,
        offsets={where: offset for where, offset in world.offsets.items() if where not in gone},
        pending={
            producer: {where: offset for where, offset in mine.items() if where not in gone}
            for producer, mine in world.pending.items()
        },
    )
    return answer(after, request, PartitionErrors(errors), "offset-delete.partitions")


def deletion_error(world: World, group: Group, where: Partition, cluster: Cluster) -> Error:
    """May the offset of this partition be deleted?"""
    if not exists(cluster, where):
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    if group.protocol_type != CONSUMER:
        return Error.NONE
    unknown = world.subscribed is None and group.phase != Phase.EMPTY
    if unknown or (world.subscribed is not None and where[0] in world.subscribed):
        return Error.GROUP_SUBSCRIBED_TO_TOPIC
    return Error.NONE


def over(world: World, now: int, retention: int) -> frozenset[Partition]:
    """The offsets that a clean-up pass may remove by now (coordinator.md 3.3)."""
    ends = ((where, end_of(world, where, offset, retention)) for where, offset in world.offsets.items())
    return frozenset(where for where, end in ends if end is not None and not now < end)


def end_of(world: World, where: Partition, offset: Offset, retention: int) -> Time | None:
    """When an offset may be removed: after the broker's retention since it was last of use, or its own, for which an
    offset only should be kept or removed (COMMIT-26)."""
    group = world.group
    if group is None or group.protocol_type is None:
        base = offset.committed
    elif group.phase == Phase.EMPTY:
        base = world.emptied
    elif group.protocol_type == CONSUMER and group.phase == Phase.STABLE and world.subscribed is not None:
        if where[0] in world.subscribed:
            return None
        base = offset.committed
    else:
        return None
    end: Time = base + retention
    return end if offset.expires is None or end < offset.expires else offset.expires
