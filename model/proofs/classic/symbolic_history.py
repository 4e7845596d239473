"""The ghost state of an arbitrary run: uninterpreted functions, and the entries that the step at hand adds to them."""

from dataclasses import dataclass, replace
from typing import Any, Self

import z3

from fencepost.model.logic import Truth, and_
from fencepost.model.proofs.symbolic_values import SymbolicNumber, SymbolicToken, formula, name_term, number_term
from fencepost.model.proofs.terms import Term, alternative, application, equation, identical, is_false, is_true, numeral
from fencepost.model.sorts import Handle, MemberId

_PERSON = z3.Function("person", z3.IntSort(), z3.IntSort())
_HOLDER = z3.Function("holder", z3.IntSort(), z3.IntSort())
_SENDER = z3.Function("sender", z3.IntSort(), z3.IntSort())
_ASKED_AS = z3.Function("asked_as", z3.IntSort(), z3.IntSort())
_ASKED_IN = z3.Function("asked_in", z3.IntSort(), z3.IntSort())
_OWNER = z3.Function("owner", z3.IntSort(), z3.IntSort(), z3.IntSort())


@dataclass(frozen=True, slots=True)
class SymbolicGhostState:
    """A ghost state about which nothing is known but what was written since."""

    ids: tuple[tuple[Term, Term, Term], ...] = ()
    requests: tuple[tuple[Term, Term, Term, Term], ...] = ()
    owners: tuple[tuple[Any, Term, Term, tuple[Term, ...]], ...] = ()
    """Of generations from the first to the last, where a condition holds."""

    def identity_of(self, member: MemberId | None) -> MemberId | None:
        """See `GhostState`."""
        at = name_term(member)
        found = application(_PERSON, at)
        for born, person, _ in self.ids:
            found = _where(at, born, person, found)
        return _member_id(found)

    def holder_of(self, member: MemberId | None) -> int:
        """See `GhostState`."""
        at = name_term(member)
        found = application(_HOLDER, at)
        for born, _, holder in self.ids:
            found = _where(at, born, holder, found)
        return _number(found)

    def sender_of(self, handle: Handle) -> int:
        """See `GhostState`."""
        return _number(self._request(handle, _SENDER, 1))

    def member_id_in(self, handle: Handle) -> MemberId | None:
        """See `GhostState`."""
        return _member_id(self._request(handle, _ASKED_AS, 2))

    def generation_in(self, handle: Handle) -> int:
        """See `GhostState`."""
        return _number(self._request(handle, _ASKED_IN, 3))

    def _request(self, handle: Handle, before: Any, column: int) -> Term:
        at = number_term(handle)
        found = application(before, at)
        for row in self.requests:
            found = _where(at, row[0], row[column], found)
        return found

    def owner_of(self, generation: int, partition: int) -> MemberId | None:
        """See `GhostState`."""
        at = number_term(generation)
        found = application(_OWNER, at, numeral(partition))
        for when, first, last, owners in self.owners:
            here = formula(and_(when, is_within(at, first, last)))
            if not is_false(here):
                found = owners[partition] if is_true(here) else alternative(here, owners[partition], found)
        return _member_id(found)

    def with_id(self, member: MemberId | None, identity: MemberId | None, holder: int) -> Self:
        """See `GhostState`."""
        return replace(self, ids=(*self.ids, (name_term(member), name_term(identity), number_term(holder))))

    def with_request(self, handle: Handle, sender: int, asked_as: MemberId | None, asked_in: int) -> Self:
        """See `GhostState`."""
        row = (number_term(handle), number_term(sender), name_term(asked_as), number_term(asked_in))
        return replace(self, requests=(*self.requests, row))

    def with_owners(self, when: Truth, first: int, last: int, owners: tuple[MemberId | None, ...]) -> Self:
        """See `GhostState`."""
        if when is False:
            return self
        row = (when, number_term(first), number_term(last), tuple(name_term(owner) for owner in owners))
        return replace(self, owners=(*self.owners, row))


def _number(term: Term) -> int:
    number: Any = SymbolicNumber(term)
    return number  # type: ignore[no-any-return]


def _member_id(term: Term) -> MemberId | None:
    token: Any = SymbolicToken(term)
    return token  # type: ignore[no-any-return]


def is_within(at: Term, first: Term, last: Term) -> Truth:
    """The number is from `first` to `last`."""
    number = SymbolicNumber(at)
    if identical(first, last):
        return and_(number == SymbolicNumber(first))
    return and_(number >= SymbolicNumber(first), number <= SymbolicNumber(last))


def _where(at: Term, key: Term, there: Term, elsewhere: Term) -> Term:
    return there if identical(at, key) else alternative(equation(at, key), there, elsewhere)
