"""Breadth-first search with exact states: the base of every search, and the search in plain Python."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from fencepost.model.explore.bit_packing import BitLayout
from fencepost.model.explore.transition_system import PropertyKind, Transition, Value
from fencepost.model.explore.transition_tables import Effect, TransitionTables

NO_LIMIT = 1 << 62
DEADLOCK = "no-deadlock"
"""The name of the property that something can always happen."""
Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search has come: the depth, the states so far, and of the states on the present level those done."""

    depth: int
    states: int
    level: int
    done: int


SearchWatch = Callable[[SearchProgress], bool]
"""Told now and then how far a search has come; the search ends early where the answer is false."""


def watch_nothing(progress: SearchProgress) -> bool:
    """Nobody looks, the search goes on."""
    return True


@dataclass(frozen=True, slots=True)
class Discovery:
    """A property that was violated, or a witness that was found: its name and kind, and a shortest path there.

    `violating_step` is the move after the way that breaks the property; None if the last state of the way does.
    """

    name: str
    kind: PropertyKind
    path: tuple[Row, ...]
    violating_step: Transition | None = None


@dataclass(slots=True)
class Exploration:
    """What a search found. Transitions are counted with their repetitions; `cut` are those beyond the bounds."""

    tables: TransitionTables
    reached_states: Callable[[], Iterable[int]]
    """The states in the order in which they were found."""
    states: int = 0
    transitions: int = 0
    cut: int = 0
    depth: int = 0
    seconds: float = 0.0
    finished: bool = False
    deadlocks: int = 0
    """States in which nothing at all can happen."""
    discoveries: list[Discovery] = field(default_factory=list)

    @property
    def violations(self) -> tuple[Discovery, ...]:
        """The properties that fail."""
        return tuple(finding for finding in self.discoveries if finding.kind is PropertyKind.ALWAYS)

    def find_witnesses(self) -> set[str]:
        """All that some move is a witness of."""
        tables = self.tables.actions
        moves = (move for table in tables for moves in table.transitions.values() for move, _ in moves)
        return {name for move in moves if not move.cut for name in move.shows}

    def rule_counts(self) -> dict[str, int]:
        """The rules that applied, and to how many combinations of what a site reads."""
        counts: dict[str, int] = {}
        for table in self.tables.actions:
            for moves in table.transitions.values():
                for rule in {move.rule for move, _ in moves if move.rule and not move.cut}:
                    counts[rule] = counts.get(rule, 0) + 1
        return counts


class Search(ABC):
    """A search under way."""

    def __init__(self, tables: TransitionTables, limit: int = NO_LIMIT) -> None:
        self.tables = tables
        self.limit = limit
        self.result = Exploration(tables, self.reached_states)
        self._found: set[str] = set()

    def run(self, watch: SearchWatch = watch_nothing) -> Exploration:
        """Explore until nothing new is found, there are more than the limit's number of states, or `watch` ends it.

        Raises `StateTooWide` if this search cannot hold the states.
        """
        began = perf_counter()
        result, goes_on = self.result, True
        try:
            while goes_on and self._frontier_size() and self._state_count() <= self.limit:
                self._check_properties()
                self._extend_tables()
                goes_on = self._advance(watch)
        finally:
            result.states, result.finished = self._state_count(), not self._frontier_size()
            result.seconds = perf_counter() - began
        return result

    @abstractmethod
    def reached_states(self) -> Iterable[int]:
        """The states in the order in which they were found."""

    @abstractmethod
    def _state_count(self) -> int:
        """How many states there are so far."""

    @abstractmethod
    def _frontier_size(self) -> int:
        """How many states there are on the present level."""

    @abstractmethod
    def _check_properties(self) -> None:
        """Look at the properties on the present level."""

    @abstractmethod
    def _extend_tables(self) -> None:
        """Have the tables ready for every state of the present level."""

    @abstractmethod
    def _advance(self, watch: SearchWatch) -> bool:
        """Go on to the next level; false if that was cut short."""

    @abstractmethod
    def path_to(self, state: int) -> tuple[int, ...]:
        """The states from the first one to this one, as few as possible."""

    @abstractmethod
    def find_state(self, mask: int, values: Collection[int]) -> int | None:
        """Some state of the present level that has one of these values under the mask."""

    def check_property(self, index: int, fresh: Collection[int]) -> None:
        """Look at a property where its columns have values that are new."""
        check = self.tables.system.checks[index]
        if check.name in self._found:
            return
        telling = {local for local in fresh if self.tables.holds(check, local) != (check.kind is PropertyKind.ALWAYS)}
        state = self.find_state(self.tables.layout.mask(check.columns), telling) if telling else None
        if state is not None:
            self._report(check.name, check.kind, state)

    def report_violations(self, breaches: Sequence[Transition]) -> None:
        """Moves that were learned just now break properties; some state of the level makes each of them possible."""
        for move in breaches:
            if move.violates in self._found:
                continue
            for table in self.tables.actions:
                keys = [
                    key for key, moves in table.transitions.items() if any(candidate is move for candidate, _ in moves)
                ]
                locals_ = {self.tables.layout.pack(key, table.action.columns) for key in keys}
                state = self.find_state(table.mask, locals_) if locals_ else None
                if state is not None and move.violates not in self._found:
                    self._report(move.violates, PropertyKind.ALWAYS, state, move)

    def report_deadlock(self, state: int) -> None:
        """Nothing can happen in this state of the present level."""
        if DEADLOCK not in self._found:
            self._report(DEADLOCK, PropertyKind.ALWAYS, state)

    def _report(self, name: str, kind: PropertyKind, state: int, breach: Transition | None = None) -> None:
        self._found.add(name)
        way = tuple(self.tables.values(one) for one in self.path_to(state))
        self.result.discoveries.append(Discovery(name, kind, way, breach))


BATCH_SIZE = 1 << 12
"""After how many states the search in plain Python tells how far it has come."""
MOST_MET = 1 << 22
"""How many successors the search in plain Python remembers as they were before they were reduced."""
Site = tuple[int, dict[int, tuple[Effect, ...]], dict[int, int]]
"""What a site reads, and its moves and cuts for each combination of that."""


class PlainSearch(Search):
    """The search in plain Python, for states of any width. Every state has a parent, and so a shortest way to it."""

    def __init__(self, tables: TransitionTables, limit: int = NO_LIMIT) -> None:
        super().__init__(tables, limit)
        self.parents: dict[int, int] = {tables.initial: -1}
        self._met: set[int] = set()
        """The successors that were met, as they were before they were reduced."""
        self._level = [tables.initial]
        self._checked: list[set[int]] = [set() for _ in tables.system.checks]

    def reached_states(self) -> Iterable[int]:
        """The states in the order in which they were found."""
        return self.parents

    def _state_count(self) -> int:
        return len(self.parents)

    def _frontier_size(self) -> int:
        return len(self._level)

    def path_to(self, state: int) -> tuple[int, ...]:
        """The states from the first one to this one, as few as possible."""
        way = [state]
        while self.parents[way[-1]] != -1:
            way.append(self.parents[way[-1]])
        return tuple(reversed(way))

    def find_state(self, mask: int, values: Collection[int]) -> int | None:
        """Some state of the present level that has one of these values under the mask."""
        return next((state for state in self._level if state & mask in values), None)

    def _check_properties(self) -> None:
        for index, (check, checked) in enumerate(zip(self.tables.system.checks, self._checked, strict=True)):
            mask = self.tables.layout.mask(check.columns)
            fresh = {state & mask for state in self._level} - checked
            self.check_property(index, fresh)
            checked |= fresh

    def _extend_tables(self) -> None:
        fresh: list[set[int]] = [set() for _ in self.tables.actions]
        for local, states in self._by_gates(self._level):
            for index in self.tables.open_actions(local):
                table = self.tables.actions[index]
                mask, known = table.mask, table.effects
                fresh[index].update([read for state in states if (read := state & mask) not in known])
        before, breaches = self.tables.run_actions(fresh)
        if before is not None:
            self._relayout(before)
        self.report_violations(breaches)

    def _by_gates(self, states: Sequence[int]) -> Iterable[tuple[int, Sequence[int]]]:
        """The states by what they have in the columns of gates."""
        mask = self.tables.gate_mask
        if not mask:
            return [(0, states)]
        found: dict[int, list[int]] = {}
        for state in states:
            found.setdefault(state & mask, []).append(state)
        return found.items()

    def _relayout(self, before: BitLayout) -> None:
        """Everything in the layout that the tables are in now."""
        after = self.tables.layout
        moved = {state: before.repack(state, after) for state in self.parents}
        self._level = [moved[state] for state in self._level]
        self._met = set()
        moved[-1] = -1
        self.parents = {moved[state]: moved[parent] for state, parent in self.parents.items()}
        self._checked = [set() for _ in self._checked]

    def _advance(self, watch: SearchWatch) -> bool:
        level, found = self._level, list[int]()
        for start in range(0, len(level), BATCH_SIZE):
            if not watch(SearchProgress(self.result.depth, len(self.parents), len(level), start)):
                return False
            self._expand_states(level[start : start + BATCH_SIZE], found)
        self._level = found
        self.result.depth += 1
        return True

    def _expand_states(self, states: Sequence[int], found: list[int]) -> None:
        """Find the states that follow on these and are new."""
        result, parents = self.result, self.parents
        sites = [(table.mask, table.effects, table.cuts) for table in self.tables.actions]
        gates, open_sites = self.tables.gate_mask, dict[int, list[Site]]()
        smaller = self.tables.canonical if self.tables.reduces else None
        if len(self._met) > MOST_MET:
            self._met = set()
        met = self._met
        for state in states:
            moves = cut = 0
            gated = state & gates
            if gated not in open_sites:
                open_sites[gated] = [sites[index] for index in self.tables.open_actions(gated)]
            for mask, effects, cuts in open_sites[gated]:
                local = state & mask
                cut += cuts[local]
                for keep, put in effects[local]:
                    moves += 1
                    successor = state & keep | put
                    if successor in met:
                        continue
                    met.add(successor)
                    if smaller is not None:
                        successor = smaller(successor)
                    if successor not in parents:
                        parents[successor] = state
                        found.append(successor)
            result.transitions += moves
            result.cut += cut
            if moves + cut == 0:
                result.deadlocks += 1
                self.report_deadlock(state)
