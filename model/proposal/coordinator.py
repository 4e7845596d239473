"""The proposal of client-side assignment, the coordinator's half: where it differs from what was built.

The core has a rule for every request. In the proposal four of these rules are other ones:

- A JoinGroup without changes comes while the assignment is awaited. The core repeats the generation. The proposal
  aborts the synchronization, and all rejoin.
- The leader's SyncGroup ends the synchronization. In the proposal it may carry an error instead; then those who wait
  get that error, and all rejoin.
- SyncGroup comes to a stable group. The core repeats the stored assignment. In the proposal the leader's brings another
  assignment, and nobody rejoins.
- Heartbeat comes to a stable group. In the proposal it tells a member whose assignment is another one.

The draft does not say how a member learns of that. Here its Heartbeat gets REBALANCE_IN_PROGRESS, until it has sent
SyncGroup or the sync timer ends. A member that sends JoinGroup instead, as Kafka's clients do, gets the generation
at once.

A generation is stored before JoinGroup is answered (`PROPOSED`), and its record has who is yet to ask for an
assignment, so that the next coordinator goes on with that. The functions here stand around those of the classic
coordinator, which know nothing of them.
"""

from fencepost.model.classic.coordinator import dispatch, group_log, internal_actions
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.join import update_member
from fencepost.model.classic.core.join_phase import has_unsynced_member, prepare_rebalance, update_sync_timer
from fencepost.model.classic.core.member_table import find, group_timeout, is_member, with_slot
from fencepost.model.classic.core.membership import heartbeat
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
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Heartbeat, JoinGroup, Request, SyncGroup
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.protocol import Cluster
from fencepost.model.logic import Truth, absent, and_, any_, emit, ite, not_, or_

PROPOSED = Dialect(generation_waits_for_assignment=False)
"""The dialect of the classic coordinator that the proposal stands around."""
ABORTED = "proposal.aborted"
FAILED = "proposal.assignment-failed"
REASSIGNED = "proposal.reassigned"
TOLD = "proposal.heartbeat.reassigned"
"""The rules of the proposal, in the order above."""


def handle_request(state: GroupState, request: Request, context: Context, cluster: Cluster) -> StepResult:
    """Handle one request as the classic coordinator does, or by a rule of the proposal."""
    result = dispatch.handle_request(state, request, context, cluster)
    step = None
    if state.group is not None and isinstance(request, JoinGroup | SyncGroup | Heartbeat):
        failure = request.failure if isinstance(request, SyncGroup) else Error.NONE
        step = proposed_step(state.group, request.core, failure, result.rule, context)
    if step is not None:
        result = dispatch.apply_core_step(state, step, context)
    after, stored, group = result.state, result.state.stored, result.state.group
    if group is not None and result.rule == REASSIGNED:
        stored = group_record(group, context)
    elif group is not None and stored is not None and stored is not state.stored:
        awaited = {slot.id for slot in group.slots if slot.unsynced}
        stored = evolve(stored, slots=tuple(evolve(one, unsynced=one.id in awaited) for one in stored.slots))
    return evolve(result, state=evolve(after, stored=stored))


def restart_coordinator(state: GroupState, context: Context) -> StepResult:
    """The world as a new coordinator loads it from the log."""
    result = internal_actions.restart_coordinator(state, context)
    if result.rule != "load.group" or state.stored is None or result.state.group is None:
        return result
    return evolve(result, state=evolve(result.state, group=await_again(result.state.group, state.stored, context)))


def proposed_step(
    group: Group, request: JoinRequest | SyncRequest | HeartbeatRequest, failure: Error, rule: str, context: Context
) -> Step | None:
    """The step of the proposal on a request that carries this error, where the core has a step by this `rule`; None if
    it has no other one."""
    match request:
        case JoinRequest() if rule == "join.completing.same-protocols":
            return abort_synchronization(group, request, context)
        case SyncRequest() if rule == "sync.leader" and failure != Error.NONE:
            return fail_assignment(group, request, failure, context)
        case SyncRequest() if rule == "sync.stable" and brings_assignments(group, request):
            return reassign(group, request, context)
        case HeartbeatRequest() if rule == "heartbeat.stable":
            index = find(group, request.member, Holder.MEMBER)
            if group.slots[index].unsynced:
                after = heartbeat(group, request, context).group
                return Step(after, (Output(request.handle, HeartbeatResponse(Error.REBALANCE_IN_PROGRESS)),), TOLD)
    return None


def writes_record(before: Group, step: Step, context: Context) -> Truth:
    """Whether a step writes a record of the group: where the classic coordinator does, or with other assignments."""
    if step.rule == REASSIGNED:
        return True
    return group_log.writes_record(before, step, context)


def group_record(group: Group, context: Context) -> Group:
    """The group as far as its record has it, with who is yet to ask for an assignment."""
    members = [slot for slot in group.slots if is_member(slot) is not False]
    record = group_log.group_record(group, context)
    slots = tuple(
        ite(is_member(slot), evolve(own, unsynced=slot.unsynced), own)
        for slot, own in zip(members, record.slots, strict=True)
    )
    return evolve(record, slots=slots)


def load_record(stored: Group, context: Context) -> Step:
    """The group as a new coordinator goes on with it."""
    loaded = group_log.load_record(stored, context)
    if loaded.rule != "load.group":
        return loaded
    return evolve(loaded, group=await_again(loaded.group, stored, context))


def await_again(group: Group, stored: Group, context: Context) -> Group:
    """The group that was loaded, with those who had yet to ask for their assignment; they have a whole rebalance
    timeout again."""
    members = [slot for slot in stored.slots if is_member(slot) is not False]
    slots = tuple(
        ite(is_member(slot), evolve(own, unsynced=or_(own.unsynced, slot.unsynced)), own)
        for slot, own in zip(members, group.slots, strict=False)
    )
    after = evolve(group, slots=(*slots, *group.slots[len(slots) :]))
    awaits = has_unsynced_member(after)
    return evolve(after, sync_armed=awaits, sync_deadline=ite(awaits, context.now + group_timeout(after), 0))


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
