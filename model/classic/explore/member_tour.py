"""The member as a machine for tours: the shipped core under everything that can happen to it in a small universe.

The member waits for at most one answer, so three handles are enough: that of the request in flight, that of the next
one, and an older one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from fencepost.model.classic.core.state import (
    CommitResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinResponse,
    MemberView,
    SyncResponse,
)
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import NO_GENERATION, Member, MemberSettings, MemberStep
from fencepost.model.errors import Error
from fencepost.model.explore.tours import Machine, Reaction
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.sorts import (
    Handle,
    HandleNumber,
    MemberId,
    PartitionFlags,
    ProtocolName,
    ProtocolType,
    numbered_id,
)

NONE: Literal[0] = 0
CURRENT, OLD, NEXT = HandleNumber(1), HandleNumber(2), HandleNumber(3)
"""No handle; that of the request in flight, of an earlier one, of the one that is sent next."""
MEMBER_ACTIONS = ("join", "rejoin", "disconnect", "heartbeat", "commit", "commit-nothing", "leave", "restart")
"""What a member does by itself, or what is done to it."""
JOIN_ERRORS = (Error.MEMBER_ID_REQUIRED, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.NOT_COORDINATOR)
SYNC_ERRORS = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS)
OTHER_ERRORS = (Error.NONE, *SYNC_ERRORS, Error.FENCED_INSTANCE_ID)
TYPE: ProtocolType = "consumer"
NAME = ProtocolName("range")


@dataclass(frozen=True, slots=True)
class MemberInput:
    """Something that the member does ("join", ...), or an answer to a request of its: with its handle, error,
    generation, member id and leader, and the partitions that are assigned.

    A leader plans: `plan` says who gets each partition (0: nobody), `claims` whether the other member has them all.
    """

    kind: str
    handle: Handle = NONE
    error: Error = Error.NONE
    generation: int = NO_GENERATION
    member: int = 0
    leader: int = 0
    parts: PartitionFlags | None = None
    plan: tuple[int, ...] = ()
    claims: bool = False
    skips: bool = False


def member_machine(settings: MemberSettings, partitions: int = 1, generations: int = 2) -> Machine[Member, MemberInput]:
    """The machine of a member with ids 1 and 2 to be had, in a group with these bounds."""
    happenings = tuple(member_inputs(partitions, range(1, generations + 1)))
    return Machine(members.new_member(settings, partitions), happenings, follow, follow)


def member_inputs(partitions: int, generations: range) -> Iterator[MemberInput]:
    """Everything that can happen."""
    for kind in MEMBER_ACTIONS:
        yield MemberInput(kind)
    responded: tuple[Handle, ...] = (CURRENT, OLD, NONE)
    for handle, member in product(responded[:2], (1, 2)):
        for error in JOIN_ERRORS:
            yield MemberInput("join-response", handle, error, member=member)
        for generation in generations:
            yield from join_success_inputs(partitions, handle, generation, member)
    for handle, kind in product(responded, ("sync-response", "sync-response-quietly")):
        for error in SYNC_ERRORS:
            yield MemberInput(kind, handle, error)
        for parts in (None, *product((False, True), repeat=partitions)):
            yield MemberInput(kind, handle, parts=parts)
    yield MemberInput("join-response", NONE, Error.NONE, 1, 1, 2)
    kinds = ("heartbeat-response", "commit-response")
    for kind, error, generation, member in product(kinds, OTHER_ERRORS, (NO_GENERATION, *generations), (0, 1, 2)):
        if error != Error.NONE or member == 1:
            yield MemberInput(kind, NONE, error, generation, member)


def join_success_inputs(partitions: int, handle: Handle, generation: int, member: int) -> Iterator[MemberInput]:
    """JoinGroup was answered: to a follower, to a leader that plans, to one that need not."""
    yield MemberInput("join-response", handle, Error.NONE, generation, member, 3 - member)
    for plan, claims in product(product((0, 1, 2), repeat=partitions), (False, True)):
        yield MemberInput("join-response", handle, Error.NONE, generation, member, member, None, plan, claims)
    plan = (member,) * partitions
    yield MemberInput("join-response", handle, Error.NONE, generation, member, member, None, plan, skips=True)


def follow(member: Member, given: MemberInput, _: int = 0) -> Reaction[Member]:
    """What the member makes of it; its next request is then the one in flight."""
    step = step_member(member, given)
    waiting: Handle = CURRENT if step.member.waiting == NEXT else step.member.waiting
    after = step.member if waiting == step.member.waiting else replace(step.member, waiting=waiting)
    return Reaction(after, step.rule, responses=tuple(sent.request for sent in step.sent_requests if sent.when))


def step_member(member: Member, given: MemberInput) -> MemberStep:
    """One step of the shipped core."""
    match given.kind:
        case "join":
            return members.join(member, NEXT)
        case "rejoin":
            return members.ask_rejoin(member)
        case "disconnect":
            return members.disconnect(member)
        case "heartbeat":
            return members.heartbeat(member, NEXT)
        case "commit" | "commit-nothing":
            return members.commit(member, NEXT, tuple(given.kind == "commit" for _ in member.owned))
        case "leave":
            return members.leave(member, NEXT)
        case "restart":
            return members.restart(member)
        case "join-response":
            plan = tuple(numbered_id(one) if one else None for one in given.plan)
            return members.on_join_response(member, given.handle, join_response(given), NEXT, plan)
        case "sync-response" | "sync-response-quietly":
            response = SyncResponse(given.error, TYPE, NAME, given.parts)
            return members.on_sync_response(
                member, given.handle, response, NEXT if given.kind == "sync-response" else NONE
            )
        case "heartbeat-response":
            beat = HeartbeatRequest(OLD, sender_id(given), member.settings.instance, given.generation)
            return members.on_heartbeat_response(member, beat, HeartbeatResponse(given.error))
        case _:
            asked = CommitRequest(OLD, sender_id(given), member.settings.instance, given.generation)
            return members.on_commit_response(member, asked, CommitResponse(given.error))


def sender_id(given: MemberInput) -> MemberId | None:
    """The member id of the input, if there is one."""
    return numbered_id(given.member) if given.member else None


def join_response(given: MemberInput) -> JoinResponse:
    """JoinGroup's answer; a leader is told of two members and a free slot."""
    if given.error != Error.NONE:
        return JoinResponse(given.error, member=numbered_id(given.member))
    claimed = tuple(given.claims for _ in given.plan)
    other = 3 - given.member
    told = ((numbered_id(given.member), None), (numbered_id(other), claimed), (None, None))
    views = tuple(MemberView(one, None, claims) for one, claims in told) if given.leader == given.member else ()
    leader, member = numbered_id(given.leader), numbered_id(given.member)
    return JoinResponse(given.error, given.generation, TYPE, NAME, leader, member, views, given.skips)
