"""The member as a machine for tours: the shipped core under everything that can happen to it in a small universe.

The member waits for at most one answer, so two handles are enough: that of the request in flight, and an older one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from fencepost.model.core import member as members
from fencepost.model.core.member import NO_GENERATION, Member, MemberSettings, MemberStep, Parts
from fencepost.model.core.values import (
    CommitAnswer,
    CommitRequest,
    HeartbeatAnswer,
    HeartbeatRequest,
    JoinAnswer,
    MemberView,
    SyncAnswer,
)
from fencepost.model.errors import Error
from fencepost.model.explore.tours import Machine, Reaction

CURRENT, OLD = 1, 2
"""The handle of the request in flight, and that of an earlier one."""
SPOKEN = ("join", "rejoin", "disconnect", "heartbeat", "commit", "leave", "restart")
"""What a member does by itself, or what is done to it."""
JOIN_ERRORS = (Error.MEMBER_ID_REQUIRED, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.NOT_COORDINATOR)
SYNC_ERRORS = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS)
OTHER_ERRORS = (Error.NONE, *SYNC_ERRORS, Error.FENCED_INSTANCE_ID)


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that the member does ("join", ...), or an answer to a request of its: with an older handle or the
    current one, error, generation, member id, leader, and the partitions that the answer or the plan is about."""

    kind: str
    handle: int = 0
    error: Error = Error.NONE
    generation: int = NO_GENERATION
    member: int = 0
    leader: int = 0
    parts: Parts = ()


def member_machine(settings: MemberSettings, partitions: int = 1, generations: int = 2) -> Machine[Member, Happening]:
    """A member with ids 1 and 2 to be had, in a group of so many partitions and generations."""
    happenings = tuple(universe(partitions, range(1, generations + 1)))
    return Machine(members.started(settings, partitions), happenings, react)


def universe(partitions: int, generations: range) -> Iterator[Happening]:
    """Everything that can happen."""
    all_parts = list(product((False, True), repeat=partitions))
    ids = (1, 2)
    for kind in SPOKEN:
        yield Happening(kind)
    for handle, member in product((CURRENT, OLD), ids):
        for error in JOIN_ERRORS:
            yield Happening("join-answer", handle, error, member=member)
        for generation, leader, parts in product(generations, ids, all_parts):
            if leader == member or not any(parts):
                yield Happening("join-answer", handle, Error.NONE, generation, member, leader, parts)
    for handle in (CURRENT, OLD):
        for error in SYNC_ERRORS:
            yield Happening("sync-answer", handle, error)
        for parts in all_parts:
            yield Happening("sync-answer", handle, parts=parts)
    for kind, error, generation, member in product(
        ("heartbeat-answer", "commit-answer"), OTHER_ERRORS, generations, ids
    ):
        yield Happening(kind, error=error, generation=generation, member=member)


def react(member: Member, what: Happening) -> Reaction[Member]:
    """What the member makes of it."""
    step = stepped(member, what)
    waiting = CURRENT if step.member.waiting else 0
    return Reaction(replace(step.member, waiting=waiting), step.rule)


def stepped(member: Member, what: Happening) -> MemberStep:
    """One step of the shipped core."""
    everything = tuple(True for _ in member.owned)
    match what.kind:
        case "join":
            return members.join(member, CURRENT)
        case "rejoin":
            return members.ask_rejoin(member)
        case "disconnect":
            return members.disconnect(member)
        case "heartbeat":
            return members.heartbeat(member, CURRENT)
        case "commit":
            return members.commit(member, CURRENT, everything)
        case "leave":
            return members.leave(member, CURRENT)
        case "restart":
            return members.restart(member)
        case "join-answer":
            plan = tuple(what.member if part else None for part in what.parts)
            return members.on_join_answer(member, what.handle, join_answer(what), CURRENT, plan)
        case "sync-answer":
            answer = SyncAnswer(what.error, "consumer", "range", what.parts or None)
            return members.on_sync_answer(member, what.handle, answer, CURRENT)
        case "heartbeat-answer":
            beat = HeartbeatRequest(CURRENT, what.member, member.settings.instance, what.generation)
            return members.on_heartbeat_answer(member, beat, HeartbeatAnswer(what.error))
        case _:
            asked = CommitRequest(CURRENT, what.member, member.settings.instance, what.generation)
            return members.on_commit_answer(member, asked, CommitAnswer(what.error))


def join_answer(what: Happening) -> JoinAnswer:
    """JoinGroup's answer; a leader is told of two members, of whom the other claims nothing."""
    if what.error != Error.NONE:
        return JoinAnswer(what.error, member=what.member)
    nothing = tuple(False for _ in what.parts)
    views = tuple(MemberView(one, None, nothing) for one in (1, 2)) if what.leader == what.member else ()
    return JoinAnswer(what.error, what.generation, "consumer", "range", what.leader, what.member, views)
