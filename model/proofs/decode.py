"""From symbols back to plain values: counterexamples, and their replay by the same handlers outside the proof."""

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import z3

from fencepost.model.core.member import MemberStep
from fencepost.model.core.values import JoinAnswer, JoinRequest, Slot, Step, SyncRequest
from fencepost.model.proofs.events import Event
from fencepost.model.proofs.history import History
from fencepost.model.proofs.prover import Refutation
from fencepost.model.proofs.symbols import Boolean, Claims, Name, Number
from fencepost.model.proofs.terms import Term


def plain(value: Any, model: z3.ModelRef) -> Any:
    """The value under the model, made of ordinary Python values; fillers of tuples are gone."""
    if isinstance(value, Boolean):
        return z3.is_true(model.eval(value.term, model_completion=True))
    if isinstance(value, Number):
        number = _integer(value.term, model)
        return number if value.kind is None else value.kind(number)
    if isinstance(value, Name):
        return _integer(value.term, model) or None
    if isinstance(value, Claims):
        return tuple(plain(flag, model) for flag in value.flags) if plain(value.present, model) else None
    if isinstance(value, tuple):
        return tuple(plain(item, model) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return without_fillers(type(value)(*(plain(getattr(value, f.name), model) for f in fields(value))))
    return value


def _integer(term: Term, model: z3.ModelRef) -> int:
    number: int = model.eval(term, model_completion=True).as_long()
    return number


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
    model, situation = refutation.model, refutation.situation
    subject = situation.group if situation.process is None else situation.process.member
    return Counterexample(
        event=event.name,
        statement=refutation.statement.id,
        subject=plain(subject, model),
        arguments=plain(situation.arguments, model),
        result=settled(plain(refutation.happened.result, model)),
        about=tuple(plain(one, model) for one in refutation.arguments if not isinstance(one, History)),
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
