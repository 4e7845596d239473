"""Ids that a target made up unseen, once they are shown."""

from collections.abc import Mapping
from typing import Any

from fencepost.model.classic.coordinator.state import World
from fencepost.model.classic.core.state import Group, Holder, JoinAnswer, Slot
from fencepost.model.classic.messages.responses import Answer
from fencepost.model.frozen import alter
from fencepost.traces.judge.classic.matching import Fresh


def renamed_world(world: World, shown: Mapping[Fresh, str]) -> World:
    """The world with ids in the place of those that were not known before."""
    return alter(
        world,
        group=renamed_group(world.group, shown),
        stored=renamed_group(world.stored, shown),
    )


def renamed_group(group: Group | None, shown: Mapping[Fresh, str]) -> Group | None:
    """The group with known ids."""
    if group is None:
        return None

    def rename(slot: Slot) -> Slot:
        known = slot.holder is not Holder.NOBODY and isinstance(slot.id, Fresh) and slot.id in shown
        return alter(slot, id=shown[slot.id]) if known else slot

    leader = shown.get(group.leader, group.leader) if isinstance(group.leader, Fresh) else group.leader
    return alter(group, slots=tuple(rename(slot) for slot in group.slots), leader=leader)


def renamed_answer(answer: Answer, shown: Mapping[Fresh, str]) -> Answer:
    """An answer given with ids not known then, with those known now."""
    if not isinstance(answer, JoinAnswer):
        return answer

    def known(token: Any) -> Any:
        return shown.get(token, token) if isinstance(token, Fresh) else token

    members = tuple(alter(view, id=known(view.id)) for view in answer.members)
    return alter(answer, member=known(answer.member), leader=known(answer.leader), members=members)
