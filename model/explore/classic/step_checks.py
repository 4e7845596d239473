"""The theorems about steps, checked of every step of the coordinator in a search, and the witnesses in each step.

A statement of the form "if this then that" holds of a step without "this" and says nothing there. So each has a
witness: a step or a state in which it says something. A search that meets none of them has shown nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import (
    CommitResponse,
    CoreResponse,
    HeartbeatResponse,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    NoResponse,
    Phase,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.member.member import MemberRequest, PartitionCommit
from fencepost.model.classic.theorems import registry
from fencepost.model.classic.theorems.ghost_state import CommitAccepted, has_member
from fencepost.model.classic.theorems.request_statements import STEP_THEOREMS, has_id, is_refused
from fencepost.model.classic.theorems.step_statements import (
    CoordinatorStep,
    TimerExpiry,
    TimerKind,
    begins_generation,
    is_about,
    no_commit_before_assignment,
)
from fencepost.model.errors import Error

ABOUT_STEPS = tuple(one for one in STEP_THEOREMS if one.subjects == (CoordinatorStep,))
ABOUT_COMMITS = (no_commit_before_assignment,)
"""What is said of commits that members send: none of them is without a generation."""
STALE_COMMIT_REFUSED = "stale-commit-refused"


@dataclass(frozen=True, slots=True)
class StepFindings:
    """The theorem that a step breaks, empty for none, and the witnesses that the step is."""

    violated: str = ""
    shown: tuple[str, ...] = ()

    def __add__(self, other: "StepFindings") -> "StepFindings":
        """What was found in two steps that are one move."""
        return StepFindings(self.violated or other.violated, self.shown + other.shown)


NO_FINDINGS = StepFindings()


def judge_step(step: CoordinatorStep, request: MemberRequest | None) -> StepFindings:
    """Check the theorems of a step; `request` is what the member sent, None for a timer."""
    accepted = isinstance(request, PartitionCommit) and has_error(step, CommitResponse, Error.NONE)
    broken = [one.id for one in ABOUT_STEPS if not one.holds(step)]
    if accepted:
        acceptance = CommitAccepted(step.before, cast(PartitionCommit, request))
        broken += [one.id for one in ABOUT_COMMITS if not one.holds(acceptance)]
    shown = [name for name, witness in WITNESSES.items() if witness(step)]
    if isinstance(request, PartitionCommit) and is_stale(step, request):
        shown += [registry.NO_STALE_COMMIT.search_name, STALE_COMMIT_REFUSED]
    return StepFindings(next(iter(broken), ""), tuple(shown))


def has_error(step: CoordinatorStep, kind: type[CoreResponse], error: Error) -> bool:
    """The step has a response of this kind with this error."""
    given = [one.response for one in step.outputs if isinstance(one.response, kind)]
    return any(not isinstance(one, NoResponse) and one.error == error for one in given)


def is_stale(step: CoordinatorStep, commit: PartitionCommit) -> bool:
    """A commit of a member of the group under an older generation, which is refused."""
    request = commit.request
    older = 0 <= request.generation < step.before.generation
    return (
        older and has_member(step.before, request.member) and has_error(step, CommitResponse, Error.ILLEGAL_GENERATION)
    )


def accepts_commit(step: CoordinatorStep) -> bool:
    """A commit is accepted."""
    return has_error(step, CommitResponse, Error.NONE)


def tells_of_generation(step: CoordinatorStep) -> bool:
    """A member is told of a generation and its leader."""
    return has_error(step, JoinResponse, Error.NONE)


def hands_out_assignment(step: CoordinatorStep) -> bool:
    """A member is handed an assignment that names something."""
    responses = [one.response for one in step.outputs if isinstance(one.response, SyncResponse)]
    return any(one.assignment is not None and any(one.assignment) for one in responses)


def is_timer_with_effect(step: CoordinatorStep) -> bool:
    """A timer fires and changes something."""
    return isinstance(step.input, TimerExpiry) and step.after is not step.before


def is_sync_timer_with_effect(step: CoordinatorStep) -> bool:
    """The sync timer ends a generation, with somebody to remove."""
    fired = isinstance(step.input, TimerExpiry) and step.input.kind is TimerKind.SYNC
    late = any(is_member(slot) and slot.unsynced for slot in step.before.slots)
    return fired and late and step.after.phase != step.before.phase


def ends_join_phase_early(step: CoordinatorStep) -> bool:
    """A join phase ends without its timer."""
    fired = isinstance(step.input, TimerExpiry) and step.input.kind is TimerKind.JOIN
    return not fired and step.before.phase == Phase.PREPARING != step.after.phase


def begins_with_others(step: CoordinatorStep) -> bool:
    """A generation begins, and the input is not from each of its members."""
    slots = enumerate(step.before.slots)
    return begins_generation(step) and any(is_member(one) and not is_about(step.input, at, one) for at, one in slots)


def answers_parked_join(step: CoordinatorStep) -> bool:
    """A generation begins for a member that waited for it."""
    return begins_generation(step) and any(slot.join != 0 for slot in step.before.slots)


def keeps_leader(step: CoordinatorStep) -> bool:
    """A generation begins, and its leader led the one before."""
    led = step.before.leader is not None and has_member(step.before, step.before.leader)
    return begins_generation(step) and led and step.after.leader == step.before.leader


def tells_members(step: CoordinatorStep) -> bool:
    """A JoinGroup response carries the list of members."""
    responses = [one.response for one in step.outputs if isinstance(one.response, JoinResponse)]
    return any(view.id is not None for one in responses for view in one.members)


def begins_session(step: CoordinatorStep) -> bool:
    """A timer of a session starts."""
    pairs = zip(step.before.slots, step.after.slots, strict=False)
    return any(new.armed and not old.armed and not new.is_new for old, new in pairs)


def brings_unknown_id(step: CoordinatorStep) -> bool:
    """A JoinGroup has an id that the group does not know."""
    request = step.input
    if not isinstance(request, JoinRequest) or request.member is None:
        return False
    return not any(has_id(slot, request.member) for slot in step.before.slots)


def removes_member(step: CoordinatorStep) -> bool:
    """A LeaveGroup takes a member out."""
    left = isinstance(step.input, LeaveRequest)
    return left and any(is_member(one) and not has_member(step.after, one.id) for one in step.before.slots)


def becomes_empty(step: CoordinatorStep) -> bool:
    """The last member goes."""
    return step.before.phase != Phase.EMPTY == step.after.phase


def joins_anew(step: CoordinatorStep) -> bool:
    """A member that the group knows sends JoinGroup, and it is recorded."""
    request = step.input
    if not isinstance(request, JoinRequest) or not has_member(step.before, request.member):
        return False
    return any(slot.join == request.handle for slot in step.after.slots)


def is_sync_in_generation(step: CoordinatorStep) -> bool:
    """A member sends SyncGroup for its generation, while it has or awaits its assignment."""
    request, group = step.input, step.before
    if not isinstance(request, SyncRequest) or group.phase not in (Phase.COMPLETING, Phase.STABLE):
        return False
    return request.generation == group.generation and bool(has_member(group, request.member))


def asks_for_id(step: CoordinatorStep) -> bool:
    """A member without an id sends JoinGroup and is to be told one."""
    request = step.input
    return isinstance(request, JoinRequest) and request.member is None and request.requires_id


def joins_nobody(step: CoordinatorStep) -> bool:
    """A member joins a group that has none."""
    joins = isinstance(step.input, JoinRequest) and any(is_member(slot) for slot in step.after.slots)
    return joins and not any(is_member(slot) for slot in step.before.slots)


WITNESSES: Mapping[str, Callable[[CoordinatorStep], bool]] = {
    registry.ONE_LEADER.search_name: tells_of_generation,
    registry.NO_FOREIGN_COMMIT.search_name: accepts_commit,
    "T2-awaited": accepts_commit,
    "T8": hands_out_assignment,
    "T9": is_timer_with_effect,
    "T10": ends_join_phase_early,
    "T11": begins_with_others,
    "T12": answers_parked_join,
    "T13": is_sync_timer_with_effect,
    "T14": keeps_leader,
    "T15": lambda step: has_error(step, HeartbeatResponse, Error.NONE),
    "T16": tells_members,
    "T17": lambda step: step.after.generation > step.before.generation,
    "T19": lambda step: any(slot.join != 0 or slot.sync != 0 for slot in step.before.slots),
    "T20": begins_session,
    "T21": lambda step: step.after.join_armed and not step.before.join_armed,
    "T22": brings_unknown_id,
    "T24": accepts_commit,
    "T25": is_refused,
    "T26": joins_anew,
    "T27": lambda step: step.before.phase == Phase.EMPTY and step.after.phase == Phase.PREPARING,
    "T29": removes_member,
    "T30": begins_generation,
    "T31": tells_of_generation,
    "T32": becomes_empty,
    "T33": lambda step: any(slot.holder != Holder.NOBODY for slot in step.after.slots),
    "T34": lambda step: any(output.when for output in step.outputs),
    "T35": lambda step: any(is_member(slot) and slot.unsynced for slot in step.before.slots),
    "T36": ends_join_phase_early,
    "T37": is_sync_in_generation,
    "T38": begins_generation,
    "T39": asks_for_id,
    "T40": joins_nobody,
}
"""By the name of a property: the steps of which it says something."""
