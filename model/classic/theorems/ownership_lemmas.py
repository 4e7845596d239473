"""The lemmas that make T3 inductive: claims travel from members to the leader and bind the assignment."""

from fencepost.model.classic.core.member_table import is_member, no_members, offered_by_all
from fencepost.model.classic.core.protocol_selection import metadata_for
from fencepost.model.classic.core.state import Group, JoinRequest, Phase, Protocol, Slot, SyncRequest
from fencepost.model.classic.member.member import Member, MemberState, PartitionCommit
from fencepost.model.classic.theorems.ghost_state import (
    CommitAccepted,
    GhostState,
    JoinResponseSent,
    Process,
    is_generation_settled,
)
from fencepost.model.classic.theorems.lemmas import partition_count
from fencepost.model.errors import Error
from fencepost.model.logic import Truth, absent, all_, and_, any_, holds, not_, or_
from fencepost.model.sorts import Handle, MemberId, PartitionFlags
from fencepost.model.statement import implies, statement


def claims_partition(group: Group, slot: Slot, partition: int) -> Truth:
    """The member claims the partition, as the leader is told."""
    return and_(is_member(slot), holds(metadata_for(slot, group.protocol), partition))


def is_assignment_open(group: Group, generation: int) -> Truth:
    """The leader's assignment for this generation may still come."""
    return and_(generation == group.generation, group.phase == Phase.COMPLETING)


def may_own(ghost: GhostState, generation: int, partition: int, member: MemberId | None) -> Truth:
    """In this generation the partition is the member's or nobody's."""
    owner = ghost.owner_of(generation, partition)
    return or_(absent(owner), owner == ghost.identity_of(member))


def owned_is_claimed(group: Group, owned: PartitionFlags, generation: int, member: MemberId | None) -> Truth:
    """While the generation is open, what is owned is claimed in it."""
    return implies(
        is_assignment_open(group, generation),
        all_(
            implies(mine, any_(and_(slot.id == member, claims_partition(group, slot, part)) for slot in group.slots))
            for part, mine in enumerate(owned)
        ),
    )


def owned_by_no_other(
    group: Group, ghost: GhostState, owned: PartitionFlags, generation: int, member: MemberId | None
) -> Truth:
    """Once the generation is not open any more, what is owned is given to no other in it."""
    return or_(
        is_assignment_open(group, generation),
        all_(implies(mine, may_own(ghost, generation, part, member)) for part, mine in enumerate(owned)),
    )


def protocols_claim_owned(protocols: tuple[Protocol, ...], member: Member) -> Truth:
    """Under each of its names the member claims whatever it owns."""
    return all_(
        or_(absent(protocol.name), not_(mine), holds(protocol.metadata, part))
        for protocol in protocols
        for part, mine in enumerate(member.owned)
    )


@statement("shared-protocol", "The members have a protocol in common.")
def shared_protocol(group: Group) -> Truth:
    """Nobody is left out of the vote."""
    common = any_(
        and_(is_member(slot), offered_by_all(group, protocol.name))
        for slot in group.slots
        for protocol in slot.protocols
    )
    return or_(no_members(group), common)


@statement("open-generation", "Nobody owns anything in a generation whose assignment has not come.")
def open_generation(group: Group, ghost: GhostState) -> Truth:
    """A new generation starts without owners. What members claim tells how many partitions there are, too: after a step
    no slot may have an assignment."""
    assigned = (partition_count(slot.assignment) for slot in group.slots)
    claimed = (len(claimed_partitions(slot)) for slot in group.slots)
    return implies(
        group.phase == Phase.COMPLETING,
        all_(absent(ghost.owner_of(group.generation, part)) for part in range(max((*assigned, *claimed), default=0))),
    )


@statement("stable-claims", "In a stable group no claimed partition is given to another.")
def stable_claims(group: Group, ghost: GhostState) -> Truth:
    """The assignment respects claims."""
    return all_(
        implies(
            and_(group.phase == Phase.STABLE, claims_partition(group, slot, part)),
            may_own(ghost, group.generation, part, slot.id),
        )
        for slot in group.slots
        for part in claimed_partitions(slot)
    )


@statement("first-join-claims", "A JoinGroup without an id claims nothing.")
def first_join_claims(request: JoinRequest) -> Truth:
    """Who has not been a member owns nothing."""
    return implies(
        absent(request.member),
        all_(
            not_(holds(one.metadata, part))
            for one in request.protocols
            for part in range(0 if one.metadata is None else len(one.metadata))
        ),
    )


@statement("join-request-claims", "The JoinGroup that a member waits for claims all it owns.")
def join_request_claims(request: JoinRequest, process: Process) -> Truth:
    """Claims leave the member."""
    return implies(
        awaits_join_response(process.member, request.handle), protocols_claim_owned(request.protocols, process.member)
    )


def awaits_join_response(member: Member, handle: Handle) -> Truth:
    """The member waits for the answer to this JoinGroup."""
    joining = member.state == MemberState.PREPARING_REBALANCE
    return and_(handle != 0, member.waiting == handle, joining)


@statement("parked-join-claims", "A parked JoinGroup's slot claims all that its sender owns.")
def parked_join_claims(group: Group, process: Process) -> Truth:
    """Claims reach the coordinator."""
    return all_(
        implies(awaits_join_response(process.member, slot.join), protocols_claim_owned(slot.protocols, process.member))
        for slot in group.slots
    )


def awaits_join_success(given: JoinResponseSent, process: Process) -> Truth:
    """The process waits for this answer, and it tells of a generation."""
    return and_(awaits_join_response(process.member, given.handle), given.response.error == Error.NONE)


@statement("join-response-claims", "What the receiver of a JoinGroup answer owns is claimed in the open generation.")
def join_response_claims(group: Group, given: JoinResponseSent, process: Process) -> Truth:
    """Claims outlast the answer."""
    response = given.response
    return implies(
        awaits_join_success(given, process),
        owned_is_claimed(group, process.member.owned, response.generation, response.member),
    )


@statement("join-response-owners", "What the receiver of a JoinGroup answer owns is given to no other.")
def join_response_owners(group: Group, ghost: GhostState, given: JoinResponseSent, process: Process) -> Truth:
    """Claims bind the assignment."""
    response = given.response
    return implies(
        awaits_join_success(given, process),
        owned_by_no_other(group, ghost, process.member.owned, response.generation, response.member),
    )


@statement("syncing-claims", "What a member owns while it waits for its assignment is claimed.")
def syncing_claims(group: Group, process: Process) -> Truth:
    """Claims bind until the assignment comes."""
    member = process.member
    syncing = member.state == MemberState.COMPLETING_REBALANCE
    return implies(syncing, owned_is_claimed(group, member.owned, member.generation, member.id))


@statement("syncing-owners", "What a member owns while it waits for its assignment is given to no other.")
def syncing_owners(group: Group, ghost: GhostState, process: Process) -> Truth:
    """Claims bind until the assignment is received."""
    member = process.member
    syncing = member.state == MemberState.COMPLETING_REBALANCE
    return implies(
        syncing,
        and_(
            member.generation <= group.generation,
            owned_by_no_other(group, ghost, member.owned, member.generation, member.id),
        ),
    )


@statement("leader-view", "Who is told of members in an open generation is told of all of them and their claims.")
def leader_view(group: Group, given: JoinResponseSent) -> Truth:
    """The leader knows every claim."""
    views = given.response.members
    told = any_(not_(absent(view.id)) for view in views)
    present = and_(given.response.error == Error.NONE, is_assignment_open(group, given.response.generation))
    return implies(
        and_(told, present),
        all_(
            implies(
                claims_partition(group, slot, part),
                any_(and_(view.id == slot.id, holds(view.metadata, part)) for view in views),
            )
            for slot in group.slots
            for part in claimed_partitions(slot)
        ),
    )


def claimed_partitions(slot: Slot) -> range:
    """The partitions that the slot's claims speak of."""
    return range(max((len(one.metadata) for one in slot.protocols if one.metadata is not None), default=0))


@statement(
    "sync-request-claims",
    "A plan for an open generation gives no claimed partition to another.",
)
def sync_request_claims(group: Group, request: SyncRequest) -> Truth:
    """The plan respects claims."""
    bound = implies(
        is_assignment_open(group, request.generation),
        all_(
            not_(and_(claims_partition(group, slot, part), owner != slot.id, holds(plan, part)))
            for owner, plan in request.assignments
            for slot in group.slots
            for part in claimed_partitions(slot)
        ),
    )
    return and_(request.generation <= group.generation, bound)


@statement("commit-request", "A commit is sent under a settled generation, for partitions of the sender or of nobody.")
def commit_request(group: Group, ghost: GhostState, commit: PartitionCommit) -> Truth:
    """Commits follow the assignment."""
    request = commit.request
    return all_(
        implies(
            covered,
            and_(
                request.generation >= 1,
                request.generation <= group.generation,
                implies(request.generation == group.generation, is_generation_settled(group)),
                may_own(ghost, request.generation, part, request.member),
            ),
        )
        for part, covered in enumerate(commit.partitions)
    )


@statement("accepted-commit", "An accepted commit was sent.")
def accepted_commit(group: Group, ghost: GhostState, acceptance: CommitAccepted) -> Truth:
    """What is true of commits stays true of those that were accepted."""
    return commit_request.holds(group, ghost, acceptance.commit)


OWNERSHIP_LEMMAS = (
    shared_protocol,
    open_generation,
    stable_claims,
    first_join_claims,
    join_request_claims,
    parked_join_claims,
    join_response_claims,
    join_response_owners,
    syncing_claims,
    syncing_owners,
    leader_view,
    sync_request_claims,
    commit_request,
    accepted_commit,
)
