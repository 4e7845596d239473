"""Run plain Python on symbolic values, along every path that it can take.

A handler is an ordinary function on frozen values: `join(group, request, context)`. To prove something about it, it is
called with values whose fields are symbols (`arbitrary_values`): proxies that stand for terms of the solver. Comparing
two proxies gives a proxy for a truth value, adding gives one for a number (`symbolic_values`). Some expressions of
Python need a plain truth value, though: `and`, `not`, `any`, `x if y else z`. They are rewritten when the proof reads
the handler's source (`plain_python`), and make one term for both cases. `if` statements are left.

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
says "unsat"; "unknown" counts as possible. A condition that was decided before on the same path is not asked again,
nor is a branch that the solver's last instance of the path takes.

A loop over slots that forked at each slot would have 2^n paths. So the core has no `if` statement there: it computes
with expressions, which are merged (`merge_values`). `if` remains for the single decisions that a reader of the protocol
knows by name, each with its rule; tests/model/core/test_style.py keeps it so. The tables are of a fixed size, and a
free slot stands for no member.

What this relies on: handlers are pure and finish, so that running one again is the same run; the size of tables is
fixed; and proxies mean what Python means, which tests compare with plain runs (tests/model/proofs/agreement.py).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import z3

from fencepost.model.proofs.solver import LimitedSolver
from fencepost.model.proofs.symbolic_values import BranchDecider
from fencepost.model.proofs.terms import TRUE, Term, address, identical, is_false, is_true, negation

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class PathPrefix:
    """The decisions with which a path begins, and an instance that takes them, where the solver gave one."""

    decisions: tuple[bool, ...] = ()
    instance: z3.ModelRef | None = None


@dataclass(frozen=True, slots=True)
class HeldConditions:
    """The conditions that the solver holds, each in a scope of its own.

    A path begins as the one before it did, for the last branch that waits is taken first. What the two have in common
    the solver keeps, with all that it learned there.
    """

    solver: LimitedSolver
    conditions: list[Term] = field(default_factory=list)

    def hold(self, place: int, condition: Term) -> None:
        """Hold this condition at a place of the path, and those before it."""
        if place < len(self.conditions) and identical(self.conditions[place], condition):
            return
        self.keep(place)
        self.solver.push()
        self.solver.add(condition)
        self.conditions.append(condition)

    def keep(self, count: int) -> None:
        """Let go of all conditions but the first ones."""
        self.solver.pop(len(self.conditions) - count)
        del self.conditions[count:]


@dataclass(slots=True)
class PathDecisions:
    """The decisions of one run: the given ones first, then the solver's.

    `instance` satisfies the assumptions and the decisions so far: the branch that it takes is possible unasked.
    """

    solver: LimitedSolver
    given: Sequence[bool]
    others: list[PathPrefix]
    held: "HeldConditions"
    simplified: dict[int, tuple[Term, Term]]
    """The simplified form of each term by the term's address, with the term."""
    instance: z3.ModelRef | None = None
    taken: list[bool] = field(default_factory=list)
    known: dict[int, tuple[Term, bool]] = field(default_factory=dict)
    conditions: list[Term] = field(default_factory=list)

    def decide(self, term: Term) -> bool:
        """Which branch to take where the term decides; the other one, if it is possible, is left for later."""
        term = self._simplify(term)
        if is_true(term) or is_false(term):
            return bool(is_true(term))
        if address(term) in self.known:
            return self.known[address(term)][1]
        place = len(self.taken)
        choice = self.given[place] if place < len(self.given) else self._choose(term)
        self.taken.append(choice)
        self.known[address(term)] = (term, choice)
        self._suppose(term if choice else negation(term))
        return choice

    def _suppose(self, condition: Term) -> None:
        self.held.hold(len(self.conditions), condition)
        self.conditions.append(condition)

    def assume(self, term: Term) -> None:
        """Suppose the term from here on, whatever was decided. Raises ValueError if it is impossible."""
        self._suppose(term)
        if len(self.taken) >= len(self.given):
            possible, self.instance = self._find_instance(TRUE)
            if not possible:
                raise ValueError("nothing is as it is supposed to be: an adversary cannot keep its contract")

    def _simplify(self, term: Term) -> Term:
        known = self.simplified.get(address(term))
        if known is None:
            known = self.simplified[address(term)] = (term, z3.simplify(term))
        return known[1]

    def _choose(self, term: Term) -> bool:
        """The first branch if it is possible; if both are, the second one waits."""
        before = self.instance
        shown = None if before is None else before.eval(term, model_completion=True)
        if shown is not None and is_true(shown):
            possible, other = self._find_instance(negation(term))
            if possible:
                self.others.append(PathPrefix((*self.taken, False), other))
            return True
        possible, found = self._find_instance(term)
        if not possible:
            return False
        if shown is not None and is_false(shown):
            other_possible, other = True, before
        else:
            other_possible, other = self._find_instance(negation(term))
        if other_possible:
            self.others.append(PathPrefix((*self.taken, False), other))
        self.instance = found
        return True

    def _find_instance(self, term: Term) -> tuple[bool, z3.ModelRef | None]:
        """Whether the term is possible, and an instance if the solver has one; an undecided
        term counts as possible."""
        response = self.solver.check(term)
        return response != z3.unsat, self.solver.model() if response == z3.sat else None


def execute_paths(run: Callable[[], Result], solver: LimitedSolver) -> Iterator[tuple[Result, list[Term]]]:
    """The result of each path and its conditions, which the solver holds while they are looked at."""
    waiting, held, simplified = [PathPrefix()], HeldConditions(solver), dict[int, tuple[Term, Term]]()
    try:
        while waiting:
            prefix = waiting.pop()
            path = PathDecisions(solver, prefix.decisions, waiting, held, simplified, prefix.instance)
            with BranchDecider(path.decide, path.assume):
                result = run()
            held.keep(len(path.conditions))
            yield result, path.conditions
    finally:
        held.keep(0)
