"""Quiet runs of the shipped core, seen as the rebalance of the kernel: who is awaited, and which actions a step is."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from fencepost.model.classic.core.state import Holder, JoinResponse, Phase, Slot
from fencepost.model.classic.explore.liveness import QuietModel
from fencepost.model.classic.explore.state_layout import COORDINATOR, PROCESS, RESPONSE, column_of
from fencepost.model.classic.kernel.actions import finite_relation
from fencepost.model.classic.kernel.rebalance import REBALANCE_ACTIONS, Rebalance
from fencepost.model.classic.member.member import MemberState
from fencepost.model.explore.search import Row

MOST_ACTIONS = 3
"""A step is so many actions at most: a member joins, the join phase completes."""


def members_of(names: Iterable[Any]) -> Any:
    """A set of members."""
    return finite_relation(*((name,) for name in names))


def rebalance_of(quiet: QuietModel, row: Row) -> Rebalance:
    """The row as the kernel sees it; a slot that no process knows of is a dead member's."""
    group = row[COORDINATOR].group
    processes = [row[column_of(index, PROCESS)].member for index in range(quiet.model.count)]
    slots = {holder_of(quiet, row, slot): slot for slot in group.slots if slot.holder == Holder.MEMBER}
    stable, completing = group.phase == Phase.STABLE, group.phase == Phase.COMPLETING
    leaders = [name for name, slot in slots.items() if slot.id == group.leader]
    owing = [
        index
        for index in quiet.alive
        if stable and index in slots and processes[index].rejoins and processes[index].state == MemberState.STABLE
    ]
    return Rebalance(
        preparing=group.phase == Phase.PREPARING,
        completing=completing,
        leader=leaders[0] if completing and leaders else None,
        members=members_of(slots),
        living=members_of(quiet.alive),
        joined=members_of(name for name, slot in slots.items() if slot.join),
        synced=members_of(name for name, slot in slots.items() if slot.sync),
        told=members_of(name for name, slot in slots.items() if stable and not slot.unsynced),
        may_revoke=members_of(quiet.alive),
        owes_join=members_of(owing),
    )


def holder_of(quiet: QuietModel, row: Row, slot: Slot) -> Any:
    """The process behind a slot, or the slot's id if there is none."""
    for handle in (slot.join, slot.sync):
        if handle:
            return quiet.model.sender_of(handle)[0]
    for index in range(quiet.model.count):
        incoming = row[column_of(index, RESPONSE)]
        hears = incoming is not None and isinstance(incoming.response, JoinResponse)
        if row[column_of(index, PROCESS)].member.id == slot.id or (hears and incoming.response.member == slot.id):
            return index
    return f"slot of {slot.id}"


def find_actions(before: Rebalance, after: Rebalance) -> tuple[str, ...] | None:
    """The names of the fewest actions that lead from one to the other, each possible; None if there are none."""
    level: dict[Rebalance, tuple[str, ...]] = {before: ()}
    for _ in range(MOST_ACTIONS + 1):
        for state, names in level.items():
            if replace(state, leader=after.leader) == after:
                return names
        found: dict[Rebalance, tuple[str, ...]] = {}
        for state, names in level.items():
            for name, following in possible_actions(state):
                found.setdefault(following, (*names, name))
        level = found
    return None


def possible_actions(state: Rebalance) -> Iterator[tuple[str, Rebalance]]:
    """Every action that is possible, but for `revoke`, with the rebalance after it; everyone may revoke."""
    members: Any = state.members
    living: Any = state.living
    everyone = list(dict.fromkeys(name for (name,) in (*members, *living)))
    absent = members_of(name for (name,) in members if not living.has(name))
    choices: dict[str, list[tuple[Any, ...]]] = {
        "publish": [()],
        "complete": [(name, dropped) for name in everyone for dropped in (members_of(()), absent)],
    }
    for action, take in REBALANCE_ACTIONS.items():
        for arguments in choices.get(action, [(name,) for name in everyone]) if action != "revoke" else ():
            step = take(state, *arguments)
            if step.guard:
                yield action, replace(step.after, may_revoke=state.may_revoke)
