"""Moves of administrators: DescribeGroups, ListGroups, DeleteGroups."""

from fencepost.adapters.target import Description
from fencepost.conformance.classic.schedules.moves.cast import Cast
from fencepost.conformance.classic.schedules.moves.registry import move_kind
from fencepost.conformance.run.schedule import Move
from fencepost.traces.events import Order


def absent_group(cast: Cast) -> str:
    """The id of a group that does not exist."""
    return f"{cast.context.group_id}-nothing"


def has_one_coordinator(target: Description) -> bool:
    """Whether any node answers for all groups: there is one node, or the target is in this process, where the nodes
    share a coordinator. Over the network, several nodes have groups of their own."""
    return len(target.brokers) <= 1 or target.order is Order.TOTAL


def groups_of(cast: Cast, move: Move) -> tuple[str, ...]:
    """The groups that a move is about: the actor's; with `groups` also one that does not exist, or "all" there are. The
    actor's alone if another may have another coordinator."""
    own = cast.actor_at(move.who).context.group_id
    if not has_one_coordinator(cast.context.description):
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
    """ListGroups, filtered by one of the `states` and one of the `types`; left out where each node lists groups of its
    own, for a schedule does not ask which node has a group."""
    if not has_one_coordinator(cast.context.description):
        return
    states, types = ([str(move.get(name))] if move.get(name) else [] for name in ("states", "types"))
    call = cast.context.list_groups(states, types, version=cast.version_for("ListGroups", move))
    await cast.track_request(call, None, {})


@move_kind("delete", "version", "groups")
async def delete(cast: Cast, move: Move) -> None:
    """DeleteGroups."""
    version = cast.version_for("DeleteGroups", move)
    await cast.track_request(cast.context.delete_groups(*groups_of(cast, move), version=version), None, {})
