"""Induction over events: statements that hold before an event hold after it, on every path of its handler.

`check_goals` is the step that all proofs share. `prove_handler` is the whole induction for a protocol whose state is
one value: a statement about a state is an invariant, one about two states says how an event may change it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar

import z3

from fencepost.model.logic import Truth
from fencepost.model.proofs.arbitrary_values import Sort, SymbolFactory
from fencepost.model.proofs.plain_values import model_reader, to_plain
from fencepost.model.proofs.solver import LimitedSolver
from fencepost.model.proofs.symbolic_execution import execute_paths
from fencepost.model.proofs.symbolic_values import formula
from fencepost.model.proofs.terms import Term, clear_terms
from fencepost.model.statement import Statement

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Goal:
    """A statement about some arguments after an event, and its formula."""

    statement: Statement
    arguments: tuple[Any, ...]
    term: Term


@dataclass(frozen=True, slots=True)
class BrokenGoal:
    """A goal that fails on a path, the result of that path, and a model of the solver's."""

    goal: Goal
    result: Any
    model: z3.ModelRef


@dataclass(frozen=True, slots=True)
class InductionResult:
    """The outcome for one event: broken goals, and statements that the solver could not decide within its limit."""

    possible: bool
    """The assumptions do not contradict each other."""
    paths: int
    goals: int
    broken: tuple[BrokenGoal, ...]
    undecided: tuple[str, ...]
    seconds: float
    longest: float
    """The seconds of the longest query."""


def check_goals(
    solver: LimitedSolver, run: Callable[[], Result], goals_after: Callable[[Result], Iterable[Goal]]
) -> InductionResult:
    """Run an event on every path that the solver's assumptions admit, and check the goals of each result."""
    began = perf_counter()
    can_happen = solver.check()
    paths = count = 0
    broken: list[BrokenGoal] = []
    undecided = ["whether it can happen"] if can_happen == z3.unknown else []
    for result, _ in execute_paths(run, solver):
        goals = list(goals_after(result))
        paths += 1
        count += len(goals)
        for goal, model in failing_goals(solver, goals):
            if model is None:
                undecided.append(goal.statement.id)
            else:
                broken.append(BrokenGoal(goal, result, model))
    seconds, possible = perf_counter() - began, bool(can_happen != z3.unsat)
    return InductionResult(possible, paths, count, tuple(broken), tuple(undecided), seconds, solver.longest)


def failing_goals(solver: LimitedSolver, goals: Sequence[Goal]) -> Iterator[tuple[Goal, z3.ModelRef | None]]:
    """The goals that fail on this path with a model, and the undecided ones with None; one query if there are none."""
    if not goals or check_term(solver, z3.Or(*(z3.Not(goal.term) for goal in goals))) == z3.unsat:
        return
    for goal in goals:
        with solver.scope():
            solver.add(z3.Not(goal.term))
            response = solver.check()
            if response != z3.unsat:
                yield goal, solver.model() if response == z3.sat else None


def check_term(solver: LimitedSolver, term: Term) -> z3.CheckSatResult:
    """Whether the term is possible under the solver's assumptions."""
    with solver.scope():
        solver.add(term)
        return solver.check()


# -- protocols whose state is one value ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HandlerEvent:
    """A handler of a state and of arguments of these sorts. `assumed` says which arguments reach it in a state."""

    name: str
    handler: Callable[..., Any]
    sorts: tuple[Sort, ...]
    assumed: Callable[..., Truth] = lambda *_: True


@dataclass(frozen=True, slots=True)
class HandlerCounterexample:
    """A counterexample to induction in plain values: a state in which all invariants hold, arguments, and the result
    that breaks the statement."""

    statement: str
    state: Any
    arguments: tuple[Any, ...]
    result: Any


@dataclass(frozen=True, slots=True)
class HandlerVerdict:
    """The outcome for one handler."""

    event: HandlerEvent
    result: InductionResult
    counterexamples: tuple[HandlerCounterexample, ...]

    @property
    def is_proved(self) -> bool:
        """The event can happen and keeps every statement."""
        return self.result.possible and not self.result.broken and not self.result.undecided


def prove_handler(
    event: HandlerEvent,
    state_type: type,
    after: Callable[[Any], Any],
    statements: Sequence[Statement],
    symbols: Callable[[], SymbolFactory] = SymbolFactory,
    seed: int = 0,
) -> HandlerVerdict:
    """Prove that the handler, run on any state in which the invariants hold, keeps all statements.

    `after` reads the next state from a handler's result.
    """
    clear_terms()
    factory = symbols()
    state = factory.arbitrary(state_type, "state")
    arguments = tuple(factory.arbitrary(sort, f"argument.{place}") for place, sort in enumerate(event.sorts))
    solver = LimitedSolver(seed, simple=True)
    solver.add(*factory.domain, formula(event.assumed(state, *arguments)))
    solver.add(*(formula(one.holds(state)) for one in statements if len(one.subjects) == 1))

    def goals_after(result: Any) -> Iterator[Goal]:
        for one in statements:
            about = (state, after(result))[-len(one.subjects) :]
            yield Goal(one, about, formula(one.holds(*about)))

    result = check_goals(solver, lambda: event.handler(state, *arguments), goals_after)
    return HandlerVerdict(event, result, tuple(decode_goal(one, state, arguments) for one in result.broken))


def decode_goal(broken: BrokenGoal, state: Any, arguments: tuple[Any, ...]) -> HandlerCounterexample:
    """The broken goal in plain values."""
    read = model_reader(broken.model)
    before, given, result = (to_plain(one, read) for one in (state, arguments, broken.result))
    return HandlerCounterexample(broken.goal.statement.id, before, given, result)


def initially_false(statements: Iterable[Statement], initial: Any) -> tuple[str, ...]:
    """The invariants that do not hold in the initial state."""
    return tuple(one.id for one in statements if len(one.subjects) == 1 and one.holds(initial) is not True)
