"""From symbols back to plain values: counterexamples, and their replay by the same handlers outside the proof."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import z3

from fencepost.model.classic.core.state import JoinRequest, JoinResponse, Slot, Step, SyncRequest
from fencepost.model.classic.member.member import MemberStep
from fencepost.model.logic import Token
from fencepost.model.proofs.classic.induction import Refutation
from fencepost.model.proofs.classic.proof_events import ProofEvent
from fencepost.model.proofs.classic.symbolic_history import SymbolicGhostState
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicClaims, SymbolicNumber, SymbolicToken
from fencepost.model.proofs.terms import Term

TermReader = Callable[[Term], int]
"""The value of a term."""


def to_plain(value: Any, read: TermReader, token: Callable[[int], Token] = lambda number: number or None) -> Any:
    """The value as ordinary Python values; fillers of tuples are gone. `token` says for what token a number stands."""
    if isinstance(value, SymbolicBool):
        return bool(read(value.term))
    if isinstance(value, SymbolicNumber):
        number = read(value.term)
        return number if value.kind is None else value.kind(number)
    if isinstance(value, SymbolicToken):
        return token(read(value.term))
    if isinstance(value, SymbolicClaims):
        return to_plain(value.flags, read, token) if to_plain(value.present, read, token) else None
    if isinstance(value, tuple):
        return tuple(to_plain(item, read, token) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return without_fillers(type(value)(*(to_plain(getattr(value, f.name), read, token) for f in fields(value))))
    return value


def model_reader(model: z3.ModelRef) -> TermReader:
    """What the solver's model says of a term."""

    def read(term: Term) -> int:
        value = model.eval(term, model_completion=True)
        return int(z3.is_true(value)) if z3.is_bool(value) else int(value.as_long())

    return read


def without_fillers(value: Any) -> Any:
    """Entries for no member and nameless protocols stand for nothing."""
    if isinstance(value, Slot | JoinRequest):
        return replace(value, protocols=tuple(one for one in value.protocols if one.name is not None))
    if isinstance(value, JoinResponse):
        return replace(value, members=tuple(view for view in value.members if view.id is not None))
    if isinstance(value, SyncRequest):
        return replace(value, assignments=tuple(entry for entry in value.assignments if entry[0] is not None))
    return value


@dataclass(frozen=True, slots=True)
class InductionCounterexample:
    """A counterexample to induction in plain values: before the event all statements hold, after it one does not."""

    event: str
    statement: str
    subject: Any
    """The group or the member before the event."""
    arguments: tuple[Any, ...]
    result: Any
    """What the proof says comes of it."""
    about: tuple[Any, ...]
    """What the statement is broken for."""


def decode_refutation(event: ProofEvent, refutation: Refutation) -> InductionCounterexample:
    """The refutation in plain values."""
    read, situation = model_reader(refutation.model), refutation.situation
    subject = situation.group if situation.process is None else situation.process.member
    return InductionCounterexample(
        event=event.name,
        statement=refutation.statement.id,
        subject=to_plain(subject, read),
        arguments=to_plain(situation.arguments, read),
        result=keep_sent(to_plain(refutation.happened.result, read)),
        about=tuple(to_plain(one, read) for one in refutation.arguments if not isinstance(one, SymbolicGhostState)),
    )


def replay_handler(event: ProofEvent, example: InductionCounterexample) -> Any:
    """What the same handler makes of the counterexample outside the proof."""
    return keep_sent(event.handler(example.subject, *example.arguments))


def keep_sent(step: Any) -> Any:
    """A step with what is really sent, and only that."""
    if isinstance(step, Step):
        sent = tuple(replace(one, response=without_fillers(one.response)) for one in step.outputs if one.when)
        return replace(step, outputs=sent)
    assert isinstance(step, MemberStep)
    return replace(
        step,
        sent_requests=tuple(
            replace(one, request=without_fillers(one.request)) for one in step.sent_requests if one.when
        ),
    )
