"""The theorems about what becomes of requests and timers in single steps: nothing is lost, time is given whole."""

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import (
    HeartbeatRequest,
    Holder,
    JoinRequest,
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
from fencepost.model.classic.theorems.phase_statements import (
    ADMISSION_THEOREMS,
    PHASE_THEOREMS,
    RECORD_THEOREMS,
    holds_id,
)
from fencepost.model.classic.theorems.step_statements import (
    GENERATION_THEOREMS,
    RESPONSES,
    CoordinatorStep,
    TimerExpiry,
    is_about,
    joins_or_goes,
    sync_timer_stays,
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
    Error.UNKNOWN_SERVER_ERROR,
)
"""The errors by which the core refuses a request and does nothing else; REBALANCE_IN_PROGRESS is another one, but for a
Heartbeat."""


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
    """The session goes on, or begins now with the timeout of the member, of the one that it replaces, or of who asked
    for an id."""
    asked = isinstance(step.input, JoinRequest) and new.deadline == step.now + step.input.session_timeout
    return or_(
        and_(old.armed, old.id == new.id, new.deadline == old.deadline),
        new.deadline == step.now + new.session_timeout,
        and_(is_member(old), old.id != new.id, new.deadline == step.now + old.session_timeout),
        and_(new.holder == Holder.PENDING, asked),
    )


@statement(
    "T21",
    "A phase gives each member that it begins with its rebalance timeout; only an initial delay may be shorter.",
)
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
    return and_(implies(runs, or_(goes_on, join_phase, delays)), or_(sync_timer_stays(step), sync_phase))


@statement("T22", "No JoinGroup brings in an id that the coordinator did not issue.")
def ids_are_issued(step: CoordinatorStep) -> Truth:
    """Members do not choose their ids."""
    request = step.input
    if not isinstance(request, JoinRequest):
        return True
    issued = step.moment.choices.member_id
    return all_(
        or_(
            slot.holder == Holder.NOBODY,
            holds_id(step.before, slot.id),
            and_(absent(request.member), slot.id == issued),
        )
        for slot in step.after.slots
    )


@statement("T23", "A SyncGroup that names another protocol gets no assignment.")
def sync_names_protocol(step: CoordinatorStep) -> Truth:
    """An assignment is read by the protocol that made it."""
    request, before = step.input, step.before
    if not isinstance(request, SyncRequest):
        return True
    other_name = and_(not_(absent(request.protocol)), request.protocol != before.protocol)
    other_type = and_(not_(absent(request.protocol_type)), request.protocol_type != before.protocol_type)
    waits = (
        and_(new.sync == request.handle, old.sync != request.handle)
        for old, new in zip(before.slots, step.after.slots, strict=False)
    )
    return implies(
        or_(other_name, other_type),
        and_(
            *(
                implies(and_(output.when, output.handle == request.handle), output.response.error != Error.NONE)
                for output in step.outputs
                if isinstance(output.response, SyncResponse)
            ),
            not_(any_(waits)),
        ),
    )


@statement(
    "T24",
    "A Heartbeat of a member for its generation, or a commit that is accepted, gives the member a whole session.",
)
def requests_extend_sessions(step: CoordinatorStep) -> Truth:
    """Who is heard of is alive, in a join phase too."""
    request = step.input
    if not isinstance(request, HeartbeatRequest | CommitRequest):
        return True
    told = (Error.NONE, Error.REBALANCE_IN_PROGRESS) if isinstance(request, HeartbeatRequest) else (Error.NONE,)
    accepted = any_(
        and_(output.when, output.handle == request.handle, any_(output.response.error == error for error in told))
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


@statement("T25", "A request that is refused for its ids, generation, protocols or phase changes nothing of the group.")
def refusals_change_nothing(step: CoordinatorStep) -> Truth:
    """Strangers and zombies do no harm. A Heartbeat that is told of a rebalance is not refused (T24)."""
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
    errors_of = REFUSED if isinstance(request, HeartbeatRequest) else (*REFUSED, Error.REBALANCE_IN_PROGRESS)
    refused = any_(
        and_(output.when, output.handle == request.handle, any_(output.response.error == error for error in errors_of))
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
