"""The moves of each site, by the numbers of the values it reads: handlers run here, once for each combination."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from fencepost.model.explore.bit_packing import BitLayout, layout_for
from fencepost.model.explore.transition_system import Action, Check, Clearing, Transition, TransitionSystem, Value

Writes = tuple[tuple[int, int], ...]
"""Numbers to write, by column."""
Effect = tuple[int, int]
"""A move on packed states: `state & keep | put`."""


PermutedFields = tuple[tuple[tuple[int, int], ...], tuple[tuple[list[int], int, int], ...]]
"""What a permutation does to a state: the shifts from and to which it moves each block, and the numbers that it renames
outside of blocks, each with shift and mask. The lists of numbers grow with the values (`_rename_new_values`)."""


@dataclass(slots=True)
class ActionTable:
    """The moves of a site for each combination seen; `effects` are those that are followed, in the present layout."""

    action: Action
    mask: int = 0
    transitions: dict[tuple[int, ...], tuple[tuple[Transition, Writes], ...]] = field(default_factory=dict)
    effects: dict[int, tuple[Effect, ...]] = field(default_factory=dict)
    cuts: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CanonicalMasks:
    """Where in a layout lies what canonical states depend on. Shifts and widths are in bits.

    `clearings` has the mask of each clearing's column and that of what it reads, `blocks` the shift of each block,
    `places` the shift that each permutation gives to each block, `others` column, shift and mask outside of blocks.
    """

    clearings: tuple[tuple[int, int], ...]
    block: int = 0
    blocks: tuple[int, ...] = ()
    places: tuple[tuple[int, ...], ...] = ()
    others: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def of(cls, system: TransitionSystem, layout: BitLayout) -> "CanonicalMasks":
        """The masks of a system in a layout."""
        clearings = tuple((layout.mask((one.column,)), layout.mask(one.columns)) for one in system.clearings)
        symmetry = system.symmetry
        if symmetry is None:
            return cls(clearings)
        width = sum(layout.widths[column] for column in symmetry.blocks[0])
        inside = {column for block in symmetry.blocks for column in block}
        return cls(
            clearings,
            (1 << width) - 1,
            tuple(index * width for index in range(len(symmetry.blocks))),
            tuple(tuple(place * width for place in permutation) for permutation in symmetry.permutations),
            tuple(
                (column, layout.shifts[column], (1 << layout.widths[column]) - 1)
                for column in range(len(layout.shifts))
                if column not in inside
            ),
        )


class TransitionTables:
    """The numbers of all values, and what the sites do with them."""

    def __init__(self, system: TransitionSystem) -> None:
        self.system = system
        self._values: dict[Hashable, list[Value]] = {column.kind: [None] for column in system.columns}
        self._held = [self._values[column.kind] for column in system.columns]
        self._numbers: dict[Hashable, dict[Value, int]] = {column.kind: {None: 0} for column in system.columns}
        self._renamed: dict[Hashable, list[list[int]]] = {}
        self._blocks = {column for block in (system.symmetry.blocks if system.symmetry else ()) for column in block}
        self.actions = [ActionTable(site) for site in system.actions]
        self._over: list[dict[int, bool]] = [{} for _ in system.clearings]
        self._gates = [action.gate for action in system.actions if action.gate is not None]
        self.gate_mask = 0
        """The bits of all columns that have gates."""
        self._open: dict[int, tuple[int, ...]] = {}
        self.layout = self._layout()
        self._lay_out()
        self.initial, *_ = self.intern_rows([system.initial])

    # -- values -------------------------------------------------------------------------------------------------

    def values(self, state: int, columns: Sequence[int] | None = None) -> tuple[Value, ...]:
        """The values in these columns of a state, by default in all."""
        chosen = range(len(self.system.columns)) if columns is None else columns
        return tuple([self._held[column][self.layout.field(state, column)] for column in chosen])

    def known_values(self, column: int) -> Sequence[Value]:
        """All values that columns of this kind can have; the first is None."""
        return self._held[column]

    def intern_rows(self, rows: Sequence[Sequence[Value]]) -> list[int]:
        """The states of these rows, whose values become known before anything was learned."""
        numbers = [[self._number(column, value) for column, value in enumerate(row)] for row in rows]
        self._fit_layout()
        self._rename_new_values()
        return [self.canonical(self.layout.pack(row)) for row in numbers]

    def _number(self, column: int, value: Value) -> int:
        kind = self.system.columns[column].kind
        number = self._numbers[kind].get(value)
        if number is not None:
            return number
        symmetry = self.system.symmetry
        if symmetry is None or column in self._blocks:
            return self._add(kind, value)
        orbit = [symmetry.rename(value, permutation) for permutation in symmetry.permutations]
        for image in orbit:
            if image not in self._numbers[kind]:
                self._add(kind, image)
        return self._numbers[kind][value]

    def _add(self, kind: Hashable, value: Value) -> int:
        number = self._numbers[kind][value] = len(self._values[kind])
        self._values[kind].append(value)
        return number

    def renamed_numbers(self, column: int) -> list[list[int]]:
        """For each permutation, the number that each number of this column turns into."""
        symmetry = self.system.symmetry
        assert symmetry is not None
        kind = self.system.columns[column].kind
        rows = self._renamed.setdefault(kind, [[] for _ in symmetry.permutations])
        for value in self._values[kind][len(rows[0]) :]:
            for row, permutation in zip(rows, symmetry.permutations, strict=True):
                row.append(self._numbers[kind][symmetry.rename(value, permutation)])
        return rows

    # -- moves --------------------------------------------------------------------------------------------------

    def open_actions(self, local: int) -> tuple[int, ...]:
        """The indexes of the actions whose gates are open in states that are like this under the gates' mask."""
        found = self._open.get(local)
        if found is None:
            gates = ((index, table.action.gate) for index, table in enumerate(self.actions))
            found = self._open[local] = tuple(
                index
                for index, gate in gates
                if gate is None or gate.is_open(self._held[gate.column][self.layout.field(local, gate.column)])
            )
        return found

    def run_actions(self, fresh: Sequence[Iterable[int]]) -> tuple[BitLayout | None, list[Transition]]:
        """Run the handlers on combinations not seen before, one collection for each site.

        Returns the layout so far if it had to become wider, and the moves that break a property.
        """
        breaches: list[Transition] = []
        learned: list[list[tuple[int, ...]]] = []
        for table, states in zip(self.actions, fresh, strict=True):
            places = self.layout.places(table.action.columns)
            keys = [tuple([state >> shift & mask for shift, mask in places]) for state in states]
            for key in keys:
                table.transitions[key] = self._run(table.action, key)
                breaches += [move for move, _ in table.transitions[key] if move.violates]
            learned.append(keys)
        before = self._fit_layout()
        self._rename_new_values()
        if before is not None:
            return before, breaches
        for table, keys in zip(self.actions, learned, strict=True):
            self._pack(table, keys)
        return None, breaches

    def _run(self, action: Action, key: tuple[int, ...]) -> tuple[tuple[Transition, Writes], ...]:
        values = [self._held[column][number] for column, number in zip(action.columns, key, strict=True)]
        return tuple((move, self._writes(move)) for move in action.transitions(*values))

    def _writes(self, transition: Transition) -> Writes:
        return tuple((column, self._number(column, value)) for column, value in transition.writes)

    def _pack(self, table: ActionTable, keys: Iterable[tuple[int, ...]]) -> None:
        for key in keys:
            state = self.layout.pack(key, table.action.columns)
            moves = table.transitions[key]
            table.effects[state] = tuple(self._effect(writes) for move, writes in moves if not move.cut)
            table.cuts[state] = sum(move.cut for move, _ in moves)

    def _effect(self, writes: Writes) -> Effect:
        shifts, widths = self.layout.shifts, self.layout.widths
        keep, put = (1 << self.layout.bits) - 1, 0
        for column, number in writes:
            keep &= ~((1 << widths[column]) - 1 << shifts[column])
            put |= number << shifts[column]
        return keep, put

    def _layout(self) -> BitLayout:
        widths = [max(1, (len(self._values[column.kind]) - 1).bit_length()) for column in self.system.columns]
        return layout_for(self.system, widths)

    def _fit_layout(self) -> BitLayout | None:
        """Make room for the numbers of all values. Returns the layout so far if it was too narrow."""
        before, after = self.layout, self._layout()
        if before == after:
            return None
        self.layout = after
        self._over = [{before.repack(local, after): held for local, held in over.items()} for over in self._over]
        self._lay_out()
        return before

    def _lay_out(self) -> None:
        """Write every table anew for the present layout."""
        self._masks = CanonicalMasks.of(self.system, self.layout)
        self.gate_mask = self.layout.mask(tuple({gate.column for gate in self._gates}))
        self._open = {}
        self._permuted = self._permutations()
        self._clearings = [
            (index, *masks, known)
            for index, (masks, known) in enumerate(zip(self._masks.clearings, self._over, strict=True))
        ]
        for table in self.actions:
            table.mask = self.layout.mask(table.action.columns)
            table.effects, table.cuts = {}, {}
            self._pack(table, table.transitions)

    def _permutations(self) -> list[PermutedFields]:
        """Every permutation but the first in the present layout."""
        masks = self._masks
        return [
            (
                tuple(zip(masks.blocks, shifts, strict=True)),
                tuple((self.renamed_numbers(column)[which], shift, mask) for column, shift, mask in masks.others),
            )
            for which, shifts in enumerate(masks.places[1:], 1)
        ]

    def _rename_new_values(self) -> None:
        """Learn what new values turn into under each permutation."""
        for column, _, _ in self._masks.others:
            self.renamed_numbers(column)

    # -- normal forms -------------------------------------------------------------------------------------------

    def is_dead(self, index: int, state: int) -> bool:
        """Whether what a clearing's column holds in a state is over."""
        clearing: Clearing = self.system.clearings[index]
        local = state & self.layout.mask(clearing.columns)
        over = self._over[index].get(local)
        if over is None:
            over = self._over[index][local] = clearing.is_dead(*self.values(state, clearing.columns))
        return over

    @property
    def reduces(self) -> bool:
        """Whether some states stand for others."""
        return bool(self.system.clearings) or self.system.symmetry is not None

    def canonical(self, state: int) -> int:
        """The state that stands for this one and all that differ from it by what is over and by names."""
        for index, held, read, known in self._clearings:
            if state & held:
                over = known.get(state & read)
                if self.is_dead(index, state) if over is None else over:
                    state &= ~held
        return state if self.system.symmetry is None else min((state, *self.images(state)))

    def canonical_row(self, row: Sequence[Value]) -> tuple[Value, ...] | None:
        """The row of the state that stands for this row; None if it holds a value that was never met."""
        kinds = [self._numbers[column.kind] for column in self.system.columns]
        numbers = [numbers.get(value) for numbers, value in zip(kinds, row, strict=True)]
        known = [number for number in numbers if number is not None]
        return self.values(self.canonical(self.layout.pack(known))) if len(known) == len(numbers) else None

    def images(self, state: int) -> list[int]:
        """The state under every permutation of its blocks but the first, which changes nothing."""
        block, images = self._masks.block, []
        for moves, renamings in self._permuted:
            image = 0
            for source, target in moves:
                image |= (state >> source & block) << target
            for renamed, shift, mask in renamings:
                image |= renamed[state >> shift & mask] << shift
            images.append(image)
        return images

    def holds(self, check: Check, state: int) -> bool:
        """Whether a property holds in a state."""
        return check.holds(*self.values(state, check.columns))
