"""Arbitrary values: symbolic ones of every kind that a proof speaks of."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from enum import IntEnum
from typing import Any, get_type_hints

import z3

from fencepost.model.classic.core.state import MemberView, Protocol, Slot
from fencepost.model.classic.theorems.ghost_state import GhostState
from fencepost.model.logic import absent, and_, not_, or_
from fencepost.model.proofs.symbolic_values import (
    SymbolicBool,
    SymbolicClaims,
    SymbolicNumber,
    SymbolicToken,
    formula,
    name_term,
)
from fencepost.model.proofs.terms import Term, numeral

_HANDLES = {"join", "sync", "handle", "waiting"}
_IDS = {"id", "member", "leader"}
_TIMES = {"deadline", "join_deadline", "sync_deadline", "now"}
_ABSENT = {"client"}
"""Fields that the core passes on and nothing asks for."""


@dataclass(slots=True)
class SymbolFactory:
    """The size of the world, and every symbol made so far: ids and handles apart, for what is new differs from them."""

    slots: int
    partitions: int
    protocols: int = 1
    ids: list[SymbolicToken] = field(default_factory=list)
    handles: list[SymbolicNumber] = field(default_factory=list)
    new_ids: list[SymbolicToken] = field(default_factory=list)
    new_handles: list[SymbolicNumber] = field(default_factory=list)
    domain: list[Term] = field(default_factory=list)
    made: int = 0

    def arbitrary(self, kind: type, label: str) -> Any:
        """Any value of this kind."""
        if is_dataclass(kind):
            hints = get_type_hints(kind)
            return kind(**{f.name: self._field(f.name, hints[f.name], f"{label}.{f.name}") for f in fields(kind)})
        if kind is bool:
            return SymbolicBool(z3.Bool(self._name(label)))
        if kind is int:
            return self.number(label)
        if isinstance(kind, type) and issubclass(kind, IntEnum):
            number = z3.Int(self._name(label))
            self.domain.append(z3.Or(*(number == numeral(value) for value in kind)))
            return SymbolicNumber(number, kind)
        return self.name(label)

    def number(self, label: str) -> SymbolicNumber:
        """Any number."""
        return SymbolicNumber(z3.Int(self._name(label)))

    def name(self, label: str) -> SymbolicToken:
        """Any token."""
        term = z3.Int(self._name(label))
        self.domain.append(term >= 0)
        return SymbolicToken(term)

    def handle(self, label: str) -> SymbolicNumber:
        """Any handle, 0 for none."""
        number = self.number(label)
        self.domain.append(number.term >= 0)
        self.handles.append(number)
        return number

    def member_id(self, label: str) -> SymbolicToken:
        """Any member id, or none."""
        name = self.name(label)
        self.ids.append(name)
        return name

    def new_id(self, label: str) -> SymbolicToken:
        """An id that nobody has or had, nor asked with: see `freshness_terms`."""
        name = self.name(label)
        self.new_ids.append(name)
        return name

    def new_handle(self, label: str) -> SymbolicNumber:
        """A handle that no request had: see `freshness_terms`."""
        number = self.number(label)
        self.new_handles.append(number)
        return number

    def freshness_terms(self, ghost: GhostState) -> Iterator[Term]:
        """What is new differs from whatever was there before."""
        for name in self.new_ids:
            yield name.term > 0
            yield from (name.term != other.term for other in self.ids)
            for handle in self.handles:
                asked: Any = handle
                yield name.term != name_term(ghost.member_id_in(asked))
        for number in self.new_handles:
            yield number.term > 0
            yield from (number.term != other.term for other in self.handles)

    def claims(self, label: str) -> SymbolicClaims:
        """Any claims, or none."""
        return SymbolicClaims(self.arbitrary(bool, label), self.flags(label))

    def flags(self, label: str) -> tuple[Any, ...]:
        """A truth value for each partition."""
        return tuple(self.arbitrary(bool, f"{label}.{part}") for part in range(self.partitions))

    def many(self, kind: type, count: int, label: str) -> tuple[Any, ...]:
        """Several values of a kind."""
        return tuple(self.arbitrary(kind, f"{label}.{index}") for index in range(count))

    def _name(self, label: str) -> str:
        self.made += 1
        return f"{label}#{self.made}"

    def _field(self, name: str, kind: Any, label: str) -> Any:
        if name in _ABSENT:
            return None
        if name in _HANDLES and kind is int:
            return self.handle(label)
        if name in _IDS and kind is Any:
            return self.member_id(label)
        if name in _TIMES:
            return self.number(label)
        if name in {"metadata", "assignment"}:
            return self.claims(label)
        if name in {"owned", "partitions"}:
            return self.flags(label)
        if name in {"slots", "members", "protocols", "names", "assignments", "entries"}:
            return self._table(name, label)
        return self.arbitrary(kind, label)

    def _table(self, name: str, label: str) -> tuple[Any, ...]:
        if name == "slots":
            return self.many(Slot, self.slots, label)
        if name == "members":
            return self.many(MemberView, self.slots, label)
        if name == "protocols":
            return self._offered_protocols(label)
        if name == "names":
            names = tuple(self.name(f"{label}.{index}") for index in range(self.protocols))
            self.domain.extend(name.term > 0 for name in names)
            return names
        if name == "entries":
            return ((self.member_id(label), self.name(label)),)
        return tuple((self.member_id(label), self.claims(label)) for _ in range(self.slots))

    def _offered_protocols(self, label: str) -> tuple[Protocol, ...]:
        """Up to so many protocols; a nameless one is none, and none follows it."""
        offered: tuple[Protocol, ...] = self.many(Protocol, self.protocols, label)
        for index, protocol in enumerate(offered):
            after = offered[index + 1 : index + 2]
            none = and_(absent(protocol.metadata), *(absent(other.name) for other in after))
            self.domain.append(formula(or_(not_(absent(protocol.name)), none)))
        return offered
