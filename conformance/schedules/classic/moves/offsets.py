"""Moves around offsets: OffsetCommit, OffsetFetch, OffsetDelete, and the one transaction of a schedule."""

from contextlib import suppress
from typing import Any

from fencepost.conformance.scenario.actors import Blocked
from fencepost.conformance.scenario.transactional_producer import TransactionalProducer
from fencepost.conformance.schedules.classic.moves.cast import ABSENT_TOPIC, Cast, sent_body
from fencepost.conformance.schedules.classic.moves.groups import absent_group
from fencepost.conformance.schedules.classic.moves.registry import SENDER_OPTIONS, move_kind
from fencepost.conformance.schedules.schedule import Move
from fencepost.traces.events import Body


@move_kind("commit", *SENDER_OPTIONS, "partition", "offset", "further", "note", "retention", "topic")
async def commit(cast: Cast, move: Move) -> None:
    """OffsetCommit of one partition, and of a `further` one; `note` is the metadata, "long" exceeds the limit."""
    actor = cast.actor_at(move.who)
    changes = cast.identity_fields(actor, move, "generation_id_or_member_epoch")
    if "retention" in dict(move.options):
        changes["retention_time_ms"] = move.number("retention")
    row: dict[str, Any] = {"committed_offset": move.number("offset", 1)}
    if move.get("note") == "long" and cast.context.description.knows("max_offset_metadata"):
        row["committed_metadata"] = "x" * (cast.context.settings.max_offset_metadata + 1)
    elif move.get("note"):
        row["committed_metadata"] = str(move.get("note"))
    rows: dict[tuple[str, int] | int, int | Body] = {partition_of(move): row}
    if "further" in dict(move.options):
        rows[move.number("further")] = move.number("offset", 1) + 1
    call = cast.context.commit(actor.member, rows, version=cast.version_for("OffsetCommit", move), **changes)
    await cast.track_request(call, actor, sent_body(call))


def partition_of(move: Move) -> tuple[str, int] | int:
    """The partition that a move is about, with its topic if that is not the kit's."""
    number = move.number("partition")
    return (ABSENT_TOPIC, number) if move.get("topic") == "absent" else number


@move_kind("fetch", "partition", "stable", "groups", "version", "topic")
async def fetch(cast: Cast, move: Move) -> None:
    """OffsetFetch of all partitions unless one is named; with `groups`, of a group that does not exist too."""
    partitions = None if "partition" not in dict(move.options) else [partition_of(move)]
    version = cast.version_for("OffsetFetch", move)
    if partitions is None and version < 2:
        partitions = [0, 1]
    groups = None if "groups" not in dict(move.options) else [cast.group_id, absent_group(cast)]
    call = cast.context.fetch(partitions, stable=bool(move.get("stable")), groups=groups, version=version)
    await cast.track_request(call, None, {})


@move_kind("delete-offsets", "partition", "topic")
async def delete_offsets(cast: Cast, move: Move) -> None:
    """OffsetDelete."""
    await cast.track_request(cast.context.delete_offsets([partition_of(move)]), None, {})


@move_kind("transact", *SENDER_OPTIONS, "partition", "offset", "again")
async def commit_in_transaction(cast: Cast, move: Move) -> None:
    """TxnOffsetCommit; the transaction begins if none is open. Left out if it cannot begin."""
    actor = cast.actor_at(move.who)
    try:
        if cast.producer is None:
            producer = TransactionalProducer(cast.context, cast.group_id)
            await producer.begin()
            cast.producer = producer
    except Blocked:
        return
    row = {"committed_offset": move.number("offset", 1), "committed_metadata": "", "committed_leader_epoch": -1}
    sender: dict[str, Any] = {
        "generation_id": actor.member.generation,
        "member_id": actor.member.id,
        "group_instance_id": actor.member.instance,
    }
    sender |= cast.identity_fields(actor, move, "generation_id")
    topics = cast.context.partitions_by_topic({move.number("partition"): row}, {})
    await cast.track_request(cast.producer.send_commit(topics, **sender), None, {})


@move_kind("end", "abort", "version")
async def end_transaction(cast: Cast, move: Move) -> None:
    """EndTxn, if a transaction is open."""
    if cast.producer is not None:
        producer, cast.producer = cast.producer, None
        with suppress(Blocked):
            await producer.end(committed=not move.get("abort"))
