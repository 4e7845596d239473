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
    MemberView,
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
from fencepost.model.sorts import Handle, MemberId
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
    plan: tuple[MemberId | None, ...] = ()
    """Who is to get each partition, None for nobody, should the member lead."""


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


@statement(
    "T44",
    "A member that is told in time that its id or generation is over gives it up and joins again; no other response to"
    " a Heartbeat or commit takes it.",
)
def members_heed_errors(change: MemberChange) -> Truth:
    """A member that is none any more does not go on as one. Another process has its instance id if it is fenced."""
    heard, after = change.input, change.after
    if not isinstance(heard, HeardResponse):
        return True
    told, response, error = is_in_time(change.before, heard), heard.response, heard.response.error
    gone = and_(after.generation == NO_GENERATION, after.rejoins)
    is_unknown = or_(
        error == Error.UNKNOWN_MEMBER_ID,
        and_(isinstance(response, HeartbeatResponse), error == Error.FENCED_INSTANCE_ID),
    )
    is_stale = and_(not isinstance(response, JoinResponse), error == Error.ILLEGAL_GENERATION)
    stays = or_(isinstance(response, JoinResponse | SyncResponse), is_unknown, is_stale, has_same_standing(change))
    return and_(
        implies(and_(told, is_unknown), and_(gone, absent(after.id))), implies(and_(told, is_stale), gone), stays
    )


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


@statement("T46", "A commit of a member says who it is, and names a partition, and none that it does not own.")
def commits_name_owned(change: MemberChange) -> Truth:
    """There is something to commit."""
    before = change.before
    commits = [(one.when, one.request) for one in change.sent if isinstance(one.request, PartitionCommit)]
    return all_(
        implies(
            when,
            and_(
                commit.request.member == before.id,
                commit.request.instance == before.settings.instance,
                commit.request.generation == before.generation,
                any_(commit.partitions),
                *(implies(named, mine) for named, mine in zip(commit.partitions, before.owned, strict=True)),
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


@statement(
    "T48", "A member that is told its id or generation in time takes it; in a generation it asks for its assignment."
)
def members_ask_for_assignments(change: MemberChange) -> Truth:
    """The others wait for it."""
    heard, after = change.input, change.after
    if not isinstance(heard, HeardResponse) or not isinstance(heard.response, JoinResponse):
        return True
    response, told = heard.response, is_in_time(change.before, heard)
    asks = any_(
        and_(
            one.when,
            one.request.member == response.member,
            one.request.generation == response.generation,
            one.request.instance == after.settings.instance,
            one.request.protocol == response.protocol,
            one.request.protocol_type == response.protocol_type,
            one.request.handle == after.waiting,
        )
        for one in change.sent
        if isinstance(one.request, SyncRequest)
    )
    takes = and_(after.id == response.member, after.generation == response.generation)
    syncs = and_(asks, takes, after.state == MemberState.COMPLETING_REBALANCE)
    is_named = and_(after.id == response.member, after.generation == NO_GENERATION, after.waiting == 0)
    return and_(
        implies(and_(told, response.error == Error.NONE), syncs),
        implies(and_(told, response.error == Error.MEMBER_ID_REQUIRED), is_named),
    )


@statement("T49", "A member that is told of a rebalance while it is stable, or is asked to, joins again.")
def members_heed_rebalances(change: MemberChange) -> Truth:
    """A rebalance ends in time only if everyone comes. A commit tells of it in any state."""
    heard = change.input
    if heard is MemberAction.ASK_REJOIN:
        return change.after.rejoins
    if not isinstance(heard, HeardResponse) or not isinstance(heard.response, HeartbeatResponse | CommitResponse):
        return True
    stable = or_(isinstance(heard.response, CommitResponse), change.before.state == MemberState.STABLE)
    return implies(and_(stable, heard.response.error == Error.REBALANCE_IN_PROGRESS), change.after.rejoins)


@statement(
    "T50",
    "A member that is told its assignment in time owns what it names, and nothing else; it joins again if it had more.",
)
def members_take_assignments(change: MemberChange) -> Truth:
    """It consumes what was given to it. What it gives up may be given to others in the next generation alone."""
    heard, after = change.input, change.after
    if not isinstance(heard, HeardResponse) or not isinstance(heard.response, SyncResponse):
        return True
    given = heard.response.assignment
    owns = (mine == holds(given, part) for part, mine in enumerate(after.owned))
    gives_up = any_(and_(had, not_(holds(given, part))) for part, had in enumerate(change.before.owned))
    told = and_(is_in_time(change.before, heard), heard.response.error == Error.NONE)
    return implies(told, and_(after.state == MemberState.STABLE, *owns, after.rejoins == gives_up))


@statement(
    "T51",
    "A member sends JoinGroup if it has to join and no request waits, heartbeats if it has joined, and else neither.",
)
def members_act(change: MemberChange) -> Truth:
    """A member that falls silent is expelled."""
    before, sent = change.before, change.sent
    if change.input is MemberAction.JOIN:
        joins = any_(one.when for one in sent if isinstance(one.request, JoinRequest))
        return joins == and_(before.rejoins, before.waiting == 0)
    if change.input is MemberAction.HEARTBEAT:
        beats = any_(
            and_(
                one.when,
                one.request.member == before.id,
                one.request.instance == before.settings.instance,
                one.request.generation == before.generation,
            )
            for one in sent
            if isinstance(one.request, HeartbeatRequest)
        )
        return beats == or_(before.state == MemberState.COMPLETING_REBALANCE, before.state == MemberState.STABLE)
    return True


@statement(
    "T59",
    "A member that joins says who it is and how it is set; it keeps and claims what it owns if it is cooperative and in"
    " a generation, else nothing.",
)
def members_join_as_they_are(change: MemberChange) -> Truth:
    """An eager member gives everything up before it joins, so that another may have it (KIP-429)."""
    before, after, settings = change.before, change.after, change.before.settings
    keeps = and_(settings.cooperative, before.generation != NO_GENERATION)

    def is_own(request: JoinRequest) -> Truth:
        names = (one.name == name for one, name in zip(request.protocols, settings.names, strict=True))
        claims = (
            holds(one.metadata, part) == and_(keeps, mine)
            for one in request.protocols
            for part, mine in enumerate(before.owned)
        )
        kept = (still == and_(keeps, mine) for still, mine in zip(after.owned, before.owned, strict=True))
        return and_(
            request.member == before.id,
            request.instance == settings.instance,
            request.protocol_type == settings.protocol_type,
            request.session_timeout == settings.session_timeout,
            request.rebalance_timeout == settings.rebalance_timeout,
            request.requires_id == settings.requires_id,
            request.can_skip == settings.can_skip,
            request.handle == after.waiting,
            after.state == MemberState.PREPARING_REBALANCE,
            *(*names, *claims, *kept),
        )

    joins = [(one.when, one.request) for one in change.sent if isinstance(one.request, JoinRequest)]
    return all_(implies(when, is_own(request)) for when, request in joins)


@statement(
    "T60",
    "A leader gives each partition to whom it planned, but one that another member claims to nobody; others give none.",
)
def leaders_give_what_they_planned(change: MemberChange) -> Truth:
    """What another member claims it has yet to give up (KIP-429)."""
    heard = change.input
    if not isinstance(heard, HeardResponse) or not isinstance(heard.response, JoinResponse):
        return True
    response, plan = heard.response, heard.plan
    leads = and_(response.leader == response.member, not_(response.skip_assignment))
    claimed = [
        any_(and_(holds(other.metadata, part), not_(other.id == owner)) for other in response.members)
        for part, owner in enumerate(plan)
    ]

    def is_planned(request: SyncRequest, view: MemberView, part: int) -> Truth:
        gives = any_(and_(to == view.id, holds(given, part)) for to, given in request.assignments)
        is_due = and_(leads, not_(absent(view.id)), plan[part] == view.id, not_(claimed[part]))
        return gives == is_due

    requests = [(one.when, one.request) for one in change.sent if isinstance(one.request, SyncRequest)]
    return all_(
        implies(when, is_planned(request, view, part))
        for when, request in requests
        for view in response.members
        for part in range(len(plan))
    )


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
    members_join_as_they_are,
    leaders_give_what_they_planned,
)
"""The theorems about single steps of members, whatever they hear."""
