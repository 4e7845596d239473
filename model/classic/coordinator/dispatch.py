"""The reference coordinator of one group: the layer around the core, and the dispatch of every request.

`handle_request` takes the world of one group id, a request and the context, and returns the world after it, the
responses and the rule that applied. The same function judges recorded responses.
"""

from fencepost.model.classic.coordinator.group_log import becomes_empty, group_record, writes_record
from fencepost.model.classic.coordinator.group_protocol import CLASSIC_GROUP
from fencepost.model.classic.coordinator.state import GroupState, Reply, StepResult, respond
from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.membership import heartbeat, leave
from fencepost.model.classic.core.state import (
    FREE,
    Context,
    CoreResponse,
    Group,
    HeartbeatResponse,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    NoResponse,
    Phase,
    Step,
    SyncResponse,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.dialect import dialect_of
from fencepost.model.classic.messages import (
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    Request,
    Response,
    SyncGroup,
    subscribed_topics,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups import admin, offsets
from fencepost.model.groups.messages import (
    DeleteGroup,
    DescribeGroup,
    EndTxn,
    InitProducerId,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    TxnOffsetCommit,
)
from fencepost.model.groups.protocol import Cluster
from fencepost.model.logic import Truth, absent, not_


def handle_request(state: GroupState, request: Request, context: Context, cluster: Cluster) -> StepResult:
    """Handle one request."""
    match request:
        case Heartbeat():
            return on_heartbeat(state, request, context)
        case OffsetCommit():
            return answer(request, offsets.on_commit(state, request, context, cluster, CLASSIC_GROUP))
        case JoinGroup():
            return on_join(state, request, context, cluster)
        case SyncGroup():
            return on_sync(state, request, context)
        case LeaveGroup():
            return on_leave(state, request, context)
        case TxnOffsetCommit():
            return answer(request, offsets.on_transactional_commit(state, request, context, cluster, CLASSIC_GROUP))
        case InitProducerId():
            return answer(request, offsets.on_init_producer(state, request, context))
        case EndTxn():
            return answer(request, offsets.on_end_transaction(state, request, context))
        case OffsetFetch():
            return answer(request, offsets.on_fetch(state, request, context, cluster, CLASSIC_GROUP))
        case OffsetDelete():
            return answer(request, offsets.on_delete_offsets(state, request, context, cluster, CLASSIC_GROUP))
        case DescribeGroup():
            return answer(request, admin.on_describe(state, request, CLASSIC_GROUP))
        case ListGroups():
            return answer(request, admin.on_list(state, request, CLASSIC_GROUP))
        case DeleteGroup():
            return answer(request, admin.on_delete(state, request, CLASSIC_GROUP))


def answer(request: Request, answered: tuple[GroupState, Response, str]) -> StepResult:
    """The outcome of a request that only the world beside the members is about."""
    state, response, rule = answered
    return respond(state, request, response, rule)


def apply_core_step(state: GroupState, step: Step, context: Context) -> StepResult:
    """The world after a step of the core, with the record it writes to the log and the topics subscribed to."""
    before, after = state.group, step.group
    replies = tuple(Reply(output.handle, output.response) for output in step.outputs)
    if before is after:
        return StepResult(state, replies, step.rule)
    changed = evolve(state, group=after)
    if before is not None and after.generation != before.generation:
        changed = evolve(changed, subscribed=subscribed_topics(after))
    if writes_record(before or Group(generation=after.generation), step, context):
        emptied_at = context.now if before is not None and becomes_empty(before, after) else state.emptied_at
        changed = evolve(changed, stored=group_record(after, context), emptied_at=emptied_at)
    return StepResult(changed, replies, step.rule)


def takes_slot(request: object) -> Truth:
    """Whether a request to the core may need a free slot: a JoinGroup without an id, and no other."""
    return isinstance(request, JoinRequest) and absent(request.member)


def with_free_slot(group: Group) -> Group:
    """The group with at least one free slot; the length of the table means nothing."""
    if any(slot.holder == Holder.NOBODY for slot in group.slots):
        return group
    return evolve(group, slots=(*group.slots, FREE, FREE))


def on_join(state: GroupState, request: JoinGroup, context: Context, cluster: Cluster) -> StepResult:
    """JoinGroup: what is refused before the group is looked at, then the core."""
    core, settings = request.core, cluster.settings
    if request.group == "":
        return respond(state, request, JoinResponse(Error.INVALID_GROUP_ID, member=core.member), "join.invalid-group")
    if not settings.min_session_timeout <= core.session_timeout <= settings.max_session_timeout:
        refused = JoinResponse(Error.INVALID_SESSION_TIMEOUT, member=core.member)
        return respond(state, request, refused, "join.invalid-session-timeout")
    if state.group is None:
        if not_(absent(core.member)):
            refused = JoinResponse(Error.UNKNOWN_MEMBER_ID, member=core.member)
            return respond(state, request, refused, "join.unknown-group")
        state = evolve(state, group=Group(), stored=Group(), subscribed=None)
    assert state.group is not None
    room = with_free_slot(state.group) if takes_slot(core) else state.group
    step = join(room, core, context)
    step = evolve(step, group=state.group) if step.group is room else step
    superseded = JoinResponse(Error.NOT_COORDINATOR, member=core.member)
    return apply_core_step(state, answer_superseded(step, superseded, context), context)


def answer_superseded(step: Step, response: CoreResponse, context: Context) -> Step:
    """The step, with this response to a parked request if the member's next one takes its place (DIV-23)."""
    is_superseded = [isinstance(output.response, NoResponse) for output in step.outputs]
    if not any(is_superseded) or dialect_of(context).superseded_stays_silent:
        return step
    outputs = zip(step.outputs, is_superseded, strict=True)
    return evolve(step, outputs=tuple(evolve(one, response=response) if ends else one for one, ends in outputs))


def on_sync(state: GroupState, request: SyncGroup, context: Context) -> StepResult:
    """SyncGroup."""
    if not request.complete:
        return respond(state, request, SyncResponse(Error.INCONSISTENT_GROUP_PROTOCOL), "sync.incomplete")
    if request.group == "":
        return respond(state, request, SyncResponse(Error.INVALID_GROUP_ID), "sync.invalid-group")
    if state.group is None:
        return respond(state, request, SyncResponse(Error.UNKNOWN_MEMBER_ID), "sync.unknown-group")
    if state.group.phase == Phase.EMPTY:
        return respond(state, request, SyncResponse(Error.UNKNOWN_MEMBER_ID), "sync.empty")
    step = sync(state.group, request.core, context)
    return apply_core_step(state, answer_superseded(step, SyncResponse(Error.NOT_COORDINATOR), context), context)


def on_heartbeat(state: GroupState, request: Heartbeat, context: Context) -> StepResult:
    """The world after a Heartbeat, with its response; the core handles it if the group has members."""
    if request.group == "":
        return respond(state, request, HeartbeatResponse(Error.INVALID_GROUP_ID), "heartbeat.invalid-group")
    if state.group is None:
        return respond(state, request, HeartbeatResponse(Error.UNKNOWN_MEMBER_ID), "heartbeat.unknown-group")
    if state.group.phase == Phase.EMPTY:
        return respond(state, request, HeartbeatResponse(Error.UNKNOWN_MEMBER_ID), "heartbeat.empty")
    return apply_core_step(state, heartbeat(state.group, request.core, context), context)


def on_leave(state: GroupState, request: LeaveGroup, context: Context) -> StepResult:
    """LeaveGroup."""
    if request.group == "":
        return respond(state, request, LeaveResponse(Error.INVALID_GROUP_ID), "leave.invalid-group")
    if state.group is None:
        return respond(state, request, unknown_entries_response(request.core), "leave.unknown-group")
    return apply_core_step(state, leave(state.group, request.core, context), context)


def unknown_entries_response(request: LeaveRequest) -> LeaveResponse:
    """Every entry is unknown."""
    return LeaveResponse(Error.NONE, tuple(Error.UNKNOWN_MEMBER_ID for _ in request.entries))
