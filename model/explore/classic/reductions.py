"""Reductions of the explored world: fields that no handler reads again, and messages without any further effect.

Each statement here is an argument about the shipped handlers; the tests compare it with the full search, state by
state. Time is left out of the world, and a process may join again at any moment; both are used.
"""

from dataclasses import replace
from functools import partial

from fencepost.model.classic.core.state import (
    CommitResponse,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Phase,
    Slot,
    SyncRequest,
)
from fencepost.model.classic.member.member import (
    NO_GENERATION,
    Member,
    MemberRequest,
    MemberState,
    PartitionCommit,
    no_partitions,
)
from fencepost.model.errors import Error
from fencepost.model.explore.classic.group_model import GroupModel
from fencepost.model.explore.classic.state_layout import (
    COMMIT,
    COORDINATOR,
    PROCESS,
    REQUEST,
    RESPONSE,
    Bounds,
    CoordinatorState,
    IncomingResponse,
    ModelConfig,
    ProcessState,
    column_of,
)
from fencepost.model.explore.transition_system import Clearing, TransitionSystem
from fencepost.model.frozen import evolve

AWAITING_STATES = (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)
"""The states in which an answer to JoinGroup or SyncGroup means something."""


def reduce_member(member: Member, restless: bool) -> Member:
    """The member without what no handler will look at. The `restless` join whether or not they have to."""
    without = member.generation == NO_GENERATION
    owned = no_partitions(member.owned) if without else member.owned
    return evolve(
        member,
        rejoins=member.rejoins or restless,
        waiting=member.waiting if member.state in AWAITING_STATES else 0,
        owned=owned,
        owned_in=member.owned_in if any(owned) else NO_GENERATION,
    )


def reduce_slot(slot: Slot, phase: Phase) -> Slot:
    """The slot without what no handler will look at."""
    parked = not slot.is_new and (slot.join != 0 or slot.sync != 0)
    return evolve(
        slot,
        # Whoever waits is not expelled, and the timer is armed again when the wait is over (TIMER-03).
        armed=slot.armed and not parked,
        # Handed out in Stable only, when the leader has brought new ones.
        assignment=None if phase == Phase.COMPLETING else slot.assignment,
    )


def reduce_group(group: Group) -> Group:
    """The group without what no handler will look at."""
    preparing = group.phase == Phase.PREPARING
    return evolve(
        group,
        slots=tuple(reduce_slot(slot, group.phase) for slot in group.slots),
        from_empty=group.from_empty and preparing,
        newcomer=False,  # read while the initial delay has time left, which it never has here
    )


def is_outdated(member: Member, request: HeartbeatRequest | PartitionCommit) -> bool:
    """The member will never again be what it was when it sent this: ids are not reused, generations only grow."""
    asked = request.request if isinstance(request, PartitionCommit) else request
    return bool(member.id != asked.member or member.generation > asked.generation)


def is_response_ignored(process: ProcessState, incoming: IncomingResponse, restless: bool) -> bool:
    """No process will heed this answer, whatever happens first."""
    if incoming.request is None:
        return incoming.number != process.member.waiting
    assert isinstance(incoming.response, HeartbeatResponse | CommitResponse)
    asked = incoming.request
    changed = bool(process.member.id != asked.member or process.member.generation > asked.generation)
    if incoming.response.error == Error.REBALANCE_IN_PROGRESS:
        return restless
    return changed


def is_request_futile(coordinator: CoordinatorState, process: ProcessState, request: MemberRequest) -> bool:
    """The coordinator will refuse this request, whatever happens first, and the process will not heed the refusal."""
    match request:
        case SyncRequest():
            return request.generation < coordinator.group.generation and request.handle != process.member.waiting
        case HeartbeatRequest() | PartitionCommit():
            asked = request.request if isinstance(request, PartitionCommit) else request
            return asked.generation < coordinator.group.generation and is_outdated(process.member, request)
    return False


class ReducedGroupModel(GroupModel):
    """The same world, where every state comes in its smallest form.

    A process may join again at any moment, so it is all one whether it has to: unless `restless` is false, for those
    who go on without such moments.
    """

    def __init__(self, config: ModelConfig, bounds: Bounds, restless: bool = True) -> None:
        super().__init__(config, bounds)
        self.restless = restless

    def system(self) -> TransitionSystem:
        """The system with its reductions, without properties."""
        full = GroupModel.system(self)
        clearings: list[Clearing] = []
        for index in range(self.count):
            process, request, response, late = (
                column_of(index, which) for which in (PROCESS, REQUEST, RESPONSE, COMMIT)
            )
            clearings.append(
                Clearing(response, (process, response), partial(is_response_ignored, restless=self.restless))
            )
            clearings.append(Clearing(request, (COORDINATOR, process, request), is_request_futile))
            clearings.append(Clearing(late, (COORDINATOR, process, late), is_request_futile))
        return replace(full, clearings=tuple(clearings), symmetry=self.symmetry())

    def reduce_process(self, process: ProcessState) -> ProcessState:
        """The process in its smallest form."""
        return evolve(process, member=reduce_member(process.member, self.restless))

    def reduce_coordinator(self, coordinator: CoordinatorState) -> CoordinatorState:
        """The coordinator in its smallest form."""
        return evolve(coordinator, group=reduce_group(coordinator.group))
