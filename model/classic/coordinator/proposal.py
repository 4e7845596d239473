"""The proposal of client-side assignment, the coordinator's half: where it differs from what was built.

The core has a rule for every request. In the proposal's dialect (`Dialect.synchronizes_once` is false) four of these
rules are other ones:

- A JoinGroup without changes comes while the assignment is awaited. The core repeats the generation. The proposal
  aborts the synchronization, and all rejoin.
- The leader's SyncGroup ends the synchronization. In the proposal it may carry an error instead; then those who wait
  get that error, and all rejoin.
- SyncGroup comes to a stable group. The core repeats the stored assignment. In the proposal the leader's brings another
  assignment, and nobody rejoins.
- Heartbeat comes to a stable group. In the proposal it tells a member whose assignment is another one.

The draft does not say how a member learns of that. Here its Heartbeat gets REBALANCE_IN_PROGRESS, until it has sent
SyncGroup or the sync timer ends. A member that sends JoinGroup instead, as Kafka's clients do, gets the generation
at once. That a generation is stored before JoinGroup is answered is in `group_log`.
"""

from fencepost.model.classic.core.join import update_member
from fencepost.model.classic.core.join_phase import prepare_rebalance, update_sync_timer
from fencepost.model.classic.core.member_table import find, group_timeout, is_member, with_slot
from fencepost.model.classic.core.state import (
    Context,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinRequest,
    NoResponse,
    Output,
    Slot,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.core.sync import assignment_for, sync_success
from fencepost.model.classic.dialect import dialect_of
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.logic import Truth, absent, and_, any_, emit, ite, not_, or_

ABORTED = "proposal.aborted"
FAILED = "proposal.assignment-failed"
REASSIGNED = "proposal.reassigned"
TOLD = "proposal.heartbeat.reassigned"
"""The rules of the proposal, in the order above."""


def amend_join(group: Group, request: JoinRequest, step: Step, context: Context) -> Step:
    """The core's step on a JoinGroup, or the proposal's."""
    if dialect_of(context).synchronizes_once or step.rule != "join.completing.same-protocols":
        return step
    return abort_synchronization(group, request, context)


def amend_sync(group: Group, request: SyncRequest, failure: Error, step: Step, context: Context) -> Step:
    """The core's step on a SyncGroup that carries this error, or the proposal's."""
    if dialect_of(context).synchronizes_once:
        return step
    if step.rule == "sync.leader" and failure != Error.NONE:
        return fail_assignment(group, request, failure, context)
    if step.rule == "sync.stable" and brings_assignments(group, request):
        return reassign(group, request, context)
    return step


def amend_heartbeat(group: Group, request: HeartbeatRequest, step: Step, context: Context) -> Step:
    """The core's step on a Heartbeat, or the proposal's."""
    if dialect_of(context).synchronizes_once or step.rule != "heartbeat.stable":
        return step
    if not_(group.slots[find(group, request.member, Holder.MEMBER)].unsynced):
        return step
    return Step(step.group, (Output(request.handle, HeartbeatResponse(Error.REBALANCE_IN_PROGRESS)),), TOLD)


def abort_synchronization(group: Group, request: JoinRequest, context: Context) -> Step:
    """A member joins again while the assignment is awaited: those who wait for it have to, too."""
    return update_member(group, find(group, request.member, Holder.MEMBER), request, context, ABORTED)


def fail_assignment(group: Group, request: SyncRequest, failure: Error, context: Context) -> Step:
    """The leader could not make an assignment: all who wait for one get its error, and the next rebalance begins."""
    index = find(group, request.member, Holder.MEMBER)
    slot = group.slots[index]
    dropped = emit(slot.sync != 0, Output(slot.sync, NoResponse()))
    waiting = with_slot(group, index, evolve(slot, sync=request.handle, unsynced=False))
    begun, outputs = prepare_rebalance(waiting, context)
    told = tuple(
        evolve(output, response=SyncResponse(failure)) if isinstance(output.response, SyncResponse) else output
        for output in outputs
    )
    return Step(begun, dropped + told, FAILED)


def brings_assignments(group: Group, request: SyncRequest) -> Truth:
    """The leader sends assignments; a follower has none to send."""
    return and_(request.member == group.leader, any_(not_(absent(owner)) for owner, _ in request.assignments))


def reassign(group: Group, request: SyncRequest, context: Context) -> Step:
    """Other assignments for the same generation, without a rejoin: who gets another one has to ask for it."""
    slots = tuple(
        ite(is_member(slot), reassign_slot(slot, request, slot.id == request.member), slot) for slot in group.slots
    )
    after = evolve(group, slots=slots, sync_armed=True, sync_deadline=context.now + group_timeout(group))
    leader = after.slots[find(after, request.member, Holder.MEMBER)]
    return Step(update_sync_timer(after), (Output(request.handle, sync_success(after, leader)),), REASSIGNED)


def reassign_slot(slot: Slot, request: SyncRequest, leads: Truth) -> Slot:
    """The member with what the leader sent for it."""
    assignment = assignment_for(request, slot.id)
    awaited = and_(not_(leads), or_(slot.unsynced, slot.assignment != assignment))
    return evolve(slot, assignment=assignment, unsynced=awaited)
