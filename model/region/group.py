"""The Kafka group of the operators: the classic coordinator decides, on a table that forgets numbers.

Members are named after operators, those of dead processes get a name that nobody has. A generation counts only as the
present one: an operator that is a member while its table has its name has seen it. The sync phase takes no time.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, TypeAlias, cast

from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.join_phase import try_complete_join
from fencepost.model.classic.core.member_table import find
from fencepost.model.classic.core.membership import commit
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    Context,
    Group,
    Holder,
    JoinRequest,
    Phase,
    Protocol,
    Slot,
    SyncRequest,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_join, expire_member
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.sorts import MemberId, MetadataBytes, ProtocolName

PROTOCOLS = (Protocol(cast(ProtocolName, "range"), cast(MetadataBytes, b"")),)
KafkaGroup: TypeAlias = Group
"""The group as the rest of the region knows it."""
PRESENT, EARLIER = 1, 0
"""Generations: the present one, and all before it."""
NEVER_MS = 1 << 40
"""A moment after every deadline."""


def empty_group(slots: int) -> Group:
    """A group that nobody has joined, with `slots` slots for members."""
    return Group(generation=PRESENT, slots=(FREE,) * slots)


def normalize(group: Group) -> Group:
    """The group with its numbers forgotten and its members in order."""
    taken = sorted((one for one in group.slots if one.holder is Holder.MEMBER), key=lambda one: str(one.id))
    plain = tuple(evolve(one, deadline=0, armed=True, unsynced=False) for one in taken)
    free = (FREE,) * (len(group.slots) - len(plain))
    return evolve(group, generation=PRESENT, slots=(*plain, *free), join_deadline=0, sync_deadline=0)


def token(name: str) -> MemberId:
    """An operator's name as the id of its member."""
    return cast(MemberId, name)


def member_slot(group: Group, name: str) -> Slot | None:
    """The place of a member, None if the group does not have it."""
    return next((one for one in group.slots if one.holder is Holder.MEMBER and one.id == name), None)


def has_member(group: Group, name: str) -> bool:
    """Whether the group has a member of this name."""
    return member_slot(group, name) is not None


def join_group(group: Group, name: str, partitions: int) -> Iterator[Group]:
    """A member joins, or joins again. If all are there then, each assignment of so many partitions is possible."""
    known = token(name) if has_member(group, name) else None
    request = JoinRequest(cast(Any, 1), known, None, "consumer", PROTOCOLS, 1, 1, False, False)
    context = Context(0, Choices(member_id=token(name)), initial_rebalance_delay=0)
    yield from settle(join(group, request, context).group, partitions)


def expire(group: Group, name: str, partitions: int) -> Iterator[Group]:
    """A session ends (classic: timer.session)."""
    index = find(group, token(name), Holder.MEMBER)
    yield from settle(expire_member(group, index, Context(NEVER_MS)).group, partitions)


def settle(group: Group, partitions: int) -> Iterator[Group]:
    """Go through the sync phase if the join phase is complete."""
    if group.phase is Phase.PREPARING and group.from_empty and group.initial:
        group = expire_join(group, Context(NEVER_MS, initial_rebalance_delay=0)).group
    elif group.phase is Phase.PREPARING:
        group, _ = try_complete_join(group, Context(0))
    if group.phase is not Phase.COMPLETING:
        yield normalize(group)
        return
    members = [one.id for one in group.slots if one.holder is Holder.MEMBER]
    # The leader's sync brings the assignments; any that gives each partition to a member is allowed.
    for owners in product(members, repeat=partitions):
        shares = {one: tuple(place for place, owner in enumerate(owners) if owner == one) for one in members}
        given = tuple((one, cast(Any, share)) for one, share in shares.items())
        request = SyncRequest(cast(Any, 1), group.leader, None, group.generation, None, None, given)
        yield normalize(sync(group, request, Context(0)).group)


def assignment_of(group: Group, name: str) -> tuple[int, ...] | None:
    """What a member is assigned, None while it waits for that."""
    slot = member_slot(group, name)
    if slot is None or group.phase is not Phase.STABLE:
        return None
    return cast(tuple[int, ...], slot.assignment)


def awaits_members(group: Group) -> bool:
    """Whether a join phase goes on."""
    return group.phase is Phase.PREPARING


def must_rejoin(group: Group, name: str) -> bool:
    """Whether a heartbeat of the member would tell it to join again."""
    slot = member_slot(group, name)
    return slot is not None and group.phase is Phase.PREPARING and slot.join == 0


def accepts_commit(group: Group, name: str, is_present: bool) -> bool:
    """Whether the coordinator stores a commit of the member, from the present generation or an earlier one."""
    request = CommitRequest(cast(Any, 1), token(name), None, PRESENT if is_present else EARLIER)
    (output,) = commit(group, request, Context(0)).outputs
    return output.response.error is Error.NONE  # type: ignore[union-attr]


def rename_member(group: Group, name: str, dead: str) -> Group:
    """The group in which a member's process is dead: its place keeps what it has, under a name that nobody uses."""
    slots = tuple(evolve(one, id=token(dead)) if one.id == name else one for one in group.slots)
    leader = token(dead) if group.leader == name else group.leader
    return normalize(evolve(group, slots=slots, leader=leader))
