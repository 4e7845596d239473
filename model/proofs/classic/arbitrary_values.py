"""Arbitrary groups, members, messages and contexts, of a size that the proof fixes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.classic.core.state import MemberView, Protocol, Slot
from fencepost.model.classic.theorems.ghost_state import GhostState
from fencepost.model.logic import absent, and_, not_, or_
from fencepost.model.proofs.symbolic_values import (
    SymbolFactory,
    SymbolicClaims,
    SymbolicNumber,
    SymbolicToken,
    formula,
    name_term,
)
from fencepost.model.proofs.terms import Term
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
