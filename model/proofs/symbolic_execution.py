"""Run plain Python on symbolic values along every path it can take.

A path is found by running the function again with the decisions of its beginning; a branch that the assumptions rule
out is never taken.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import z3

from fencepost.model.proofs.solver import LimitedSolver
from fencepost.model.proofs.symbolic_values import BranchDecider
from fencepost.model.proofs.terms import Term

Result = TypeVar("Result")


@dataclass(slots=True)
class PathDecisions:
    """The decisions of one run: the given ones first, then the solver's."""

    solver: LimitedSolver
    given: list[bool]
    others: list[list[bool]]
    taken: list[bool] = field(default_factory=list)
    known: dict[int, tuple[Term, bool]] = field(default_factory=dict)
    conditions: list[Term] = field(default_factory=list)

    def decide(self, term: Term) -> bool:
        """Which branch to take where the term decides; the other one, if it is possible, is left for later."""
        term = z3.simplify(term)
        if z3.is_true(term) or z3.is_false(term):
            return bool(z3.is_true(term))
        if term.get_id() in self.known:
            return self.known[term.get_id()][1]
        if len(self.taken) < len(self.given):
            choice = self.given[len(self.taken)]
        else:
            choice = self._possible(term)
            if choice and self._possible(z3.Not(term)):
                self.others.append([*self.taken, False])
        self.taken.append(choice)
        self.known[term.get_id()] = (term, choice)
        self.conditions.append(term if choice else z3.Not(term))
        self.solver.add(self.conditions[-1])
        return choice

    def _possible(self, term: Term) -> bool:
        return bool(self.solver.check(term) != z3.unsat)


def execute_paths(run: Callable[[], Result], solver: LimitedSolver) -> Iterator[tuple[Result, list[Term]]]:
    """The result of each path and its conditions, which the solver holds while they are looked at."""
    waiting: list[list[bool]] = [[]]
    while waiting:
        path = PathDecisions(solver, waiting.pop(), waiting)
        with solver.scope():
            with BranchDecider(path.decide):
                result = run()
            yield result, path.conditions
