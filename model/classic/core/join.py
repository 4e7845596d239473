"""JoinGroup once the request is admitted: tables A to D of coordinator.md 2.2."""

from fencepost.model.classic.core.join_phase import Progress, current_response, trigger_rebalance, try_complete_join
from fencepost.model.classic.core.member_table import (
    NOWHERE,
    accepts,
    add_member,
    check_member,
    clear_slot,
    find,
    find_free,
    find_instance,
    same_protocols,
    supports,
    with_slot,
)
from fencepost.model.classic.core.state import (
    Context,
    Group,
    Holder,
    JoinRequest,
    JoinResponse,
    NoResponse,
    Output,
    Phase,
    Slot,
    Step,
)
from fencepost.model.classic.core.static_replacement import replace_static
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.logic import Truth, emit
from fencepost.model.sorts import MemberId


def refusal(request: JoinRequest, error: Error, member: MemberId | None) -> tuple[Output, ...]:
    """JOIN-ERR."""
    return (Output(request.handle, JoinResponse(error=error, member=member)),)


def join(group: Group, request: JoinRequest, context: Context) -> Step:
    """Handle JoinGroup on a group that exists; the table has a free slot."""
    known = find(group, request.member, Holder.MEMBER)
    has_room = accepts(group, request.member, context.max_group_size)
    has_protocol = supports(group, request)
    is_refused = not has_room and (not is_static_return(group, request) or context.dialect.restart_needs_room)
    if is_refused and (has_protocol or context.dialect.room_comes_before_protocols):
        return evict(group, known, request, context)
    if not has_protocol:
        member = None if known == NOWHERE else request.member
        return Step(group, refusal(request, Error.INCONSISTENT_GROUP_PROTOCOL, member), "join.unsupported-protocols")
    if request.member is None:
        if request.instance is None:
            return join_newcomer(group, request, context)
        return join_static(group, request, context)
    pending = find(group, request.member, Holder.PENDING)
    if pending != NOWHERE:
        if request.instance is not None:
            response = refusal(request, Error.UNKNOWN_SERVER_ERROR, request.member)
            return Step(group, response, "join.pending-with-instance")
        return admit(group, pending, request.member, request, context, "join.pending")
    error, index = check_member(group, request.member, request.instance)
    if error == Error.UNKNOWN_MEMBER_ID:
        return Step(group, refusal(request, error, request.member), "join.unknown-member")
    if error == Error.FENCED_INSTANCE_ID:
        return Step(group, refusal(request, error, request.member), "join.fenced")
    return rejoin(group, index, request, context)


def is_static_return(group: Group, request: JoinRequest) -> Truth:
    """A static member of the group comes back without its id."""
    named = request.member is None and request.instance is not None
    return named and find_instance(group, request.instance) != NOWHERE


def evict(group: Group, known: int, request: JoinRequest, context: Context) -> Step:
    """The group is full: refuse, and let go of a member that came too late (KIP-389, KAFKA-9885)."""
    response = refusal(request, Error.GROUP_MAX_SIZE_REACHED, None)
    if known == NOWHERE:
        pending = find(group, request.member, Holder.PENDING)
        rest = group if pending == NOWHERE else clear_slot(group, pending)
        return Step(rest, response, "join.full")
    rest = clear_slot(group, known)
    if context.dialect.eviction_waits:
        return Step(rest, response, "join.evicted")
    after, outputs = try_complete_join(rest, context)
    return Step(after, response + outputs, "join.evicted")


def join_newcomer(group: Group, request: JoinRequest, context: Context) -> Step:
    """Table A: a dynamic member without an id (KIP-394)."""
    free = find_free(group)
    if not request.requires_id:
        return admit(group, free, context.choices.member_id, request, context, "join.new")
    slot = Slot(
        holder=Holder.PENDING,
        id=context.choices.member_id,
        armed=True,
        deadline=context.now + request.session_timeout,
    )
    response = refusal(request, Error.MEMBER_ID_REQUIRED, context.choices.member_id)
    return Step(with_slot(group, free, slot), response, "join.id-required")


def admit(group: Group, index: int, member: MemberId | None, request: JoinRequest, context: Context, rule: str) -> Step:
    """ADD."""
    after, outputs = trigger_rebalance(add_member(group, index, request, member, context), context)
    return Step(after, outputs, rule)


def join_static(group: Group, request: JoinRequest, context: Context) -> Step:
    """Table B: a static member without an id (KIP-345)."""
    index = find_instance(group, request.instance)
    if index == NOWHERE:
        free = find_free(group)
        return admit(group, free, context.choices.member_id, request, context, "join.new-static")
    return replace_static(group, index, request, context)


def rejoin(group: Group, index: int, request: JoinRequest, context: Context) -> Step:
    """Table D: a member comes again."""
    slot = group.slots[index]
    same = same_protocols(slot, request.protocols)
    leads = slot.id == group.leader
    if group.phase == Phase.PREPARING:
        return update_member(group, index, request, context, "join.preparing")
    if group.phase == Phase.COMPLETING:
        if same:
            return resend_generation(group, slot, request, "join.completing.same-protocols")
        return update_member(group, index, request, context, "join.completing.changed-protocols")
    if leads:
        return update_member(group, index, request, context, "join.stable.leader")
    if same:
        return resend_generation(group, slot, request, "join.stable.same-protocols")
    return update_member(group, index, request, context, "join.stable.changed-protocols")


def resend_generation(group: Group, slot: Slot, request: JoinRequest, rule: str) -> Step:
    """The current generation once more; nothing changes (JOIN-29, JOIN-32)."""
    return Step(group, (Output(request.handle, current_response(group, slot)),), rule)


def update_member(group: Group, index: int, request: JoinRequest, context: Context, rule: str) -> Step:
    """The step that parks a JoinGroup of a member in the group and triggers a rebalance (UPDATE)."""
    changed, dropped = park_join(group, index, request)
    after, outputs = trigger_rebalance(changed, context)
    return Step(after, dropped + outputs, rule)


def park_join(group: Group, index: int, request: JoinRequest) -> Progress:
    """The member with this request's protocols and timeouts; an earlier parked JoinGroup loses its place."""
    slot = group.slots[index]
    changed = evolve(
        slot,
        protocols=request.protocols,
        session_timeout=request.session_timeout,
        rebalance_timeout=request.rebalance_timeout,
        join=request.handle,
    )
    return with_slot(group, index, changed), emit(slot.join != 0, Output(slot.join, NoResponse()))
