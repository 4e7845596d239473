"""Transition systems to explore: a row of columns, and sites that read a few of them and write some."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from fencepost.model.statement import Statement

Value: TypeAlias = Any
"""What a column holds: hashable and immutable; None where there is nothing."""
Permutation: TypeAlias = tuple[int, ...]
"""Where each block goes: block i of a row becomes block `permutation[i]`."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the row. Columns of one kind share their values."""

    name: str
    kind: Hashable


@dataclass(frozen=True, slots=True)
class Transition:
    """Something that happens: what it writes, by column. `rule` is the branch of the handler, if one ran.

    A `cut` move leads beyond the bounds and is not followed. `violates` names the property that the move itself breaks,
    `shows` what it is a witness of.
    """

    label: str
    writes: tuple[tuple[int, Value], ...] = ()
    rule: str = ""
    cut: bool = False
    violates: str = ""
    shows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gate:
    """A column that keeps a site from happening where it is not open, whatever its other columns hold. It only spares
    a search the combinations that have no moves."""

    column: int
    is_open: Callable[[Value], bool]


@dataclass(frozen=True, slots=True)
class Action:
    """A place where something can happen: the values of its columns decide which moves there are.

    At a `patient` site something happens only where nothing else can; a search for liveness respects that.
    """

    name: str
    columns: tuple[int, ...]
    transitions: Callable[..., tuple[Transition, ...]]
    patient: bool = False
    gate: Gate | None = None


def handler_action(
    name: str,
    columns: tuple[int, ...],
    handle: Callable[..., tuple[str, tuple[Value, ...]] | None],
    statements: tuple[Statement, ...] = (),
    is_beyond: Callable[[Value], bool] = lambda state: False,
) -> Action:
    """The action of a handler that gets the values of its columns and returns its rule and the values after it, None
    where it cannot happen.

    The first column holds the state: the `statements` say what holds of it before and after each step, and a state that
    `is_beyond` the bounds is cut.
    """

    def transitions(*before: Value) -> tuple[Transition, ...]:
        step = handle(*before)
        if step is None:
            return ()
        rule, after = step
        violated = next((one.id for one in statements if not one.holds(before[0], after[0])), "")
        return (Transition(name, tuple(zip(columns, after, strict=True)), rule, is_beyond(after[0]), violated),)

    return Action(name, columns, transitions)


@dataclass(frozen=True, slots=True)
class Clearing:
    """A column that can be emptied where `is_dead` holds of these columns: its value is never read again."""

    column: int
    columns: tuple[int, ...]
    is_dead: Callable[..., bool]


class PropertyKind(StrEnum):
    """Where a property holds."""

    ALWAYS = "always"
    """In every state."""
    SOMETIMES = "sometimes"
    """In some state."""


@dataclass(frozen=True, slots=True)
class Check:
    """A property of these columns; one that holds SOMETIMES is a witness."""

    name: str
    columns: tuple[int, ...]
    holds: Callable[..., bool]
    kind: PropertyKind = PropertyKind.ALWAYS


@dataclass(frozen=True, slots=True)
class Symmetry:
    """Blocks of columns that are alike. `rename` turns the value of another column under a permutation of them.

    The first permutation changes nothing.
    """

    blocks: tuple[tuple[int, ...], ...]
    permutations: tuple[Permutation, ...]
    rename: Callable[[Value, Permutation], Value]


@dataclass(frozen=True, slots=True)
class TransitionSystem:
    """What a search explores: the initial row and the actions, with the properties that are checked.

    `clearings` and `symmetry` only make the state space smaller. `render_value` puts a column's value into words.
    """

    columns: tuple[Column, ...]
    initial: tuple[Value, ...]
    actions: tuple[Action, ...]
    clearings: tuple[Clearing, ...] = ()
    checks: tuple[Check, ...] = ()
    symmetry: Symmetry | None = None
    render_value: Callable[[Value], str] = str
