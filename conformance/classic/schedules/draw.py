"""The source of the random values of a schedule: an interface, and a generator of random numbers behind it."""

from collections.abc import Sequence
from random import Random
from typing import Protocol, TypeVar

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
