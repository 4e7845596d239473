"""Ids that a target issued unseen, once a response shows them."""

from collections.abc import Mapping
from typing import Any

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Group, Holder, JoinResponse, Slot
from fencepost.model.classic.messages.requests import Response
from fencepost.model.frozen import evolve
from fencepost.traces.judge.search.configuration import Configuration
from fencepost.traces.judge.search.difference import FreshId


def resolve_state_ids(world: GroupState, shown: Mapping[FreshId, str]) -> GroupState:
    """The world with ids in the place of those that were not known before."""
    return evolve(
        world,
        group=resolve_group_ids(world.group, shown),
        stored=resolve_group_ids(world.stored, shown),
    )


def resolve_group_ids(group: Group | None, shown: Mapping[FreshId, str]) -> Group | None:
    """The group with known ids."""
    if group is None:
        return None

    def resolve_slot(slot: Slot) -> Slot:
        held: Any = slot.id
        known = slot.holder is not Holder.NOBODY and isinstance(held, FreshId) and held in shown
        return evolve(slot, id=shown[held]) if known else slot

    leader = shown.get(group.leader, group.leader) if isinstance(group.leader, FreshId) else group.leader
    return evolve(group, slots=tuple(resolve_slot(slot) for slot in group.slots), leader=leader)


def resolve_response_ids(response: Response, shown: Mapping[FreshId, str]) -> Response:
    """A response that was given with fresh ids, with those known now."""
    if not isinstance(response, JoinResponse):
        return response

    def resolve(token: Any) -> Any:
        return shown.get(token, token) if isinstance(token, FreshId) else token

    members = tuple(evolve(view, id=resolve(view.id)) for view in response.members)
    return evolve(response, member=resolve(response.member), leader=resolve(response.leader), members=members)


def resolve_ids(configuration: Configuration, shown: Mapping[FreshId, str]) -> Configuration:
    """The configuration with ids in the place of fresh ones that a response has shown."""
    predicted = tuple((handle, resolve_response_ids(response, shown)) for handle, response in configuration.predicted)
    return evolve(configuration, world=resolve_state_ids(configuration.world, shown), predicted=predicted)
