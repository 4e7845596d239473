"""Timers on a heap: armed under a key, fired in the order of their deadlines."""

import heapq
from collections.abc import Callable, Hashable
from typing import TypeAlias

Action: TypeAlias = Callable[[], None]


class Timers:
    """One timer for each key; arming a key again replaces its timer. Times are in milliseconds.

    A cancelled or replaced timer stays on the heap until it comes to the top; its number tells it apart.
    Timers of the same deadline fire in the order they were armed.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Hashable]] = []
        self._live: dict[Hashable, tuple[int, Action]] = {}
        self._count = 0

    def arm(self, key: Hashable, deadline: int, action: Action) -> None:
        """Call `action` once `deadline` is reached; replaces the key's former timer."""
        self._count += 1
        self._live[key] = (self._count, action)
        heapq.heappush(self._heap, (deadline, self._count, key))

    def cancel(self, key: Hashable) -> None:
        """Disarm the key; one that is not armed stays so."""
        self._live.pop(key, None)

    def next_deadline(self) -> int | None:
        """The earliest deadline, or None when nothing is armed."""
        while self._heap and not self._is_live(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self) -> Action:
        """Remove the earliest timer and return its action. Raises `IndexError` when nothing is armed."""
        if self.next_deadline() is None:
            raise IndexError("no timer is armed")
        _, _, key = heapq.heappop(self._heap)
        return self._live.pop(key)[1]

    def _is_live(self, entry: tuple[int, int, Hashable]) -> bool:
        _, number, key = entry
        return key in self._live and self._live[key][0] == number
