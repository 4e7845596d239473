"""From symbols back to plain values: counterexamples, and their replay by the same handlers outside the proof."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import z3

from fencepost.model.classic.core.state import JoinAnswer, JoinRequest, Slot, Step, SyncRequest
from fencepost.model.classic.member.member import MemberStep
from fencepost.model.logic import Token
from fencepost.model.proofs.classic.induction import Refutation
from fencepost.model.proofs.classic.proof_events import Event
from fencepost.model.proofs.classic.symbolic_history import History
from fencepost.model.proofs.symbolic_values import Boolean, Claims, Name, Number
from fencepost.model.proofs.terms import Term

Reading = Callable[[Term], int]
"""The value of a term."""


def plain(value: Any, read: Reading, token: Callable[[int], Token] = lambda number: number or None) -> Any:
    """The value as ordinary Python values; fillers of tuples are gone. `token` says for what token a number stands."""
    if isinstance(value, Boolean):
        return bool(read(value.term))
    if isinstance(value, Number):
        number = read(value.term)
        return number if value.kind is None else value.kind(number)
    if isinstance(value, Name):
        return token(read(value.term))
    if isinstance(value, Claims):
        return plain(value.flags, read, token) if plain(value.present, read, token) else None
    if isinstance(value, tuple):
        return tuple(plain(item, read, token) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return without_fillers(type(value)(*(plain(getattr(value, f.name), read, token) for f in fields(value))))
    return value


def reading(model: z3.ModelRef) -> Reading:
    """What the solver's model says of a term."""

    def read(term: Term) -> int:
        value = model.eval(term, model_completion=True)
        return int(z3.is_true(value)) if z3.is_bool(value) else int(value.as_long())

    return read


def without_fillers(value: Any) -> Any:
    """Entries for no member and nameless protocols stand for nothing."""
    if isinstance(value, Slot | JoinRequest):
        return replace(value, protocols=tuple(one for one in value.protocols if one.name is not None))
    if isinstance(value, JoinAnswer):
        return replace(value, members=tuple(view for view in value.members if view.id is not None))
    if isinstance(value, SyncRequest):
        return replace(value, assignments=tuple(entry for entry in value.assignments if entry[0] is not None))
    return value


@dataclass(frozen=True, slots=True)
class Counterexample:
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


def decoded(event: Event, refutation: Refutation) -> Counterexample:
    """The refutation in plain values."""
    read, situation = reading(refutation.model), refutation.situation
    subject = situation.group if situation.process is None else situation.process.member
    return Counterexample(
        event=event.name,
        statement=refutation.statement.id,
        subject=plain(subject, read),
        arguments=plain(situation.arguments, read),
        result=settled(plain(refutation.happened.result, read)),
        about=tuple(plain(one, read) for one in refutation.arguments if not isinstance(one, History)),
    )


def replayed(event: Event, example: Counterexample) -> Any:
    """What the same handler makes of the counterexample outside the proof."""
    return settled(event.handler(example.subject, *example.arguments))


def settled(step: Any) -> Any:
    """A step with what is really sent, and only that."""
    if isinstance(step, Step):
        sent = tuple(replace(one, answer=without_fillers(one.answer)) for one in step.outputs if one.when)
        return replace(step, outputs=sent)
    assert isinstance(step, MemberStep)
    return replace(
        step, sent=tuple(replace(one, request=without_fillers(one.request)) for one in step.sent if one.when)
    )
