"""The member as a machine for tours: the shipped core under everything that can happen to it in a small universe.

The member waits for at most one answer, so three handles are enough: that of the request in flight, that of the next
one, and an older one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from fencepost.model.classic.core.state import (
    CommitAnswer,
    CommitRequest,
    HeartbeatAnswer,
    HeartbeatRequest,
    JoinAnswer,
    MemberView,
    SyncAnswer,
)
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import NO_GENERATION, Member, MemberSettings, MemberStep, Parts
from fencepost.model.errors import Error
from fencepost.model.explore.tours import Machine, Reaction
from fencepost.model.logic import Token

NONE, CURRENT, OLD, NEXT = 0, 1, 2, 3
"""No handle; that of the request in flight, of an earlier one, of the one that is sent next."""
SPOKEN = ("join", "rejoin", "disconnect", "heartbeat", "commit", "commit-nothing", "leave", "restart")
"""What a member does by itself, or what is done to it."""
JOIN_ERRORS = (Error.MEMBER_ID_REQUIRED, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.NOT_COORDINATOR)
SYNC_ERRORS = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS)
OTHER_ERRORS = (Error.NONE, *SYNC_ERRORS, Error.FENCED_INSTANCE_ID)
TYPE, NAME = "consumer", "range"


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that the member does ("join", ...), or an answer to a request of its: with its handle, error,
    generation, member id and leader, and the partitions that are assigned.

    A leader plans: `plan` says who gets each partition (0: nobody), `claims` whether the other member has them all.
    """

    kind: str
    handle: int = NONE
    error: Error = Error.NONE
    generation: int = NO_GENERATION
    member: int = 0
    leader: int = 0
    parts: Parts | None = None
    plan: tuple[int, ...] = ()
    claims: bool = False
    skips: bool = False


def member_machine(settings: MemberSettings, partitions: int = 1, generations: int = 2) -> Machine[Member, Happening]:
    """A member with ids 1 and 2 to be had, in a group of so many partitions and generations."""
    happenings = tuple(universe(partitions, range(1, generations + 1)))
    return Machine(members.started(settings, partitions), happenings, follow, follow)


def universe(partitions: int, generations: range) -> Iterator[Happening]:
    """Everything that can happen."""
    for kind in SPOKEN:
        yield Happening(kind)
    for handle, member in product((CURRENT, OLD), (1, 2)):
        for error in JOIN_ERRORS:
            yield Happening("join-answer", handle, error, member=member)
        for generation in generations:
            yield from joined(partitions, handle, generation, member)
    for handle, kind in product((CURRENT, OLD, NONE), ("sync-answer", "sync-answer-quietly")):
        for error in SYNC_ERRORS:
            yield Happening(kind, handle, error)
        for parts in (None, *product((False, True), repeat=partitions)):
            yield Happening(kind, handle, parts=parts)
    yield Happening("join-answer", NONE, Error.NONE, 1, 1, 2)
    kinds = ("heartbeat-answer", "commit-answer")
    for kind, error, generation, member in product(kinds, OTHER_ERRORS, (NO_GENERATION, *generations), (0, 1, 2)):
        if error != Error.NONE or member == 1:
            yield Happening(kind, NONE, error, generation, member)


def joined(partitions: int, handle: int, generation: int, member: int) -> Iterator[Happening]:
    """JoinGroup was answered: to a follower, to a leader that plans, to one that need not."""
    yield Happening("join-answer", handle, Error.NONE, generation, member, 3 - member)
    for plan, claims in product(product((0, 1, 2), repeat=partitions), (False, True)):
        yield Happening("join-answer", handle, Error.NONE, generation, member, member, None, plan, claims)
    plan = (member,) * partitions
    yield Happening("join-answer", handle, Error.NONE, generation, member, member, None, plan, skips=True)


def follow(member: Member, what: Happening, _: int = 0) -> Reaction[Member]:
    """What the member makes of it; its next request is then the one in flight."""
    step = stepped(member, what)
    waiting = CURRENT if step.member.waiting == NEXT else step.member.waiting
    after = step.member if waiting == step.member.waiting else replace(step.member, waiting=waiting)
    return Reaction(after, step.rule, answers=tuple(sent.request for sent in step.sent if sent.when))


def stepped(member: Member, what: Happening) -> MemberStep:
    """One step of the shipped core."""
    match what.kind:
        case "join":
            return members.join(member, NEXT)
        case "rejoin":
            return members.ask_rejoin(member)
        case "disconnect":
            return members.disconnect(member)
        case "heartbeat":
            return members.heartbeat(member, NEXT)
        case "commit" | "commit-nothing":
            return members.commit(member, NEXT, tuple(what.kind == "commit" for _ in member.owned))
        case "leave":
            return members.leave(member, NEXT)
        case "restart":
            return members.restart(member)
        case "join-answer":
            plan = tuple(one or None for one in what.plan)
            return members.on_join_answer(member, what.handle, join_answer(what), NEXT, plan)
        case "sync-answer" | "sync-answer-quietly":
            answer = SyncAnswer(what.error, TYPE, NAME, what.parts)
            return members.on_sync_answer(member, what.handle, answer, NEXT if what.kind == "sync-answer" else NONE)
        case "heartbeat-answer":
            beat = HeartbeatRequest(OLD, what.member or None, member.settings.instance, what.generation)
            return members.on_heartbeat_answer(member, beat, HeartbeatAnswer(what.error))
        case _:
            asked = CommitRequest(OLD, what.member or None, member.settings.instance, what.generation)
            return members.on_commit_answer(member, asked, CommitAnswer(what.error))


def join_answer(what: Happening) -> JoinAnswer:
    """JoinGroup's answer; a leader is told of two members and a free slot."""
    if what.error != Error.NONE:
        return JoinAnswer(what.error, member=what.member)
    claimed = tuple(what.claims for _ in what.plan)
    other = 3 - what.member
    told: tuple[tuple[Token, Token], ...] = ((what.member, None), (other, claimed), (None, None))
    views = tuple(MemberView(one, None, claims) for one, claims in told) if what.leader == what.member else ()
    return JoinAnswer(what.error, what.generation, TYPE, NAME, what.leader, what.member, views, what.skips)
