"""Schedules as sequences of items for the shrinker: the items that it may remove, and simpler ones."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fencepost.conformance.schedules.protocol import ScheduleProtocol
from fencepost.conformance.schedules.schedule import Move, Role, Schedule

Item = tuple[int, Role] | Move
"""An actor's number with its role, or a move."""


def shrinkable_items(protocol: ScheduleProtocol, schedule: Schedule) -> tuple[Item, ...]:
    """The items that shrinking may remove: roles other than the default one, then all moves."""
    special = [(number, role) for number, role in enumerate(schedule.cast) if role != protocol.default_role]
    return (*special, *schedule.moves)


def build_schedule(protocol: ScheduleProtocol, schedule: Schedule, kept: Sequence[Item]) -> Schedule:
    """The schedule with these items only; an actor whose role was removed has the default role."""
    roles = {each[0]: each[1] for each in kept if not isinstance(each, Move)}
    cast = tuple(roles.get(number, protocol.default_role) for number in range(len(schedule.cast)))
    return replace(schedule, cast=cast, moves=tuple(each for each in kept if isinstance(each, Move)))


def related_items(items: Sequence[Item]) -> Iterator[list[int]]:
    """Yield the indices of items to remove together: all of an actor, then all moves of a kind, the most first."""
    actors: dict[object, list[int]] = {}
    kinds: dict[object, list[int]] = {}
    for place, item in enumerate(items):
        actors.setdefault(item.who if isinstance(item, Move) else item[0], []).append(place)
        if isinstance(item, Move):
            kinds.setdefault(item.kind, []).append(place)
    yield from sorted(actors.values(), key=len, reverse=True)
    yield from sorted(kinds.values(), key=len, reverse=True)


def simplifications(protocol: ScheduleProtocol, item: Item) -> Iterator[Item]:
    """Items to try in the place of this one, the simplest first: fewer options, then what the protocol suggests."""
    if isinstance(item, Move):
        if len(item.options) > 1:
            yield replace(item, options=())
        for name, _ in item.options:
            yield item.without(name)
        yield from protocol.simpler_moves(item)
        return
    number, role = item
    for simpler in protocol.simpler_roles(role):
        yield number, simpler
