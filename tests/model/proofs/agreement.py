"""Three engines, one set of transitions: the executable step, the symbolic relation, the explored graph.

In every explored state everything that can happen is computed again from plain values. Each handler call on the way is
put to the symbolic relation too, which has to admit it on one path alone, with the same state and the same outputs.
What comes of it has to be the successors that the search has for that state, and all of them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from fencepost.model.classic.core.state import Group
from fencepost.model.classic.explore import coordinator_steps, coordinator_tour, group_model
from fencepost.model.classic.explore.group_system import group_system
from fencepost.model.classic.explore.state_layout import Bounds, ModelConfig
from fencepost.model.classic.member import member as members
from fencepost.model.classic.proofs.induction import ProofSize, keep_sent
from fencepost.model.classic.proofs.proof_events import ProofEvent, coordinator_events, member_events
from fencepost.model.explore.search import NO_LIMIT, PlainSearch
from fencepost.model.explore.transition_system import TransitionSystem
from fencepost.model.explore.transition_tables import TransitionTables
from tests.model.proofs.transition_relation import TransitionRelation

COORDINATOR = {
    "join": "join",
    "sync": "sync",
    "heartbeat": "heartbeat",
    "leave": "leave",
    "commit": "commit",
    "expire_join": "expire-join",
    "expire_sync": "expire-sync",
    "expire_member": "expire-member",
}
"""The handlers of the coordinator by their names in the explored world, and their events."""
MEMBERS = {
    "restart": "member-restart",
    "ask_rejoin": "member-ask-rejoin",
    "disconnect": "member-disconnect",
    "join": "member-join",
    "heartbeat": "member-heartbeat",
    "commit": "member-commit",
    "leave": "member-leave",
    "on_heartbeat_response": "member-heartbeat-response",
    "on_commit_response": "member-commit-response",
    "on_join_response": "member-join-response",
    "on_sync_response": "member-sync-response",
}
"""The handlers of a member, and their events."""


class Disagreement(AssertionError):
    """Two engines say different things."""


@dataclass(slots=True)
class Agreement:
    """What was compared: states and their transitions, handler calls, and the symbolic paths that admitted them."""

    states: int = 0
    transitions: int = 0
    calls: int = 0
    relations: dict[tuple[str, ProofSize], TransitionRelation] = field(default_factory=dict)

    @property
    def paths(self) -> int:
        """How many symbolic paths were taken."""
        return sum(len(relation.taken_paths) for relation in self.relations.values())


class CheckedHandlers:
    """The handlers, each call of which is put to the symbolic relation too."""

    def __init__(self, config: ModelConfig, bounds: Bounds, agreement: Agreement) -> None:
        self._names = max(len(settings.names) for settings in config.members)
        self._partitions = config.partitions
        self._slots = bounds.slots + 1
        self._agreement = agreement
        self._known: set[Any] = set()

    def relation(self, name: str, slots: int) -> TransitionRelation:
        """The relation of an event for so many slots."""
        size = ProofSize(slots, self._partitions, self._names)
        relations = self._agreement.relations
        if (name, size) not in relations:
            relations[name, size] = TransitionRelation(event_named(name, slots), size)
        return relations[name, size]

    def check_handler(self, name: str, handler: Callable[..., Any]) -> Callable[..., Any]:
        """The handler, held against the relation of its event."""

        def both(subject: Any, *arguments: Any) -> Any:
            step = handler(subject, *arguments)
            if (name, subject, arguments) not in self._known:
                self._known.add((name, subject, arguments))
                self._compare(name, subject, arguments, step)
            return step

        return both

    def _compare(self, name: str, subject: Any, arguments: tuple[Any, ...], step: Any) -> None:
        event, slots = name, self._slots
        if isinstance(subject, Group):
            slots = len(subject.slots)
            if name == "expire-member":
                event = f"{name}-{arguments[0]}"
        relation = self.relation(event, slots)
        admitted = relation.steps(subject, arguments)
        self._agreement.calls += 1
        if admitted != [keep_sent(step)]:
            raise Disagreement(f"{event}: {subject} {arguments}\nexecutable: {keep_sent(step)}\nsymbolic: {admitted}")

    @contextmanager
    def installed(self) -> Iterator[None]:
        """While this lasts, the explored world runs on the twins."""
        with pytest.MonkeyPatch.context() as patch:
            for handler, event in COORDINATOR.items():
                twin = self.check_handler(event, getattr(coordinator_tour, handler))
                for module in (coordinator_tour, coordinator_steps):
                    if handler in vars(module):
                        patch.setattr(module, handler, twin)
            own = {name: self.check_handler(event, getattr(members, name)) for name, event in MEMBERS.items()}
            patch.setattr(group_model, "members", SimpleNamespace(new_member=members.new_member, **own))
            yield


def event_named(name: str, slots: int) -> ProofEvent:
    """The event of the proof."""
    return next(event for event in (*coordinator_events(slots), *member_events()) if event.name == name)


def agree(config: ModelConfig, bounds: Bounds, limit: int = NO_LIMIT, agreement: Agreement | None = None) -> Agreement:
    """Compare the engines on every state of a bounded instance, or on those that a search to the limit expands."""
    agreement = agreement or Agreement()
    search = PlainSearch(TransitionTables(group_system(config, bounds, reduced=False)), limit)
    search.run()
    with CheckedHandlers(config, bounds, agreement).installed():
        compare(search, group_system(config, bounds, reduced=False), agreement)
    return agreement


Writes = frozenset[tuple[tuple[int, int], ...]]
"""What the moves at one site write: the numbers of values, by column."""


def compare(search: PlainSearch, system: TransitionSystem, agreement: Agreement) -> None:
    """Hold the successors of each state in the search against what the system does there."""
    tables = search.tables
    columns = range(len(system.columns))
    numbers = [{value: number for number, value in enumerate(tables.known_values(column))} for column in columns]
    known: list[dict[tuple[int, ...], Writes]] = [{} for _ in system.actions]

    def happening(index: int, row: tuple[int, ...]) -> Writes:
        site = system.actions[index]
        read = tuple(row[column] for column in site.columns)
        if read not in known[index]:
            values = (tables.known_values(column)[number] for column, number in zip(site.columns, read, strict=True))
            moves = [move for move in site.transitions(*values) if not move.cut]
            known[index][read] = frozenset(
                tuple((column, numbers[column].get(value, -1)) for column, value in move.writes) for move in moves
            )
        return known[index][read]

    layout = tables.layout
    for state in expanded_states(search):
        row = tuple(layout.field(state, column) for column in columns)
        executable = {row_with(row, writes) for index in range(len(system.actions)) for writes in happening(index, row)}
        successors = {state & keep | put for table in tables.actions for keep, put in table.effects[state & table.mask]}
        explored = {tuple(layout.field(one, column) for column in columns) for one in successors}
        if executable != explored or not successors <= search.parents.keys():
            raise Disagreement(f"{tables.values(state)}: {len(executable)} successors, explored {len(explored)}")
        agreement.states += 1
        agreement.transitions += len(successors)


def row_with(row: tuple[int, ...], writes: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """The row with something written over it."""
    changed = dict(writes)
    return tuple(changed.get(column, number) for column, number in enumerate(row))


def expanded_states(search: PlainSearch) -> Iterator[int]:
    """The states whose successors the search has looked for: all, if it came to its end."""
    tables = search.tables.actions
    for state in search.parents:
        if search.result.finished or all(state & table.mask in table.effects for table in tables):
            yield state
