"""What a random schedule is: who takes part, and what they do one after the other, all of it plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

Value = int | str
SHORT, LONG = "short", "long"

MEMBER_OPTIONS = ("as", "generation", "instance", "version", "sent")
"""Options of every request that a member sends.

`as` is the member id: "nobody" for none, "stranger" for one that nobody got, "former" for the one before the present
one, a number for another actor's; `generation` is "none" or how far from the actor's own; `instance` is "none",
"stranger" or another actor's; `sent` is how many percent of it are sent before its connection is cut.
"""

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "join": (*MEMBER_OPTIONS, "type", "session", "rebalance", "offer", "metadata"),
    "sync": (*MEMBER_OPTIONS, "type", "protocol", "plan"),
    "heartbeat": MEMBER_OPTIONS,
    "leave": ("as", "instance", "version", "with", "entries", "sent"),
    "commit": (*MEMBER_OPTIONS, "partition", "offset", "further", "note", "retention", "topic"),
    "fetch": ("partition", "stable", "groups", "version", "topic"),
    "transact": (*MEMBER_OPTIONS, "partition", "offset", "again"),
    "end": ("abort", "version"),
    "describe": ("version", "groups"),
    "list": ("version", "states", "types"),
    "delete": ("version", "groups"),
    "delete-offsets": ("partition", "topic"),
    "again": ("api", "depth"),
    "drop": ("api",),
    "crash": (),
    "wait": ("for", "side", "ms"),
    "restart": ("at-once",),
}
"""What can be done, and what may be said of it. `wait` is `for` "answers" to JoinGroup, or until before (`side` -1) or
after the end of a "session", a "rebalance", an initial "delay", the time of a "new-member" or of "retention".

A move without options is what a member that means well does."""


@dataclass(frozen=True, slots=True)
class Role:
    """A member of the cast: what it offers when it begins. Timeouts are "short" or "long", whatever that is on the
    target; `offer` has a letter for each protocol; actors of one `instance` claim the same static member."""

    session: str = LONG
    rebalance: str = SHORT
    offer: str = "a"
    instance: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """One thing that is done, by the actor with this number."""

    kind: str
    who: int = 0
    options: tuple[tuple[str, Value], ...] = ()

    def get(self, name: str, default: Value = "") -> Value:
        """The value of an option."""
        return next((value for key, value in self.options if key == name), default)

    def number(self, name: str, default: int = 0) -> int:
        """The value of an option that is a number."""
        value = self.get(name, default)
        return value if isinstance(value, int) else default

    def without(self, name: str) -> "Move":
        """The move as if this option had not been given."""
        return replace(self, options=tuple(pair for pair in self.options if pair[0] != name))

    def __str__(self) -> str:
        said = ", ".join(f"{name} {value}" for name, value in self.options)
        return f"{actor_label(self.who)} {self.kind}" + (f" ({said})" if said else "")


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cast and what it does."""

    name: str
    cast: tuple[Role, ...]
    moves: tuple[Move, ...]


def actor_label(who: int) -> str:
    """The name of an actor."""
    return chr(ord("A") + who)
