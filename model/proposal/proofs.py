"""The proof about the proposal of client-side assignment: its rules in the place of the core's, and its records."""

from collections.abc import Callable, Iterator
from typing import Any

from fencepost.model.classic.core.member_table import is_member, same_protocols
from fencepost.model.classic.core.state import Context, Group, JoinRequest, Phase, Step, SyncRequest
from fencepost.model.classic.proofs.dispatch_events import GroupLog, failover_events, with_log
from fencepost.model.classic.proofs.proof_events import (
    EventResult,
    ProofEvent,
    Situation,
    after_coordinator_step,
    any_context,
    symbolic,
)
from fencepost.model.classic.proofs.symbolic_history import GroupSymbols
from fencepost.model.classic.theorems.failover import ACROSS_FAILOVERS, FAILOVERS_WHATEVER_CLIENTS_SEND
from fencepost.model.classic.theorems.statements import WHATEVER_CLIENTS_SEND
from fencepost.model.errors import Error
from fencepost.model.logic import Truth, absent, and_, any_, or_
from fencepost.model.proofs.symbolic_values import formula, number_term
from fencepost.model.proofs.terms import Term
from fencepost.model.proposal.coordinator import (
    abort_synchronization,
    fail_assignment,
    group_record,
    load_record,
    reassign,
    writes_record,
)

WITH_CLIENTS = (
    frozenset(one.id for one in ACROSS_FAILOVERS if one not in WHATEVER_CLIENTS_SEND) - FAILOVERS_WHATEVER_CLIENTS_SEND
)
"""What rests on how clients behave. A leader that sends another assignment need not keep it."""


PROPOSED_LOG = GroupLog(writes_record, group_record, load_record)


def proposal_events(slots: int) -> Iterator[ProofEvent]:
    """Everything that can happen to the proposal's coordinator, log and members; its own rules come last, in all
    situations in which one of them applies."""
    yield from failover_events(slots, early=True, log=PROPOSED_LOG)
    for event in (
        proposal_event("join-aborts", abort_synchronization, JoinRequest, may_abort),
        proposal_event("sync-fails", fail_for_any_reason, SyncRequest, may_fail),
        proposal_event("sync-reassigns", reassign, SyncRequest, may_reassign, WITH_CLIENTS),
    ):
        yield with_log(event, True, PROPOSED_LOG)


def may_abort(group: Group, request: JoinRequest) -> Truth:
    """A member joins again as it is while the assignment is awaited."""
    return and_(
        group.phase == Phase.COMPLETING,
        any_(
            and_(
                is_member(slot),
                slot.id == request.member,
                or_(absent(request.instance), slot.instance == request.instance),
                same_protocols(slot, request.protocols),
            )
            for slot in group.slots
        ),
    )


def may_fail(group: Group, request: SyncRequest) -> Truth:
    """The leader's SyncGroup while the assignment is awaited."""
    return and_(group.phase == Phase.COMPLETING, is_from_leader(group, request))


def may_reassign(group: Group, request: SyncRequest) -> Truth:
    """The leader's SyncGroup in a stable group."""
    return and_(group.phase == Phase.STABLE, is_from_leader(group, request))


def is_from_leader(group: Group, request: SyncRequest) -> Truth:
    """A member sent it for the present generation, and leads that."""
    return and_(
        request.generation == group.generation,
        request.member == group.leader,
        any_(and_(is_member(slot), slot.id == request.member) for slot in group.slots),
    )


def fail_for_any_reason(group: Group, request: SyncRequest, failure: Any, context: Context) -> Step:
    """The leader's assignment fails for this reason, some error."""
    return fail_assignment(group, request, failure, context)


def proposal_event(
    name: str,
    handler: Callable[..., Step],
    kind: type,
    applies: Callable[..., Truth],
    left_out: frozenset[str] = frozenset(),
) -> ProofEvent:
    """A request arrives to which one of the proposal's rules applies; statements left out are neither assumed nor
    proved."""

    def prepare(symbols: GroupSymbols) -> Situation:
        group, request = symbols.arbitrary(Group, "group"), symbols.arbitrary(kind, kind.__name__)
        assumed: tuple[Term, ...] = (formula(symbolic(applies)(group, request)),)
        more: tuple[Any, ...] = ()
        if handler is fail_for_any_reason:
            failure = symbols.number("failure")
            assumed = (*assumed, number_term(failure) != Error.NONE.value)
            more = (failure,)
        arguments = (request, *more, any_context(symbols))
        return Situation(symbols, group, arriving=(request,), arguments=arguments, assumed=assumed)

    def run(situation: Situation) -> EventResult:
        step = symbolic(handler)(situation.group, *situation.arguments)
        return after_coordinator_step(situation, step, situation.ghost, situation.arguments[0])

    return ProofEvent(name, handler, prepare, run, left_out, left_out)
