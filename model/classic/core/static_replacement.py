"""Static replacement: an instance id that is known comes back without a member id (KIP-345, KIP-814)."""

from fencepost.model.classic.core.join_phase import (
    Progress,
    join_response,
    member_views,
    prepare_rebalance,
    try_complete_join,
)
from fencepost.model.classic.core.member_table import rearm, with_slot
from fencepost.model.classic.core.protocol_selection import select_protocol
from fencepost.model.classic.core.state import (
    Context,
    Group,
    JoinRequest,
    JoinResponse,
    Output,
    Phase,
    Step,
    SyncResponse,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.logic import Truth, emit
from fencepost.model.sorts import MemberId


def replace_static(group: Group, index: int, request: JoinRequest, context: Context) -> Step:
    """Table B with a known instance id: the old id is fenced and the member goes on under a new one."""
    old = group.slots[index].id
    led = old == group.leader
    heir, fenced = take_over_slot(group, index, request, context)
    if group.phase == Phase.PREPARING:
        after, outputs = try_complete_join(heir, context)
        return Step(after, fenced + outputs, "join.replace.preparing")
    if group.phase == Phase.COMPLETING:
        # The leader was told the old id, so the round has to be repeated (STATIC-15).
        after, outputs = prepare_rebalance(heir, context)
        return Step(after, fenced + outputs, "join.replace.completing")
    if select_protocol(heir, context.choices.protocol) != group.protocol:
        after, outputs = prepare_rebalance(heir, context)
        return Step(after, fenced + outputs, "join.replace.stable.changed-vote")
    return fast_path(heir, index, request, old, led, fenced, context)


def take_over_slot(group: Group, index: int, request: JoinRequest, context: Context) -> Progress:
    """REPLACE and the data change of UPDATE; the session timer starts with the old session timeout."""
    slot = group.slots[index]
    member = context.choices.member_id
    outputs = emit(slot.join != 0, Output(slot.join, JoinResponse(Error.FENCED_INSTANCE_ID, member=slot.id)))
    outputs += emit(slot.sync != 0, Output(slot.sync, SyncResponse(Error.FENCED_INSTANCE_ID)))
    heir = evolve(
        rearm(slot, context.now),
        id=member,
        is_new=slot.is_new and context.dialect.replaced_stays_new,
        join=request.handle,
        sync=0,
        protocols=request.protocols,
        session_timeout=request.session_timeout,
        rebalance_timeout=request.rebalance_timeout,
    )
    leader = member if slot.id == group.leader else group.leader
    return evolve(with_slot(group, index, heir), leader=leader), outputs


def fast_path(
    heir: Group,
    index: int,
    request: JoinRequest,
    old: MemberId | None,
    led: Truth,
    fenced: tuple[Output, ...],
    context: Context,
) -> Step:
    """No rebalance: answer with the current generation at once (STATIC-08 to STATIC-13)."""
    slot = heir.slots[index]
    missed = slot.unsynced and context.dialect.replaced_sync_is_missed
    after = evolve(
        with_slot(heir, index, evolve(slot, join=0, unsynced=False)),
        stale_unsynced=heir.stale_unsynced or missed,
    )
    tells = led and request.can_skip
    response = evolve(
        join_response(after, slot.id, member_views(after) if tells else ()),
        leader=old if led and not request.can_skip else after.leader,
        skip_assignment=tells,
    )
    return Step(after, (*fenced, Output(request.handle, response)), "join.replace.stable")
