"""Run plain Python on symbolic values, along every path that it can take.

A handler is an ordinary function on frozen values: `join(group, request, context)`. To prove something about it, it is
called with values whose fields are symbols (`arbitrary_values`): proxies that stand for terms of the solver. Comparing
two proxies gives a proxy for a truth value, adding gives one for a number (`symbolic_values`). Nothing in the handler
is replaced or rewritten. Two things in Python need a plain truth value, though: `if`, and functions such as `any`.

`if` is where paths come from. Python calls `__bool__` on the condition, and `SymbolicBool.__bool__` asks the path that
is being executed which branch to take (`PathDecisions.decide`):

    run the handler            is `term` possible?   is `not term` possible?   decision
    from the beginning              yes                     yes                True, and [.., False] waits
      |                             yes                     no                 True
      +-- if term: ------------>    no                      -                  False
      |
      v                        Both questions are asked under the assumptions and the decisions so far.
    next `if`

A function cannot be resumed in the middle, so the other branch is taken by running the function again from the start,
with the decisions up to there given (`execute_paths`):

    waiting = [[]]
    []              -> asked 3 times: True, True, True     adds [False], [True, False], [True, True, False]
    [True, True, False]     -> the first three decisions are given, further ones are asked
    ...                                                    until nothing waits

Every path yields the handler's result, made of symbols, and the conditions under which the path is taken. While a
caller looks at a result the solver holds these conditions, so that a goal is shown by asking whether its negation is
possible. Together the paths cover all values that satisfy the assumptions: a branch is left out only if the solver
says "unsat"; "unknown" counts as possible. A condition that was decided before on the same path is not asked again.

A loop over slots that forked at each slot would have 2^n paths. So the core does not use `if` there: it computes with
`and_`, `or_` and `ite` of `model/logic.py`, which build one term for both cases (`merge_values`). `if` remains for the
single decisions that a reader of the protocol knows by name, each with its rule; tests/model/core/test_style.py keeps
it so. The tables are of a fixed size, and a free slot stands for no member.

What this relies on: handlers are pure and finish, so that running one again is the same run; the size of tables is
fixed; and proxies mean what Python means, which tests compare with plain runs (tests/model/proofs/agreement.py).
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
