"""The theorems about JoinGroup: who is let in, who leads then, and what those are told that are not."""

from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import JoinRequest, JoinResponse, Phase
from fencepost.model.classic.theorems.ghost_state import has_member
from fencepost.model.classic.theorems.phase_statements import is_refusal_for_size
from fencepost.model.classic.theorems.record_statements import holds_id
from fencepost.model.classic.theorems.step_statements import CoordinatorStep
from fencepost.model.errors import Error
from fencepost.model.logic import Truth, absent, all_, and_, any_, count, not_, or_
from fencepost.model.statement import implies, statement


@statement("T39", "A dynamic member whose version asks for an id is let in under an id that it was told before.")
def ids_come_first(step: CoordinatorStep) -> Truth:
    """A client that gives up before the response leaves no member behind (KIP-394)."""
    request = step.input
    if not isinstance(request, JoinRequest):
        return True
    asks = and_(absent(request.member), absent(request.instance), request.requires_id)
    return implies(asks, has_no_newcomer(step))


def has_no_newcomer(step: CoordinatorStep) -> Truth:
    """Whoever is a member after the step was one before it."""
    return all_(implies(is_member(slot), has_member(step.before, slot.id)) for slot in step.after.slots)


@statement("T40", "Who joins a group without members leads it.")
def first_member_leads(step: CoordinatorStep) -> Truth:
    """Until it misses a join phase (T14). A leader that is gone is followed by any member (LAT-02)."""
    if not isinstance(step.input, JoinRequest):
        return True
    before = step.before
    alone = not_(any_(is_member(slot) for slot in before.slots))
    leaderless = and_(alone, absent(before.leader), not_(before.leader_open))
    return implies(
        leaderless, all_(implies(is_member(slot), slot.id == step.after.leader) for slot in step.after.slots)
    )


@statement("T41", "JoinGroup is refused for the group's size if the group is full, and only then; its sender is out.")
def size_is_limited(step: CoordinatorStep) -> Truth:
    """In a join phase those are counted that have joined (KIP-389). A static member that returns may be let in."""
    request = step.input
    if not isinstance(request, JoinRequest):
        return True
    full, refused = is_full(step, request), any_(is_refusal_for_size(step, output) for output in step.outputs)
    return and_(
        implies(refused, and_(full, or_(absent(request.member), not_(holds_id(step.after, request.member))))),
        implies(full, or_(refused, is_return(step, request))),
    )


def is_full(step: CoordinatorStep, request: JoinRequest) -> Truth:
    """There is no room for the sender beside the others."""
    group = step.before
    joins = group.phase == Phase.PREPARING
    counted = tuple(and_(is_member(slot), or_(not_(joins), slot.join != 0)) for slot in group.slots)
    inside = any_(
        and_(there, not_(absent(request.member)), slot.id == request.member)
        for there, slot in zip(counted, group.slots, strict=True)
    )
    return and_(group.phase != Phase.EMPTY, not_(inside), count(counted) >= step.max_group_size)


def is_return(step: CoordinatorStep, request: JoinRequest) -> Truth:
    """A static member comes back without its id."""
    held = any_(and_(is_member(slot), slot.instance == request.instance) for slot in step.before.slots)
    return and_(absent(request.member), not_(absent(request.instance)), held)


@statement("T42", "A refusal for protocols tells a member its id, and others none.")
def refusals_name_members(step: CoordinatorStep) -> Truth:
    """No id is confirmed to whom it was not given."""
    request = step.input
    if not isinstance(request, JoinRequest):
        return True
    known = and_(not_(absent(request.member)), has_member(step.before, request.member))
    return all_(
        implies(
            and_(output.when, output.response.error == Error.INCONSISTENT_GROUP_PROTOCOL),
            or_(
                and_(known, output.response.member == request.member), and_(not_(known), absent(output.response.member))
            ),
        )
        for output in step.outputs
        if isinstance(output.response, JoinResponse)
    )


ADMISSION_THEOREMS = (ids_come_first, first_member_leads, size_is_limited, refusals_name_members)
