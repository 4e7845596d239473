"""The ghost state of an arbitrary run: uninterpreted functions, and the entries that the step at hand adds to them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import z3

from fencepost.model.classic.core.state import MemberView, Protocol, Slot
from fencepost.model.classic.theorems.ghost_state import GhostState
from fencepost.model.logic import Truth, absent, and_, not_, or_
from fencepost.model.proofs.arbitrary_values import SymbolFactory
from fencepost.model.proofs.symbolic_values import (
    SymbolicClaims,
    SymbolicNumber,
    SymbolicToken,
    formula,
    name_term,
    number_term,
)
from fencepost.model.proofs.terms import Term, alternative, application, equation, identical, is_false, is_true, numeral
from fencepost.model.sorts import (
    Assignment,
    ClientId,
    Handle,
    InstanceId,
    MemberId,
    Metadata,
    PartitionFlags,
    ProtocolName,
    ProtocolType,
)

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


# --- Arbitrary groups, members, messages and contexts, of a size that the proof fixes.


@dataclass(slots=True)
class GroupSymbols(SymbolFactory):
    """Symbols for a group of a size. Member ids and handles are kept apart, because new ones differ from all others."""

    slots: int = 1
    partitions: int = 1
    protocols: int = 1
    ids: list[SymbolicToken] = field(default_factory=list)
    handles: list[SymbolicNumber] = field(default_factory=list)
    new_ids: list[SymbolicToken] = field(default_factory=list)
    new_handles: list[SymbolicNumber] = field(default_factory=list)

    def __post_init__(self) -> None:
        SymbolFactory.__post_init__(self)
        tokens = (InstanceId | None, ProtocolType, ProtocolType | None, ProtocolName | None, ClientId | None)
        self.makers |= {
            **dict.fromkeys(tokens, self.token),
            MemberId | None: self.member_id,
            Handle: self.handle,
            Metadata | None: self.claims,
            Assignment | None: self.claims,
            PartitionFlags: self.flags,
            tuple[Slot, ...]: lambda label: self.many(Slot, self.slots, label),
            tuple[MemberView, ...]: lambda label: self.many(MemberView, self.slots, label),
            tuple[Protocol, ...]: self.offered_protocols,
            tuple[ProtocolName, ...]: self.protocol_names,
            tuple[tuple[MemberId | None, InstanceId | None], ...]: self.leaving_member,
            tuple[tuple[MemberId | None, Assignment | None], ...]: self.assignments,
        }

    def member_id(self, label: str) -> SymbolicToken:
        """Any member id, or none."""
        token = self.token(label)
        self.ids.append(token)
        return token

    def handle(self, label: str) -> SymbolicNumber:
        """Any handle, 0 for none."""
        number = self.number(label)
        self.domain.append(number.term >= 0)
        self.handles.append(number)
        return number

    def new_id(self, label: str) -> SymbolicToken:
        """A member id that no member has or had and no request carried: see `freshness_terms`."""
        token = self.token(label)
        self.new_ids.append(token)
        return token

    def new_handle(self, label: str) -> SymbolicNumber:
        """A handle that no request had: see `freshness_terms`."""
        number = self.number(label)
        self.new_handles.append(number)
        return number

    def freshness_terms(self, ghost: GhostState) -> Iterator[Term]:
        """The terms by which new ids and handles differ from all others, those in the ghost state included."""
        for token in self.new_ids:
            yield token.term > 0
            yield from (token.term != other.term for other in self.ids)
            for handle in self.handles:
                requested: Any = handle
                yield token.term != name_term(ghost.member_id_in(requested))
        for number in self.new_handles:
            yield number.term > 0
            yield from (number.term != other.term for other in self.handles)

    def claims(self, label: str) -> SymbolicClaims:
        """Any claims, or none."""
        return SymbolicClaims(self.truth(label), self.flags(label))

    def flags(self, label: str) -> tuple[Any, ...]:
        """A truth value for each partition."""
        return self.many(bool, self.partitions, label)

    def protocol_names(self, label: str) -> tuple[SymbolicToken, ...]:
        """The names that a member is configured with."""
        names = tuple(self.token(f"{label}.{index}") for index in range(self.protocols))
        self.domain.extend(name.term > 0 for name in names)
        return names

    def offered_protocols(self, label: str) -> tuple[Protocol, ...]:
        """Up to `protocols` protocols: one without a name stands for none, and none follows it."""
        offered: tuple[Protocol, ...] = self.many(Protocol, self.protocols, label)
        for index, protocol in enumerate(offered):
            after = offered[index + 1 : index + 2]
            none = and_(absent(protocol.metadata), *(absent(other.name) for other in after))
            self.domain.append(formula(or_(not_(absent(protocol.name)), none)))
        return offered

    def leaving_member(self, label: str) -> tuple[tuple[SymbolicToken, SymbolicToken], ...]:
        """The one entry of a LeaveGroup."""
        return ((self.member_id(label), self.token(label)),)

    def assignments(self, label: str) -> tuple[tuple[SymbolicToken, SymbolicClaims], ...]:
        """An assignment for each slot of the table."""
        return tuple((self.member_id(label), self.claims(label)) for _ in range(self.slots))
