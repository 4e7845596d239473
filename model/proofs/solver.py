"""A solver with a limit for each query, which knows how long its longest one took.

The limit is in the solver's own steps, so that a verdict does not depend on how quick the machine is.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

import z3

from fencepost.model.proofs.terms import Term

QUERY_STEPS = 100_000_000
"""How many of the solver's steps one query may take (its `rlimit`); what takes more stays undecided."""


class LimitedSolver:
    """Answers each query within the limit, or with `unknown`. `longest` is in seconds."""

    def __init__(self, seed: int, simple: bool = False) -> None:
        """The `simple` one is quicker where many small queries share their assumptions, and numbers are compared."""
        self._solver = z3.SimpleSolver() if simple else z3.Solver()
        self._solver.set("rlimit", QUERY_STEPS)
        self._solver.set("random_seed", seed)
        if simple:
            self._solver.set("relevancy", 0)
            self._solver.set("arith.solver", 2)
        self._solver.set("ctrl_c", False)  # a query would take Ctrl-C for itself, and the command go on
        self.longest = 0.0

    def add(self, *terms: Term) -> None:
        """Assume the terms."""
        self._solver.add(*terms)

    def assertions(self) -> Sequence[Term]:
        """All that is assumed."""
        return list(self._solver.assertions())

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is assumed within is given up at the end."""
        self.push()
        try:
            yield
        finally:
            self.pop(1)

    def push(self) -> None:
        """Begin a scope: `pop` gives up what is assumed from here on."""
        self._solver.push()

    def pop(self, count: int) -> None:
        """End the last scopes."""
        if count:
            self._solver.pop(count)

    def check(self, *terms: Term) -> z3.CheckSatResult:
        """Whether the terms are possible under what is assumed."""
        began = perf_counter()
        response = self._solver.check(*terms)
        self.longest = max(self.longest, perf_counter() - began)
        return response

    def model(self) -> z3.ModelRef:
        """An instance of what was found possible last."""
        return self._solver.model()
