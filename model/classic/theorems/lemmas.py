"""What has to be true besides so that the theorems follow by induction: true of every reachable state, read by few."""

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import Group, Holder, JoinRequest, Phase, SyncRequest
from fencepost.model.classic.member.member import NO_GENERATION, MemberState
from fencepost.model.classic.theorems.ghost_state import JoinAnswered, Ledger, Process, SyncAnswered, disjoint, settled
from fencepost.model.classic.theorems.statements import imply, statement
from fencepost.model.errors import Error
from fencepost.model.logic import Token, Truth, absent, all_, and_, any_, holds, not_, or_


def in_round(group: Group) -> Truth:
    """The generation has a leader."""
    return or_(group.phase == Phase.COMPLETING, group.phase == Phase.STABLE)


@statement("group-ids", "Every member and every pending id is there once.")
def group_ids(group: Group) -> Truth:
    """Ids name slots."""
    live = tuple(slot.holder != Holder.NOBODY for slot in group.slots)
    named = all_(imply(used, not_(absent(slot.id))) for used, slot in zip(live, group.slots, strict=True))
    apart = all_(
        imply(and_(live[i], live[j]), group.slots[i].id != group.slots[j].id)
        for i in range(len(live))
        for j in range(i)
    )
    return and_(named, apart)


@statement("group-instances", "Every instance id is there once.")
def group_instances(group: Group) -> Truth:
    """Instance ids name static members."""
    slots = group.slots
    return all_(
        imply(
            and_(is_member(slots[i]), is_member(slots[j]), not_(absent(slots[i].instance))),
            slots[i].instance != slots[j].instance,
        )
        for i in range(len(slots))
        for j in range(i)
    )


@statement("group-empty", "An empty group has no members.")
def group_empty(group: Group) -> Truth:
    """Empty means empty."""
    return imply(group.phase == Phase.EMPTY, not_(any_(is_member(slot) for slot in group.slots)))


@statement("group-generation", "Generations start at 1, and an empty or new group may have had none.")
def group_generation(group: Group) -> Truth:
    """The generation of each phase."""
    return and_(group.generation >= 0, imply(in_round(group), group.generation >= 1))


@statement("group-leader", "A generation in use has a leader.")
def group_leader(group: Group) -> Truth:
    """Not so between the entries of a LeaveGroup of several."""
    return imply(in_round(group), not_(absent(group.leader)))


@statement("group-parked", "JoinGroup is parked for members while the group prepares, SyncGroup while it completes.")
def group_parked(group: Group) -> Truth:
    """Who waits, and when."""
    return all_(
        and_(
            imply(slot.join != 0, and_(is_member(slot), group.phase == Phase.PREPARING)),
            imply(slot.sync != 0, and_(is_member(slot), group.phase == Phase.COMPLETING)),
        )
        for slot in group.slots
    )


@statement("parked-join", "A parked JoinGroup carries no id or the slot's, and comes from the process that has it.")
def parked_join(group: Group, ledger: Ledger) -> Truth:
    """The slot belongs to who waits in it."""
    return all_(
        imply(
            slot.join != 0,
            and_(carries(ledger, slot.join, slot.id), ledger.holder(slot.id) == ledger.sender(slot.join)),
        )
        for slot in group.slots
    )


def carries(ledger: Ledger, handle: int, member: Token) -> Truth:
    """The request carries this id or none."""
    return or_(absent(ledger.asked_as(handle)), ledger.asked_as(handle) == member)


@statement("parked-sync", "A parked SyncGroup carries the slot's id and the group's generation.")
def parked_sync(group: Group, ledger: Ledger) -> Truth:
    """Who waits for an assignment."""
    return all_(
        imply(
            slot.sync != 0,
            and_(ledger.asked_as(slot.sync) == slot.id, ledger.asked_in(slot.sync) == group.generation),
        )
        for slot in group.slots
    )


@statement("stable-assignment", "In a stable group a member's stored assignment is what its generation gave it.")
def stable_assignment(group: Group, ledger: Ledger) -> Truth:
    """Slots and ledger agree."""
    return all_(
        imply(
            and_(group.phase == Phase.STABLE, is_member(slot), holds(slot.assignment, part)),
            ledger.owner(group.generation, part) == ledger.person(slot.id),
        )
        for slot in group.slots
        for part in range(parts_of(slot.assignment))
    )


def parts_of(assignment: Token) -> int:
    """For how many partitions the assignment speaks."""
    return 0 if assignment is None else len(assignment)


@statement("join-request", "A JoinGroup is what the ledger says, and its id is its sender's.")
def join_request(ledger: Ledger, request: JoinRequest) -> Truth:
    """Requests and ledger agree."""
    owned = or_(absent(request.member), ledger.holder(request.member) == ledger.sender(request.handle))
    return and_(request.handle != 0, ledger.asked_as(request.handle) == request.member, owned)


@statement("sync-request", "A SyncGroup is what the ledger says, and gives each partition to one member at most.")
def sync_request(ledger: Ledger, request: SyncRequest) -> Truth:
    """Requests and ledger agree; assignments are disjoint."""
    entries = request.assignments
    return and_(
        request.handle != 0,
        ledger.asked_as(request.handle) == request.member,
        ledger.asked_in(request.handle) == request.generation,
        *(
            or_(entries[i][0] == entries[j][0], disjoint(entries[i][1], entries[j][1]))
            for i in range(len(entries))
            for j in range(i)
        ),
    )


@statement("join-answer", "A JoinGroup answer speaks of a generation that was, and of the leader if it still lasts.")
def join_answer(group: Group, ledger: Ledger, given: JoinAnswered) -> Truth:
    """Answers of the current generation name its leader."""
    answer = given.answer
    present = and_(answer.generation == group.generation, in_round(group), not_(absent(group.leader)))
    return imply(
        answer.error == Error.NONE,
        and_(
            answer.generation >= 1,
            answer.generation <= group.generation,
            imply(present, ledger.person(answer.leader) == ledger.person(group.leader)),
        ),
    )


@statement("join-answer-id", "The id in a JoinGroup answer was handed to who asked, and is the one asked with, if any.")
def join_answer_id(ledger: Ledger, given: JoinAnswered) -> Truth:
    """Ids reach their holders."""
    answer = given.answer
    names = or_(answer.error == Error.NONE, answer.error == Error.MEMBER_ID_REQUIRED)
    return imply(
        names,
        and_(
            not_(absent(answer.member)),
            ledger.holder(answer.member) == ledger.sender(given.handle),
            carries(ledger, given.handle, answer.member),
            imply(answer.error == Error.MEMBER_ID_REQUIRED, absent(ledger.asked_as(given.handle))),
        ),
    )


@statement("sync-answer", "An assignment is handed out under a generation that has its assignment.")
def sync_answer(group: Group, ledger: Ledger, given: SyncAnswered) -> Truth:
    """No assignment before the leader's SyncGroup."""
    generation = ledger.asked_in(given.handle)
    return imply(
        given.answer.error == Error.NONE,
        and_(
            generation >= 1,
            generation <= group.generation,
            imply(generation == group.generation, settled(group)),
        ),
    )


@statement("sync-answer-owner", "What an assignment names belongs to who asked, in the generation it asked in.")
def sync_answer_owner(ledger: Ledger, given: SyncAnswered) -> Truth:
    """Answers and ledger agree."""
    generation, person = ledger.asked_in(given.handle), ledger.person(ledger.asked_as(given.handle))
    assignment = given.answer.assignment
    return imply(
        given.answer.error == Error.NONE,
        all_(
            imply(holds(assignment, part), ledger.owner(generation, part) == person)
            for part in range(parts_of(assignment))
        ),
    )


@statement("member-waits", "A member's unanswered request is its own, under its id and, for SyncGroup, its generation.")
def member_waits(ledger: Ledger, process: Process) -> Truth:
    """Members and ledger agree."""
    member = process.member
    joining = member.state == MemberState.PREPARING_REBALANCE
    syncing = member.state == MemberState.COMPLETING_REBALANCE
    return imply(
        member.waiting != 0,
        and_(
            ledger.sender(member.waiting) == process.name,
            imply(or_(joining, syncing), ledger.asked_as(member.waiting) == member.id),
            imply(syncing, ledger.asked_in(member.waiting) == member.generation),
        ),
    )


@statement("member-id", "A member's id was handed to it, and with a generation it has one.")
def member_id(ledger: Ledger, process: Process) -> Truth:
    """Ids name processes."""
    member = process.member
    return and_(
        imply(not_(absent(member.id)), ledger.holder(member.id) == process.name),
        imply(member.generation != NO_GENERATION, not_(absent(member.id))),
        imply(member.state == MemberState.UNJOINED, member.generation == NO_GENERATION),
        imply(
            member.state == MemberState.PREPARING_REBALANCE,
            or_(member.generation != NO_GENERATION, not_(any_(member.owned))),
        ),
        imply(
            or_(member.state == MemberState.COMPLETING_REBALANCE, member.state == MemberState.STABLE),
            member.generation != NO_GENERATION,
        ),
        imply(member.state == MemberState.STABLE, member.owned_in == member.generation),
    )


@statement("member-owns", "What a member owns was given to it in the generation it has it from.")
def member_owns(group: Group, ledger: Ledger, process: Process) -> Truth:
    """Beliefs and ledger agree."""
    member = process.member
    person = ledger.person(member.id)
    return all_(
        imply(
            and_(member.generation != NO_GENERATION, owned),
            and_(
                ledger.owner(member.owned_in, part) == person,
                member.owned_in >= 1,
                member.owned_in <= group.generation,
                imply(member.owned_in == group.generation, settled(group)),
            ),
        )
        for part, owned in enumerate(member.owned)
    )


STRENGTHENING = (
    group_ids,
    group_instances,
    group_empty,
    group_generation,
    group_leader,
    group_parked,
    parked_join,
    parked_sync,
    stable_assignment,
    join_request,
    sync_request,
    join_answer,
    join_answer_id,
    sync_answer,
    sync_answer_owner,
    member_waits,
    member_id,
    member_owns,
)
