"""Rows up to names: member ids, generations and request numbers are only compared, so the smallest ones will do.

Order is kept. What grows for ever, like the generation of a group that never settles, then comes back to the same row.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Any, Protocol

from fencepost.model.classic.core.state import (
    CommitResponse,
    Group,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    MemberView,
    Phase,
    Slot,
    SyncRequest,
)
from fencepost.model.classic.explore.group_model import GroupModel
from fencepost.model.classic.explore.state_layout import (
    COLUMNS_PER_PROCESS,
    COMMIT,
    COORDINATOR,
    PROCESS,
    REQUEST,
    RESPONSE,
    Bounds,
    CoordinatorState,
    IncomingResponse,
    ModelConfig,
    ProcessState,
    column_of,
)
from fencepost.model.classic.member.member import (
    NO_GENERATION,
    Member,
    MemberRequest,
    MemberState,
    PartitionCommit,
    no_partitions,
)
from fencepost.model.errors import Error
from fencepost.model.explore.search import Row
from fencepost.model.explore.transition_system import Clearing, TransitionSystem, Value
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.sorts import Handle

ID_FIELDS: Mapping[type, tuple[str, ...]] = {
    Slot: ("id",),
    Group: ("leader",),
    Member: ("id",),
    JoinRequest: ("member",),
    SyncRequest: ("member",),
    HeartbeatRequest: ("member",),
    CommitRequest: ("member",),
    JoinResponse: ("leader", "member"),
    MemberView: ("id",),
}
"""The fields that hold a member id."""
PAIR_FIELDS: Mapping[type, str] = {SyncRequest: "assignments", LeaveRequest: "entries"}
"""The fields that hold pairs of a member id and something else."""
GENERATION_FIELDS: Mapping[type, tuple[str, ...]] = {
    Group: ("generation",),
    Member: ("generation", "owned_in"),
    SyncRequest: ("generation",),
    HeartbeatRequest: ("generation",),
    CommitRequest: ("generation",),
    JoinResponse: ("generation",),
}
"""The fields that hold a generation."""
NUMBER_FIELDS: Mapping[type, tuple[str, ...]] = {
    Member: ("waiting",),
    JoinRequest: ("handle",),
    SyncRequest: ("handle",),
    IncomingResponse: ("number",),
}
"""The fields that hold the number of a request of the process whose column it is; 0 is none."""
NESTED_TYPES = (Group, Slot, Member, MemberView, HeartbeatRequest, CommitRequest, JoinResponse)
"""What lies inside a column's value, with names of its own."""
_HAVE_PARTS = (*NESTED_TYPES, tuple)


class NumberMap(Protocol):
    """What becomes of a number."""

    def get(self, number: int, /) -> int | None:
        """The number that takes the place of a number."""


@dataclass(frozen=True, slots=True)
class NameMap:
    """What becomes of each id, of each generation above 0, and of each process's numbers above 0."""

    id: Callable[[int], int | None]
    generation: Callable[[int], int | None]
    numbers: Sequence[NumberMap]


def rename_value(value: Value, names: NameMap, process: int) -> Value:
    """The value with other names, in a column of this process."""
    if isinstance(value, tuple):
        return tuple(rename_value(one, names, process) for one in value)
    kind: Any = type(value)
    if not hasattr(kind, "__dataclass_fields__"):
        return value
    changes: dict[str, Any] = {}
    for name in ID_FIELDS.get(kind, ()):
        changes[name] = rename_id(getattr(value, name), names)
    for name in GENERATION_FIELDS.get(kind, ()):
        old = getattr(value, name)
        changes[name] = names.generation(old) if old > 0 else old
    for name in NUMBER_FIELDS.get(kind, ()):
        old = getattr(value, name)
        changes[name] = names.numbers[process].get(old) if old > 0 else old
    if kind in PAIR_FIELDS:
        pairs = getattr(value, PAIR_FIELDS[kind])
        changes[PAIR_FIELDS[kind]] = tuple((rename_id(one, names), rest) for one, rest in pairs)
    for name in field_names(kind):
        held = getattr(value, name)
        if isinstance(held, _HAVE_PARTS) and name not in changes:
            changes[name] = rename_value(held, names, process)
    return evolve(value, **changes) if changes else value


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """The names of a dataclass's fields."""
    return tuple(field.name for field in fields(kind))


def rename_id(old: int | None, names: NameMap) -> int | None:
    """What becomes of an id, if it is one."""
    return None if old is None else names.id(old)


@dataclass(frozen=True, slots=True)
class UsedNames:
    """The names that a column's value holds; a number with the process whose it is."""

    ids: frozenset[int]
    generations: frozenset[int]
    numbers: frozenset[tuple[int, int]]


class Canonicalizer:
    """Renames whole rows of a world."""

    def __init__(self, model: GroupModel) -> None:
        self.model = model
        self._found: dict[tuple[int, Value], UsedNames] = {}

    def __call__(self, row: Row) -> Row:
        """The row with the smallest names, in the same order."""
        found = [self.names_in(column, value) for column, value in enumerate(row)]
        ids = rank_values(one for names in found for one in names.ids)
        generations = rank_values(one for names in found for one in names.generations)
        numbers = [
            rank_values(number for names in found for process, number in names.numbers if process == index)
            for index in range(self.model.count)
        ]
        columns: list[Value] = []
        for column, value in enumerate(row):
            names = found[column]
            same = all(ids[one] == one for one in names.ids) and all(
                generations[one] == one for one in names.generations
            )
            if not (same and all(numbers[process][number] == number for process, number in names.numbers)):
                value = self.rename_column(column, value, NameMap(ids.get, generations.get, numbers))
            columns.append(value)
        first: CoordinatorState = columns[COORDINATOR]
        columns[COORDINATOR] = first if first.last_id == len(ids) else evolve(first, last_id=len(ids))
        for index, rank in enumerate(numbers):
            process: ProcessState = columns[column_of(index, 0)]
            columns[column_of(index, 0)] = process if process.last == len(rank) else evolve(process, last=len(rank))
        return tuple(columns)

    def names_in(self, column: int, value: Value) -> UsedNames:
        """The names in a column's value."""
        key = (process_of(column), value)
        if key not in self._found:
            ids: set[int] = set()
            generations: set[int] = set()
            numbers = [NameCollector() for _ in range(self.model.count)]
            self.rename_column(column, value, NameMap(ids.add, generations.add, numbers))
            pairs = frozenset((index, number) for index, noted in enumerate(numbers) for number in noted)
            self._found[key] = UsedNames(frozenset(ids), frozenset(generations), pairs)
        return self._found[key]

    def rename_column(self, column: int, value: Value, names: NameMap) -> Value:
        """The value with other names; the coordinator's handles name a process and its number."""
        if column != COORDINATOR:
            return rename_value(value, names, process_of(column))
        group: Group = rename_value(value.group, names, 0)
        slots = tuple(
            evolve(slot, join=self.rename_handle(slot.join, names), sync=self.rename_handle(slot.sync, names))
            for slot in group.slots
        )
        return evolve(value, group=evolve(group, slots=slots))

    def rename_handle(self, handle: Handle, names: NameMap) -> Handle:
        """A handle with another number."""
        if handle == 0:
            return 0
        process, number = self.model.sender_of(handle)
        return self.model.handle_of(process, names.numbers[process].get(number) or 0)


class NameCollector(set[int]):
    """Notes what it is asked for."""

    def get(self, number: int) -> None:
        """Note the number."""
        self.add(number)


def process_of(column: int) -> int:
    """The process that a column belongs to."""
    return max(0, column - 1) // COLUMNS_PER_PROCESS


def rank_values(values: Iterable[int]) -> dict[int, int]:
    """Each value's place among them, from 1 on."""
    return {value: place for place, value in enumerate(sorted(set(values)), 1)}


# --- Reductions of the explored world: fields that no handler reads again, and messages without any further effect.
#
# Each statement here is an argument about the shipped handlers; the tests compare it with the full search, state by
# state. Time is left out of the world, and a process may join again at any moment; both are used.

AWAITING_STATES = (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)
"""The states in which an answer to JoinGroup or SyncGroup means something."""


def reduce_member(member: Member, restless: bool) -> Member:
    """The member without what no handler will look at. The `restless` join whether or not they have to."""
    without = member.generation == NO_GENERATION
    owned = no_partitions(member.owned) if without else member.owned
    return evolve(
        member,
        rejoins=member.rejoins or restless,
        waiting=member.waiting if member.state in AWAITING_STATES else 0,
        owned=owned,
        owned_in=member.owned_in if any(owned) else NO_GENERATION,
    )


def reduce_slot(slot: Slot, phase: Phase) -> Slot:
    """The slot without what no handler will look at."""
    parked = not slot.is_new and (slot.join != 0 or slot.sync != 0)
    return evolve(
        slot,
        # Whoever waits is not expelled, and the timer is armed again when the wait is over (TIMER-03).
        armed=slot.armed and not parked,
        # Handed out in Stable only, when the leader has brought new ones.
        assignment=None if phase == Phase.COMPLETING else slot.assignment,
    )


def reduce_group(group: Group) -> Group:
    """The group without what no handler will look at."""
    preparing = group.phase == Phase.PREPARING
    return evolve(
        group,
        slots=tuple(reduce_slot(slot, group.phase) for slot in group.slots),
        from_empty=group.from_empty and preparing,
        newcomer=False,  # read while the initial delay has time left, which it never has here
    )


def is_outdated(member: Member, request: HeartbeatRequest | PartitionCommit) -> bool:
    """The member will never again be what it was when it sent this: ids are not reused, generations only grow."""
    asked = request.request if isinstance(request, PartitionCommit) else request
    return bool(member.id != asked.member or member.generation > asked.generation)


def is_response_ignored(process: ProcessState, incoming: IncomingResponse, restless: bool) -> bool:
    """No process will heed this answer, whatever happens first."""
    if incoming.request is None:
        return incoming.number != process.member.waiting
    assert isinstance(incoming.response, HeartbeatResponse | CommitResponse)
    asked = incoming.request
    changed = bool(process.member.id != asked.member or process.member.generation > asked.generation)
    if incoming.response.error == Error.REBALANCE_IN_PROGRESS:
        return restless
    return changed


def is_request_futile(coordinator: CoordinatorState, process: ProcessState, request: MemberRequest) -> bool:
    """The coordinator will refuse this request, whatever happens first, and the process will not heed the refusal."""
    match request:
        case SyncRequest():
            return request.generation < coordinator.group.generation and request.handle != process.member.waiting
        case HeartbeatRequest() | PartitionCommit():
            asked = request.request if isinstance(request, PartitionCommit) else request
            return asked.generation < coordinator.group.generation and is_outdated(process.member, request)
    return False


class ReducedGroupModel(GroupModel):
    """The world of `GroupModel`, where every state comes in its smallest form.

    A process may join again at any moment, so it is all one whether it has to: unless `restless` is false, for those
    who go on without such moments.
    """

    def __init__(self, config: ModelConfig, bounds: Bounds, restless: bool = True) -> None:
        super().__init__(config, bounds)
        self.restless = restless

    def system(self) -> TransitionSystem:
        """The system with its reductions, without properties."""
        full = GroupModel.system(self)
        clearings: list[Clearing] = []
        for index in range(self.count):
            process, request, response, late = (
                column_of(index, which) for which in (PROCESS, REQUEST, RESPONSE, COMMIT)
            )
            clearings.append(
                Clearing(response, (process, response), partial(is_response_ignored, restless=self.restless))
            )
            clearings.append(Clearing(request, (COORDINATOR, process, request), is_request_futile))
            clearings.append(Clearing(late, (COORDINATOR, process, late), is_request_futile))
        return replace(full, clearings=tuple(clearings), symmetry=self.symmetry())

    def reduce_process(self, process: ProcessState) -> ProcessState:
        """The process in its smallest form."""
        return evolve(process, member=reduce_member(process.member, self.restless))

    def reduce_coordinator(self, coordinator: CoordinatorState) -> CoordinatorState:
        """The coordinator in its smallest form."""
        return evolve(coordinator, group=reduce_group(coordinator.group))
