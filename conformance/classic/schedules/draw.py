"""Random values of a schedule: their source, and the options by which requests differ from a well-behaved member's."""

from collections.abc import Sequence
from random import Random
from typing import Protocol, TypeVar

from fencepost.conformance.classic.schedules.cast import LONG, SHORT
from fencepost.conformance.run.schedule import Value

Item = TypeVar("Item")


class Draw(Protocol):
    """Draws values. The same source gives the same values in the same order of calls."""

    def number(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        ...

    def choose(self, options: Sequence[Item]) -> Item:
        """One of the options, which are not empty."""
        ...

    def choose_some(self, options: Sequence[Item], most: int | None = None) -> list[Item]:
        """One to `most` different options (None: up to all of them), in any order."""
        ...


class RandomDraw:
    """Draws values from a generator of random numbers."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)

    def number(self, low: int, high: int) -> int:
        """As `Draw.number`."""
        return self.random.randint(low, high)

    def choose(self, options: Sequence[Item]) -> Item:
        """As `Draw.choose`."""
        return self.random.choice(options)

    def choose_some(self, options: Sequence[Item], most: int | None = None) -> list[Item]:
        """As `Draw.choose_some`."""
        return self.random.sample(options, self.random.randint(1, min(most or len(options), len(options))))


# --- Perturbed requests: the options by which a request differs from that of a well-behaved member.

OFFERS = ("a", "a", "a", "ab", "ba", "b", "abc", "c", "")
IDENTITY: tuple[tuple[str, tuple[Value, ...]], ...] = (
    ("as", ("nobody", "stranger", "former", 0, 1, 2)),
    ("generation", ("none", -1, 1, -2)),
    ("instance", ("none", "stranger", 0, 1, 2)),
)
PERTURBATIONS: dict[str, tuple[tuple[str, tuple[Value, ...]], ...]] = {
    "join": (
        *IDENTITY[::2],
        ("version", tuple(range(9))),
        ("type", ("none", "other")),
        ("session", ("too-short", "too-long", SHORT, LONG)),
        ("rebalance", (SHORT, LONG, "zero")),
        ("offer", OFFERS),
        ("metadata", (0, 1, 2, 3, 4, 5)),
    ),
    "sync": (
        *IDENTITY,
        ("version", tuple(range(5))),
        ("type", ("none", "other")),
        ("protocol", ("none", "other")),
        ("plan", ("none", "part", "last", "stranger", "twice", "full")),
    ),
    "heartbeat": (*IDENTITY, ("version", tuple(range(4)))),
    "leave": (
        *IDENTITY[::2],
        ("version", tuple(range(5))),
        ("with", (0, 1, 2)),
        ("entries", ("none", "twice")),
    ),
    "commit": (
        *IDENTITY,
        ("version", tuple(range(9))),
        ("partition", (0, 1, 2, 3, 9)),
        ("offset", (0, 7, 9)),
        ("further", (1, 2, 9)),
        ("note", ("long", "note")),
        ("leader-epoch", (0, 7)),
        ("retention", (-1, 2_000)),
        ("topic", ("absent",)),
    ),
    "fetch": (
        ("partition", (0, 1, 9, "none")),
        ("further", (1, 2, 9)),
        ("stable", (1,)),
        ("groups", (1, "all")),
        ("version", tuple(range(1, 10))),
        ("topic", ("absent",)),
    ),
    "describe": (("version", tuple(range(6))), ("groups", (1, "all"))),
    "list": (
        ("version", tuple(range(5))),
        ("states", ("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "nonsense")),
        ("types", ("classic", "consumer")),
    ),
    "delete": (("version", (0, 1)), ("groups", (1,))),
    "delete-offsets": (("partition", (0, 1, 9)), ("further", (1, 2, 9)), ("topic", ("absent",))),
    "transact": (*IDENTITY, ("partition", (0, 1, 2)), ("offset", (0, 7, 9)), ("further", (1, 2)), ("note", ("note",))),
}
"""For each kind of request, options with the values that differ from those of a well-behaved member."""


MAX_OPTIONS = 2


def draw_options(draw: Draw, kind: str) -> dict[str, Value]:
    """One option of a kind of request, or two."""
    options = draw.choose_some(PERTURBATIONS[kind], MAX_OPTIONS)
    return {name: draw.choose(values) for name, values in sorted(options)}


def draw_perturbed(draw: Draw, kinds: Sequence[str]) -> tuple[str, dict[str, Value]]:
    """One of these kinds of requests, and its options."""
    kind = draw.choose(kinds)
    return kind, draw_options(draw, kind)
