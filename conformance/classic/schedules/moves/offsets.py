"""Moves around committed offsets: OffsetCommit, OffsetFetch, OffsetDelete."""

from typing import Any

from fencepost.conformance.classic.schedules.moves.cast import ABSENT_TOPIC, Cast, sent_body
from fencepost.conformance.classic.schedules.moves.groups import groups_of
from fencepost.conformance.classic.schedules.moves.registry import SENDER_OPTIONS, move_kind
from fencepost.conformance.run.schedule import Move
from fencepost.traces.events import Body

FIRST_BATCHED_VERSION = 8
"""The first version of OffsetFetch with several groups."""


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
    version = cast.version_for("OffsetCommit", move, actor)
    call = actor.context.commit(actor.member, rows, version=version, **changes)
    await cast.track_request(call, actor, sent_body(call))


def partition_of(move: Move) -> tuple[str, int] | int:
    """The partition that a move is about, with its topic if that is not the kit's."""
    number = move.number("partition")
    return (ABSENT_TOPIC, number) if move.get("topic") == "absent" else number


@move_kind("fetch", "partition", "further", "stable", "groups", "version", "topic")
async def fetch(cast: Cast, move: Move) -> None:
    """OffsetFetch of all partitions unless one or two are named; `groups` are those of `groups_of`."""
    context = cast.actor_at(move.who).context
    partitions = None if "partition" not in dict(move.options) else [partition_of(move)]
    if partitions is not None and "further" in dict(move.options):
        partitions.append(move.number("further"))
    version = cast.version_for("OffsetFetch", move)
    if partitions is None and version < 2:
        partitions = [0, 1]
    groups = groups_of(cast, move) if version >= FIRST_BATCHED_VERSION else [context.group_id]
    call = context.fetch(partitions, stable=bool(move.get("stable")), groups=groups, version=version)
    await cast.track_request(call, None, {})


@move_kind("delete-offsets", "partition", "further", "topic")
async def delete_offsets(cast: Cast, move: Move) -> None:
    """OffsetDelete of one partition, and of a `further` one."""
    partitions = [partition_of(move)]
    if "further" in dict(move.options):
        partitions.append(move.number("further"))
    await cast.track_request(cast.actor_at(move.who).context.delete_offsets(partitions), None, {})
