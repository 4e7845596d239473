"""What no member of a search sends, asked of each state of the coordinator: a request for its own sake.

Nothing comes of a probe but what is said of it: the search goes on as if it had not been sent.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.member_table import is_member, with_slot
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    Context,
    Group,
    JoinRequest,
    JoinResponse,
    Protocol,
    Slot,
    SyncRequest,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_member
from fencepost.model.classic.theorems.admission_statements import refusals_name_members, size_is_limited
from fencepost.model.classic.theorems.record_statements import is_waiting, who_waits_stays
from fencepost.model.classic.theorems.request_statements import sync_names_protocol
from fencepost.model.classic.theorems.step_statements import CoordinatorStep, TimerExpiry, TimerKind
from fencepost.model.errors import Error
from fencepost.model.explore.classic.state_layout import CoordinatorState
from fencepost.model.explore.classic.step_checks import has_error
from fencepost.model.frozen import evolve
from fencepost.model.sorts import HandleNumber, ProtocolName, numbered_id
from fencepost.model.statement import Statement

HANDLE = HandleNumber(1_000_000)
"""No request of a search has it."""
OTHER = ProtocolName("other")
MOMENT = Context(now=0)
LIMIT = 1
"""The size of group that a JoinGroup is probed with."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A statement about steps, with what is tried in each state of the coordinator because of it."""

    steps: Callable[[CoordinatorState], Iterator[CoordinatorStep]]
    shows: Callable[[CoordinatorStep], bool]
    """The statement says something of the step."""
    statement: Statement
    sentence: str
    """What is tried."""

    def is_kept(self, coordinator: CoordinatorState) -> bool:
        """The statement holds of each step that the probe makes."""
        return all(self.statement.holds(step) for step in self.steps(coordinator))

    def is_shown(self, coordinator: CoordinatorState) -> bool:
        """It says something of one of them."""
        return any(map(self.shows, self.steps(coordinator)))


def syncs_by_other_protocol(coordinator: CoordinatorState) -> Iterator[CoordinatorStep]:
    """Each member's SyncGroup for the present generation, that names another protocol."""
    group = coordinator.group
    for slot in members_of(group):
        request = SyncRequest(HANDLE, slot.id, slot.instance, group.generation, group.protocol_type, OTHER, ())
        step = sync(group, request, MOMENT)
        yield CoordinatorStep(group, request, 0, step.group, step.outputs, MOMENT.max_group_size)


def joins_of_too_many(coordinator: CoordinatorState) -> Iterator[CoordinatorStep]:
    """JoinGroup of each member and of a newcomer, where the group may have one member."""
    yield from probe_joins(coordinator, LIMIT, lambda slot: slot.protocols)


def joins_by_other_protocol(coordinator: CoordinatorState) -> Iterator[CoordinatorStep]:
    """JoinGroup of each member and of a newcomer, with a protocol that nobody else offers."""
    yield from probe_joins(coordinator, MOMENT.max_group_size, lambda _: (Protocol(OTHER, None),))


def probe_joins(
    coordinator: CoordinatorState, limit: int, offers: Callable[[Slot], tuple[Protocol, ...]]
) -> Iterator[CoordinatorStep]:
    """JoinGroup of each member, and of one newcomer without an id and one with an unknown id, with the protocols that
    `offers` has for the slot; the newcomers offer what the first member does."""
    group = evolve(coordinator.group, slots=(*coordinator.group.slots, FREE))
    members = members_of(group)
    fresh, unknown = (numbered_id(coordinator.last_id + place) for place in (1, 2))
    moment = evolve(MOMENT, choices=Choices(fresh), max_group_size=limit)
    newcomers = (evolve(one, id=given, instance=None) for one in members[:1] for given in (None, unknown))
    for slot in (*members, *newcomers):
        request = JoinRequest(
            HANDLE, slot.id, slot.instance, group.protocol_type, offers(slot), 0, 0, requires_id=False, can_skip=True
        )
        step = join(group, request, moment)
        yield CoordinatorStep(group, request, 0, step.group, step.outputs, limit)


def members_of(group: Group) -> tuple[Slot, ...]:
    """The slots with members."""
    return tuple(slot for slot in group.slots if is_member(slot))


def timers_of_waiting(coordinator: CoordinatorState) -> Iterator[CoordinatorStep]:
    """The timer of each member that waits, as if it ran out now."""
    for index, slot in enumerate(coordinator.group.slots):
        if is_waiting(slot):
            group = with_slot(coordinator.group, index, evolve(slot, armed=True))
            step = expire_member(group, index, MOMENT)
            timer = TimerExpiry(TimerKind.MEMBER, index)
            yield CoordinatorStep(group, timer, 0, step.group, step.outputs, MOMENT.max_group_size)


def is_refused_with(error: Error) -> Callable[[CoordinatorStep], bool]:
    """A JoinGroup is refused with this error."""
    return lambda step: has_error(step, JoinResponse, error)


def is_timer(step: CoordinatorStep) -> bool:
    """A timer fires."""
    return isinstance(step.input, TimerExpiry)


def is_in_generation(step: CoordinatorStep) -> bool:
    """A protocol is selected."""
    return step.before.protocol is not None


PROBES: Mapping[str, Probe] = {
    "T23": Probe(
        syncs_by_other_protocol, is_in_generation, sync_names_protocol, "a SyncGroup of each member by another protocol"
    ),
    "T28": Probe(timers_of_waiting, is_timer, who_waits_stays, "the timer of each member that waits"),
    "T41": Probe(
        joins_of_too_many,
        is_refused_with(Error.GROUP_MAX_SIZE_REACHED),
        size_is_limited,
        "a JoinGroup of each member and of a newcomer where one member may be in the group",
    ),
    "T42": Probe(
        joins_by_other_protocol,
        is_refused_with(Error.INCONSISTENT_GROUP_PROTOCOL),
        refusals_name_members,
        "a JoinGroup of each member and of a newcomer by another protocol",
    ),
}
"""By the name of a property: the probes by which a search gets to see what it speaks of.

The members of a search offer one protocol, nothing limits its group, and it does without the timers of those who wait.
"""
