"""The theorems about what becomes of requests and timers in single steps: nothing is lost, time is given whole."""

from collections.abc import Mapping

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import (
    CommitResponse,
    CoreResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    Holder,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    NoResponse,
    Phase,
    Slot,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.theorems.duty_statements import DUTY_THEOREMS
from fencepost.model.classic.theorems.member_statements import MEMBER_THEOREMS
from fencepost.model.classic.theorems.phase_statements import ADMISSION_THEOREMS, PHASE_THEOREMS, RECORD_THEOREMS
from fencepost.model.classic.theorems.step_statements import (
    GENERATION_THEOREMS,
    CoordinatorStep,
    TimerExpiry,
    begins_generation,
    is_about,
    joins_or_goes,
)
from fencepost.model.errors import Error
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.logic import Truth, absent, all_, and_, any_, not_, or_
from fencepost.model.sorts import Handle
from fencepost.model.statement import are_equal, implies, statement

REFUSED = (
    Error.UNKNOWN_MEMBER_ID,
    Error.FENCED_INSTANCE_ID,
    Error.ILLEGAL_GENERATION,
    Error.INCONSISTENT_GROUP_PROTOCOL,
)
"""The errors by which the core refuses a request and does nothing else."""


RESPONSES: Mapping[type, type[CoreResponse]] = {
    JoinRequest: JoinResponse,
    SyncRequest: SyncResponse,
    HeartbeatRequest: HeartbeatResponse,
    CommitRequest: CommitResponse,
    LeaveRequest: LeaveResponse,
}
"""The kind of response to each kind of request."""


@statement(
    "T19",
    "A request is answered, or a JoinGroup or SyncGroup waits until it is answered; it is let go if its member asks"
    " again or goes.",
)
def requests_are_kept(step: CoordinatorStep) -> Truth:
    """No JoinGroup and no SyncGroup is forgotten."""
    waiting = (
        or_(slot.holder == Holder.NOBODY, handle == 0, is_kept(step, handle, kind, ends_waiting(step, kind, index)))
        for index, slot in enumerate(step.before.slots)
        for handle, kind in ((slot.join, JoinRequest), (slot.sync, SyncRequest))
    )
    request = step.input
    if isinstance(request, TimerExpiry):
        return and_(*waiting)
    # The parts of which a LeaveGroup of several entries is made have the handle 0.
    mine = request.handle == 0 if isinstance(request, LeaveRequest) else False
    return and_(or_(mine, is_kept(step, request.handle, type(request), goes=False)), *waiting)


def ends_waiting(step: CoordinatorStep, kind: type, index: int) -> Truth:
    """The member of the slot goes, or joins again, or sends such a request again."""
    slot, asks = step.before.slots[index], isinstance(step.input, kind)
    return is_about(step.input, index, slot) if asks else joins_or_goes(step.input, index, slot)


def is_kept(step: CoordinatorStep, handle: Handle, kind: type, goes: Truth) -> Truth:
    """After the step the request waits in a slot, or the step answers it; or lets it go, where its member goes."""
    waits = {JoinRequest: "join", SyncRequest: "sync"}.get(kind)
    kept = () if waits is None else (getattr(slot, waits) == handle for slot in step.after.slots)
    answered = (
        and_(output.when, output.handle == handle, True if isinstance(output.response, RESPONSES[kind]) else goes)
        for output in step.outputs
        if isinstance(output.response, RESPONSES[kind] | NoResponse)
    )
    return or_(*kept, *answered)


@statement("T20", "A session that begins or is extended lasts a whole session timeout.")
def sessions_are_whole(step: CoordinatorStep) -> Truth:
    """Nobody is expelled early. How long a first JoinGroup may wait is another limit."""
    return and_(
        *(
            implies(and_(new.holder != Holder.NOBODY, new.armed, not_(new.is_new)), has_whole_session(step, old, new))
            for old, new in zip(step.before.slots, step.after.slots, strict=False)
        )
    )


def has_whole_session(step: CoordinatorStep, old: Slot, new: Slot) -> Truth:
    """The session goes on, or begins now with the timeout of the member, of its predecessor, or of who asked for an
    id."""
    of_newcomer = isinstance(step.input, JoinRequest) and new.deadline == step.now + step.input.session_timeout
    return or_(
        and_(old.armed, old.id == new.id, new.deadline == old.deadline),
        new.deadline == step.now + new.session_timeout,
        new.deadline == step.now + old.session_timeout,
        of_newcomer,
    )


@statement("T21", "A phase gives each member its rebalance timeout; only an initial delay may be shorter.")
def phases_are_whole(step: CoordinatorStep) -> Truth:
    """Who is slow is waited for."""
    before, after = step.before, step.after
    runs = and_(after.phase == Phase.PREPARING, after.join_armed)
    goes_on = and_(before.phase == Phase.PREPARING, before.join_armed, after.join_deadline == before.join_deadline)
    delays = and_(
        after.initial,
        or_(and_(before.phase == Phase.PREPARING, before.initial), not_(after.join_deadline < step.now)),
    )
    members = tuple((is_member(slot), step.now + slot.rebalance_timeout) for slot in after.slots)
    join_phase = and_(*(implies(member, not_(after.join_deadline < end)) for member, end in members))
    sync_phase = and_(*(implies(member, not_(after.sync_deadline < end)) for member, end in members))
    return and_(implies(runs, or_(goes_on, join_phase, delays)), implies(begins_generation(step), sync_phase))


@statement("T22", "No JoinGroup brings in an id that the coordinator did not issue.")
def ids_are_issued(step: CoordinatorStep) -> Truth:
    """Members do not choose their ids."""
    request = step.input
    if not isinstance(request, JoinRequest):
        return True
    return or_(
        absent(request.member),
        any_(has_id(slot, request.member) for slot in step.before.slots),
        and_(*(not_(has_id(slot, request.member)) for slot in step.after.slots)),
    )


def has_id(slot: Slot, member: object) -> Truth:
    """The slot is that of the id, issued or joined."""
    return and_(slot.holder != Holder.NOBODY, slot.id == member)


@statement("T23", "A SyncGroup that names another protocol gets no assignment.")
def sync_names_protocol(step: CoordinatorStep) -> Truth:
    """An assignment is read by the protocol that made it."""
    request, before = step.input, step.before
    if not isinstance(request, SyncRequest):
        return True
    other_name = and_(not_(absent(request.protocol)), request.protocol != before.protocol)
    other_type = and_(not_(absent(request.protocol_type)), request.protocol_type != before.protocol_type)
    return implies(
        or_(other_name, other_type),
        all_(
            implies(and_(output.when, output.handle == request.handle), output.response.error != Error.NONE)
            for output in step.outputs
            if isinstance(output.response, SyncResponse)
        ),
    )


@statement("T24", "A Heartbeat or a commit that is accepted gives its member a whole session.")
def requests_extend_sessions(step: CoordinatorStep) -> Truth:
    """Who is heard of is alive."""
    request = step.input
    if not isinstance(request, HeartbeatRequest | CommitRequest):
        return True
    accepted = any_(
        and_(output.when, output.handle == request.handle, output.response.error == Error.NONE)
        for output in step.outputs
        if not isinstance(output.response, NoResponse)
    )
    return and_(
        *(
            implies(
                and_(accepted, not_(absent(request.member)), is_member(slot), slot.id == request.member),
                and_(slot.armed, slot.deadline == step.now + slot.session_timeout),
            )
            for slot in step.after.slots
        )
    )


@statement("T25", "A request that is refused changes nothing of the group.")
def refusals_change_nothing(step: CoordinatorStep) -> Truth:
    """Strangers and zombies do no harm. A full group and a request for an id are no refusals of this kind."""
    return implies(is_refused(step), are_equal(step.before, step.after))


def is_refused(step: CoordinatorStep) -> Truth:
    """The request is answered with nothing but an error."""
    request = step.input
    if isinstance(request, TimerExpiry):
        return False
    if isinstance(request, LeaveRequest):
        given = [output.response for output in step.outputs if isinstance(output.response, LeaveResponse)]
        errors = [error for response in given for error in response.entries]
        return and_(len(errors) > 0, *(error != Error.NONE for error in errors))
    refused = any_(
        and_(output.when, output.handle == request.handle, any_(output.response.error == error for error in REFUSED))
        for output in step.outputs
        if not isinstance(output.response, NoResponse | LeaveResponse)
    )
    # The handle of a request that waits already tells nothing of this one.
    waiting = (handle for slot in step.before.slots for handle in (slot.join, slot.sync))
    return and_(refused, *(handle != request.handle for handle in waiting))


REQUEST_THEOREMS = (
    requests_are_kept,
    sessions_are_whole,
    phases_are_whole,
    ids_are_issued,
    sync_names_protocol,
    requests_extend_sessions,
    refusals_change_nothing,
)
STEP_THEOREMS = (
    *GENERATION_THEOREMS,
    *REQUEST_THEOREMS,
    *RECORD_THEOREMS,
    *PHASE_THEOREMS,
    *ADMISSION_THEOREMS,
    *MEMBER_THEOREMS,
    *DUTY_THEOREMS,
)
"""All theorems about single steps."""
