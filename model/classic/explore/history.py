"""The explored world with its past: the facts that the proof's statements speak of and no row of the world shows.

The facts and the ledger are those of the proof. Only what the statements at hand ask for is kept, lest states differ by
what nobody will look at.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Self

from fencepost.model.classic.core.state import (
    CommitResponse,
    Context,
    Group,
    JoinRequest,
    JoinResponse,
    SyncRequest,
    SyncResponse,
)
from fencepost.model.classic.explore.group_model import GroupModel
from fencepost.model.classic.explore.state_layout import (
    COORDINATOR,
    PROCESS,
    Bounds,
    CoordinatorState,
    IncomingResponse,
    ModelConfig,
    ProcessState,
    column_of,
    untimed_member,
)
from fencepost.model.classic.member.member import PartitionCommit
from fencepost.model.classic.theorems.ghost_state import (
    CommitAccepted,
    GhostState,
    JoinResponseSent,
    Process,
    SyncResponseSent,
    record_coordinator_step,
    record_new_id,
    record_request,
)
from fencepost.model.classic.theorems.ghost_state import Process as Named
from fencepost.model.errors import Error
from fencepost.model.explore.engine import PathStep, replay_path, search_until_found
from fencepost.model.explore.transition_system import Action, Check, Column, Transition, TransitionSystem, Value
from fencepost.model.logic import Truth
from fencepost.model.sorts import Handle, MemberId, numbered_id
from fencepost.model.statement import Statement

RELEVANT_ERRORS = (Error.NONE, Error.MEMBER_ID_REQUIRED)
"""No statement speaks of answers with another error."""


@dataclass(frozen=True, slots=True)
class HashableGhostState:
    """The ledger of a run as a value that can be compared: each row begins with what is looked up."""

    ids: tuple[tuple[MemberId | None, MemberId | None, int], ...] = ()
    requests: tuple[tuple[Handle, int, MemberId | None, int], ...] = ()
    generations: tuple[tuple[int, tuple[MemberId | None, ...]], ...] = ()

    def identity_of(self, member: MemberId | None) -> MemberId | None:
        """See Ledger."""
        return next((person for one, person, _ in self.ids if one == member), None)

    def holder_of(self, member: MemberId | None) -> int:
        """See Ledger."""
        return next((holder for one, _, holder in self.ids if one == member), 0)

    def sender_of(self, handle: Handle) -> int:
        """See Ledger."""
        return self._request(handle)[1]

    def member_id_in(self, handle: Handle) -> MemberId | None:
        """See Ledger."""
        return self._request(handle)[2]

    def generation_in(self, handle: Handle) -> int:
        """See Ledger."""
        return self._request(handle)[3]

    def _request(self, handle: Handle) -> tuple[Handle, int, MemberId | None, int]:
        return next((row for row in self.requests if row[0] == handle), (handle, 0, None, 0))

    def owner_of(self, generation: int, partition: int) -> MemberId | None:
        """See Ledger."""
        return next((owners[partition] for one, owners in self.generations if one == generation), None)

    def with_id(self, member: MemberId | None, identity: MemberId | None, holder: int) -> Self:
        """See Ledger."""
        return replace(self, ids=with_row(self.ids, (member, identity, holder)))

    def with_request(self, handle: Handle, sender: int, asked_as: MemberId | None, asked_in: int) -> Self:
        """See Ledger."""
        return replace(self, requests=with_row(self.requests, (handle, sender, asked_as, asked_in)))

    def with_owners(self, when: Truth, first: int, last: int, owners: tuple[MemberId | None, ...]) -> Self:
        """See Ledger."""
        rows = self.generations
        for generation in range(first, last + 1) if when else ():
            rows = with_row(rows, (generation, owners))
        return replace(self, generations=rows)


def with_row(rows: tuple[Any, ...], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The rows, in order, with one written anew."""
    others = {one[0]: one for one in rows}
    return tuple(one for _, one in sorted((others | {row[0]: row}).items()))


@dataclass(frozen=True, slots=True)
class History:
    """The run so far: the ledger, and the facts of requests sent, responses given and commits accepted."""

    ghost: GhostState = HashableGhostState()
    facts: frozenset[Any] = frozenset()


@dataclass(slots=True)
class HistoryRecorder:
    """Writes the past of one world, as far as the kinds of things in `kinds` go."""

    model: GroupModel
    kinds: frozenset[type]

    def with_facts(self, history: History, ghost: GhostState, facts: list[Any]) -> History:
        """The past with more in it."""
        new = history.facts | {fact for fact in facts if type(fact) in self.kinds}
        return History(ghost if GhostState in self.kinds else history.ghost, new)

    def record_member_step(self, history: History, index: int, transition: Transition) -> History:
        """The past after a process acted or heard something."""
        ledger, facts = history.ghost, list[Any]()
        for _, written in transition.writes:
            match written:
                case JoinRequest() | SyncRequest():
                    request = replace(written, handle=self.model.handle_of(index, written.handle))
                    ledger = record_request(ledger, index + 1, request)
                    facts.append(request)
                case PartitionCommit():
                    facts.append(written)
        return self.with_facts(history, ledger, facts)

    def record_coordinator_step(
        self, history: History, index: int, before: CoordinatorState, request: Any, transition: Transition
    ) -> History:
        """The past after a step of the coordinator."""
        after: CoordinatorState = dict(transition.writes)[COORDINATOR]
        ledger, facts = history.ghost, list[Any]()
        if isinstance(request, JoinRequest) and after.last_id > before.last_id:
            handle = self.model.handle_of(index, request.handle)
            ledger = record_new_id(ledger, before.group, numbered_id(after.last_id), request.instance, handle)
        if isinstance(request, PartitionCommit) and self.is_accepted(before.group, index, request):
            facts.append(CommitAccepted(before.group, request))
        ledger = record_coordinator_step(ledger, before.group, after.group, self.model.config.partitions)
        for column, written in transition.writes:
            if isinstance(written, IncomingResponse) and written.request is None:
                facts += self.response_facts(process_of(column), written)
        return self.with_facts(history, ledger, facts)

    def is_accepted(self, group: Group, index: int, request: PartitionCommit) -> bool:
        """The coordinator accepts the commit."""
        step = self.model.handle_request(group, index, request, Context(now=0))
        return CommitResponse(Error.NONE) in [output.response for output in step.outputs]

    def response_facts(self, process: int, incoming: IncomingResponse) -> Iterator[JoinResponseSent | SyncResponseSent]:
        """The answer as a fact."""
        handle = self.model.handle_of(process, incoming.number)
        match incoming.response:
            case JoinResponse(error) as response if error in RELEVANT_ERRORS:
                yield JoinResponseSent(handle, response)
            case SyncResponse(error) as response if error in RELEVANT_ERRORS:
                yield SyncResponseSent(handle, response)

    def process_fact(self, index: int, process: ProcessState) -> Named:
        """The process as the statements know it."""
        member = process.member
        waiting = self.model.handle_of(index, member.waiting) if member.waiting else 0
        return Named(index + 1, replace(member, waiting=waiting))


def process_of(column: int) -> int:
    """The process that a column belongs to."""
    return (column - column_of(0, 0)) // (column_of(1, 0) - column_of(0, 0))


@dataclass(slots=True)
class RecordedAction:
    """A site whose moves also write the past."""

    chronicle: HistoryRecorder
    site: Action
    column: int
    known: dict[tuple[Value, ...], tuple[Transition, ...]] = field(default_factory=dict)

    def __call__(self, *values: Value) -> tuple[Transition, ...]:
        *read, past = values
        seen = tuple(read)
        if seen not in self.known:
            self.known[seen] = self.site.transitions(*seen)
        return tuple(self.with_history(seen, past, move) for move in self.known[seen])

    def with_history(self, read: tuple[Value, ...], history: History, transition: Transition) -> Transition:
        """The move with what it adds to the past."""
        if transition.cut:
            return transition
        index = process_of(self.site.columns[-1])
        if self.site.columns[0] == COORDINATOR:
            request = read[1] if len(read) > 1 else None
            after = self.chronicle.record_coordinator_step(history, index, read[0], request, transition)
        else:
            after = self.chronicle.record_member_step(history, index, transition)
        return (
            transition if after == history else replace(transition, writes=(*transition.writes, (self.column, after)))
        )


@dataclass(frozen=True, slots=True)
class StatementCheck:
    """A statement of the proof as a property of states: of the past, the coordinator and the processes."""

    chronicle: HistoryRecorder
    statement: Statement

    def __call__(self, history: History, coordinator: CoordinatorState, *processes: ProcessState) -> bool:
        named = [self.chronicle.process_fact(index, process) for index, process in enumerate(processes)]
        there: dict[type, list[Any]] = {Group: [coordinator.group], GhostState: [history.ghost], Named: named}
        for fact in history.facts:
            there.setdefault(type(fact), []).append(fact)
        arguments = product(*(there.get(kind, []) for kind in self.statement.subjects))
        return all(self.statement.holds(*one) for one in arguments)


def system_with_history(config: ModelConfig, bounds: Bounds, statements: Sequence[Statement]) -> TransitionSystem:
    """The group's world in full with its past, and the statements as its properties."""
    world = GroupModel(config, bounds)
    bare = world.system()
    chronicle = HistoryRecorder(world, frozenset(kind for one in statements for kind in one.subjects))
    column = len(bare.columns)
    sites = tuple(
        replace(site, columns=(*site.columns, column), transitions=RecordedAction(chronicle, site, column))
        for site in bare.actions
    )
    read = (column, COORDINATOR, *(column_of(index, PROCESS) for index in range(world.count)))
    checks = tuple(Check(one.id, read, StatementCheck(chronicle, one)) for one in statements)
    columns, initial = (*bare.columns, Column("past", "past")), (*bare.initial, History())
    return replace(bare, columns=columns, initial=initial, actions=sites, checks=checks)


# --- Real breaches of the statements of the proof: runs from the start that end in one, searched for breadth first.
#
# A counterexample to induction begins in a state that may never come about. What is found here did come about: each
# step of the way is a call of the same handlers.

MAX_STATES = 100_000
"""How many states are looked at in each instance, if it has so many."""


@dataclass(frozen=True, slots=True)
class ModelInstance:
    """A small world to search in."""

    name: str
    config: ModelConfig
    bounds: Bounds


INSTANCES = (
    ModelInstance("one member", ModelConfig((untimed_member(),)), Bounds(ids=2, generations=2, requests=5, slots=1)),
    ModelInstance(
        "one static member",
        ModelConfig((untimed_member(instance="one"),)),
        Bounds(ids=2, generations=2, requests=5, slots=1),
    ),
    ModelInstance(
        "two members", ModelConfig((untimed_member(), untimed_member()), heartbeats=False), Bounds(2, 2, 4, 2)
    ),
    ModelInstance(
        "two members, one of them static",
        ModelConfig((untimed_member(), untimed_member(instance="one")), heartbeats=False),
        Bounds(ids=3, generations=2, requests=4, slots=2),
    ),
)
"""Tried in this order: a story with fewer members is easier to follow."""


@dataclass(frozen=True, slots=True)
class ViolationPath:
    """A run from the start after which a statement does not hold; no run in this instance is shorter."""

    statement: str
    instance: ModelInstance
    steps: tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class ViolationSearchResult:
    """What was found, the shortest first, and how many states were looked at."""

    violations: tuple[ViolationPath, ...]
    states: int

    def violation_of(self, statement: str) -> ViolationPath | None:
        """The breach of this statement, if one was found."""
        return next((breach for breach in self.violations if breach.statement == statement), None)


def find_violations(
    statements: Iterable[Statement],
    limit: int = MAX_STATES,
    progress: Callable[[str, int, int], None] = lambda doing, number, total: None,
) -> ViolationSearchResult:
    """Search for a real breach of each statement; `progress` is told of each search, its number and how many at most.

    Statements that ask for the same kinds of past are searched for together.
    """
    kinds: dict[frozenset[type], list[Statement]] = {}
    for one in statements:
        kinds.setdefault(frozenset(one.subjects) - {Group, Process}, []).append(one)
    found: dict[str, ViolationPath] = {}
    states = number = 0
    for together in kinds.values():
        for instance in INSTANCES:
            number += 1
            missing = [one for one in together if one.id not in found]
            if missing:
                names = ", ".join(one.id for one in missing)
                progress(f"real breach of {names}: {instance.name}", number, len(kinds) * len(INSTANCES))
                breaches, looked_at = search_instance(missing, instance, limit)
                found |= {breach.statement: breach for breach in breaches}
                states += looked_at
    return ViolationSearchResult(tuple(sorted(found.values(), key=lambda breach: len(breach.steps))), states)


def search_instance(
    statements: Sequence[Statement], instance: ModelInstance, limit: int
) -> tuple[list[ViolationPath], int]:
    """A shortest breach of each statement, if there is one in the instance, and how many states were looked at."""
    wanted = {one.id for one in statements}
    result = search_until_found(system_with_history(instance.config, instance.bounds, statements), wanted, limit)
    found = [finding for finding in result.discoveries if finding.name in wanted]
    return [ViolationPath(one.name, instance, replay_path(result.tables, one)) for one in found], result.states
