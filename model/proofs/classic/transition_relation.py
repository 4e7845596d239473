"""The symbolic relation of an event on plain values: which paths of the executor admit a situation, and what follows.

The paths are the prover's own, under its own assumptions; their conditions and results are evaluated as they stand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import z3

from fencepost.model.logic import Token
from fencepost.model.proofs.classic.counterexample import plain, settled
from fencepost.model.proofs.classic.induction import STATEMENTS, Size, asked
from fencepost.model.proofs.classic.proof_events import Event
from fencepost.model.proofs.symbolic_values import Boolean, Claims, Name, Number
from fencepost.model.proofs.term_evaluation import Program, Value
from fencepost.model.proofs.terms import Term, address


class Uncovered(Exception):
    """A situation is not among those that the proof is about."""


class Tokens:
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
class Branch:
    """One path: where the truth of its conditions is, its result, and how that is evaluated (once it has to be)."""

    conditions: tuple[int, ...]
    result: Any
    program: Program | None = None


class Relation:
    """An event's transitions. `taken` has the numbers of the paths that admitted something, of `count`."""

    def __init__(self, event: Event, size: Size) -> None:
        question = asked(event, STATEMENTS, size)
        situation = question.situation
        self._subject = situation.group if situation.process is None else situation.process.member
        self._arguments = situation.arguments
        own = {address(leaf) for leaf in leaves((self._subject, self._arguments))}
        assumed = (*situation.shapes.domain, *situation.assumed)
        domain = [term for term in assumed if constants(term) <= own]
        self._branches: list[Branch] = []
        self._tokens = Tokens()
        self.taken: set[int] = set()
        found = list(question.paths())
        self._program = Program([*domain, *(each for _, conditions in found for each in conditions)])
        self._scope = tuple(self._program.place(each) for each in domain)
        for happened, conditions in found:
            places = tuple(self._program.place(each) for each in conditions)
            self._branches.append(Branch(places, happened.result))

    @property
    def count(self) -> int:
        """How many paths there are."""
        return len(self._branches)

    def steps(self, subject: Any, arguments: Sequence[Any]) -> list[Any]:
        """What follows on each path that admits this situation. Raises `Uncovered`."""
        given: dict[int, Value] = {}
        self._give(given, self._subject, subject)
        self._give(given, self._arguments, tuple(arguments))
        values = self._program.run(given)
        if not all(values[place] for place in self._scope):
            raise Uncovered("the situation is outside of the domain that is assumed")
        admitting = [
            number for number, branch in enumerate(self._branches) if all(values[place] for place in branch.conditions)
        ]
        self.taken.update(admitting)
        return [self._result(self._branches[number], given) for number in admitting]

    def _result(self, branch: Branch, given: dict[int, Value]) -> Any:
        if branch.program is None:
            branch.program = Program(leaves(branch.result))
        program, values = branch.program, branch.program.run(given)
        return settled(plain(branch.result, lambda term: values[program.place(term)], self._tokens.token))

    def _give(self, given: dict[int, Value], symbolic: Any, value: Any) -> None:
        """Say what each constant stands for; what a table has fewer of stands for nobody."""
        if isinstance(symbolic, Boolean):
            given[address(symbolic.term)] = bool(value)
        elif isinstance(symbolic, Number):
            given[address(symbolic.term)] = 0 if value is None else int(value)
        elif isinstance(symbolic, Name):
            given[address(symbolic.term)] = self._tokens.number(value)
        elif isinstance(symbolic, Claims):
            self._give(given, symbolic.present, value is not None)
            self._give(given, symbolic.flags, value)
        elif isinstance(symbolic, tuple):
            values = () if value is None else value
            if len(values) > len(symbolic):
                raise Uncovered(f"{len(values)} are more than {len(symbolic)}")
            for index, each in enumerate(symbolic):
                self._give(given, each, values[index] if index < len(values) else None)
        elif is_dataclass(symbolic):
            for field in fields(symbolic):
                inner = None if value is None else getattr(value, field.name)
                self._give(given, getattr(symbolic, field.name), inner)
        elif symbolic is not None and symbolic != value:
            raise Uncovered(f"{value} is not {symbolic}")


def constants(term: Term) -> set[int]:
    """The addresses of the constants in a term."""
    inner = term.children()
    if not inner:
        return {address(term)} if term.decl().kind() == z3.Z3_OP_UNINTERPRETED else set()
    return set().union(*map(constants, inner))


def leaves(value: Any) -> Iterator[Term]:
    """The terms that a value is made of."""
    if isinstance(value, Boolean | Number | Name):
        yield value.term
    elif isinstance(value, Claims):
        yield from leaves(value.present)
        yield from leaves(value.flags)
    elif isinstance(value, tuple):
        for item in value:
            yield from leaves(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from leaves(getattr(value, field.name))
