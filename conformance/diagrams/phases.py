"""The phases of the group beside the steps of a diagram, as the model follows them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fencepost.conformance.diagrams.sequence import Step
from fencepost.traces.events import Event, Header
from fencepost.traces.history.state_history import StateChange, StateHistory
from fencepost.traces.judge.judge import Judge
from fencepost.traces.operations import Lookahead


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A phase with its generation, from the step at `first` up to the one before `end`, counted from 0."""

    phase: str
    generation: int
    first: int
    end: int


def follow_phases(header: Header, events: Sequence[Event], steps: Sequence[Step]) -> tuple[PhaseSpan, ...]:
    """The phases of the group that changes most in a trace, as far as all explanations of the model agree on them.

    Nothing is said of a trace that the judge cannot read.
    """
    history = StateHistory()
    judge = Judge(header, on_advance=history.record_state)
    try:
        for moment in Lookahead(events).pair_operations():
            judge.on_event(moment.event, moment.operation)
        judge.finish()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return ()
    changes = history.state_changes
    if not changes:
        return ()
    group, _ = Counter(change.group for change in changes).most_common(1)[0]
    return tuple(spans([change for change in changes if change.group == group], steps))


def spans(changes: Sequence[StateChange], steps: Sequence[Step]) -> Iterator[PhaseSpan]:
    """The phases by the steps that they last; those that no step falls into are left out."""
    starts = [(first_step(change, steps), change) for change in changes]
    for place, (first, change) in enumerate(starts):
        end = starts[place + 1][0] if place + 1 < len(starts) else len(steps)
        if first < end:
            yield PhaseSpan(change.phase, change.generation, first, end)


def first_step(change: StateChange, steps: Sequence[Step]) -> int:
    """The place of the first step in the new state: that of the request that led to it, or the first one later."""
    for place, step in enumerate(steps):
        if step.time > change.time or (step.time == change.time and step.request == change.sequence):
            return place
    return len(steps)
