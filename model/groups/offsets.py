"""Committed offsets of one group, whatever its protocol: commit, transactions, fetch, deletion and expiry.

Every function takes the world of a group and gives back the world after it, the response and the rule that applied. It
asks the protocol of the group (`GroupProtocol`) who is a member and may commit, and what keeps an offset.

The older coordinator of Apache Kafka writes no tombstone for pending offsets that are deleted, with their group or by
OffsetDelete (`removeAllOffsets` and `removeOffsets` of its `GroupMetadata` tell the log of committed offsets alone). So
they are in the log, and a failover brings them back: as pending offsets of a transaction that is still open, or as
committed ones where it was committed since (DIV-22). `DeletedOffsets` are these.

Sources: coordinator.md 2.6, 2.7 and 2.12.
"""

from collections.abc import Iterable, Mapping

from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import (
    MIN_TOPIC_ID_VERSION,
    NO_OFFSET,
    EndTxn,
    ErrorResponse,
    InitProducerId,
    Offset,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetFetchResponse,
    Partition,
    PartitionErrors,
    TxnOffsetCommit,
)
from fencepost.model.groups.protocol import (
    NOTHING_DELETED,
    Answer,
    Cluster,
    DeletedOffsets,
    GroupDialect,
    GroupProtocol,
    GroupWorld,
    Moment,
    PendingOffsets,
    World,
)
from fencepost.model.logic import Time


def partition_exists(cluster: Cluster, partition: Partition) -> bool:
    """The partition is in the cluster; taken for granted where the topics are not known, and it is not missing."""
    topic, number = partition
    if cluster.topics is None:
        return partition not in cluster.missing
    return 0 <= number < cluster.topics.get(topic, 0)


def missing_partition_error(cluster: Cluster, partition: Partition, version: int) -> Error:
    """What a commit or a fetch of this version gets for a partition that is not there."""
    by_id = version >= MIN_TOPIC_ID_VERSION and cluster.topics is not None and partition[0] not in cluster.topics
    return Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION


def on_commit(
    state: World, request: OffsetCommit, context: Moment, cluster: Cluster, protocol: GroupProtocol[World, Moment]
) -> Answer[World, PartitionErrors]:
    """OffsetCommit. Partitions that do not exist never reach the coordinator (COMMIT-13, COMMIT-14)."""
    asked = [(where, offset) for where, offset in request.offsets if partition_exists(cluster, where)]
    unknown = {
        where: missing_partition_error(cluster, where, request.version)
        for where, _ in request.offsets
        if not partition_exists(cluster, where)
    }
    if not asked:
        return (state, PartitionErrors(unknown), "commit.nothing-to-ask")
    if request.version == 0 and not protocol.dialect(context).keeps_version_0:
        errors = PartitionErrors({where: Error.UNSUPPORTED_VERSION for where, _ in request.offsets})
        return (state, errors, "commit.version-0")
    if not protocol.exists(state):
        if request.core.generation >= 0:
            named = request.version >= 9 and protocol.dialect(context).unknown_group_named
            error = Error.GROUP_ID_NOT_FOUND if named else Error.ILLEGAL_GENERATION
            errors = PartitionErrors(dict.fromkeys((where for where, _ in asked), error) | unknown)
            return (state, errors, "commit.unknown-group")
        state = protocol.create(state)
    error, rule, heard = protocol.may_commit(state, request, context)
    if error != Error.NONE:
        errors = PartitionErrors(dict.fromkeys((where for where, _ in asked), error) | unknown)
        return (state, errors, rule)
    expires = None if request.retention is None else context.now + request.retention
    kept, results = split_by_metadata_size(asked, cluster.settings.max_offset_metadata)
    stored = {
        where: evolve(
            offset, expires=expires, committed=context.now, number=next_number(state, where) if state.pending else 0
        )
        for where, offset in kept
    }
    after = evolve(
        heard,
        offsets={**state.offsets, **stored},
        deleted=overwrite_deleted(state.deleted, None, stored),
    )
    return (after, PartitionErrors(results | unknown), rule)


def split_by_metadata_size(
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


def on_transactional_commit(
    state: World, request: TxnOffsetCommit, context: Moment, cluster: Cluster, protocol: GroupProtocol[World, Moment]
) -> Answer[World, PartitionErrors]:
    """TxnOffsetCommit, where it differs (coordinator.md 2.12): no barrier in Completing, no session extended."""
    asked = [(where, offset) for where, offset in request.offsets if partition_exists(cluster, where)]
    unknown = {
        where: Error.UNKNOWN_TOPIC_OR_PARTITION for where, _ in request.offsets if not partition_exists(cluster, where)
    }
    if not asked:
        return (state, PartitionErrors(unknown), "transaction.nothing-to-ask")
    error, rule, state = check_transactional_commit(state, request, context, protocol)
    if error != Error.NONE:
        errors = PartitionErrors(dict.fromkeys((where for where, _ in asked), error) | unknown)
        return (state, errors, rule)
    kept, results = split_by_metadata_size(asked, cluster.settings.max_offset_metadata)
    mine = {where: evolve(offset, committed=context.now, number=next_number(state, where)) for where, offset in kept}
    after = evolve(
        state,
        pending=add_pending(state.pending, request.producer, mine),
        deleted=overwrite_deleted(state.deleted, request.producer, mine),
        epochs={**state.epochs, request.producer: request.epoch} if mine else state.epochs,
    )
    return (after, PartitionErrors(results | unknown), rule)


def next_number(state: GroupWorld, where: Partition) -> int:
    """A number for a commit of this partition, above those of the commits it may meet when a transaction ends."""
    met = (mine[where].number for mine in (state.offsets, *state.pending.values()) if where in mine)
    return max(met, default=0) + 1


def add_pending(pending: PendingOffsets, producer: int, mine: Mapping[Partition, Offset]) -> PendingOffsets:
    """Open transactions with some more offsets in one of them."""
    return {**pending, producer: {**pending.get(producer, {}), **mine}} if mine else pending


def check_transactional_commit(
    state: World, request: TxnOffsetCommit, context: Moment, protocol: GroupProtocol[World, Moment]
) -> tuple[Error, str, World]:
    """The error of a TxnOffsetCommit, the rule, and the world with the group that it may create."""
    core = request.core
    if request.group == "":
        return Error.INVALID_GROUP_ID, "transaction.invalid-group", state
    if request.epoch < state.epochs.get(request.producer, request.epoch):
        return Error.INVALID_PRODUCER_EPOCH, "transaction.old-epoch", state
    if not protocol.exists(state):
        if core.generation >= 0 and protocol.dialect(context).unknown_group_fences_transaction:
            return Error.ILLEGAL_GENERATION, "transaction.unknown-group", state
        state = protocol.create(state)
    if core.generation < 0 and core.member is None and core.instance is None:
        return Error.NONE, "transaction.simple", state
    error = protocol.may_commit_in_transaction(state, request, context)
    return error, "transaction.fenced" if error else "transaction.member", state


def on_init_producer(state: World, request: InitProducerId, context: Moment) -> Answer[World, ErrorResponse]:
    """InitProducerId: the producer's open transaction is aborted, and commits of older epochs are refused (COMMIT-31).

    Every group of that transaction hears of the new epoch, also one that was added and has no offsets of it; no other.
    """
    after = end_deleted_offsets(state, request.producer, committed=False)
    is_ended = any(producer == request.producer for producer, _, _ in state.ended_transactions)
    has_offsets = request.producer in state.pending and not is_ended
    if has_offsets or request.ends_transaction:
        epoch = max(request.epoch, state.epochs.get(request.producer, 0))
        after = evolve(after, epochs={**state.epochs, request.producer: epoch})
    if has_offsets:
        ended = (request.producer, False, context.now)
        after = evolve(after, ended_transactions=(*state.ended_transactions, ended))
    return (after, ErrorResponse(Error.NONE), "transaction.init-producer")


def on_end_transaction(state: World, request: EndTxn, context: Moment) -> Answer[World, ErrorResponse]:
    """EndTxn is accepted; the offsets follow when its marker reaches the group (FETCH-12)."""
    after = end_deleted_offsets(state, request.producer, committed=request.committed)
    if request.producer in state.pending:
        after = evolve(
            after, ended_transactions=(*state.ended_transactions, (request.producer, request.committed, context.now))
        )
    return (after, ErrorResponse(Error.NONE), "transaction.end")


def end_deleted_offsets(state: World, producer: int, *, committed: bool) -> World:
    """The world once what was deleted in the transaction of a producer is committed in the log, or aborted."""
    deleted = end_deleted(state.deleted, producer, committed=committed)
    return state if deleted is state.deleted else evolve(state, deleted=deleted)


def apply_transaction_marker(state: World) -> World:
    """The marker of the transaction that ended first takes effect; offsets committed later than its own stay."""
    producer, committed, _ = state.ended_transactions[0]
    mine = {
        where: offset
        for where, offset in state.pending.get(producer, {}).items()
        if where not in state.offsets or state.offsets[where].number < offset.number
    }
    rest = {other: offsets for other, offsets in state.pending.items() if other != producer}
    offsets = {**state.offsets, **mine} if committed else state.offsets
    return evolve(state, offsets=offsets, pending=rest, ended_transactions=state.ended_transactions[1:])


def on_fetch(
    state: World, request: OffsetFetch, context: Moment, cluster: Cluster, protocol: GroupProtocol[World, Moment]
) -> Answer[World, OffsetFetchResponse]:
    """OffsetFetch: in every state, for anyone (FETCH-07), of any partition; but an id has to be some topic's."""
    if request.version == 0 and not protocol.dialect(context).keeps_version_0:
        return (state, OffsetFetchResponse(error=Error.UNSUPPORTED_VERSION), "fetch.version-0")
    partitions = tuple(state.offsets) if request.partitions is None else request.partitions
    unstable = {where for mine in state.pending.values() for where in mine} if request.require_stable else set()
    found = {where: None if where in unstable else state.offsets.get(where, NO_OFFSET) for where in partitions}
    rule = "fetch.offsets" if protocol.exists(state) else "fetch.unknown-group"
    nameless = frozenset(
        where
        for where in partitions
        if missing_partition_error(cluster, where, request.version) == Error.UNKNOWN_TOPIC_ID
    )
    return (state, OffsetFetchResponse(found, nameless=nameless), rule)


def on_delete_offsets(
    state: World, request: OffsetDelete, context: Moment, cluster: Cluster, protocol: GroupProtocol[World, Moment]
) -> Answer[World, PartitionErrors]:
    """OffsetDelete (KIP-496)."""
    if request.group == "":
        return (state, PartitionErrors(error=Error.INVALID_GROUP_ID), "offset-delete.invalid-group")
    if not protocol.exists(state):
        refused = PartitionErrors(error=Error.GROUP_ID_NOT_FOUND)
        return (state, refused, "offset-delete.unknown-group")
    if not protocol.may_lose_offsets(state):
        return (state, PartitionErrors(error=Error.NON_EMPTY_GROUP), "offset-delete.active")
    errors = {where: deletion_error(state, where, cluster, protocol) for where in request.partitions}
    gone = {where for where, error in errors.items() if error == Error.NONE}
    after = evolve(
        state,
        offsets={where: offset for where, offset in state.offsets.items() if where not in gone},
        pending={
            producer: {where: offset for where, offset in mine.items() if where not in gone}
            for producer, mine in state.pending.items()
        },
    )
    after = evolve(after, deleted=add_deleted(state.deleted, state.pending, after.pending))
    if gone and protocol.is_empty(state) and not (after.offsets or after.pending):
        after = after if protocol.dialect(context).emptied_group_stays else protocol.forget(after.deleted)
    return (after, PartitionErrors(errors), "offset-delete.partitions")


def deletion_error(state: World, where: Partition, cluster: Cluster, protocol: GroupProtocol[World, Moment]) -> Error:
    """The error of the deletion of an offset: its partition is not there, or the group subscribes to its topic."""
    if not partition_exists(cluster, where):
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return Error.GROUP_SUBSCRIBED_TO_TOPIC if protocol.protects(state, where[0]) else Error.NONE


def expired_offsets(
    state: World, now: int, retention: int, protocol: GroupProtocol[World, Moment]
) -> frozenset[Partition]:
    """The offsets that a clean-up pass may remove by now (coordinator.md 3.3).

    An open transaction of a partition protects its offset in the newer coordinator (KAFKA-14505) and not in the older
    one, which looks at plain commits alone: such an offset may go or stay. The group stays in both.
    """
    ends = ((where, expiry_of(state, where, offset, retention, protocol)) for where, offset in state.offsets.items())
    return frozenset(where for where, end in ends if end is not None and not now < end)


def expiry_of(
    state: World, where: Partition, offset: Offset, retention: int, protocol: GroupProtocol[World, Moment]
) -> Time | None:
    """When an offset may be removed: after the broker's retention since it was last of use, or its own, for which an
    offset only should be kept or removed (COMMIT-26)."""
    base = protocol.unused_since(state, where[0], offset)
    if base is None:
        return None
    end: Time = base + retention
    return end if offset.expires is None or end < offset.expires else offset.expires


def add_deleted(deleted: DeletedOffsets, before: PendingOffsets, after: PendingOffsets) -> DeletedOffsets:
    """The deleted offsets with those that were pending before a deletion and are not after it."""
    gone = {
        producer: {where: offset for where, offset in mine.items() if where not in after.get(producer, {})}
        for producer, mine in before.items()
    }
    if not any(gone.values()):
        return deleted
    pending = {
        producer: {**deleted.pending.get(producer, {}), **gone.get(producer, {})}
        for producer in (*deleted.pending, *(one for one in gone if one not in deleted.pending))
    }
    return evolve(deleted, pending={producer: mine for producer, mine in pending.items() if mine})


def end_deleted(deleted: DeletedOffsets, producer: int, *, committed: bool) -> DeletedOffsets:
    """The deleted offsets once the transaction of a producer has ended."""
    if producer not in deleted.pending:
        return deleted
    pending = {other: mine for other, mine in deleted.pending.items() if other != producer}
    mine = deleted.pending[producer] if committed else {}
    return DeletedOffsets(pending, {**deleted.committed, **mine})


def overwrite_deleted(deleted: DeletedOffsets, producer: int | None, partitions: Iterable[Partition]) -> DeletedOffsets:
    """The deleted offsets once the log has later ones of these partitions: of a producer, or committed ones (None)."""
    over = set(partitions)
    if deleted == NOTHING_DELETED or not over:
        return deleted
    if producer is None:
        return evolve(deleted, committed={where: one for where, one in deleted.committed.items() if where not in over})
    mine = {where: one for where, one in deleted.pending.get(producer, {}).items() if where not in over}
    rest = {other: offsets for other, offsets in deleted.pending.items() if other != producer}
    return evolve(deleted, pending={**rest, producer: mine} if mine else rest)


def load_deleted_offsets(state: World, dialect: GroupDialect) -> World:
    """The world before it is loaded, with the offsets that were deleted in the coordinator but not in its log."""
    if dialect.deleted_offsets_stay_deleted:
        return evolve(state, deleted=NOTHING_DELETED)
    deleted = state.deleted
    producers = dict.fromkeys((*state.pending, *deleted.pending))
    pending = {one: {**deleted.pending.get(one, {}), **state.pending.get(one, {})} for one in producers}
    offsets = {**deleted.committed, **state.offsets}
    return evolve(state, offsets=offsets, pending=pending, deleted=NOTHING_DELETED)
