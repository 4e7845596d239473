"""The proof by induction: what holds before an event holds after it, whatever the event.

For one event the handler runs on an arbitrary situation. Every statement is assumed of that situation and of arbitrary
bystanders (a second group of members and messages), and proved of the situation after the event, of the bystanders in
it, and of what the event sends.
"""

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import z3

from fencepost.model.classic.core.state import FREE, Group, JoinRequest, Slot, SyncRequest
from fencepost.model.classic.member.member import PartitionCommit
from fencepost.model.classic.theorems.ghost_state import Accepted, JoinAnswered, Ledger, Process, SyncAnswered
from fencepost.model.classic.theorems.lemmas import STRENGTHENING
from fencepost.model.classic.theorems.ownership_lemmas import CLAIMING
from fencepost.model.classic.theorems.statements import THEOREMS, Statement
from fencepost.model.logic import not_, or_
from fencepost.model.proofs.classic.arbitrary_values import Shapes
from fencepost.model.proofs.classic.proof_events import Event, Happened, Situation
from fencepost.model.proofs.classic.symbolic_history import History
from fencepost.model.proofs.solver import LimitedSolver
from fencepost.model.proofs.symbolic_execution import paths
from fencepost.model.proofs.symbolic_values import alike, formula
from fencepost.model.proofs.terms import Term, forget

STATEMENTS: tuple[Statement, ...] = (*THEOREMS, *STRENGTHENING, *CLAIMING)
"""All that is proved together."""

_MESSAGES: tuple[type, ...] = (JoinAnswered, SyncAnswered, JoinRequest, SyncRequest, PartitionCommit, Accepted)

Terms = dict[type, list[Any]]
"""What there is of each kind."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A statement about certain things after an event, and its formula."""

    statement: Statement
    arguments: tuple[Any, ...]
    term: Term


@dataclass(frozen=True, slots=True)
class Refutation:
    """A counterexample to induction: the statement that the event breaks, in a model of the solver's."""

    statement: Statement
    situation: Situation
    happened: Happened
    arguments: tuple[Any, ...]
    model: z3.ModelRef


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one event: refuted goals, and statements that the solver could not decide in its time."""

    event: Event
    possible: bool
    """The event can happen: what is assumed of the situation before it contradicts nothing."""
    paths: int
    goals: int
    refutations: tuple[Refutation, ...]
    undecided: tuple[str, ...]
    seconds: float
    longest: float
    """The seconds of the longest query."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large the world of a proof is: member slots, partitions, protocols that a member offers."""

    slots: int
    partitions: int
    protocols: int = 1


def bystanders(shapes: Shapes, statements: Sequence[Statement], situation: Situation) -> Terms:
    """As many arbitrary things of each kind as one statement can be about."""
    found: Terms = {}
    for kind in (Process, *_MESSAGES):
        count = max((one.about.count(kind) for one in statements), default=0)
        found[kind] = [timeless(shapes.arbitrary(kind, f"other-{kind.__name__}")) for _ in range(count)]
    if situation.process is not None:
        shapes.domain.extend(formula(other.name != situation.process.name) for other in found[Process])
    return found


def assumptions(statements: Sequence[Statement], terms: Terms) -> Iterator[Term]:
    """Every statement about everything there is."""
    for one in statements:
        for arguments in itertools.product(*(terms.get(kind, []) for kind in one.about)):
            holds = one.holds(*arguments)
            if holds is not True:
                yield formula(holds)


_UNREAD: Any = {
    Slot: dict.fromkeys(("armed", "deadline", "session_timeout")),
    Group: dict.fromkeys(
        ("join_armed", "join_deadline", "initial_wait", "initial_left", "sync_armed", "sync_deadline")
    ),
}


def timeless(value: Any) -> Any:
    """The value without its timers: no statement speaks of them, and one that did could not be evaluated."""
    if isinstance(value, Group):
        return replace(value, slots=tuple(timeless(slot) for slot in value.slots), **_UNREAD[Group])
    if isinstance(value, Slot):
        return replace(value, **_UNREAD[Slot])
    return replace(value, group=timeless(value.group)) if isinstance(value, Accepted) else value


def goals(statements: Sequence[Statement], situation: Situation, happened: Happened, others: Terms) -> Iterator[Goal]:
    """What has to be shown on one path."""
    changed = {
        Group: not alike(timeless(situation.group), timeless(happened.group)),
        Ledger: happened.ledger is not situation.ledger,
    }
    for one in statements:
        options: list[list[tuple[Any, Any, bool]]] = []
        for place, kind in enumerate(one.about):
            options.append(list(candidates(one, place, kind, situation, happened, others)))
        for choice in itertools.product(*options):
            if not any(new or changed.get(kind, False) for kind, (_, _, new) in zip(one.about, choice, strict=True)):
                continue
            arguments = tuple(value for value, _, _ in choice)
            holds = or_(*(not_(when) for _, when, _ in choice), one.holds(*arguments))
            if holds is not True:
                yield Goal(one, arguments, formula(holds))


def candidates(
    one: Statement, place: int, kind: type, situation: Situation, happened: Happened, others: Terms
) -> Iterator[tuple[Any, Any, bool]]:
    """What may stand in one place of a statement: the value, when it is there, and whether the event made it."""
    if kind is Group:
        yield timeless(happened.group), True, False
        return
    if kind is Ledger:
        yield happened.ledger, True, False
        return
    before = others.get(kind, [])
    if before:
        yield before[one.about[:place].count(kind)], True, False
    if kind is Process and happened.process is not None:
        yield happened.process, True, True
    for when, message in happened.sent:
        if isinstance(message, kind):
            yield timeless(message), when, True


def beginning(statements: Sequence[Statement], size: Size) -> tuple[str, ...]:
    """The statements that do not hold of a new group, of which nothing has been heard. Processes start later."""
    group = Group(slots=(FREE,) * size.slots)
    there: Terms = {Group: [group], Ledger: [History()]}
    return tuple(
        one.id
        for one in statements
        for arguments in itertools.product(*(there.get(kind, []) for kind in one.about))
        if one.holds(*arguments) is not True
    )


@dataclass(frozen=True, slots=True)
class Question:
    """What is assumed of an event, and of whom; the solver holds the assumptions."""

    event: Event
    situation: Situation
    others: Terms
    solver: LimitedSolver

    def paths(self) -> Iterator[tuple[Happened, list[Term]]]:
        """What the event leads to on each of its paths, and the path's conditions, which the solver holds meanwhile."""
        return paths(lambda: self.event.run(self.situation), self.solver)


def asked(event: Event, statements: Sequence[Statement], size: Size, seed: int = 0) -> Question:
    """The event in an arbitrary situation, of which the statements hold."""
    forget()
    shapes = Shapes(size.slots, size.partitions, size.protocols)
    situation = event.prepare(shapes)
    others = bystanders(shapes, statements, situation)
    before = [one for one in statements if one.id not in event.unassumed]
    solver = LimitedSolver(seed, simple=True)
    solver.add(*assumptions(before, everything(situation, others)))
    solver.add(*shapes.domain, *shapes.fresh(situation.ledger), *situation.assumed)
    return Question(event, situation, others, solver)


def prove(event: Event, statements: Sequence[Statement], size: Size, seed: int = 0) -> Verdict:
    """Show that no statement is broken by the event."""
    began = time.perf_counter()
    question = asked(event, statements, size, seed)
    situation, others, solver = question.situation, question.others, question.solver
    after = [one for one in statements if one.id not in event.unproved]
    can_happen = solver.check()
    count = shown = 0
    refutations: list[Refutation] = []
    undecided = ["whether it can happen"] if can_happen == z3.unknown else []
    for happened, _ in question.paths():
        todo = list(goals(after, situation, happened, others))
        count += 1
        shown += len(todo)
        broken, unknown = examine(solver, todo, situation, happened)
        refutations += broken
        undecided += unknown
    seconds = time.perf_counter() - began
    possible = bool(can_happen != z3.unsat)
    return Verdict(event, possible, count, shown, tuple(refutations), tuple(undecided), seconds, solver.longest)


def everything(situation: Situation, others: Terms) -> Terms:
    """All that there is before the event."""
    terms = {kind: list(values) for kind, values in others.items()}
    terms |= {Group: [timeless(situation.group)], Ledger: [situation.ledger]}
    if situation.process is not None and situation.existed:
        terms[Process].append(situation.process)
    for message in situation.arriving:
        terms.setdefault(type(message), []).append(message)
    return terms


def examine(
    solver: LimitedSolver, todo: list[Goal], situation: Situation, happened: Happened
) -> tuple[list[Refutation], list[str]]:
    """The goals that are broken on this path, and the statements left undecided; one query if there are none."""
    broken: list[Refutation] = []
    unknown: list[str] = []
    if not todo or possibility(solver, z3.Or(*(z3.Not(goal.term) for goal in todo))) == z3.unsat:
        return broken, unknown
    for goal in todo:
        with solver.scope():
            solver.add(z3.Not(goal.term))
            answer = solver.check()
            if answer == z3.sat:
                broken.append(Refutation(goal.statement, situation, happened, goal.arguments, solver.model()))
            elif answer == z3.unknown:
                unknown.append(goal.statement.id)
    return broken, unknown


def possibility(solver: LimitedSolver, term: Term) -> z3.CheckSatResult:
    """Whether the term is possible here."""
    with solver.scope():
        solver.add(term)
        return solver.check()
