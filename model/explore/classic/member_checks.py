"""The theorems about members, checked of every step of a member in a search, and the witnesses in each step."""

from collections.abc import Callable, Mapping

from fencepost.model.classic.core.state import HeartbeatRequest, HeartbeatResponse, JoinResponse, LeaveRequest
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberStep, PartitionCommit
from fencepost.model.classic.theorems.member_statements import (
    MEMBER_THEOREMS,
    HeardResponse,
    MemberAction,
    MemberChange,
    is_in_time,
)
from fencepost.model.errors import Error
from fencepost.model.explore.classic.step_checks import StepFindings
from fencepost.model.frozen import evolve
from fencepost.model.sorts import HandleNumber

LOST_MEMBERSHIP = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION)


def judge_member_step(before: Member, cause: MemberAction | HeardResponse, step: MemberStep) -> StepFindings:
    """Check the theorems of a step of a member."""
    change = MemberChange(before, cause, step.member, step.sent_requests)
    violated = next((one.id for one in MEMBER_THEOREMS if not one.holds(change)), "")
    return StepFindings(violated, tuple(name for name, shows in MEMBER_WITNESSES.items() if shows(change)))


def probe_member(member: Member) -> StepFindings:
    """What the theorems say of steps that a search does without, each tried for its own sake.

    It clears a response that comes too late, and lets everybody join at any moment, who lost a request or not.
    """
    quiet = evolve(member, rejoins=False)
    found = judge_member_step(quiet, MemberAction.DISCONNECT, members.disconnect(quiet))
    earlier = HeartbeatRequest(0, member.id, member.settings.instance, member.generation - 1)
    unknown = HeartbeatResponse(Error.UNKNOWN_MEMBER_ID)
    heard = members.on_heartbeat_response(member, earlier, unknown)
    found += judge_member_step(member, HeardResponse(unknown, earlier), heard)
    other, refused = HandleNumber(member.waiting + 1), JoinResponse(Error.UNKNOWN_MEMBER_ID)
    heard = members.on_join_response(member, other, refused, other, ())
    return found + judge_member_step(member, HeardResponse(refused, other), heard)


def hears_late(change: MemberChange) -> bool:
    """A response to an earlier request says that the membership is over."""
    heard = change.input
    if not isinstance(heard, HeardResponse) or is_in_time(change.before, heard):
        return False
    return heard.response.error in LOST_MEMBERSHIP


def hears_of_end(change: MemberChange) -> bool:
    """The member is told in time that its id or its generation is over."""
    heard = change.input
    if not isinstance(heard, HeardResponse) or not is_in_time(change.before, heard):
        return False
    return heard.response.error in LOST_MEMBERSHIP


def says_that_it_leaves(change: MemberChange) -> bool:
    """A LeaveGroup is sent."""
    return any(one.when and isinstance(one.request, LeaveRequest) for one in change.sent)


def commits(change: MemberChange) -> bool:
    """A commit is sent."""
    return any(one.when and isinstance(one.request, PartitionCommit) for one in change.sent)


def loses_request(change: MemberChange) -> bool:
    """A connection ends while the member waits, and nothing else has it join."""
    lost = change.input is MemberAction.DISCONNECT and change.before.waiting != 0
    return lost and not change.before.rejoins


MEMBER_WITNESSES: Mapping[str, Callable[[MemberChange], bool]] = {
    "T43": hears_late,
    "T44": hears_of_end,
    "T45": says_that_it_leaves,
    "T46": commits,
    "T47": loses_request,
}
"""By the name of a property: the steps of which it says something."""
