"""The theorems about single steps of a member: what it takes from a response, and what it sends."""

from dataclasses import dataclass
from enum import Enum, auto

from fencepost.model.classic.core.state import (
    CommitResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.member.member import (
    NO_GENERATION,
    Member,
    MemberState,
    PartitionCommit,
    SentRequest,
)
from fencepost.model.errors import Error
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import Truth, absent, all_, and_, any_, holds, not_, or_
from fencepost.model.sorts import Handle
from fencepost.model.statement import implies, statement


class MemberAction(Enum):
    """What a member does by itself."""

    START = auto()
    RESTART = auto()
    ASK_REJOIN = auto()
    DISCONNECT = auto()
    JOIN = auto()
    HEARTBEAT = auto()
    COMMIT = auto()
    LEAVE = auto()


@dataclass(frozen=True, slots=True)
class HeardResponse:
    """A response to the JoinGroup or SyncGroup with this handle, or to this other request."""

    response: JoinResponse | SyncResponse | HeartbeatResponse | CommitResponse
    request: Handle | HeartbeatRequest | CommitRequest


@dataclass(frozen=True, slots=True)
class MemberChange:
    """A step of a member: the member before it, what happens, the member after it, and what it sends."""

    before: Member
    input: MemberAction | HeardResponse
    after: Member
    sent: tuple[SentRequest, ...]


@statement("T43", "A response to an earlier request takes nothing from a member.")
def late_responses_take_nothing(change: MemberChange) -> Truth:
    """Only news of the present membership counts. That it has to join again it may learn late (MEMBER-15)."""
    heard, before = change.input, change.before
    if not isinstance(heard, HeardResponse):
        return True
    waits = change.after.waiting == before.waiting
    if not isinstance(heard.request, HeartbeatRequest | CommitRequest):
        waits = or_(heard.request == before.waiting, waits)  # a response to a request that was given up since then
    silent = not_(any_(one.when for one in change.sent))
    return or_(is_in_time(before, heard), and_(has_same_standing(change), waits, silent))


def is_in_time(member: Member, heard: HeardResponse) -> Truth:
    """The member waits for the response, or is what it was when it sent the request."""
    request = heard.request
    if isinstance(request, HeartbeatRequest | CommitRequest):
        return and_(request.member == member.id, request.generation == member.generation)
    awaited = MemberState.PREPARING_REBALANCE
    if isinstance(heard.response, SyncResponse):
        awaited = MemberState.COMPLETING_REBALANCE
    return and_(request != 0, request == member.waiting, member.state == awaited)


def has_same_standing(change: MemberChange) -> Truth:
    """The member is, and owns, what it did."""
    before, after = change.before, change.after
    return and_(
        before.state == after.state,
        before.id == after.id,
        before.generation == after.generation,
        before.owned_in == after.owned_in,
        *(mine == still for mine, still in zip(before.owned, after.owned, strict=True)),
    )


@statement("T44", "A member that is told in time that its id or generation is over gives it up and joins again.")
def members_heed_errors(change: MemberChange) -> Truth:
    """A member that is none any more does not go on as one."""
    heard, after = change.input, change.after
    if not isinstance(heard, HeardResponse):
        return True
    told = is_in_time(change.before, heard)
    error = heard.response.error
    gone = and_(after.generation == NO_GENERATION, after.rejoins)
    unknown = implies(and_(told, error == Error.UNKNOWN_MEMBER_ID), and_(gone, absent(after.id)))
    if isinstance(heard.response, JoinResponse):
        return unknown
    return and_(unknown, implies(and_(told, error == Error.ILLEGAL_GENERATION), gone))


@statement("T45", "A member that leaves says so, unless it is static or not in the group.")
def members_say_that_they_leave(change: MemberChange) -> Truth:
    """Its partitions need not wait for the end of its session. A static member is to come back (KIP-345)."""
    before, after = change.before, change.after
    if change.input is not MemberAction.LEAVE:
        return True
    requests = [(one.when, one.request) for one in change.sent if isinstance(one.request, LeaveRequest)]
    says = any_(and_(when, request.entries[0][0] == before.id) for when, request in requests)
    inside = and_(before.state != MemberState.UNJOINED, not_(absent(before.id)), absent(before.settings.instance))
    return and_(says == inside, absent(after.id), after.generation == NO_GENERATION)


@statement("T46", "A commit of a member names a partition, and none that the member does not own.")
def commits_name_owned(change: MemberChange) -> Truth:
    """There is something to commit."""
    commits = [(one.when, one.request) for one in change.sent if isinstance(one.request, PartitionCommit)]
    return all_(
        implies(
            when,
            and_(
                any_(commit.partitions),
                *(implies(named, mine) for named, mine in zip(commit.partitions, change.before.owned, strict=True)),
            ),
        )
        for when, commit in commits
    )


@statement("T47", "A member whose JoinGroup or SyncGroup is lost with the connection joins again; another does not.")
def lost_requests_are_repeated(change: MemberChange) -> Truth:
    """Id and generation are kept (MEMBER-14)."""
    before, after = change.before, change.after
    if change.input is not MemberAction.DISCONNECT:
        return True
    repeats = or_(before.rejoins, before.waiting != 0)
    return and_(
        has_same_standing(change),
        after.waiting == 0,
        or_(and_(after.rejoins, repeats), not_(or_(after.rejoins, repeats))),
    )


@statement("T48", "A member that is told its generation in time takes it, and asks for its assignment.")
def members_ask_for_assignments(change: MemberChange) -> Truth:
    """The others wait for it."""
    heard, after = change.input, change.after
    if not isinstance(heard, HeardResponse) or not isinstance(heard.response, JoinResponse):
        return True
    response = heard.response
    asks = any_(
        and_(one.when, one.request.member == response.member, one.request.generation == response.generation)
        for one in change.sent
        if isinstance(one.request, SyncRequest)
    )
    told = and_(is_in_time(change.before, heard), response.error == Error.NONE)
    return implies(told, and_(asks, after.id == response.member, after.generation == response.generation))


@statement("T49", "A member that is told of a rebalance while it is stable joins again.")
def members_heed_rebalances(change: MemberChange) -> Truth:
    """A rebalance ends in time only if everyone comes. A commit tells of it in any state."""
    heard = change.input
    if not isinstance(heard, HeardResponse) or not isinstance(heard.response, HeartbeatResponse | CommitResponse):
        return True
    stable = or_(isinstance(heard.response, CommitResponse), change.before.state == MemberState.STABLE)
    return implies(and_(stable, heard.response.error == Error.REBALANCE_IN_PROGRESS), change.after.rejoins)


@statement("T50", "A member that is told its assignment in time owns what it names, and nothing else.")
def members_take_assignments(change: MemberChange) -> Truth:
    """It consumes what was given to it."""
    heard, after = change.input, change.after
    if not isinstance(heard, HeardResponse) or not isinstance(heard.response, SyncResponse):
        return True
    given = heard.response.assignment
    owns = (implies(mine, holds(given, part)) for part, mine in enumerate(after.owned))
    all_of_it = (implies(holds(given, part), mine) for part, mine in enumerate(after.owned))
    told = and_(is_in_time(change.before, heard), heard.response.error == Error.NONE)
    return implies(told, and_(after.state == MemberState.STABLE, *owns, *all_of_it))


@statement(
    "T51", "A member that has to join sends JoinGroup unless a request waits, and one that has joined heartbeats."
)
def members_act(change: MemberChange) -> Truth:
    """A member that falls silent is expelled."""
    before, sent = change.before, change.sent
    if change.input is MemberAction.JOIN:
        due = and_(before.rejoins, before.waiting == 0)
        joins = (
            and_(one.when, one.request.member == before.id) for one in sent if isinstance(one.request, JoinRequest)
        )
        return implies(due, any_(joins))
    if change.input is MemberAction.HEARTBEAT:
        due = or_(before.state == MemberState.COMPLETING_REBALANCE, before.state == MemberState.STABLE)
        beats = (
            and_(one.when, one.request.member == before.id, one.request.generation == before.generation)
            for one in sent
            if isinstance(one.request, HeartbeatRequest)
        )
        return implies(due, any_(beats))
    return True


MEMBER_THEOREMS = (
    late_responses_take_nothing,
    members_heed_errors,
    members_say_that_they_leave,
    commits_name_owned,
    lost_requests_are_repeated,
    members_ask_for_assignments,
    members_heed_rebalances,
    members_take_assignments,
    members_act,
)
"""The theorems about single steps of members, whatever they hear."""
