"""The reference coordinator of one group: what stands around the core, and the dispatch of every request.

`handle` takes the world of one group id, a request and the context, and returns the world after it, the answers
and the rule that applied. The same function judges recorded answers.
"""

from fencepost.model.classic.coordinator import admin, offsets
from fencepost.model.classic.coordinator.state import Cluster, Outcome, Reply, World, answer
from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.membership import heartbeat, leave
from fencepost.model.classic.core.state import (
    FREE,
    Context,
    Group,
    HeartbeatAnswer,
    Holder,
    JoinAnswer,
    LeaveAnswer,
    LeaveRequest,
    Phase,
    Slot,
    Step,
    SyncAnswer,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.messages.requests import (
    Commit,
    Delete,
    DeleteOffsets,
    Describe,
    EndTransaction,
    Fetch,
    Heartbeat,
    Join,
    Leave,
    List,
    Request,
    Sync,
    TransactionalCommit,
)
from fencepost.model.classic.messages.subscription import subscribed_topics
from fencepost.model.errors import Error
from fencepost.model.frozen import alter
from fencepost.model.logic import Time


def handle(world: World, request: Request, context: Context, cluster: Cluster) -> Outcome:
    """Handle one request."""
    match request:
        case Heartbeat():
            return on_heartbeat(world, request, context)
        case Commit():
            return offsets.on_commit(world, request, context, cluster)
        case Join():
            return on_join(world, request, context, cluster)
        case Sync():
            return on_sync(world, request, context)
        case Leave():
            return on_leave(world, request, context)
        case TransactionalCommit():
            return offsets.on_transactional_commit(world, request, context, cluster)
        case EndTransaction():
            return offsets.on_end_transaction(world, request, context)
        case Fetch():
            return offsets.on_fetch(world, request, context, cluster)
        case DeleteOffsets():
            return offsets.on_delete(world, request, cluster)
        case Describe():
            return admin.on_describe(world, request)
        case List():
            return admin.on_list(world, request)
        case Delete():
            return admin.on_delete(world, request)


def absorbed(world: World, step: Step, now: Time) -> Outcome:
    """The world after a step of the core: what it writes to the log, and what it knows of subscriptions."""
    before, after = world.group, step.group
    replies = tuple(Reply(output.handle, output.answer) for output in step.outputs)
    if before is after:
        return Outcome(world, replies, step.rule)
    changed = alter(world, group=after)
    if before is not None and after.generation != before.generation:
        changed = alter(changed, subscribed=subscribed_topics(after))
    was_stable = before is not None and before.phase == Phase.STABLE
    settled = after.phase == Phase.STABLE and (not was_stable or step.rule == "join.replace.stable")
    ended = after.phase == Phase.EMPTY and before is not None and after.generation != before.generation
    if settled or ended:
        changed = alter(changed, stored=recorded(after), emptied=now if ended else world.emptied)
    return Outcome(changed, replies, step.rule)


def recorded(group: Group) -> Group:
    """The group as far as its record has it: no timers, and nothing parked. Loading decides which protocols stay."""
    return Group(
        phase=group.phase,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader,
        slots=tuple(
            Slot(
                holder=Holder.MEMBER,
                id=slot.id,
                instance=slot.instance,
                session_timeout=slot.session_timeout,
                rebalance_timeout=slot.rebalance_timeout,
                protocols=slot.protocols,
                assignment=slot.assignment,
                client=slot.client,
            )
            for slot in group.slots
            if is_member(slot)
        ),
    )


def with_room(group: Group) -> Group:
    """The group with at least one free slot; the length of the table means nothing."""
    if any(slot.holder == Holder.NOBODY for slot in group.slots):
        return group
    return alter(group, slots=(*group.slots, FREE, FREE))


def on_join(world: World, request: Join, context: Context, cluster: Cluster) -> Outcome:
    """JoinGroup: what is refused before the group is looked at, then the core."""
    core, settings = request.core, cluster.settings
    if request.group == "":
        return answer(world, request, JoinAnswer(Error.INVALID_GROUP_ID, member=core.member), "join.invalid-group")
    if not settings.min_session_timeout <= core.session_timeout <= settings.max_session_timeout:
        refused = JoinAnswer(Error.INVALID_SESSION_TIMEOUT, member=core.member)
        return answer(world, request, refused, "join.invalid-session-timeout")
    if world.group is None:
        if core.member is not None:
            refused = JoinAnswer(Error.UNKNOWN_MEMBER_ID, member=core.member)
            return answer(world, request, refused, "join.unknown-group")
        world = alter(world, group=Group(), stored=Group(), subscribed=None)
    assert world.group is not None
    room = with_room(world.group) if core.member is None else world.group
    step = join(room, core, context)
    return absorbed(world, alter(step, group=world.group) if step.group is room else step, context.now)


def on_sync(world: World, request: Sync, context: Context) -> Outcome:
    """SyncGroup."""
    if not request.complete:
        return answer(world, request, SyncAnswer(Error.INCONSISTENT_GROUP_PROTOCOL), "sync.incomplete")
    if request.group == "":
        return answer(world, request, SyncAnswer(Error.INVALID_GROUP_ID), "sync.invalid-group")
    if world.group is None:
        return answer(world, request, SyncAnswer(Error.UNKNOWN_MEMBER_ID), "sync.unknown-group")
    if world.group.phase == Phase.EMPTY:
        return answer(world, request, SyncAnswer(Error.UNKNOWN_MEMBER_ID), "sync.empty")
    return absorbed(world, sync(world.group, request.core, context), context.now)


def on_heartbeat(world: World, request: Heartbeat, context: Context) -> Outcome:
    """Heartbeat."""
    if request.group == "":
        return answer(world, request, HeartbeatAnswer(Error.INVALID_GROUP_ID), "heartbeat.invalid-group")
    if world.group is None:
        return answer(world, request, HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID), "heartbeat.unknown-group")
    if world.group.phase == Phase.EMPTY:
        return answer(world, request, HeartbeatAnswer(Error.UNKNOWN_MEMBER_ID), "heartbeat.empty")
    return absorbed(world, heartbeat(world.group, request.core, context), context.now)


def on_leave(world: World, request: Leave, context: Context) -> Outcome:
    """LeaveGroup."""
    if request.group == "":
        return answer(world, request, LeaveAnswer(Error.INVALID_GROUP_ID), "leave.invalid-group")
    if world.group is None:
        return answer(world, request, nobody_left(request.core), "leave.unknown-group")
    return absorbed(world, leave(world.group, request.core, context), context.now)


def nobody_left(request: LeaveRequest) -> LeaveAnswer:
    """Every entry is unknown."""
    return LeaveAnswer(Error.NONE, tuple(Error.UNKNOWN_MEMBER_ID for _ in request.entries))
