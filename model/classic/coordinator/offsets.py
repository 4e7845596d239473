"""Committed offsets of one group: commit, transactional commit, fetch, delete and expiry (coordinator.md 2.6, 2.7)."""

from collections.abc import Iterable, Mapping

from fencepost.model.classic.coordinator.deleted_offsets import (
    PendingOffsets,
    add_deleted,
    end_deleted,
    overwrite_deleted,
)
from fencepost.model.classic.coordinator.state import Cluster, GroupState, StepResult, respond
from fencepost.model.classic.core.membership import commit
from fencepost.model.classic.core.state import CommitResponse, Context, Group, Output, Phase
from fencepost.model.classic.dialect import dialect_of
from fencepost.model.classic.messages.requests import (
    MIN_TOPIC_ID_VERSION,
    EndTxn,
    InitProducerId,
    Offset,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    Partition,
    TxnOffsetCommit,
)
from fencepost.model.classic.messages.responses import NO_OFFSET, ErrorResponse, OffsetFetchResponse, PartitionErrors
from fencepost.model.classic.messages.subscription import CONSUMER
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
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


def membership_error(outputs: tuple[Output, ...]) -> Error:
    """What membership says of a commit."""
    verdict = outputs[0].response
    assert isinstance(verdict, CommitResponse)
    return verdict.error


def on_commit(state: GroupState, request: OffsetCommit, context: Context, cluster: Cluster) -> StepResult:
    """OffsetCommit. Partitions that do not exist never reach the coordinator (COMMIT-13, COMMIT-14)."""
    asked = [(where, offset) for where, offset in request.offsets if partition_exists(cluster, where)]
    unknown = {
        where: missing_partition_error(cluster, where, request.version)
        for where, _ in request.offsets
        if not partition_exists(cluster, where)
    }
    if not asked:
        return respond(state, request, PartitionErrors(unknown), "commit.nothing-to-ask")
    if request.version == 0 and not dialect_of(context).keeps_version_0:
        errors = PartitionErrors({where: Error.UNSUPPORTED_VERSION for where, _ in request.offsets})
        return respond(state, request, errors, "commit.version-0")
    if state.group is None:
        if request.core.generation >= 0:
            named = request.version >= 9 and dialect_of(context).unknown_group_named
            error = Error.GROUP_ID_NOT_FOUND if named else Error.ILLEGAL_GENERATION
            errors = PartitionErrors(dict.fromkeys((where for where, _ in asked), error) | unknown)
            return respond(state, request, errors, "commit.unknown-group")
        state = evolve(state, group=Group(), stored=Group())
    assert state.group is not None
    step = commit(state.group, request.core, context)
    error = membership_error(step.outputs)
    if error != Error.NONE:
        errors = PartitionErrors(dict.fromkeys((where for where, _ in asked), error) | unknown)
        return respond(state, request, errors, step.rule)
    expires = None if request.retention is None else context.now + request.retention
    kept, results = split_by_metadata_size(asked, cluster.settings.max_offset_metadata)
    stored = {
        where: evolve(
            offset, expires=expires, committed=context.now, number=next_number(state, where) if state.pending else 0
        )
        for where, offset in kept
    }
    after = evolve(
        state,
        group=step.group,
        offsets={**state.offsets, **stored},
        deleted=overwrite_deleted(state.deleted, None, stored),
    )
    return respond(after, request, PartitionErrors(results | unknown), step.rule)


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
    state: GroupState, request: TxnOffsetCommit, context: Context, cluster: Cluster
) -> StepResult:
    """TxnOffsetCommit, where it differs (coordinator.md 2.12): no barrier in Completing, no session extended."""
    asked = [(where, offset) for where, offset in request.offsets if partition_exists(cluster, where)]
    unknown = {
        where: Error.UNKNOWN_TOPIC_OR_PARTITION for where, _ in request.offsets if not partition_exists(cluster, where)
    }
    if not asked:
        return respond(state, request, PartitionErrors(unknown), "transaction.nothing-to-ask")
    error, rule, state = check_transactional_commit(state, request, context)
    if error != Error.NONE:
        errors = PartitionErrors(dict.fromkeys((where for where, _ in asked), error) | unknown)
        return respond(state, request, errors, rule)
    kept, results = split_by_metadata_size(asked, cluster.settings.max_offset_metadata)
    mine = {where: evolve(offset, committed=context.now, number=next_number(state, where)) for where, offset in kept}
    after = evolve(
        state,
        pending=add_pending(state.pending, request.producer, mine),
        deleted=overwrite_deleted(state.deleted, request.producer, mine),
        epochs={**state.epochs, request.producer: request.epoch} if mine else state.epochs,
    )
    return respond(after, request, PartitionErrors(results | unknown), rule)


def next_number(state: GroupState, where: Partition) -> int:
    """A number for a commit of this partition, above those of the commits it may meet when a transaction ends."""
    met = (mine[where].number for mine in (state.offsets, *state.pending.values()) if where in mine)
    return max(met, default=0) + 1


def add_pending(pending: PendingOffsets, producer: int, mine: Mapping[Partition, Offset]) -> PendingOffsets:
    """Open transactions with some more offsets in one of them."""
    return {**pending, producer: {**pending.get(producer, {}), **mine}} if mine else pending


def check_transactional_commit(
    state: GroupState, request: TxnOffsetCommit, context: Context
) -> tuple[Error, str, GroupState]:
    """The error of a TxnOffsetCommit, the rule, and the world with the group that it may create."""
    core = request.core
    if request.group == "":
        return Error.INVALID_GROUP_ID, "transaction.invalid-group", state
    if request.epoch < state.epochs.get(request.producer, request.epoch):
        return Error.INVALID_PRODUCER_EPOCH, "transaction.old-epoch", state
    if state.group is None:
        if core.generation >= 0 and dialect_of(context).unknown_group_fences_transaction:
            return Error.ILLEGAL_GENERATION, "transaction.unknown-group", state
        state = evolve(state, group=Group(), stored=Group())
    assert state.group is not None
    if core.generation < 0 and core.member is None and core.instance is None:
        return Error.NONE, "transaction.simple", state
    # Membership and generation are checked alike in every state with members, and nothing else is.
    seen_as = Phase.EMPTY if state.group.phase == Phase.EMPTY else Phase.STABLE
    step = commit(evolve(state.group, phase=seen_as), core, context)
    error = membership_error(step.outputs)
    return error, "transaction.fenced" if error else "transaction.member", state


def on_init_producer(state: GroupState, request: InitProducerId, context: Context) -> StepResult:
    """InitProducerId: the producer's open transaction is aborted, and commits of older epochs are refused (COMMIT-31).

    A group that has no offsets of an open transaction does not hear of the new epoch.
    """
    after = end_deleted_offsets(state, request.producer, committed=False)
    is_ended = any(producer == request.producer for producer, _, _ in state.ended_transactions)
    if request.producer in state.pending and not is_ended:
        epoch = max(request.epoch, state.epochs.get(request.producer, 0))
        ended = (request.producer, False, context.now)
        epochs = {**state.epochs, request.producer: epoch}
        after = evolve(after, ended_transactions=(*state.ended_transactions, ended), epochs=epochs)
    return respond(after, request, ErrorResponse(Error.NONE), "transaction.init-producer")


def on_end_transaction(state: GroupState, request: EndTxn, context: Context) -> StepResult:
    """EndTxn is accepted; the offsets follow when its marker reaches the group (FETCH-12)."""
    after = end_deleted_offsets(state, request.producer, committed=request.committed)
    if request.producer in state.pending:
        after = evolve(
            after, ended_transactions=(*state.ended_transactions, (request.producer, request.committed, context.now))
        )
    return respond(after, request, ErrorResponse(Error.NONE), "transaction.end")


def end_deleted_offsets(state: GroupState, producer: int, *, committed: bool) -> GroupState:
    """The world once what was deleted in the transaction of a producer is committed in the log, or aborted."""
    deleted = end_deleted(state.deleted, producer, committed=committed)
    return state if deleted is state.deleted else evolve(state, deleted=deleted)


def apply_transaction_marker(state: GroupState) -> GroupState:
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


def on_fetch(state: GroupState, request: OffsetFetch, context: Context, cluster: Cluster) -> StepResult:
    """OffsetFetch: in every state, for anyone (FETCH-07), of any partition; but an id has to be some topic's."""
    if request.version == 0 and not dialect_of(context).keeps_version_0:
        return respond(state, request, OffsetFetchResponse(error=Error.UNSUPPORTED_VERSION), "fetch.version-0")
    partitions = tuple(state.offsets) if request.partitions is None else request.partitions
    unstable = {where for mine in state.pending.values() for where in mine} if request.require_stable else set()
    found = {where: None if where in unstable else state.offsets.get(where, NO_OFFSET) for where in partitions}
    rule = "fetch.unknown-group" if state.group is None else "fetch.offsets"
    nameless = frozenset(
        where
        for where in partitions
        if missing_partition_error(cluster, where, request.version) == Error.UNKNOWN_TOPIC_ID
    )
    return respond(state, request, OffsetFetchResponse(found, nameless=nameless), rule)


def on_delete(state: GroupState, request: OffsetDelete, context: Context, cluster: Cluster) -> StepResult:
    """OffsetDelete (KIP-496)."""
    group = state.group
    if request.group == "":
        return respond(state, request, PartitionErrors(error=Error.INVALID_GROUP_ID), "offset-delete.invalid-group")
    if group is None:
        refused = PartitionErrors(error=Error.GROUP_ID_NOT_FOUND)
        return respond(state, request, refused, "offset-delete.unknown-group")
    if group.phase != Phase.EMPTY and group.protocol_type != CONSUMER:
        return respond(state, request, PartitionErrors(error=Error.NON_EMPTY_GROUP), "offset-delete.active")
    errors = {where: deletion_error(state, group, where, cluster) for where in request.partitions}
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
    if gone and group.phase == Phase.EMPTY and not (after.offsets or after.pending):
        after = after if dialect_of(context).emptied_group_stays else GroupState(deleted=after.deleted)
    return respond(after, request, PartitionErrors(errors), "offset-delete.partitions")


def deletion_error(state: GroupState, group: Group, where: Partition, cluster: Cluster) -> Error:
    """May the offset of this partition be deleted?"""
    if not partition_exists(cluster, where):
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    if group.protocol_type != CONSUMER:
        return Error.NONE
    unknown = state.subscribed is None and group.phase != Phase.EMPTY
    if unknown or (state.subscribed is not None and where[0] in state.subscribed):
        return Error.GROUP_SUBSCRIBED_TO_TOPIC
    return Error.NONE


def expired_offsets(state: GroupState, now: int, retention: int) -> frozenset[Partition]:
    """The offsets that a clean-up pass may remove by now (coordinator.md 3.3).

    An open transaction of a partition protects its offset in the newer coordinator (KAFKA-14505) and not in the older
    one, which looks at plain commits alone: such an offset may go or stay. The group stays in both.
    """
    ends = ((where, expiry_of(state, where, offset, retention)) for where, offset in state.offsets.items())
    return frozenset(where for where, end in ends if end is not None and not now < end)


def expiry_of(state: GroupState, where: Partition, offset: Offset, retention: int) -> Time | None:
    """When an offset may be removed: after the broker's retention since it was last of use, or its own, for which an
    offset only should be kept or removed (COMMIT-26)."""
    group = state.group
    if group is None or group.protocol_type is None:
        base = offset.committed
    elif group.phase == Phase.EMPTY:
        base = state.emptied_at
    elif group.protocol_type == CONSUMER and group.phase == Phase.STABLE and state.subscribed is not None:
        if where[0] in state.subscribed:
            return None
        base = offset.committed
    else:
        return None
    end: Time = base + retention
    return end if offset.expires is None or end < offset.expires else offset.expires
