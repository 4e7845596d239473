"""Rows whose columns have names: the actions of a design read and write them by name.

An action is a function of a view, which shows the columns that it reads and whom it is about. Smaller systems are one
value that goes from step to step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar

from fencepost.model.explore.transition_system import (
    Action,
    Check,
    Column,
    Gate,
    PropertyKind,
    Transition,
    TransitionSystem,
    Value,
)
from fencepost.model.frozen import evolve

Transitions: TypeAlias = tuple[Transition, ...]
NOTHING: Transitions = ()
"""What an action does where it cannot happen."""
Write: TypeAlias = tuple[int, Value]
Place: TypeAlias = int | tuple[int, ...]
"""Where a name's column is, or its columns are: the view then has a tuple of their values."""


class RowView:
    """What an action sees: the columns that it reads, and whom it is about. Subclasses say the types of the names."""

    places: Mapping[str, Place]

    def writes(self, **values: Any) -> tuple[Write, ...]:
        """The writes of new values into the columns of these names."""
        found: list[Write] = []
        for name, value in values.items():
            place = self.places[name]
            found += [(place, value)] if isinstance(place, int) else zip(place, value, strict=True)
        return tuple(found)

    def does(self, label: str, rule: str = "", violates: str = "", cut: bool = False, **values: Any) -> Transitions:
        """The one thing that happens: it writes these values into the columns of these names."""
        return (Transition(label, self.writes(**values), rule, cut, violates),)


View = TypeVar("View", bound=RowView)


@dataclass(frozen=True, slots=True)
class ActionMaker(Generic[View]):
    """Makes the actions about one actor of a row. `about` is what their views have beside columns."""

    view: type[View]
    places: Mapping[str, Place]
    about: Mapping[str, Any]

    def action(
        self, name: str, reads: str, transitions: Callable[[View], Transitions], gate: Gate | None = None
    ) -> Action:
        """The action that reads the columns of these names."""
        names = reads.split()
        places = [self.places[each] for each in names]
        is_plain = all(isinstance(place, int) for place in places)
        context = (("places", self.places), *self.about.items())

        def run(*values: Value) -> Transitions:
            view = self.view()
            for each, value in context:
                setattr(view, each, value)
            for each, value in zip(names, values if is_plain else values_in(places, values), strict=True):
                setattr(view, each, value)
            return transitions(view)

        columns = [column for place in places for column in ((place,) if isinstance(place, int) else place)]
        return Action(name, tuple(columns), run, gate=gate)


def values_in(places: Iterable[Place], values: Iterable[Value]) -> Iterator[Value]:
    """The values of the places in turn: a tuple where a place is several columns."""
    given = iter(values)
    return (next(given) if isinstance(place, int) else tuple(islice(given, len(place))) for place in places)


# --- Faults that may happen so often: a dataclass with a number for each.


def spend_fault(faults: Any, name: str) -> Any:
    """The faults that are left after one of this name."""
    return evolve(faults, **{name: getattr(faults, name) - 1})


def describe_faults(faults: Any) -> list[str]:
    """The faults that may happen, each with its number in words."""
    counts = {each.name.replace("_", " "): getattr(faults, each.name) for each in fields(faults)}
    return [f"{count} {name}" for name, count in counts.items() if count]


# --- Systems of one column.


def value_system(
    name: str,
    first: Value,
    steps: Callable[[Any], Iterable[tuple[Any, ...]]],
    checks: Mapping[str, Callable[[Any], bool]],
    kind: PropertyKind = PropertyKind.ALWAYS,
) -> TransitionSystem:
    """The system of one value. `steps` yields label and next value, and the property that a step breaks if any does."""

    def transitions(value: Value) -> Transitions:
        return tuple(
            Transition(label, ((0, after),), violates="".join(broken)) for label, after, *broken in steps(value)
        )

    return TransitionSystem(
        (Column(name, name),),
        (first,),
        (Action("step", (0,), transitions),),
        checks=tuple(Check(each, (0,), holds, kind) for each, holds in checks.items()),
    )
