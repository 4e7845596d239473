"""The symbolic relation of an event on plain values: the executor's paths that admit a situation, and their results.

The paths are the prover's own, under its own assumptions; their conditions and results are evaluated as they stand:
each distinct subterm once, by its own operator. Nothing is translated but the operators, one by one, in `OPERATORS`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import prod
from typing import Any, TypeAlias

import z3

from fencepost.model.classic.proofs.induction import STATEMENTS, ProofSize, keep_sent, plain_group, prepare_query
from fencepost.model.classic.proofs.proof_events import ProofEvent
from fencepost.model.logic import Token
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicClaims, SymbolicNumber, SymbolicToken
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


class OutOfDomain(Exception):
    """A situation is not among those that the proof is about."""


class TokenNumbers:
    """A number for each token: the proof only compares them."""

    def __init__(self) -> None:
        self._tokens: list[Token] = [None]
        self._numbers: dict[Token, int] = {None: 0}

    def number(self, token: Token) -> int:
        """The number that stands for a token; 0 for none."""
        if token not in self._numbers:
            self._numbers[token] = len(self._tokens)
            self._tokens.append(token)
        return self._numbers[token]

    def token(self, number: int) -> Token:
        """The token for which a number stands."""
        return self._tokens[number]


@dataclass(slots=True)
class PathBranch:
    """One path: where the truth of its conditions is, its result, and how that is evaluated (once it has to be)."""

    conditions: tuple[int, ...]
    result: Any
    program: Program | None = None


class TransitionRelation:
    """An event's transitions. `taken_paths` has the numbers of the paths that admitted something, of `path_count`."""

    def __init__(self, event: ProofEvent, size: ProofSize) -> None:
        question = prepare_query(event, STATEMENTS, size)
        situation = question.situation
        self._subject = situation.group if situation.process is None else situation.process.member
        self._arguments = situation.arguments
        own = {address(leaf) for leaf in terms_of((self._subject, self._arguments))}
        assumed = (*situation.symbols.domain, *situation.assumed)
        domain = [term for term in assumed if constants_in(term) <= own]
        self._branches: list[PathBranch] = []
        self._tokens = TokenNumbers()
        self.taken_paths: set[int] = set()
        found = list(question.paths())
        self._program = Program([*domain, *(each for _, conditions in found for each in conditions)])
        self._scope = tuple(self._program.place(each) for each in domain)
        for happened, conditions in found:
            places = tuple(self._program.place(each) for each in conditions)
            self._branches.append(PathBranch(places, happened.result))

    @property
    def path_count(self) -> int:
        """How many paths there are."""
        return len(self._branches)

    def steps(self, subject: Any, arguments: Sequence[Any]) -> list[Any]:
        """What follows on each path that admits this situation. Raises `OutOfDomain`."""
        given: dict[int, Value] = {}
        self._give(given, self._subject, subject)
        self._give(given, self._arguments, tuple(arguments))
        values = self._program.run(given)
        if not all(values[place] for place in self._scope):
            raise OutOfDomain("the situation is outside of the domain that is assumed")
        admitting = [
            number for number, branch in enumerate(self._branches) if all(values[place] for place in branch.conditions)
        ]
        self.taken_paths.update(admitting)
        return [self._result(self._branches[number], given) for number in admitting]

    def _result(self, branch: PathBranch, given: dict[int, Value]) -> Any:
        if branch.program is None:
            branch.program = Program(terms_of(branch.result))
        program, values = branch.program, branch.program.run(given)
        return keep_sent(plain_group(branch.result, lambda term: values[program.place(term)], self._tokens.token))

    def _give(self, given: dict[int, Value], symbolic: Any, value: Any) -> None:
        """Map each constant in `symbolic` to its part of `value`, and to absence where a tuple has fewer items."""
        if isinstance(symbolic, SymbolicBool):
            given[address(symbolic.term)] = bool(value)
        elif isinstance(symbolic, SymbolicNumber):
            given[address(symbolic.term)] = 0 if value is None else int(value)
        elif isinstance(symbolic, SymbolicToken):
            given[address(symbolic.term)] = self._tokens.number(value)
        elif isinstance(symbolic, SymbolicClaims):
            self._give(given, symbolic.present, value is not None)
            self._give(given, symbolic.flags, value)
        elif isinstance(symbolic, tuple):
            values = () if value is None else value
            if len(values) > len(symbolic):
                raise OutOfDomain(f"{len(values)} are more than {len(symbolic)}")
            for index, each in enumerate(symbolic):
                self._give(given, each, values[index] if index < len(values) else None)
        elif is_dataclass(symbolic):
            for field in fields(symbolic):
                inner = None if value is None else getattr(value, field.name)
                self._give(given, getattr(symbolic, field.name), inner)
        elif symbolic is not None and symbolic != value:
            raise OutOfDomain(f"{value} is not {symbolic}")


def constants_in(term: Term) -> set[int]:
    """The addresses of the constants in a term."""
    inner = term.children()
    if not inner:
        return {address(term)} if term.decl().kind() == z3.Z3_OP_UNINTERPRETED else set()
    return set().union(*map(constants_in, inner))


def terms_of(value: Any) -> Iterator[Term]:
    """The terms that a value is made of."""
    if isinstance(value, SymbolicBool | SymbolicNumber | SymbolicToken):
        yield value.term
    elif isinstance(value, SymbolicClaims):
        yield from terms_of(value.present)
        yield from terms_of(value.flags)
    elif isinstance(value, tuple):
        for item in value:
            yield from terms_of(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from terms_of(getattr(value, field.name))
