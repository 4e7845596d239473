"""What is simpler than a move or a role, for shrinking: nearer to what a member that means well does."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fencepost.conformance.schedules.schedule import Move, Role, Schedule

Item = tuple[int, Role] | Move
"""A role with its number, or a move."""


def shrinkable_items(schedule: Schedule) -> tuple[Item, ...]:
    """What can be left out of a schedule: its moves, and what is special about a role."""
    special = [(number, role) for number, role in enumerate(schedule.cast) if role != Role()]
    return (*special, *schedule.moves)


def build_schedule(schedule: Schedule, kept: Sequence[Item]) -> Schedule:
    """The schedule with no more than these items."""
    roles = {each[0]: each[1] for each in kept if not isinstance(each, Move)}
    cast = tuple(roles.get(number, Role()) for number in range(len(schedule.cast)))
    return replace(schedule, cast=cast, moves=tuple(each for each in kept if isinstance(each, Move)))


def simplifications(item: Item) -> Iterator[Item]:
    """What to try in the place of an item, the simplest first."""
    if isinstance(item, Move):
        if len(item.options) > 1:
            yield replace(item, options=())
        for name, _ in item.options:
            yield item.without(name)
        if item.kind == "again":
            yield Move({"JoinGroup": "join", "SyncGroup": "sync"}.get(str(item.get("api")), "heartbeat"), item.who)
        return
    number, role = item
    for name, plain in (("instance", 0), ("offer", "a"), ("session", "long"), ("rebalance", "short")):
        if getattr(role, name) != plain:
            yield number, replace(role, **{name: plain})  # type: ignore[arg-type]
