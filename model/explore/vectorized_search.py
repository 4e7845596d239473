"""Breadth-first search a level at a time with numpy, where it is installed and a state fits in 64 bits.

The keys are the packed states themselves, not hashes of them: the search is as exact as the one in plain Python.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fencepost.model.explore.bit_packing import BitLayout
from fencepost.model.explore.search import NO_LIMIT, Search, SearchProgress, SearchWatch
from fencepost.model.explore.transition_system import Clearing
from fencepost.model.explore.transition_tables import ActionTable, TransitionTables

States: TypeAlias = npt.NDArray[np.uint64]
WORD_BITS = 64
"""How many bits a state may have here."""
BATCH_SIZE = 1 << 18
"""How many states are expanded at once."""


class StateTooWide(Exception):
    """A state does not fit in a word; the search in plain Python has no such limit."""


def sort_unique(states: States) -> States:
    """The states in order, each once: by sorting, which is many times as fast as the hash table of `numpy.unique`."""
    states = np.sort(states)
    first = np.ones(len(states), bool)
    np.not_equal(states[1:], states[:-1], out=first[1:])
    once: States = states[first]
    return once


def sort_with_flags(states: States, flags: npt.NDArray[np.bool_]) -> tuple[States, npt.NDArray[np.bool_]]:
    """The states in order, each with its flag."""
    order = np.argsort(states)
    return states[order], flags[order]


def unknown_mask(states: States, known: States) -> npt.NDArray[np.bool_]:
    """Which of the states are not among the known ones, which are in order."""
    if not len(known):
        return np.ones(len(states), bool)
    found: npt.NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, states), len(known) - 1)] != states
    return found


@dataclass(slots=True)
class EffectArrays:
    """The effects of a site as arrays: the combinations in order, and where the effects of each begin."""

    combinations: States = field(default_factory=lambda: np.empty(0, np.uint64))
    first: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    count: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    cut: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    keep: States = field(default_factory=lambda: np.empty(0, np.uint64))
    put: States = field(default_factory=lambda: np.empty(0, np.uint64))

    def add(self, table: ActionTable, fresh: list[int]) -> None:
        """Take over what the table has learned of these combinations."""
        if not fresh:
            return
        counts = [len(table.effects[local]) for local in fresh]
        effects = [effect for local in fresh for effect in table.effects[local]]
        first = len(self.keep) + np.concatenate(([0], np.cumsum(counts, dtype=np.int64)[:-1]))
        known = np.concatenate((self.combinations, np.array(fresh, np.uint64)))
        order = np.argsort(known)
        self.combinations = known[order]
        self.first = np.concatenate((self.first, first))[order]
        self.count = np.concatenate((self.count, np.array(counts, np.int64)))[order]
        self.cut = np.concatenate((self.cut, np.array([table.cuts[local] for local in fresh], np.int64)))[order]
        self.keep = np.concatenate((self.keep, np.array([keep for keep, _ in effects], np.uint64)))
        self.put = np.concatenate((self.put, np.array([put for _, put in effects], np.uint64)))

    def successors(self, states: States, place: npt.NDArray[np.int64]) -> States:
        """Every successor of every state, whose combination is at the given place."""
        count = self.count[place]
        total = int(count.sum())
        ends = np.cumsum(count)
        which = np.arange(total, dtype=np.int64) + np.repeat(self.first[place] - (ends - count), count)
        successors: States = (np.repeat(states, count) & self.keep[which]) | self.put[which]
        return successors


class VectorizedSearch(Search):
    """A search under way, a level at a time. The levels are kept, and a way is found by going back through them."""

    def __init__(self, tables: TransitionTables, limit: int = NO_LIMIT) -> None:
        super().__init__(tables, limit)
        self.levels: list[States] = [np.array([tables.initial], np.uint64)]
        self.seen = self.levels[0]
        self._checked = [np.empty(0, np.uint64) for _ in tables.system.checks]
        self._clearing_results = [(np.empty(0, np.uint64), np.empty(0, bool)) for _ in tables.system.clearings]
        self._reset_effects()

    def reached_states(self) -> Iterable[int]:
        """The states in the order in which they were found, on each level the smallest first."""
        for level in self.levels:
            yield from level.tolist()

    def _state_count(self) -> int:
        return len(self.seen)

    def _frontier_size(self) -> int:
        return len(self.levels[-1])

    def path_to(self, state: int) -> tuple[int, ...]:
        """The states from the first one to this one, as few as possible."""
        depth = next(depth for depth, level in enumerate(self.levels) if (level == np.uint64(state)).any())
        way = [state]
        for level in reversed(self.levels[:depth]):
            way.append(self._find_parent(level, way[-1]))
        return tuple(reversed(way))

    def _find_parent(self, level: States, state: int) -> int:
        for start in range(0, len(level), BATCH_SIZE):
            chunk = level[start : start + BATCH_SIZE]
            is_open = self._open_places(chunk)
            for table, rows, places in zip(self.tables.actions, self._rows, is_open, strict=True):
                some = chunk[places]
                place = np.searchsorted(rows.combinations, some & np.uint64(table.mask))
                hits = self._canonical(rows.successors(some, place)) == np.uint64(state)
                if hits.any():
                    return int(np.repeat(some, rows.count[place])[int(np.argmax(hits))])
        raise AssertionError("every state but the first has a parent on the level before")

    # -- one level ----------------------------------------------------------------------------------------------

    def _extend_tables(self) -> None:
        """Have the tables ready for every state of the last level."""
        frontier = self.levels[-1]
        fresh: list[list[int]] = []
        is_open = self._open_places(frontier)
        for table, rows, places in zip(self.tables.actions, self._rows, is_open, strict=True):
            local = frontier[places] & np.uint64(table.mask)
            fresh.append(sort_unique(local[unknown_mask(local, rows.combinations)]).tolist())
        before, breaches = self.tables.run_actions(fresh)
        if before is not None:
            self._relayout(before)
            fresh = [list(table.effects) for table in self.tables.actions]
        for table, rows, locals_ in zip(self.tables.actions, self._rows, fresh, strict=True):
            rows.add(table, locals_)
        self.report_violations(breaches)

    def _relayout(self, before: BitLayout) -> None:
        """Everything in the layout that the tables are in now."""
        after = self.tables.layout
        if after.bits > WORD_BITS:
            self.levels = [before.repack(level.astype(object), after) for level in self.levels]
            raise StateTooWide(f"a state needs {after.bits} bits")
        self.levels = [before.repack(level, after) for level in self.levels]
        self.seen = np.sort(before.repack(self.seen, after))
        self._checked = [np.sort(before.repack(checked, after)) for checked in self._checked]
        self._clearing_results = [
            sort_with_flags(before.repack(local, after), over) for local, over in self._clearing_results
        ]
        self._reset_effects()

    def _reset_effects(self) -> None:
        self._rows = [EffectArrays() for _ in self.tables.actions]

    def _advance(self, watch: SearchWatch) -> bool:
        frontier, found = self.levels[-1], list[States]()
        for start in range(0, len(frontier), BATCH_SIZE):
            if not watch(SearchProgress(self.result.depth, len(self.seen), len(frontier), start)):
                return False
            found.append(self._successors(frontier[start : start + BATCH_SIZE]))
        level = found[0] if len(found) == 1 else sort_unique(np.concatenate(found))
        place = np.searchsorted(self.seen, level)
        new = self.seen[np.minimum(place, len(self.seen) - 1)] != level
        self.seen = np.insert(self.seen, place[new], level[new])
        self.levels.append(level[new])
        self.result.depth += 1
        return True

    def _successors(self, states: States) -> States:
        result = self.result
        found: list[States] = []
        ways = np.zeros(len(states), np.int64)
        is_open = self._open_places(states)
        for table, rows, places in zip(self.tables.actions, self._rows, is_open, strict=True):
            some = states[places]
            place = np.searchsorted(rows.combinations, some & np.uint64(table.mask))
            cut = rows.cut[place]
            ways[places] += rows.count[place] + cut
            result.cut += int(cut.sum())
            found.append(rows.successors(some, place))
        result.transitions += sum(len(some) for some in found)
        stuck = states[ways == 0]
        result.deadlocks += len(stuck)
        for state in stuck[:1].tolist():
            self.report_deadlock(state)
        return sort_unique(self._canonical(sort_unique(np.concatenate(found))))

    def _open_places(self, states: States) -> "list[slice | npt.NDArray[np.int64]]":
        """For each action the places of the states where its gate is open."""
        actions, gates = range(len(self.tables.actions)), self.tables.gate_mask
        if not gates:
            return [slice(None) for _ in actions]
        kinds, which = np.unique(states & np.uint64(gates), return_inverse=True)
        opened = [set(self.tables.open_actions(local)) for local in kinds.tolist()]
        return [np.flatnonzero(np.array([action in some for some in opened], bool)[which]) for action in actions]

    def _canonical(self, states: States) -> States:
        for index, clearing in enumerate(self.tables.system.clearings):
            states = self._apply_clearing(index, clearing, states)
        if self.tables.system.symmetry is None:
            return states
        images = self._images(states)
        smallest = images[0]
        for image in images[1:]:
            smallest = np.minimum(smallest, image)
        return smallest

    def _apply_clearing(self, index: int, clearing: Clearing, states: States) -> States:
        """The states without what is over by this clearing."""
        held = np.uint64(self.tables.layout.mask((clearing.column,)))
        full = np.flatnonzero(states & held)
        local = states[full] & np.uint64(self.tables.layout.mask(clearing.columns))
        known, over = self._clearing_results[index]
        fresh = sort_unique(local[unknown_mask(local, known)])
        if len(fresh):
            responses = np.array([self.tables.is_dead(index, one) for one in fresh.tolist()], bool)
            known, over = sort_with_flags(np.concatenate((known, fresh)), np.concatenate((over, responses)))
            self._clearing_results[index] = known, over
        states[full[over[np.searchsorted(known, local)]]] &= ~held
        return states

    def _images(self, states: States) -> list[States]:
        symmetry = self.tables.system.symmetry
        assert symmetry is not None
        layout = self.tables.layout
        width = sum(layout.widths[column] for column in symmetry.blocks[0])
        low = np.uint64((1 << width) - 1)
        blocks = [states >> np.uint64(index * width) & low for index in range(len(symmetry.blocks))]
        inside = {column for block in symmetry.blocks for column in block}
        images: list[States] = []
        for which, permutation in enumerate(symmetry.permutations):
            image = np.zeros_like(states)
            for block, place in zip(blocks, permutation, strict=True):
                image |= block << np.uint64(place * width)
            for column in set(range(len(layout.shifts))) - inside:
                names = np.array(self.tables.renamed_numbers(column)[which], np.uint64)
                image |= names[layout.field(states, column)] << np.uint64(layout.shifts[column])
            images.append(image)
        return images

    # -- properties ---------------------------------------------------------------------------------------------

    def find_state(self, mask: int, values: Collection[int]) -> int | None:
        """Some state of the present level that has one of these values under the mask."""
        level = self.levels[-1]
        states = level[np.isin(level & np.uint64(mask), np.array(list(values), np.uint64))]
        return int(states[0]) if len(states) else None

    def _check_properties(self) -> None:
        for index, check in enumerate(self.tables.system.checks):
            local = sort_unique(self.levels[-1] & np.uint64(self.tables.layout.mask(check.columns)))
            fresh = local[unknown_mask(local, self._checked[index])]
            self._checked[index] = sort_unique(np.concatenate((self._checked[index], fresh)))
            self.check_property(index, fresh.tolist())
