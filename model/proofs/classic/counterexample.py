"""Counterexamples to induction in plain values, and their replay by the same handlers outside the proof."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fencepost.model.classic.core.state import JoinRequest, JoinResponse, Slot, Step, SyncRequest
from fencepost.model.classic.member.member import MemberStep
from fencepost.model.logic import Token
from fencepost.model.proofs.classic.induction import Refutation
from fencepost.model.proofs.classic.proof_events import ProofEvent
from fencepost.model.proofs.classic.symbolic_history import SymbolicGhostState
from fencepost.model.proofs.term_evaluation import TermReader, model_reader, to_plain


def without_fillers(value: Any) -> Any:
    """Entries for no member and nameless protocols stand for nothing."""
    if isinstance(value, Slot | JoinRequest):
        return replace(value, protocols=tuple(one for one in value.protocols if one.name is not None))
    if isinstance(value, JoinResponse):
        return replace(value, members=tuple(view for view in value.members if view.id is not None))
    if isinstance(value, SyncRequest):
        return replace(value, assignments=tuple(entry for entry in value.assignments if entry[0] is not None))
    return value


def plain_group(value: Any, read: TermReader, token: Callable[[int], Token] = lambda number: number or None) -> Any:
    """The value in plain values, without fillers."""
    return to_plain(value, read, token, without_fillers)


@dataclass(frozen=True, slots=True)
class InductionCounterexample:
    """A counterexample to induction in plain values: before the event all statements hold, after it one does not."""

    event: str
    statement: str
    subject: Any
    """The group, its record or the member before the event."""
    arguments: tuple[Any, ...]
    result: Any
    """What the proof says comes of it."""
    about: tuple[Any, ...]
    """What the statement is broken for."""


def decode_refutation(event: ProofEvent, refutation: Refutation) -> InductionCounterexample:
    """The refutation in plain values."""
    read, situation = model_reader(refutation.model), refutation.situation
    return InductionCounterexample(
        event=event.name,
        statement=refutation.statement.id,
        subject=plain_group(event.subject(situation), read),
        arguments=plain_group(situation.arguments, read),
        result=keep_sent(plain_group(refutation.happened.result, read)),
        about=tuple(plain_group(one, read) for one in refutation.arguments if not isinstance(one, SymbolicGhostState)),
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
