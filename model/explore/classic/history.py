"""The explored world with its past: what the statements of the proof speak of and no row of the world shows.

The facts and the ledger are those of the proof. Only what the statements at hand ask for is kept, lest states differ by
what nobody will look at.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from fencepost.model.classic.core.state import (
    CommitAnswer,
    Context,
    Group,
    JoinAnswer,
    JoinRequest,
    SyncAnswer,
    SyncRequest,
)
from fencepost.model.classic.member.member import PartitionCommit
from fencepost.model.classic.theorems.ghost_state import (
    Accepted,
    JoinAnswered,
    Ledger,
    SyncAnswered,
    born,
    observed,
    recorded,
)
from fencepost.model.classic.theorems.ghost_state import Process as Named
from fencepost.model.classic.theorems.statements import Statement
from fencepost.model.errors import Error
from fencepost.model.explore.classic.group_model import GroupWorld
from fencepost.model.explore.classic.state_layout import (
    COORDINATOR,
    PROCESS,
    Bounds,
    Coordinator,
    Heard,
    Process,
    Setting,
    column_of,
)
from fencepost.model.explore.transition_system import Check, Column, Move, Site, System, Value
from fencepost.model.logic import Token, Truth

HEEDED = (Error.NONE, Error.MEMBER_ID_REQUIRED)
"""No statement speaks of answers with another error."""


@dataclass(frozen=True, slots=True)
class Record:
    """The ledger of a run as a value that can be compared: each row begins with what is looked up."""

    ids: tuple[tuple[Token, Token, int], ...] = ()
    requests: tuple[tuple[int, int, Token, int], ...] = ()
    generations: tuple[tuple[int, tuple[Token, ...]], ...] = ()

    def person(self, member: Token) -> Token:
        """See Ledger."""
        return next((person for one, person, _ in self.ids if one == member), None)

    def holder(self, member: Token) -> int:
        """See Ledger."""
        return next((holder for one, _, holder in self.ids if one == member), 0)

    def sender(self, handle: int) -> int:
        """See Ledger."""
        return self._request(handle)[1]

    def asked_as(self, handle: int) -> Token:
        """See Ledger."""
        return self._request(handle)[2]

    def asked_in(self, handle: int) -> int:
        """See Ledger."""
        return self._request(handle)[3]

    def _request(self, handle: int) -> tuple[int, int, Token, int]:
        return next((row for row in self.requests if row[0] == handle), (handle, 0, None, 0))

    def owner(self, generation: int, partition: int) -> Token:
        """See Ledger."""
        return next((owners[partition] for one, owners in self.generations if one == generation), None)

    def with_id(self, member: Token, person: Token, holder: int) -> "Record":
        """See Ledger."""
        return replace(self, ids=with_row(self.ids, (member, person, holder)))

    def with_request(self, handle: int, sender: int, asked_as: Token, asked_in: int) -> "Record":
        """See Ledger."""
        return replace(self, requests=with_row(self.requests, (handle, sender, asked_as, asked_in)))

    def with_owners(self, when: Truth, generation: int, owners: tuple[Token, ...]) -> "Record":
        """See Ledger."""
        return replace(self, generations=with_row(self.generations, (generation, owners))) if when else self


def with_row(rows: tuple[Any, ...], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The rows, in order, with one written anew."""
    others = {one[0]: one for one in rows}
    return tuple(one for _, one in sorted((others | {row[0]: row}).items()))


@dataclass(frozen=True, slots=True)
class Past:
    """What happened so far: the ledger, and what was sent, answered and accepted."""

    ledger: Ledger = Record()
    facts: frozenset[Any] = frozenset()


@dataclass(slots=True)
class Chronicle:
    """Writes the past of one world, as far as the kinds of things in `asked` go."""

    world: GroupWorld
    asked: frozenset[type]

    def with_facts(self, past: Past, ledger: Ledger, facts: list[Any]) -> Past:
        """The past with more in it."""
        new = past.facts | {fact for fact in facts if type(fact) in self.asked}
        return Past(ledger if Ledger in self.asked else past.ledger, new)

    def acted(self, past: Past, index: int, move: Move) -> Past:
        """The past after a process acted or heard something."""
        ledger, facts = past.ledger, list[Any]()
        for _, written in move.writes:
            match written:
                case JoinRequest() | SyncRequest():
                    request = replace(written, handle=self.world.handle(index, written.handle))
                    ledger = recorded(ledger, index + 1, request)
                    facts.append(request)
                case PartitionCommit():
                    facts.append(written)
        return self.with_facts(past, ledger, facts)

    def served(self, past: Past, index: int, before: Coordinator, request: Any, move: Move) -> Past:
        """The past after a step of the coordinator."""
        after: Coordinator = dict(move.writes)[COORDINATOR]
        ledger, facts = past.ledger, list[Any]()
        if isinstance(request, JoinRequest) and after.last_id > before.last_id:
            handle = self.world.handle(index, request.handle)
            ledger = born(ledger, before.group, after.last_id, request.instance, handle)
        if isinstance(request, PartitionCommit) and self.accepts(before.group, index, request):
            facts.append(Accepted(before.group, request))
        ledger = observed(ledger, before.group, after.group, self.world.setting.partitions)
        for column, written in move.writes:
            if isinstance(written, Heard) and written.request is None:
                facts += self.answered(owner_of(column), written)
        return self.with_facts(past, ledger, facts)

    def accepts(self, group: Group, index: int, request: PartitionCommit) -> bool:
        """The coordinator accepts the commit."""
        step = self.world.handled(group, index, request, Context(now=0))
        return CommitAnswer(Error.NONE) in [output.answer for output in step.outputs]

    def answered(self, process: int, heard: Heard) -> Iterator[JoinAnswered | SyncAnswered]:
        """The answer as a fact."""
        handle = self.world.handle(process, heard.number)
        match heard.answer:
            case JoinAnswer(error) as answer if error in HEEDED:
                yield JoinAnswered(handle, answer)
            case SyncAnswer(error) as answer if error in HEEDED:
                yield SyncAnswered(handle, answer)

    def named(self, index: int, process: Process) -> Named:
        """The process as the statements know it."""
        member = process.member
        waiting = self.world.handle(index, member.waiting) if member.waiting else 0
        return Named(index + 1, replace(member, waiting=waiting))


def owner_of(column: int) -> int:
    """The process that a column belongs to."""
    return (column - column_of(0, 0)) // (column_of(1, 0) - column_of(0, 0))


@dataclass(slots=True)
class Watching:
    """A site whose moves also write the past."""

    chronicle: Chronicle
    site: Site
    column: int
    known: dict[tuple[Value, ...], tuple[Move, ...]] = field(default_factory=dict)

    def __call__(self, *values: Value) -> tuple[Move, ...]:
        *read, past = values
        seen = tuple(read)
        if seen not in self.known:
            self.known[seen] = self.site.moves(*seen)
        return tuple(self.watched(seen, past, move) for move in self.known[seen])

    def watched(self, read: tuple[Value, ...], past: Past, move: Move) -> Move:
        """The move with what it adds to the past."""
        if move.cut:
            return move
        index = owner_of(self.site.columns[-1])
        if self.site.columns[0] == COORDINATOR:
            request = read[1] if len(read) > 1 else None
            after = self.chronicle.served(past, index, read[0], request, move)
        else:
            after = self.chronicle.acted(past, index, move)
        return move if after == past else replace(move, writes=(*move.writes, (self.column, after)))


@dataclass(frozen=True, slots=True)
class Holds:
    """A statement of the proof as a property of states: of the past, the coordinator and the processes."""

    chronicle: Chronicle
    statement: Statement

    def __call__(self, past: Past, coordinator: Coordinator, *processes: Process) -> bool:
        named = [self.chronicle.named(index, process) for index, process in enumerate(processes)]
        there: dict[type, list[Any]] = {Group: [coordinator.group], Ledger: [past.ledger], Named: named}
        for fact in past.facts:
            there.setdefault(type(fact), []).append(fact)
        arguments = product(*(there.get(kind, []) for kind in self.statement.about))
        return all(self.statement.holds(*one) for one in arguments)


def with_past(setting: Setting, bounds: Bounds, statements: Sequence[Statement]) -> System:
    """The group's world in full with its past, and the statements as its properties."""
    world = GroupWorld(setting, bounds)
    bare = world.system()
    chronicle = Chronicle(world, frozenset(kind for one in statements for kind in one.about))
    column = len(bare.columns)
    sites = tuple(
        replace(site, columns=(*site.columns, column), moves=Watching(chronicle, site, column)) for site in bare.sites
    )
    read = (column, COORDINATOR, *(column_of(index, PROCESS) for index in range(world.count)))
    checks = tuple(Check(one.id, read, Holds(chronicle, one)) for one in statements)
    return System((*bare.columns, Column("past", "past")), (*bare.initial, Past()), sites, checks=checks)
