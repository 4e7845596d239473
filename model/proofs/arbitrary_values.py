"""Arbitrary values of the types that handlers work on: a symbol for each field, chosen by the field's annotation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import IntEnum
from types import UnionType
from typing import Any, NewType, TypeAlias, get_args, get_origin, get_type_hints

import z3

from fencepost.model.logic import Time, Token, Truth
from fencepost.model.proofs.solver import LimitedSolver
from fencepost.model.proofs.symbolic_values import (
    SymbolicBool,
    SymbolicElement,
    SymbolicFunction,
    SymbolicMap,
    SymbolicNumber,
    SymbolicSet,
    SymbolicToken,
    assume,
    formula,
    set_term,
)
from fencepost.model.proofs.term_evaluation import TermKeys
from fencepost.model.proofs.terms import Term, numeral

Sort: TypeAlias = Any
"""An annotation: a class, a NewType, a set or map of such, or a union with None; or a `Contract`."""


@dataclass(frozen=True, slots=True)
class Contract:
    """The sort of all functions whose results are of a sort and fulfil a condition, which is told the arguments first.

    A handler that is given such a function is proved whatever an adversary decides within the contract.
    """

    result: Sort
    holds: Callable[..., Truth]


def claim_of_each(term: Term, few: Mapping[Any, Sequence[Term]]) -> Term:
    """The term, its claims about every element of a sort made of these few."""
    waiting, claims = [term], list[tuple[Term, Term]]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, z3.QuantifierRef):
            claims.append((one, z3.And(*(z3.substitute_vars(one.body(), each) for each in few[one.var_sort(0)]))))
        else:
            waiting += one.children()
    return z3.substitute(term, *claims)


@dataclass(slots=True)
class SymbolFactory:
    """Makes symbols and notes in `domain` which values they can have. A protocol adds its own sorts to `makers`."""

    domain: list[Term] = field(default_factory=list)
    made: int = 0
    sets: list[SymbolicSet] = field(default_factory=list)
    """All sets of elements, and each element as a set."""
    makers: dict[Sort, Callable[[str], Any]] = field(init=False)
    """The function that makes a symbol of each sort, given a label."""

    def __post_init__(self) -> None:
        self.makers = {bool: self.truth, int: self.number, Time: self.number, Token: self.token}

    def arbitrary(self, sort: Sort, label: str) -> Any:
        """Any value of this sort. Raises TypeError if it is neither in `makers` nor an enumeration or a dataclass."""
        make = self.makers.get(sort)
        origin: Any = get_origin(sort)
        if make is not None:
            return make(label)
        if isinstance(sort, type) and issubclass(sort, IntEnum):
            return self.enumeration(sort, label)
        if isinstance(sort, Contract):
            return self.function(sort, label)
        if isinstance(sort, UnionType) and set(get_args(sort)) == {get_args(sort)[0], type(None)}:
            return self.optional(get_args(sort)[0], label)
        if origin is frozenset:
            return self.set(get_args(sort)[0], label)
        if origin is dict:
            return self.map(get_args(sort), label)
        if isinstance(sort, NewType):
            return self.element(sort, label)
        if isinstance(sort, type) and is_dataclass(sort):
            hints = get_type_hints(sort, include_extras=True)
            return sort(**{f.name: self.arbitrary(hints[f.name], f"{label}.{f.name}") for f in fields(sort)})
        raise TypeError(f"{label}: no symbol stands for any {sort}")

    def truth(self, label: str) -> SymbolicBool:
        """Any truth value."""
        return SymbolicBool(z3.Bool(self.new_name(label)))

    def number(self, label: str) -> SymbolicNumber:
        """Any number."""
        return SymbolicNumber(z3.Int(self.new_name(label)))

    def enumeration(self, kind: type[IntEnum], label: str) -> SymbolicNumber:
        """Any member of an enumeration."""
        number = z3.Int(self.new_name(label))
        self.domain.append(z3.Or(*(number == numeral(value) for value in kind)))
        return SymbolicNumber(number, kind)

    def token(self, label: str) -> SymbolicToken:
        """Any token, or none."""
        term = z3.Int(self.new_name(label))
        self.domain.append(term >= 0)
        return SymbolicToken(term)

    def sort_of_elements(self, sort: Sort) -> Any:
        """The solver's sort for a NewType."""
        return z3.DeclareSort(sort.__name__)

    def small_instance(self, terms: Sequence[Term]) -> z3.ModelRef | None:
        """An instance of the terms in which all sets are made of four elements; None if there is none.

        A claim about every element is about these four. So it is decidable, which it is not of sets of any size.
        """
        few = {
            sort: [z3.Const(f"{sort}.{number}", sort) for number in range(4)]
            for sort in {one.sort for one in self.sets}
        }
        solver = LimitedSolver(0)
        solver.add(*(claim_of_each(term, few) for term in terms))
        for one in self.sets:
            solver.add(formula(one <= SymbolicSet(set_term(map(SymbolicElement, few[one.sort]), one.sort))))
        return solver.model() if solver.check() == z3.sat else None

    def optional(self, sort: Sort, label: str) -> Any:
        """Any value of a sort, or None. Raises TypeError for a value that cannot be absent in a symbol."""
        value = self.arbitrary(sort, label)
        if isinstance(value, SymbolicSet):
            return SymbolicSet(value.term, self.truth(f"{label} is there"))
        if isinstance(value, SymbolicToken):
            return value
        raise TypeError(f"{label}: no symbol stands for {sort} or none")

    def element(self, sort: Sort, label: str) -> SymbolicElement:
        """Any element of a sort."""
        made = SymbolicElement(z3.Const(self.new_name(label), self.sort_of_elements(sort)))
        self.sets.append(SymbolicSet(set_term([made], made.term.sort())))
        return made

    def set(self, sort: Sort, label: str) -> SymbolicSet:
        """Any set of elements of a sort."""
        made = SymbolicSet(z3.Const(self.new_name(label), z3.SetSort(self.sort_of_elements(sort))))
        self.sets.append(made)
        return made

    def map(self, sorts: tuple[Sort, Sort], label: str) -> SymbolicMap:
        """Any map from elements of a sort to values of another one that are one term each."""
        key, kind = sorts
        value = self.arbitrary(kind, f"{label}[]")
        values = z3.ArraySort(self.sort_of_elements(key), value.term.sort())
        return SymbolicMap(self.set(key, label), z3.Const(self.new_name(label), values), type(value))

    def function(self, contract: Contract, label: str) -> SymbolicFunction:
        """Any function that keeps a contract. What it was asked before, in the same terms, it answers as before."""
        keys, answers = TermKeys(), dict[int, tuple[Any, list[Term]]]()

        def answer(arguments: tuple[Any, ...]) -> Any:
            key = keys.key(arguments)
            if key not in answers:
                known = len(self.domain)
                answers[key] = (self.arbitrary(contract.result, f"{label}({key})"), self.domain[known:])
            result, domain = answers[key]
            assume(*domain, formula(contract.holds(*arguments, result)))
            return result

        return SymbolicFunction(answer)

    def many(self, sort: Sort, count: int, label: str) -> tuple[Any, ...]:
        """Several values of a sort."""
        return tuple(self.arbitrary(sort, f"{label}.{index}") for index in range(count))

    def new_name(self, label: str) -> str:
        """The label with a number that no other symbol has."""
        self.made += 1
        return f"{label}#{self.made}"
