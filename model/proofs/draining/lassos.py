"""Schedules that starve a partition for ever, searched for among two partitions."""

from dataclasses import dataclass
from typing import Any

import z3

from fencepost.model.draining.polling import Prefetch, Resume, Ring, begin_poll, refill_buffers, run_poll
from fencepost.model.proofs.draining.waiting import M, records_term, term_of
from fencepost.model.proofs.symbolic_values import SymbolicArray, SymbolicNumber


@dataclass(frozen=True, slots=True)
class Lasso:
    """Two partitions and a schedule that comes back to where it began without having served the second.

    `fetch` is what each fetch of the first one brings; the second gets nothing more.
    """

    limit: int
    records: tuple[int, int]
    fetch: int
    polls: int


def find_lasso(resume: Resume, prefetch: Prefetch, longest: int = 3, limit: int = 3) -> Lasso | None:
    """A shortest schedule that starves the second of two partitions; None if there is none within the bounds.

    `longest` bounds the polls, `limit` the records of a poll; records and fetches are not bounded.
    """
    first, second, fetch = z3.Ints("first second fetch")
    held = z3.Store(z3.Store(z3.K(z3.IntSort(), z3.IntVal(0)), 0, first), 1, second)
    values: Any = (SymbolicNumber(M), SymbolicArray(held))
    ring = Ring(2, *values)

    def brings(position: int) -> Any:
        return SymbolicNumber(fetch) if position == 0 else 0

    solver = z3.Solver()
    solver.add(M >= 1, limit >= M, first >= 0, second >= 1, fetch >= 1)
    for number in range(1, longest + 1):
        ring = run_poll(ring, resume)
        solver.add(records_term(ring)[1] == second)
        ring = refill_buffers(ring, prefetch, brings)
        closed = z3.And(term_of(begin_poll(ring, resume).cursor) == 0, records_term(ring)[0] == first)
        if solver.check(closed) == z3.sat:
            model = solver.model()
            most, one, two, more = (model.eval(each, True).as_long() for each in (M, first, second, fetch))
            return Lasso(most, (one, two), more, number)
    return None
