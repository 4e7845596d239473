"""Terms of z3 evaluated on plain values: each distinct subterm once, by its own operator.

The terms are those that the prover works on. Nothing is translated but the operators, one by one, in `OPERATORS`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import z3

from fencepost.model.proofs.terms import Term, address

Value: TypeAlias = Any
"""A plain truth value or number."""

OPERATORS: Mapping[int, Callable[[list[Value]], Value]] = {
    z3.Z3_OP_TRUE: lambda _: True,
    z3.Z3_OP_FALSE: lambda _: False,
    z3.Z3_OP_AND: all,
    z3.Z3_OP_OR: any,
    z3.Z3_OP_NOT: lambda each: not each[0],
    z3.Z3_OP_EQ: lambda each: each[0] == each[1],
    z3.Z3_OP_ITE: lambda each: each[1] if each[0] else each[2],
    z3.Z3_OP_LE: lambda each: each[0] <= each[1],
    z3.Z3_OP_LT: lambda each: each[0] < each[1],
    z3.Z3_OP_GE: lambda each: each[0] >= each[1],
    z3.Z3_OP_GT: lambda each: each[0] > each[1],
    z3.Z3_OP_ADD: sum,
    z3.Z3_OP_SUB: lambda each: each[0] - sum(each[1:]),
    z3.Z3_OP_MUL: prod,
}


class Program:
    """Some terms, ready to be evaluated together."""

    def __init__(self, terms: Iterable[Term]) -> None:
        """Raises KeyError for an operator that is not in the table."""
        self._places: dict[int, int] = {}
        self._steps: list[tuple[Callable[[list[Value]], Value] | None, Any]] = []
        self._terms = tuple(terms)
        for term in self._terms:
            self._add(term)

    def _add(self, term: Term) -> int:
        """The place of the term's value, behind those of its subterms."""
        waiting = [term]
        while waiting:
            one = waiting[-1]
            missing = [child for child in one.children() if address(child) not in self._places]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if address(one) not in self._places:
                self._steps.append(self._step(one))
                self._places[address(one)] = len(self._steps) - 1
        return self._places[address(term)]

    def _step(self, term: Term) -> tuple[Callable[[list[Value]], Value] | None, Any]:
        kind = term.decl().kind()
        if kind == z3.Z3_OP_ANUM:
            number = term.as_long()
            return lambda _: number, ()
        if kind == z3.Z3_OP_UNINTERPRETED:
            return None, address(term)
        return OPERATORS[kind], tuple(self._places[address(child)] for child in term.children())

    def run(self, given: Mapping[int, Value]) -> Sequence[Value]:
        """The values of all subterms, given those of the constants by their addresses."""
        values: list[Value] = []
        for operator, operands in self._steps:
            if operator is None:
                values.append(given[operands])
            else:
                values.append(operator([values[place] for place in operands]))
        return values

    def place(self, term: Term) -> int:
        """Where the value of one of the terms is."""
        return self._places[address(term)]
