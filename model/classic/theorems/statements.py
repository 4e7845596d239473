"""The theorems: properties that a group and its members always have, each in one sentence.

A theorem is a predicate whose annotations say what it is about: `def t(a: JoinResponseSent, b: JoinResponseSent)` means
"for any two responses ever given". Their scope is one term of a coordinator and one life of the group; a static member
that comes back is the same person under a new id; commits with a generation below 0 claim no membership.
Without that scope they are false: see `false_theorems`.
"""

from fencepost.model.classic.member.member import NO_GENERATION
from fencepost.model.classic.theorems.ghost_state import (
    CommitAccepted,
    GhostState,
    JoinResponseSent,
    Process,
    SyncResponseSent,
    are_disjoint,
    has_member,
)
from fencepost.model.classic.theorems.lemmas import (
    group_empty,
    group_generation,
    group_ids,
    group_instances,
    group_leaderless,
    group_parked,
    group_synced,
    join_response,
    sync_timer,
)
from fencepost.model.classic.theorems.ownership_lemmas import shared_protocol
from fencepost.model.classic.theorems.request_statements import STEP_THEOREMS
from fencepost.model.errors import Error
from fencepost.model.logic import Truth, absent, all_, and_, not_, or_
from fencepost.model.statement import implies, statement


@statement("T1", "Any two members that are told who leads a generation are told of the same leader.")
def one_leader(ghost: GhostState, a: JoinResponseSent, b: JoinResponseSent) -> Truth:
    """One leader per generation."""
    return implies(
        and_(
            a.response.error == Error.NONE,
            b.response.error == Error.NONE,
            a.response.generation == b.response.generation,
        ),
        ghost.identity_of(a.response.leader) == ghost.identity_of(b.response.leader),
    )


@statement("T2", "An accepted commit with a generation carries the current one, and its sender is a member.")
def no_stale_commit(acceptance: CommitAccepted) -> Truth:
    """No stale-generation commit."""
    request = acceptance.commit.request
    return implies(
        request.generation >= 0,
        and_(request.generation == acceptance.group.generation, has_member(acceptance.group, request.member)),
    )


@statement("T3", "A partition in an accepted commit is assigned, in that generation, to the sender or to nobody.")
def commit_by_owner(ghost: GhostState, acceptance: CommitAccepted) -> Truth:
    """An accepted commit covers only partitions that its member owns or that have no owner."""
    request = acceptance.commit.request
    person = ghost.identity_of(request.member)
    owners = tuple(ghost.owner_of(request.generation, part) for part in range(len(acceptance.commit.partitions)))
    return all_(
        implies(and_(request.generation >= 0, covered), or_(absent(owner), owner == person))
        for covered, owner in zip(acceptance.commit.partitions, owners, strict=True)
    )


@statement("T4", "The assignments of one generation that two members receive share no partition.")
def one_assignee(ghost: GhostState, a: SyncResponseSent, b: SyncResponseSent) -> Truth:
    """Each partition is assigned at most once."""
    same_generation = ghost.generation_in(a.handle) == ghost.generation_in(b.handle)
    same_person = ghost.identity_of(ghost.member_id_in(a.handle)) == ghost.identity_of(ghost.member_id_in(b.handle))
    granted = and_(a.response.error == Error.NONE, b.response.error == Error.NONE)
    shared = and_(granted, same_generation, not_(same_person))
    return implies(shared, are_disjoint(a.response.assignment, b.response.assignment))


@statement("T4-belief", "Two members that believe to own a partition by the same generation are the same person.")
def one_owner(ghost: GhostState, a: Process, b: Process) -> Truth:
    """Each partition is owned at most once."""
    first, second = a.member, b.member
    valid = and_(first.generation != NO_GENERATION, second.generation != NO_GENERATION)
    shared = and_(valid, first.owned_in == second.owned_in)
    same_person = ghost.identity_of(first.id) == ghost.identity_of(second.id)
    return implies(and_(shared, not_(same_person)), are_disjoint(first.owned, second.owned))


@statement("T6", "A member id belongs to one process.")
def one_process(a: Process, b: Process) -> Truth:
    """Nobody else goes by a member's id."""
    return implies(and_(not_(absent(a.member.id)), a.member.id == b.member.id), a.name == b.name)


THEOREMS = (one_leader, no_stale_commit, commit_by_owner, one_assignee, one_owner, one_process)


# --- The statements that the coordinator keeps by itself: they assume nothing of the requests of clients.

UNCONDITIONAL_THEOREMS = (one_leader, no_stale_commit, *STEP_THEOREMS)
"""The theorems among them."""
WHATEVER_CLIENTS_SEND = (
    *UNCONDITIONAL_THEOREMS,
    group_ids,
    group_instances,
    group_empty,
    group_leaderless,
    group_generation,
    group_parked,
    group_synced,
    join_response,
    sync_timer,
    shared_protocol,
)
"""All of them. None is about a request, or about a member but for a single step of one."""
