"""Moves of administrators: DescribeGroups, ListGroups, DeleteGroups."""

from fencepost.conformance.schedules.classic.moves.cast import Cast
from fencepost.conformance.schedules.classic.moves.registry import move_kind
from fencepost.conformance.schedules.schedule import Move
from fencepost.traces.events import Order


def absent_group(cast: Cast) -> str:
    """The id of a group that does not exist."""
    return f"{cast.context.group_id}-nothing"


def groups_of(cast: Cast, move: Move) -> tuple[str, ...]:
    """The groups that a move is about: the actor's; with `groups` also one that does not exist, or "all" there are. On
    several nodes over the network the actor's alone, for another may have another coordinator; in this process one node
    coordinates all groups."""
    own, target = cast.actor_at(move.who).context.group_id, cast.context.description
    if len(target.brokers) > 1 and target.order is Order.INTERVALS:
        return (own,)
    if move.get("groups") == "all":
        return tuple(context.group_id for context in cast.contexts.values())
    return (own, absent_group(cast)) if move.get("groups") else (own,)


@move_kind("describe", "version", "groups")
async def describe(cast: Cast, move: Move) -> None:
    """DescribeGroups."""
    version = cast.version_for("DescribeGroups", move)
    await cast.track_request(cast.context.describe_groups(*groups_of(cast, move), version=version), None, {})


@move_kind("list", "version", "states", "types")
async def list_groups(cast: Cast, move: Move) -> None:
    """ListGroups, filtered by one of the `states` and one of the `types`; left out on several nodes, for each lists its
    own groups, and a schedule does not ask which node has a group."""
    if len(cast.context.description.brokers) > 1:
        return
    states, types = ([str(move.get(name))] if move.get(name) else [] for name in ("states", "types"))
    call = cast.context.list_groups(states, types, version=cast.version_for("ListGroups", move))
    await cast.track_request(call, None, {})


@move_kind("delete", "version", "groups")
async def delete(cast: Cast, move: Move) -> None:
    """DeleteGroups."""
    version = cast.version_for("DeleteGroups", move)
    await cast.track_request(cast.context.delete_groups(*groups_of(cast, move), version=version), None, {})
