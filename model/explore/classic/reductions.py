"""What makes the world smaller and nothing else: fields that nobody will read, messages that nobody will heed.

Each statement here is an argument about the shipped handlers; the tests compare it with the full search, state by
state. Time is left out of the world, and a process may join again at any moment; both are used.
"""

from dataclasses import replace
from functools import partial

from fencepost.model.classic.core.state import (
    CommitAnswer,
    Group,
    HeartbeatAnswer,
    HeartbeatRequest,
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
    nothing,
)
from fencepost.model.errors import Error
from fencepost.model.explore.classic.group_model import GroupWorld
from fencepost.model.explore.classic.state_layout import (
    ANSWER,
    COMMIT,
    COORDINATOR,
    PROCESS,
    REQUEST,
    Bounds,
    Coordinator,
    Heard,
    Process,
    Setting,
    column_of,
)
from fencepost.model.explore.transition_system import Clearing, System
from fencepost.model.frozen import alter

AWAITS = (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)
"""The states in which an answer to JoinGroup or SyncGroup means something."""


def live_member(member: Member, restless: bool) -> Member:
    """The member without what no handler will look at. The `restless` join whether or not they have to."""
    without = member.generation == NO_GENERATION
    owned = nothing(member.owned) if without else member.owned
    return alter(
        member,
        rejoins=member.rejoins or restless,
        waiting=member.waiting if member.state in AWAITS else 0,
        owned=owned,
        owned_in=member.owned_in if any(owned) else NO_GENERATION,
    )


def live_slot(slot: Slot, phase: Phase) -> Slot:
    """The slot without what no handler will look at."""
    parked = not slot.is_new and (slot.join != 0 or slot.sync != 0)
    return alter(
        slot,
        # Whoever waits is not expelled, and the timer is armed again when the wait is over (TIMER-03).
        armed=slot.armed or parked,
        # Handed out in Stable only, when the leader has brought new ones.
        assignment=None if phase == Phase.COMPLETING else slot.assignment,
    )


def live_group(group: Group) -> Group:
    """The group without what no handler will look at."""
    preparing = group.phase == Phase.PREPARING
    return alter(
        group,
        slots=tuple(live_slot(slot, group.phase) for slot in group.slots),
        from_empty=group.from_empty and preparing,
        newcomer=False,  # read while the initial delay has time left, which it never has here
    )


def foreign(member: Member, request: HeartbeatRequest | PartitionCommit) -> bool:
    """The member will never again be what it was when it sent this: ids are not reused, generations only grow."""
    asked = request.request if isinstance(request, PartitionCommit) else request
    return bool(member.id != asked.member or member.generation > asked.generation)


def unheeded(process: Process, heard: Heard, restless: bool) -> bool:
    """No process will heed this answer, whatever happens first."""
    if heard.request is None:
        return heard.number != process.member.waiting
    assert isinstance(heard.answer, HeartbeatAnswer | CommitAnswer)
    asked = heard.request
    changed = bool(process.member.id != asked.member or process.member.generation > asked.generation)
    if heard.answer.error == Error.REBALANCE_IN_PROGRESS:
        return restless
    return changed


def fruitless(coordinator: Coordinator, process: Process, request: MemberRequest) -> bool:
    """The coordinator will refuse this request, whatever happens first, and the process will not heed the refusal."""
    match request:
        case SyncRequest():
            return request.generation < coordinator.group.generation and request.handle != process.member.waiting
        case HeartbeatRequest() | PartitionCommit():
            asked = request.request if isinstance(request, PartitionCommit) else request
            return asked.generation < coordinator.group.generation and foreign(process.member, request)
    return False


class ReducedWorld(GroupWorld):
    """The same world, where every state comes in its smallest form.

    A process may join again at any moment, so it is all one whether it has to: unless `restless` is false, for those
    who go on without such moments.
    """

    def __init__(self, setting: Setting, bounds: Bounds, restless: bool = True) -> None:
        super().__init__(setting, bounds)
        self.restless = restless

    def system(self) -> System:
        """The system with its reductions, without properties."""
        full = GroupWorld.system(self)
        clearings: list[Clearing] = []
        for index in range(self.count):
            process, request, answer, late = (column_of(index, which) for which in (PROCESS, REQUEST, ANSWER, COMMIT))
            clearings.append(Clearing(answer, (process, answer), partial(unheeded, restless=self.restless)))
            clearings.append(Clearing(request, (COORDINATOR, process, request), fruitless))
            clearings.append(Clearing(late, (COORDINATOR, process, late), fruitless))
        return replace(full, clearings=tuple(clearings), symmetry=self.symmetry())

    def live_process(self, process: Process) -> Process:
        """The process in its smallest form."""
        return alter(process, member=live_member(process.member, self.restless))

    def live_coordinator(self, coordinator: Coordinator) -> Coordinator:
        """The coordinator in its smallest form."""
        return alter(coordinator, group=live_group(coordinator.group))
