"""Who is in the group: look-up, membership checks, adding, removing and the predicates over all slots."""

from fencepost.model.classic.core.state import FREE, Context, Group, Holder, JoinRequest, Phase, Protocol, Slot
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.logic import Time, Truth
from fencepost.model.sorts import InstanceId, MemberId, Millis, ProtocolName

NOWHERE = -1
"""The index of a slot that does not exist."""


def put(slots: tuple[Slot, ...], index: int, slot: Slot) -> tuple[Slot, ...]:
    """The table with one slot exchanged."""
    return (*slots[:index], slot, *slots[index + 1 :])


def with_slot(group: Group, index: int, slot: Slot) -> Group:
    """The group with one slot exchanged."""
    return evolve(group, slots=put(group.slots, index, slot))


def is_member(slot: Slot) -> Truth:
    """The slot holds a member."""
    return slot.holder == Holder.MEMBER


def find(group: Group, member: MemberId | None, holder: Holder) -> int:
    """Index of the slot in which `holder` has this id, else NOWHERE."""
    if member is None:
        return NOWHERE
    for index, slot in enumerate(group.slots):
        if slot.holder == holder and slot.id == member:
            return index
    return NOWHERE


def find_instance(group: Group, instance: InstanceId | None) -> int:
    """Index of the slot of the static member with this instance id, else NOWHERE."""
    for index, slot in enumerate(group.slots):
        if is_member(slot) and slot.instance is not None and slot.instance == instance:
            return index
    return NOWHERE


def find_free(group: Group) -> int:
    """Index of a free slot, else NOWHERE."""
    for index, slot in enumerate(group.slots):
        if slot.holder == Holder.NOBODY:
            return index
    return NOWHERE


def check_member(group: Group, member: MemberId | None, instance: InstanceId | None) -> tuple[Error, int]:
    """CHECK-MEMBER (coordinator.md 1.5): the error, NONE if there is none, and the member's slot."""
    if instance is not None:
        index = find_instance(group, instance)
        if index == NOWHERE:
            return Error.UNKNOWN_MEMBER_ID, NOWHERE
        if member is None or group.slots[index].id != member:
            return Error.FENCED_INSTANCE_ID, NOWHERE
        return Error.NONE, index
    index = find(group, member, Holder.MEMBER)
    return (Error.UNKNOWN_MEMBER_ID if index == NOWHERE else Error.NONE), index


def no_members(group: Group) -> Truth:
    """Nobody is a member."""
    return not any(is_member(slot) for slot in group.slots)


def all_joined(group: Group) -> Truth:
    """ALL-JOINED: every member has a parked JoinGroup and no id is pending."""
    return all(
        slot.holder != Holder.PENDING and (slot.holder != Holder.MEMBER or slot.join != 0) for slot in group.slots
    )


def joined_count(group: Group) -> int:
    """How many members have a parked JoinGroup."""
    return sum(is_member(slot) and slot.join != 0 for slot in group.slots)


def member_count(group: Group) -> int:
    """How many members there are; pending ids are not counted (JOIN-50)."""
    return sum(is_member(slot) for slot in group.slots)


def group_timeout(group: Group) -> Millis:
    """GROUP-TIMEOUT: the largest rebalance timeout of all members, 0 of none (TIMER-09)."""
    return max(0, *(slot.rebalance_timeout if is_member(slot) else 0 for slot in group.slots))


def offers(slot: Slot, name: ProtocolName | None) -> Truth:
    """The member offers a protocol of this name."""
    return any(protocol.name == name for protocol in slot.protocols)


def offered_by_all(group: Group, name: ProtocolName | None) -> Truth:
    """Every member offers a protocol of this name."""
    return name is not None and all(not is_member(slot) or offers(slot, name) for slot in group.slots)


def supports(group: Group, request: JoinRequest) -> Truth:
    """SUPPORTS: the protocol type fits and one of the names is offered by every current member."""
    named = any(protocol.name is not None for protocol in request.protocols)
    shared = any(offered_by_all(group, protocol.name) for protocol in request.protocols)
    return (
        request.protocol_type is not None and named
        if group.phase == Phase.EMPTY
        else request.protocol_type == group.protocol_type and shared
    )


def accepts(group: Group, member: MemberId | None, limit: int) -> Truth:
    """ACCEPTS (KIP-389): there is room for this id."""
    index = find(group, member, Holder.MEMBER)
    if group.phase == Phase.EMPTY:
        return True
    if group.phase == Phase.PREPARING:
        has_joined = False if index == NOWHERE else group.slots[index].join != 0
        return has_joined or joined_count(group) < limit
    return index != NOWHERE or member_count(group) < limit


def same_protocols(slot: Slot, protocols: tuple[Protocol, ...]) -> Truth:
    """MATCHES: the same names in the same order with equal metadata (JOIN-34)."""
    if len(slot.protocols) != len(protocols):
        return False
    return all(
        mine.name == theirs.name and mine.metadata == theirs.metadata
        for mine, theirs in zip(slot.protocols, protocols, strict=True)
    )


def rearm(slot: Slot, now: Time) -> Slot:
    """The slot with a full session before it."""
    return evolve(slot, armed=True, deadline=now + slot.session_timeout)


def add_member(group: Group, index: int, request: JoinRequest, member: MemberId | None, context: Context) -> Group:
    """The group with a new member in the slot, its JoinGroup parked (ADD without TRIGGER)."""
    slot = Slot(
        holder=Holder.MEMBER,
        id=member,
        instance=request.instance,
        is_new=True,
        join=request.handle,
        session_timeout=request.session_timeout,
        rebalance_timeout=request.rebalance_timeout,
        protocols=request.protocols,
        armed=True,
        deadline=context.now + context.new_member_timeout,
        client=request.client,
    )
    first = no_members(group)
    leads = group.leader is None and not group.leader_open
    return evolve(
        group,
        slots=put(group.slots, index, slot),
        newcomer=group.newcomer or (group.phase == Phase.PREPARING and group.from_empty),
        protocol_type=request.protocol_type if first else group.protocol_type,
        leader=member if leads else group.leader,
    )


def clear_slot(group: Group, index: int) -> Group:
    """The group without the member or pending id in the slot (REMOVE)."""
    gone = group.slots[index]
    rest = evolve(group, slots=put(group.slots, index, FREE))
    led = is_member(gone) and group.leader is not None and group.leader == gone.id
    return evolve(
        rest,
        leader=None if led else group.leader,
        leader_open=(group.leader_open or led) and not no_members(rest),
    )
