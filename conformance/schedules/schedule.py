"""Schedules as plain data: the actors that take part, and their moves one after the other."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fencepost.traces.model_transitions import Transition

Value = int | str
Role: TypeAlias = Any
"""How an actor begins: a value of the protocol's own, hashable and comparable."""


@dataclass(frozen=True, slots=True)
class Move:
    """One move of the actor with number `who`. The protocol defines the kinds of moves and their options."""

    kind: str
    who: int = 0
    options: tuple[tuple[str, Value], ...] = ()

    def get(self, name: str, default: Value = "") -> Value:
        """The value of an option, `default` if it is not given."""
        return next((value for key, value in self.options if key == name), default)

    def number(self, name: str, default: int = 0) -> int:
        """The value of an option, `default` if it is not given or not a number."""
        value = self.get(name, default)
        return value if isinstance(value, int) else default

    def without(self, name: str) -> "Move":
        """The move without one of its options."""
        return replace(self, options=tuple(pair for pair in self.options if pair[0] != name))

    def __str__(self) -> str:
        options = ", ".join(f"{name} {value}" for name, value in self.options)
        return f"{actor_label(self.who)} {self.kind}" + (f" ({options})" if options else "")


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cast (the role of each actor, by number) and its moves."""

    name: str
    cast: tuple[Role, ...]
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class GeneratedSchedule:
    """A schedule with the model's prediction: the transitions it takes, with counts; its duration, and the time of the
    first restart of the target (0: none), in milliseconds."""

    schedule: Schedule
    transitions: Mapping[Transition, int]
    duration: int = 0
    restart_at: int = 0

    @property
    def rules(self) -> frozenset[str]:
        """The rules of the predicted transitions."""
        return frozenset(each.rule for each in self.transitions)


def actor_label(who: int) -> str:
    """The label of an actor in traces: "A" for number 0."""
    return chr(ord("A") + who)
