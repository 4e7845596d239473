"""Bounded collections: of many things that happened, those that took longest."""

import heapq
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LongestKept(Generic[Value]):
    """Keeps the `limit` longest of the values added; of equally long ones the first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.heap: list[tuple[int, int, Value]] = []
        self.count = 0
        self.total = 0
        """Of all values ever added: how many, and how long together."""

    def add(self, length: int, value: Value) -> None:
        """Add a value that took so long."""
        self.count += 1
        self.total += length
        entry = (length, -self.count, value)
        if len(self.heap) < self.limit:
            heapq.heappush(self.heap, entry)
        else:
            heapq.heappushpop(self.heap, entry)

    def values(self) -> list[Value]:
        """The values kept, in the order in which they were added."""
        return [value for _, _, value in sorted(self.heap, key=lambda entry: -entry[1])]
