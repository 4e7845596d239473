"""The theorems about how a round goes on: who is let in and recorded, who is awaited, when a phase ends, and what is
answered to whom."""

from fencepost.model.classic.core.member_table import is_member, offered_by_all
from fencepost.model.classic.core.state import (
    Group,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    MemberView,
    NoResponse,
    Output,
    Phase,
    Protocol,
    Slot,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.theorems.ghost_state import has_member
from fencepost.model.classic.theorems.lemmas import is_generation_active
from fencepost.model.classic.theorems.step_statements import (
    RESPONSES,
    CoordinatorStep,
    TimerExpiry,
    TimerKind,
    begins_generation,
    join_responses,
    names,
)
from fencepost.model.errors import Error
from fencepost.model.logic import Truth, absent, all_, and_, any_, count, not_, or_
from fencepost.model.sorts import Handle, InstanceId, MemberId, ProtocolName
from fencepost.model.statement import implies, statement


@statement("T34", "A response goes to the request at hand, or to one that waits.")
def responses_are_asked_for(step: CoordinatorStep) -> Truth:
    """Nobody is told what nobody asked."""
    return all_(implies(output.when, is_asked_for(step, output)) for output in step.outputs)


def is_asked_for(step: CoordinatorStep, output: Output) -> Truth:
    """The response is one to the step's request, or to one of its kind that waits before the step."""
    request, handle, response = step.input, output.handle, output.response
    mine: Truth = False
    if not isinstance(request, TimerExpiry) and isinstance(response, RESPONSES[type(request)] | NoResponse):
        mine = request.handle == handle
    joins, syncs = isinstance(response, JoinResponse | NoResponse), isinstance(response, SyncResponse | NoResponse)
    waits = (or_(and_(joins, slot.join == handle), and_(syncs, slot.sync == handle)) for slot in step.before.slots)
    return or_(mine, and_(handle != 0, any_(waits)))


@statement("T35", "A member is awaited by the sync timer from the beginning of a generation until its SyncGroup.")
def members_are_awaited_once(step: CoordinatorStep) -> Truth:
    """Who has synced is not removed, and nobody waits for ever for who has not. A replacement is not awaited."""
    timed = implies(is_awaited_in_time(step.before), is_awaited_in_time(step.after))
    begins = step.after.generation != step.before.generation
    other = or_(begins, not_(is_generation_active(step.after)))
    whole = implies(begins_generation(step), all_(implies(is_member(s), s.unsynced) for s in step.after.slots))
    pairs = tuple(zip(step.before.slots, step.after.slots, strict=False))
    awaited = and_(
        timed,
        whole,
        *(
            implies(and_(is_member(new), new.unsynced), or_(other, and_(old.unsynced, old.id == new.id)))
            for old, new in pairs
        ),
        *(
            implies(and_(is_member(new), old.unsynced, old.id == new.id), or_(other, new.unsynced, syncs(step, new)))
            for old, new in pairs
        ),
    )
    if not isinstance(step.input, SyncRequest):
        return awaited
    request, refused = step.input, is_refused_with_error(step, step.input.handle)
    synced = all_(
        implies(and_(is_member(slot), slot.id == request.member), not_(slot.unsynced)) for slot in step.after.slots
    )
    return and_(awaited, or_(refused, synced))


def syncs(step: CoordinatorStep, slot: Slot) -> Truth:
    """The input is a SyncGroup of this member."""
    return isinstance(step.input, SyncRequest) and slot.id == step.input.member


def is_awaited_in_time(group: Group) -> Truth:
    """While a SyncGroup is missing, the sync timer runs."""
    missing = any_(and_(is_member(slot), slot.unsynced) for slot in group.slots)
    return implies(and_(is_generation_active(group), missing), group.sync_armed)


def is_refused_with_error(step: CoordinatorStep, handle: Handle) -> Truth:
    """The request with this handle is answered with an error."""
    return any_(
        and_(output.when, output.handle == handle, output.response.error != Error.NONE)
        for output in step.outputs
        if not isinstance(output.response, NoResponse | LeaveResponse)
    )


@statement(
    "T36",
    "A join phase ends once nobody is awaited in it, unless it began with an empty group, or the last one awaited finds"
    " no room.",
)
def join_phase_ends(step: CoordinatorStep) -> Truth:
    """Nobody waits for nobody. When a member finds no room, some look at the phase again (DIV-08)."""
    before, after = step.before, step.after
    refused = any_(is_refusal(step, output) for output in step.outputs)
    member = isinstance(step.input, JoinRequest) and has_member(before, step.input.member)
    waits = and_(refused, or_(not_(member), step.moment.dialect.eviction_waits))
    return implies(is_nobody_awaited(after), or_(is_nobody_awaited(before), waits))


def is_nobody_awaited(group: Group) -> Truth:
    """In a join phase that began with members, each has joined, and no id is pending."""
    joined = (or_(slot.holder == Holder.NOBODY, and_(is_member(slot), slot.join != 0)) for slot in group.slots)
    return and_(group.phase == Phase.PREPARING, not_(group.from_empty), all_(joined))


def is_refusal(step: CoordinatorStep, output: Output, error: Error = Error.GROUP_MAX_SIZE_REACHED) -> Truth:
    """The JoinGroup at hand is refused with this error."""
    if not isinstance(step.input, JoinRequest) or not isinstance(output.response, JoinResponse):
        return False
    refused: Truth = output.response.error == error
    return and_(output.when, output.handle == step.input.handle, refused)


@statement("T37", "A member's SyncGroup for its generation and protocol is refused in a join phase only.")
def syncs_are_accepted(step: CoordinatorStep) -> Truth:
    """Who is in time gets its assignment (T8), or waits for it (T19)."""
    request, before = step.input, step.before
    if not isinstance(request, SyncRequest):
        return True
    fits = and_(
        is_of_member(before, request.member, request.instance),
        request.generation == before.generation,
        or_(absent(request.protocol), request.protocol == before.protocol),
        or_(absent(request.protocol_type), request.protocol_type == before.protocol_type),
    )
    return implies(and_(fits, is_generation_active(before)), not_(is_refused_with_error(step, request.handle)))


def is_of_member(group: Group, member: MemberId | None, instance: InstanceId | None) -> Truth:
    """The id is a member's, and the instance id, if there is one, is that member's too."""
    return any_(
        and_(
            is_member(slot),
            not_(absent(member)),
            slot.id == member,
            or_(absent(instance), and_(not_(absent(slot.instance)), slot.instance == instance)),
        )
        for slot in group.slots
    )


@statement("T38", "No protocol has more votes of the members than that of their generation, when it begins.")
def protocol_is_elected(step: CoordinatorStep) -> Truth:
    """A member votes for the first of its protocols that all offer."""
    group = step.after
    elected = votes_for(group, group.protocol)
    offered = (protocol.name for slot in group.slots for protocol in slot.protocols)
    return implies(begins_generation(step), all_(votes_for(group, name) <= elected for name in offered))


def votes_for(group: Group, name: ProtocolName | None) -> int:
    """How many members vote for a protocol of this name."""
    return count(and_(is_member(slot), is_first_common(group, slot, name)) for slot in group.slots)


def is_first_common(group: Group, slot: Slot, name: ProtocolName | None) -> Truth:
    """The name is the first in the member's list that all members offer."""
    found: list[Truth] = []
    earlier: list[Truth] = []
    for protocol in slot.protocols:
        common = offered_by_all(group, protocol.name)
        found.append(and_(protocol.name == name, common, *map(not_, earlier)))
        earlier.append(common)
    return or_(*found)


PHASE_THEOREMS = (
    responses_are_asked_for,
    members_are_awaited_once,
    join_phase_ends,
    syncs_are_accepted,
    protocol_is_elected,
)


# --- The theorems about what a group records of its members, and about how their rounds and memberships end.


@statement(
    "T26",
    "A member has the instance id of its first JoinGroup, and the protocols and timeouts of its last one that waited or"
    " gave it its id.",
)
def members_are_recorded(step: CoordinatorStep) -> Truth:
    """The vote and the timers go by what members said. A JoinGroup with the same protocols that is answered with the
    present generation changes neither (JOIN-29, JOIN-32)."""
    pairs = tuple(zip(step.before.slots, step.after.slots, strict=False))
    request = step.input
    if not isinstance(request, JoinRequest):
        return all_(
            implies(is_member(new), and_(is_member(old), new.instance == old.instance, has_record(new, old)))
            for old, new in pairs
        )
    risen = step.after.generation != step.before.generation
    terms: list[Truth] = []
    for old, new in pairs:
        waits = new.join == request.handle
        sent = and_(not_(absent(request.member)), new.id == request.member)
        first = not_(has_member(step.before, new.id))
        heard = or_(first, and_(sent, or_(waits, risen)))
        kept = and_(not_(heard), is_member(old), has_record(new, old))
        named = or_(and_(first, new.instance == request.instance), and_(not_(first), new.instance == old.instance))
        terms.append(implies(is_member(new), and_(named, or_(kept, and_(heard, has_record(new, request))))))
    # The handle of a request that waits already tells nothing of this one.
    is_first = and_(*(old.join != request.handle for old, _ in pairs))
    return implies(is_first, and_(*terms))


def has_record(slot: Slot, source: Slot | JoinRequest) -> Truth:
    """The slot has the protocols and the timeouts of the other slot, or of the request."""
    return and_(
        slot.session_timeout == source.session_timeout,
        slot.rebalance_timeout == source.rebalance_timeout,
        are_same_protocols(slot.protocols, source.protocols),
    )


def are_same_protocols(some: tuple[Protocol, ...], others: tuple[Protocol, ...]) -> Truth:
    """Both have equal names and metadata in one order."""
    return and_(
        len(some) == len(others),
        *(and_(a.name == b.name, a.metadata == b.metadata) for a, b in zip(some, others, strict=False)),
    )


@statement("T27", "A join phase has a timer; it begins with the initial delay if, and only if, the group was empty.")
def join_phase_has_timer(step: CoordinatorStep) -> Truth:
    """No join phase lasts for ever."""
    before, after = step.before, step.after
    was_empty = before.phase == Phase.EMPTY
    prepares = after.phase == Phase.PREPARING
    begins = and_(prepares, or_(before.phase != Phase.PREPARING, after.generation != before.generation))
    delays = and_(
        after.initial,
        after.from_empty,
        after.initial_wait == step.moment.initial_rebalance_delay,
        after.join_deadline == step.now + after.initial_wait,
        after.initial_left >= 0,
    )
    full = and_(not_(after.initial), not_(after.from_empty))
    return and_(
        implies(begins, and_(after.join_armed, or_(and_(was_empty, delays), and_(not_(was_empty), full)))),
        implies(and_(before.phase == Phase.PREPARING, before.join_armed, prepares), after.join_armed),
    )


@statement("T28", "A session timer removes no member that waits for a response, once its first join phase is over.")
def who_waits_stays(step: CoordinatorStep) -> Truth:
    """Waiting is a sign of life."""
    if not isinstance(step.input, TimerExpiry) or step.input.kind is not TimerKind.MEMBER:
        return True
    slot = step.before.slots[step.input.slot]
    return implies(is_waiting(slot), has_member(step.after, slot.id))


def is_waiting(slot: Slot) -> Truth:
    """A member whose first join phase is over waits for a response."""
    return and_(is_member(slot), not_(slot.is_new), or_(slot.join != 0, slot.sync != 0))


@statement("T29", "LeaveGroup removes whom its entries name, and says so of these entries and no others.")
def leaving_is_answered(step: CoordinatorStep) -> Truth:
    """Who left is gone, and who did not is told."""
    request = step.input
    if not isinstance(request, LeaveRequest):
        return True
    gone = all_(
        implies(any_(names(slot, *entry) for entry in request.entries), not_(holds_id(step.after, slot.id)))
        for slot in step.before.slots
    )
    responses = [output.response for output in step.outputs if isinstance(output.response, LeaveResponse)]
    told = all_(
        implies(error == Error.NONE, any_(names(slot, *entry) for slot in step.before.slots))
        for response in responses
        for error, entry in zip(response.entries, request.entries, strict=True)
    )
    left = all_(
        implies(is_first_to_name(step, request, place), response.entries[place] == Error.NONE)
        for response in responses
        for place in range(len(request.entries))
    )
    return and_(gone, told, left, *(response.error == Error.NONE for response in responses))


def is_first_to_name(step: CoordinatorStep, request: LeaveRequest, place: int) -> Truth:
    """The entry at this place of a LeaveGroup names somebody whom no entry before it names."""
    earlier, entry = request.entries[:place], request.entries[place]
    return any_(
        and_(names(slot, *entry), *(not_(names(slot, *other)) for other in earlier)) for slot in step.before.slots
    )


def holds_id(group: Group, member: MemberId | None) -> Truth:
    """The id is pending or a member's."""
    return any_(and_(slot.holder != Holder.NOBODY, slot.id == member) for slot in group.slots)


@statement("T30", "When a generation begins, no member of it is new any more, and each has a whole session.")
def generation_begins_afresh(step: CoordinatorStep) -> Truth:
    """Who waited could not heartbeat."""
    begins = begins_generation(step)
    return all_(
        implies(
            and_(begins, is_member(slot)),
            and_(not_(slot.is_new), slot.armed, slot.deadline == step.now + slot.session_timeout),
        )
        for slot in step.after.slots
    )


@statement(
    "T31",
    "A successful JoinGroup response tells a member of the group as it is, and the leader of its members and of nobody"
    " else.",
)
def joins_tell_of_group(step: CoordinatorStep) -> Truth:
    """Everyone speaks of the same generation. Each of several entries of a LeaveGroup may begin one (DIV-06). Who comes
    back in the place of the leader may be told its own old id (KIP-814)."""
    group, request = step.after, step.input
    several = isinstance(request, LeaveRequest) and len(request.entries) > 1
    is_one = or_(not several, step.moment.dialect.batch_leave_settles_once)
    old = isinstance(request, JoinRequest) and is_return(step, request)
    return all_(
        implies(
            and_(output.when, response.error == Error.NONE, is_one),
            and_(
                has_member(group, response.member),
                or_(response.leader == group.leader, and_(old, response.leader == step.before.leader)),
                *(or_(absent(view.id), has_member(group, view.id)) for view in response.members),
                response.generation == group.generation,
                response.protocol == group.protocol,
                response.protocol_type == group.protocol_type,
                implies(
                    response.member == response.leader,
                    all_(implies(is_member(slot), is_listed(slot, response.members, group)) for slot in group.slots),
                ),
            ),
        )
        for output, response in join_responses(step)
    )


def is_listed(slot: Slot, views: tuple[MemberView, ...], group: Group) -> Truth:
    """The list of members has this one, with the metadata that it offers under the group's protocol."""
    found: list[Truth] = []
    for view in views:
        metadata = any_(
            and_(protocol.name == group.protocol, protocol.metadata == view.metadata) for protocol in slot.protocols
        )
        found.append(and_(not_(absent(view.id)), view.id == slot.id, view.instance == slot.instance, metadata))
    return or_(*found)


@statement("T32", "An empty group counts no generation, and the step to an empty group leaves no leader.")
def empty_groups_rest(step: CoordinatorStep) -> Truth:
    """Generations are of members."""
    before, after = step.before, step.after
    return and_(
        implies(before.phase == Phase.EMPTY, after.generation == before.generation),
        implies(
            and_(after.phase == Phase.EMPTY, before.phase != Phase.EMPTY),
            and_(absent(after.leader), absent(after.protocol)),
        ),
    )


@statement("T33", "The timer of a slot runs, unless a member waits in it whose first join phase is over.")
def slots_are_timed(step: CoordinatorStep) -> Truth:
    """Who is never heard of again is let go in the end. The handle 0 is that of no request."""
    has_handle = isinstance(step.input, TimerExpiry) or step.input.handle != 0
    return implies(
        and_(has_handle, all_(is_timed(slot) for slot in step.before.slots)),
        all_(is_timed(slot) for slot in step.after.slots),
    )


def is_timed(slot: Slot) -> Truth:
    """The slot is free, its timer runs, or its member waits for a response."""
    return or_(slot.holder == Holder.NOBODY, slot.armed, is_waiting(slot))


RECORD_THEOREMS = (
    members_are_recorded,
    join_phase_has_timer,
    who_waits_stays,
    leaving_is_answered,
    generation_begins_afresh,
    joins_tell_of_group,
    empty_groups_rest,
    slots_are_timed,
)


# --- The theorems about JoinGroup: who is let in, who leads then, and what those are told that are not.


@statement("T39", "A dynamic member whose version asks for an id is let in under an id that it was told before.")
def ids_come_first(step: CoordinatorStep) -> Truth:
    """A client that gives up before the response leaves no member behind (KIP-394)."""
    request = step.input
    if not isinstance(request, JoinRequest):
        return True
    asks = and_(absent(request.member), absent(request.instance), request.requires_id)
    return implies(asks, has_no_newcomer(step))


def has_no_newcomer(step: CoordinatorStep) -> Truth:
    """Whoever is a member after the step was one before it."""
    return all_(implies(is_member(slot), has_member(step.before, slot.id)) for slot in step.after.slots)


@statement("T40", "Who joins a group without members and without a leader leads it.")
def first_member_leads(step: CoordinatorStep) -> Truth:
    """Until it misses a join phase (T14). A leader that is gone may be named until the phase ends (STATIC-20)."""
    if not isinstance(step.input, JoinRequest):
        return True
    alone = and_(absent(step.before.leader), not_(any_(is_member(slot) for slot in step.before.slots)))
    return implies(alone, all_(implies(is_member(slot), slot.id == step.after.leader) for slot in step.after.slots))


@statement("T41", "JoinGroup is refused for the group's size if the group is full, and only then; its sender is out.")
def size_is_limited(step: CoordinatorStep) -> Truth:
    """In a join phase those are counted that have joined (KIP-389). A static member that returns may be let in, and
    the protocols may be looked at first (LAT-27)."""
    request = step.input
    if not isinstance(request, JoinRequest):
        return True
    full, refused = is_full(step, request), any_(is_refusal(step, output) for output in step.outputs)
    by_protocol = any_(is_refusal(step, output, Error.INCONSISTENT_GROUP_PROTOCOL) for output in step.outputs)
    dialect = step.moment.dialect
    first = and_(not_(dialect.room_comes_before_protocols), by_protocol)
    return and_(
        implies(refused, and_(full, or_(absent(request.member), not_(holds_id(step.after, request.member))))),
        implies(full, or_(refused, and_(is_return(step, request), not_(dialect.restart_needs_room)), first)),
    )


def is_full(step: CoordinatorStep, request: JoinRequest) -> Truth:
    """There is no room for the sender beside the others."""
    group = step.before
    joins = group.phase == Phase.PREPARING
    counted = tuple(and_(is_member(slot), or_(not_(joins), slot.join != 0)) for slot in group.slots)
    inside = any_(
        and_(there, not_(absent(request.member)), slot.id == request.member)
        for there, slot in zip(counted, group.slots, strict=True)
    )
    return and_(group.phase != Phase.EMPTY, not_(inside), count(counted) >= step.moment.max_group_size)


def is_return(step: CoordinatorStep, request: JoinRequest) -> Truth:
    """A static member comes back without its id."""
    held = any_(and_(is_member(slot), slot.instance == request.instance) for slot in step.before.slots)
    return and_(absent(request.member), not_(absent(request.instance)), held)


@statement("T42", "A refusal for protocols tells a member its id, and others none.")
def refusals_name_members(step: CoordinatorStep) -> Truth:
    """No id is confirmed to whom it was not given."""
    request = step.input
    if not isinstance(request, JoinRequest):
        return True
    known = and_(not_(absent(request.member)), has_member(step.before, request.member))
    return all_(
        implies(
            and_(output.when, output.response.error == Error.INCONSISTENT_GROUP_PROTOCOL),
            or_(
                and_(known, output.response.member == request.member), and_(not_(known), absent(output.response.member))
            ),
        )
        for output in step.outputs
        if isinstance(output.response, JoinResponse)
    )


ADMISSION_THEOREMS = (ids_come_first, first_member_leads, size_is_limited, refusals_name_members)
