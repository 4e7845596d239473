"""The lemmas that make the theorems inductive: each holds in every reachable state."""

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import Group, Holder, JoinRequest, Phase, SyncRequest
from fencepost.model.classic.member.member import NO_GENERATION, MemberState
from fencepost.model.classic.theorems.ghost_state import (
    GhostState,
    JoinResponseSent,
    Process,
    SyncResponseSent,
    are_disjoint,
    is_generation_settled,
)
from fencepost.model.errors import Error
from fencepost.model.logic import Truth, absent, all_, and_, any_, holds, not_, or_
from fencepost.model.sorts import Assignment, Handle, MemberId
from fencepost.model.statement import implies, statement


def is_generation_active(group: Group) -> Truth:
    """The generation has a leader."""
    return or_(group.phase == Phase.COMPLETING, group.phase == Phase.STABLE)


@statement("group-ids", "Every member and every pending id is there once.")
def group_ids(group: Group) -> Truth:
    """Ids name slots."""
    live = tuple(slot.holder != Holder.NOBODY for slot in group.slots)
    named = all_(implies(used, not_(absent(slot.id))) for used, slot in zip(live, group.slots, strict=True))
    apart = all_(
        implies(and_(live[i], live[j]), group.slots[i].id != group.slots[j].id)
        for i in range(len(live))
        for j in range(i)
    )
    return and_(named, apart)


@statement("group-instances", "Every instance id is there once.")
def group_instances(group: Group) -> Truth:
    """Instance ids name static members."""
    slots = group.slots
    return all_(
        implies(
            and_(is_member(slots[i]), is_member(slots[j]), not_(absent(slots[i].instance))),
            slots[i].instance != slots[j].instance,
        )
        for i in range(len(slots))
        for j in range(i)
    )


@statement("group-empty", "An empty group has no members.")
def group_empty(group: Group) -> Truth:
    """Empty means empty."""
    return implies(group.phase == Phase.EMPTY, not_(any_(is_member(slot) for slot in group.slots)))


@statement("group-leaderless", "A group without members misses no leader.")
def group_leaderless(group: Group) -> Truth:
    """So the first member leads."""
    return or_(any_(is_member(slot) for slot in group.slots), not_(group.leader_open))


@statement("group-generation", "Generations start at 1, and an empty or new group may have had none.")
def group_generation(group: Group) -> Truth:
    """The generation of each phase."""
    return and_(group.generation >= 0, implies(is_generation_active(group), group.generation >= 1))


@statement("group-parked", "JoinGroup is parked for members while the group prepares, SyncGroup while it completes.")
def group_parked(group: Group) -> Truth:
    """Who waits, and when."""
    return all_(
        and_(
            implies(slot.join != 0, and_(is_member(slot), group.phase == Phase.PREPARING)),
            implies(slot.sync != 0, and_(is_member(slot), group.phase == Phase.COMPLETING)),
        )
        for slot in group.slots
    )


@statement("parked-synced", "Who waits with a SyncGroup is not awaited.")
def group_synced(group: Group) -> Truth:
    """The sync timer removes nobody who waits."""
    return and_(
        *(implies(and_(slot.holder != Holder.NOBODY, slot.sync != 0), not_(slot.unsynced)) for slot in group.slots)
    )


@statement("sync-timer", "The sync timer runs only in a generation with a leader.")
def sync_timer(group: Group) -> Truth:
    """It ends no join phase."""
    return implies(group.sync_armed, is_generation_active(group))


@statement("parked-join", "A parked JoinGroup carries no id or the slot's, and comes from the process that has it.")
def parked_join(group: Group, ghost: GhostState) -> Truth:
    """The slot belongs to who waits in it."""
    return all_(
        implies(
            slot.join != 0,
            and_(carries_id(ghost, slot.join, slot.id), ghost.holder_of(slot.id) == ghost.sender_of(slot.join)),
        )
        for slot in group.slots
    )


def carries_id(ghost: GhostState, handle: Handle, member: MemberId | None) -> Truth:
    """The request carries this id or none."""
    return or_(absent(ghost.member_id_in(handle)), ghost.member_id_in(handle) == member)


@statement("parked-sync", "A parked SyncGroup carries the slot's id and the group's generation.")
def parked_sync(group: Group, ghost: GhostState) -> Truth:
    """Who waits for an assignment."""
    return all_(
        implies(
            slot.sync != 0,
            and_(ghost.member_id_in(slot.sync) == slot.id, ghost.generation_in(slot.sync) == group.generation),
        )
        for slot in group.slots
    )


@statement("stable-assignment", "In a stable group a member's stored assignment is what its generation gave it.")
def stable_assignment(group: Group, ghost: GhostState) -> Truth:
    """Slots and ghost state agree."""
    return all_(
        implies(
            and_(group.phase == Phase.STABLE, is_member(slot), holds(slot.assignment, part)),
            ghost.owner_of(group.generation, part) == ghost.identity_of(slot.id),
        )
        for slot in group.slots
        for part in range(partition_count(slot.assignment))
    )


def partition_count(assignment: Assignment | None) -> int:
    """For how many partitions the assignment speaks."""
    return 0 if assignment is None else len(assignment)


@statement("join-request", "A JoinGroup is what the ledger says, and its id is its sender's.")
def join_request(ghost: GhostState, request: JoinRequest) -> Truth:
    """Requests and ghost state agree."""
    owned = or_(absent(request.member), ghost.holder_of(request.member) == ghost.sender_of(request.handle))
    return and_(request.handle != 0, ghost.member_id_in(request.handle) == request.member, owned)


@statement("sync-request", "A SyncGroup is what the ledger says, and gives each partition to one member at most.")
def sync_request(ghost: GhostState, request: SyncRequest) -> Truth:
    """Requests and ghost state agree; assignments are disjoint."""
    entries = request.assignments
    return and_(
        request.handle != 0,
        ghost.member_id_in(request.handle) == request.member,
        ghost.generation_in(request.handle) == request.generation,
        *(
            or_(entries[i][0] == entries[j][0], are_disjoint(entries[i][1], entries[j][1]))
            for i in range(len(entries))
            for j in range(i)
        ),
    )


@statement("join-response", "A JoinGroup answer speaks of a generation that was, and of the leader if it still lasts.")
def join_response(group: Group, ghost: GhostState, given: JoinResponseSent) -> Truth:
    """Answers of the current generation name its leader."""
    response = given.response
    present = and_(response.generation == group.generation, is_generation_active(group), not_(absent(group.leader)))
    return implies(
        response.error == Error.NONE,
        and_(
            response.generation >= 1,
            response.generation <= group.generation,
            implies(present, ghost.identity_of(response.leader) == ghost.identity_of(group.leader)),
        ),
    )


@statement(
    "join-response-id", "The id in a JoinGroup answer was handed to who asked, and is the one asked with, if any."
)
def join_response_id(ghost: GhostState, given: JoinResponseSent) -> Truth:
    """Ids reach their holders."""
    response = given.response
    names = or_(response.error == Error.NONE, response.error == Error.MEMBER_ID_REQUIRED)
    return implies(
        names,
        and_(
            not_(absent(response.member)),
            ghost.holder_of(response.member) == ghost.sender_of(given.handle),
            carries_id(ghost, given.handle, response.member),
            implies(response.error == Error.MEMBER_ID_REQUIRED, absent(ghost.member_id_in(given.handle))),
        ),
    )


@statement("sync-response", "An assignment is handed out under a generation that has its assignment.")
def sync_response(group: Group, ghost: GhostState, given: SyncResponseSent) -> Truth:
    """No assignment before the leader's SyncGroup."""
    generation = ghost.generation_in(given.handle)
    return implies(
        given.response.error == Error.NONE,
        and_(
            generation >= 1,
            generation <= group.generation,
            implies(generation == group.generation, is_generation_settled(group)),
        ),
    )


@statement("sync-response-owner", "What an assignment names belongs to who asked, in the generation it asked in.")
def sync_response_owner(ghost: GhostState, given: SyncResponseSent) -> Truth:
    """Answers and ghost state agree."""
    generation, person = ghost.generation_in(given.handle), ghost.identity_of(ghost.member_id_in(given.handle))
    assignment = given.response.assignment
    return implies(
        given.response.error == Error.NONE,
        all_(
            implies(holds(assignment, part), ghost.owner_of(generation, part) == person)
            for part in range(partition_count(assignment))
        ),
    )


@statement("member-waits", "A member's unanswered request is its own, under its id and, for SyncGroup, its generation.")
def member_waits(ghost: GhostState, process: Process) -> Truth:
    """Members and ghost state agree."""
    member = process.member
    joining = member.state == MemberState.PREPARING_REBALANCE
    syncing = member.state == MemberState.COMPLETING_REBALANCE
    return implies(
        member.waiting != 0,
        and_(
            ghost.sender_of(member.waiting) == process.name,
            implies(or_(joining, syncing), ghost.member_id_in(member.waiting) == member.id),
            implies(syncing, ghost.generation_in(member.waiting) == member.generation),
        ),
    )


@statement("member-id", "A member's id was handed to it, and with a generation it has one.")
def member_id(ghost: GhostState, process: Process) -> Truth:
    """Ids name processes."""
    member = process.member
    return and_(
        implies(not_(absent(member.id)), ghost.holder_of(member.id) == process.name),
        implies(member.generation != NO_GENERATION, not_(absent(member.id))),
        implies(member.state == MemberState.UNJOINED, member.generation == NO_GENERATION),
        implies(
            member.state == MemberState.PREPARING_REBALANCE,
            or_(member.generation != NO_GENERATION, not_(any_(member.owned))),
        ),
        implies(
            or_(member.state == MemberState.COMPLETING_REBALANCE, member.state == MemberState.STABLE),
            member.generation != NO_GENERATION,
        ),
        implies(member.state == MemberState.STABLE, member.owned_in == member.generation),
    )


@statement("member-owns", "What a member owns was given to it in the generation it has it from.")
def member_owns(group: Group, ghost: GhostState, process: Process) -> Truth:
    """Beliefs and ghost state agree."""
    member = process.member
    person = ghost.identity_of(member.id)
    return all_(
        implies(
            and_(member.generation != NO_GENERATION, owned),
            and_(
                ghost.owner_of(member.owned_in, part) == person,
                member.owned_in >= 1,
                member.owned_in <= group.generation,
                implies(member.owned_in == group.generation, is_generation_settled(group)),
            ),
        )
        for part, owned in enumerate(member.owned)
    )


LEMMAS = (
    group_ids,
    group_instances,
    group_empty,
    group_leaderless,
    group_generation,
    group_parked,
    group_synced,
    sync_timer,
    parked_join,
    parked_sync,
    stable_assignment,
    join_request,
    sync_request,
    join_response,
    join_response_id,
    sync_response,
    sync_response_owner,
    member_waits,
    member_id,
    member_owns,
)
