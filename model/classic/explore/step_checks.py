"""The theorems about steps, checked of every step of the coordinator in a search, and the witnesses in each step.

A statement of the form "if this then that" holds of a step without "this" and says nothing there. So each has a
witness: a step or a state in which it says something. A search that meets none of them has shown nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

from fencepost.model.classic.core.join import join
from fencepost.model.classic.core.member_table import is_member, with_slot
from fencepost.model.classic.core.state import (
    FREE,
    Choices,
    CommitResponse,
    Context,
    CoreResponse,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    NoResponse,
    Phase,
    Protocol,
    Slot,
    Step,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.core.sync import sync
from fencepost.model.classic.core.timers import expire_member
from fencepost.model.classic.explore.state_layout import CoordinatorState
from fencepost.model.classic.member import member as members
from fencepost.model.classic.member.member import Member, MemberRequest, MemberStep, PartitionCommit
from fencepost.model.classic.theorems import registry
from fencepost.model.classic.theorems.ghost_state import CommitAccepted, has_member
from fencepost.model.classic.theorems.member_statements import (
    MEMBER_THEOREMS,
    HeardResponse,
    MemberAction,
    MemberChange,
    is_in_time,
)
from fencepost.model.classic.theorems.phase_statements import (
    holds_id,
    is_waiting,
    refusals_name_members,
    size_is_limited,
    who_waits_stays,
)
from fencepost.model.classic.theorems.request_statements import STEP_THEOREMS, is_refused, sync_names_protocol
from fencepost.model.classic.theorems.step_statements import (
    CoordinatorStep,
    TimerExpiry,
    TimerKind,
    begins_generation,
    is_about,
    no_commit_before_assignment,
)
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.sorts import HandleNumber, ProtocolName, numbered_id
from fencepost.model.statement import Statement

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


def has_error(step: Step | CoordinatorStep, kind: type[CoreResponse], error: Error) -> bool:
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
    return not holds_id(step.before, request.member)


def removes_member(step: CoordinatorStep) -> bool:
    """A LeaveGroup takes a member out."""
    return isinstance(step.input, LeaveRequest) and loses_member(step)


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


def joins_nobody(step: CoordinatorStep) -> bool:
    """A member joins a group that has none."""
    joins = isinstance(step.input, JoinRequest) and any(is_member(slot) for slot in step.after.slots)
    return joins and not any(is_member(slot) for slot in step.before.slots)


def fires_with_effect(step: CoordinatorStep, kind: TimerKind) -> bool:
    """A timer of this kind changes the group."""
    return isinstance(step.input, TimerExpiry) and step.input.kind is kind and step.after is not step.before


def ends_generation(step: CoordinatorStep) -> bool:
    """A generation that had its members ends."""
    settled = (Phase.COMPLETING, Phase.STABLE)
    return step.before.phase in settled and step.after.phase not in settled


def loses_member(step: CoordinatorStep) -> bool:
    """A member goes."""
    return any(is_member(slot) and not has_member(step.after, slot.id) for slot in step.before.slots)


WITNESSES: Mapping[str, Callable[[CoordinatorStep], bool]] = {
    registry.ONE_LEADER.search_name: tells_of_generation,
    registry.NO_FOREIGN_COMMIT.search_name: accepts_commit,
    "T2-awaited": accepts_commit,
    "T8": hands_out_assignment,
    "T9": lambda step: isinstance(step.input, TimerExpiry) and step.after is not step.before,
    "T10": ends_join_phase_early,
    "T11": begins_with_others,
    "T12": lambda step: begins_generation(step) and any(slot.join != 0 for slot in step.before.slots),
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
    "T32": lambda step: step.before.phase != Phase.EMPTY == step.after.phase,
    "T33": lambda step: any(slot.holder != Holder.NOBODY for slot in step.after.slots),
    "T34": lambda step: any(output.when for output in step.outputs),
    "T35": lambda step: any(is_member(slot) and slot.unsynced for slot in step.before.slots),
    "T36": ends_join_phase_early,
    "T37": is_sync_in_generation,
    "T38": begins_generation,
    "T39": lambda step: isinstance(step.input, JoinRequest) and step.input.member is None and step.input.requires_id,
    "T40": joins_nobody,
    "T52": lambda step: not isinstance(step.input, TimerExpiry),
    "T53": lambda step: fires_with_effect(step, TimerKind.MEMBER),
    "T54": lambda step: fires_with_effect(step, TimerKind.JOIN),
    "T55": is_sync_timer_with_effect,
    "T56": lambda step: step.after.join_armed and not step.before.join_armed,
    "T57": ends_generation,
    "T58": loses_member,
}
"""By the name of a property: the steps of which it says something."""


# --- The theorems about members, checked of every step of a member in a search, and the witnesses in each step.

LOST_MEMBERSHIP = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION)


def judge_member_step(before: Member, cause: MemberAction | HeardResponse, step: MemberStep) -> StepFindings:
    """Check the theorems of a step of a member."""
    change = MemberChange(before, cause, step.member, step.sent_requests)
    violated = next((one.id for one in MEMBER_THEOREMS if not one.holds(change)), "")
    return StepFindings(violated, tuple(name for name, shows in MEMBER_WITNESSES.items() if shows(change)))


def probe_member(member: Member) -> StepFindings:
    """What the theorems say of steps that a search does without, each tried for its own sake.

    It clears a response that comes too late, lets everybody join at any moment, who lost a request or not, and may have
    nobody to begin a rebalance.
    """
    quiet = evolve(member, rejoins=False)
    found = judge_member_step(quiet, MemberAction.DISCONNECT, members.disconnect(quiet))
    earlier = HeartbeatRequest(0, member.id, member.settings.instance, member.generation - 1)
    unknown = HeartbeatResponse(Error.UNKNOWN_MEMBER_ID)
    heard = members.on_heartbeat_response(member, earlier, unknown)
    found += judge_member_step(member, HeardResponse(unknown, earlier), heard)
    current = evolve(earlier, generation=member.generation)
    rebalance = HeartbeatResponse(Error.REBALANCE_IN_PROGRESS)
    told = members.on_heartbeat_response(member, current, rebalance)
    found += judge_member_step(member, HeardResponse(rebalance, current), told)
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


def hears_in_time(change: MemberChange, kind: type[CoreResponse], error: Error) -> bool:
    """The member waits for a response of this kind, and it says this."""
    heard = change.input
    if not isinstance(heard, HeardResponse) or not isinstance(heard.response, kind):
        return False
    return heard.response.error == error and bool(is_in_time(change.before, heard))


def hears_of_rebalance(change: MemberChange) -> bool:
    """A stable member is told that a rebalance is under way."""
    told = hears_in_time(change, HeartbeatResponse, Error.REBALANCE_IN_PROGRESS)
    return told and change.before.state == members.MemberState.STABLE


def joins(change: MemberChange) -> bool:
    """A JoinGroup is sent."""
    return change.input is MemberAction.JOIN and any(one.when for one in change.sent)


def plans(change: MemberChange) -> bool:
    """A leader gives a partition to somebody."""
    requests = [one.request for one in change.sent if isinstance(one.request, SyncRequest)]
    return any(given is not None and any(given) for request in requests for _, given in request.assignments)


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
    "T45": lambda change: any(one.when and isinstance(one.request, LeaveRequest) for one in change.sent),
    "T46": commits,
    "T47": loses_request,
    "T48": lambda change: hears_in_time(change, JoinResponse, Error.NONE),
    "T49": hears_of_rebalance,
    "T50": lambda change: hears_in_time(change, SyncResponse, Error.NONE),
    "T51": joins,
    "T59": joins,
    "T60": plans,
}
"""By the name of a property: the steps of which it says something."""

# --- What no member of a search sends, asked of each state of the coordinator: a request for its own sake.
#
# Nothing comes of a probe but what is said of it: the search goes on as if it had not been sent.

HANDLE = HandleNumber(1_000_000)
"""No request of a search has it."""
OTHER = ProtocolName("other")
MOMENT = Context(now=0)
LIMIT = 1
"""The size of group that a JoinGroup is probed with."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A statement about steps, with what is tried in each state of the coordinator because of it."""

    steps: Callable[[CoordinatorState], Iterator[CoordinatorStep]]
    shows: Callable[[CoordinatorStep], bool]
    """The statement says something of the step."""
    statement: Statement
    sentence: str
    """What is tried."""

    def is_kept(self, coordinator: CoordinatorState) -> bool:
        """The statement holds of each step that the probe makes."""
        return all(self.statement.holds(step) for step in self.steps(coordinator))

    def is_shown(self, coordinator: CoordinatorState) -> bool:
        """Whether the statement says something of a step that the probe brings about."""
        return any(map(self.shows, self.steps(coordinator)))


def syncs_by_other_protocol(coordinator: CoordinatorState) -> Iterator[CoordinatorStep]:
    """Each member's SyncGroup for the present generation, that names another protocol."""
    group = coordinator.group
    for slot in members_of(group):
        request = SyncRequest(HANDLE, slot.id, slot.instance, group.generation, group.protocol_type, OTHER, ())
        step = sync(group, request, MOMENT)
        yield CoordinatorStep(group, request, MOMENT, step.group, step.outputs)


def probe_joins(
    coordinator: CoordinatorState,
    limit: int = MOMENT.max_group_size,
    offers: Callable[[Slot], tuple[Protocol, ...]] = lambda slot: slot.protocols,
) -> Iterator[CoordinatorStep]:
    """JoinGroup of each member, and of one newcomer without an id and one with an unknown id, with the protocols that
    `offers` has for the slot, where so many may be members; the newcomers offer what the first member does."""
    group = evolve(coordinator.group, slots=(*coordinator.group.slots, FREE))
    members = members_of(group)
    fresh, unknown = (numbered_id(coordinator.last_id + place) for place in (1, 2))
    moment = evolve(MOMENT, choices=Choices(fresh), max_group_size=limit)
    newcomers = (evolve(one, id=given, instance=None) for one in members[:1] for given in (None, unknown))
    for slot in (*members, *newcomers):
        request = JoinRequest(
            HANDLE, slot.id, slot.instance, group.protocol_type, offers(slot), 0, 0, requires_id=False, can_skip=True
        )
        step = join(group, request, moment)
        yield CoordinatorStep(group, request, moment, step.group, step.outputs)


def members_of(group: Group) -> tuple[Slot, ...]:
    """The slots with members."""
    return tuple(slot for slot in group.slots if is_member(slot))


def timers_of_waiting(coordinator: CoordinatorState) -> Iterator[CoordinatorStep]:
    """The timer of each member that waits, as if it ran out now."""
    for index, slot in enumerate(coordinator.group.slots):
        if is_waiting(slot):
            group = with_slot(coordinator.group, index, evolve(slot, armed=True))
            step = expire_member(group, index, MOMENT)
            timer = TimerExpiry(TimerKind.MEMBER, index)
            yield CoordinatorStep(group, timer, MOMENT, step.group, step.outputs)


def is_refused_with(error: Error) -> Callable[[CoordinatorStep], bool]:
    """A JoinGroup is refused with this error."""
    return lambda step: has_error(step, JoinResponse, error)


PROBES: Mapping[str, Probe] = {
    "T23": Probe(
        syncs_by_other_protocol,
        lambda step: step.before.protocol is not None,
        sync_names_protocol,
        "a SyncGroup of each member by another protocol",
    ),
    "T28": Probe(
        timers_of_waiting,
        lambda step: isinstance(step.input, TimerExpiry),
        who_waits_stays,
        "the timer of each member that waits",
    ),
    "T41": Probe(
        partial(probe_joins, limit=LIMIT),
        is_refused_with(Error.GROUP_MAX_SIZE_REACHED),
        size_is_limited,
        "a JoinGroup of each member and of a newcomer where one member may be in the group",
    ),
    "T42": Probe(
        partial(probe_joins, offers=lambda _: (Protocol(OTHER, None),)),
        is_refused_with(Error.INCONSISTENT_GROUP_PROTOCOL),
        refusals_name_members,
        "a JoinGroup of each member and of a newcomer by another protocol",
    ),
}
"""By the name of a property: the probes by which a search gets to see what it speaks of.

The members of a search offer one protocol, nothing limits its group, and it does without the timers of those who wait.
"""
