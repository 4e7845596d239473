"""Shrinking of failing sequences: delta debugging (Zeller and Hildebrandt, 2002) with the test handed in.

Candidates come in batches, so that many can be tried at once. The caller sends back which candidates of a batch fail.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

ShrinkSteps = Generator[list[tuple[T, ...]], list[int], tuple[T, ...]]
"""Yields batches of candidates, is sent the indices of those that fail (at least of the first), and returns the
shortest failing sequence."""


def shrink_steps(items: Sequence[T], simpler: Callable[[T], Iterable[T]] = lambda item: ()) -> ShrinkSteps[T]:
    """Remove items, then replace items by simpler ones, until neither helps. `simpler` returns the replacements for an
    item, simplest first."""
    current = tuple(items)
    while True:
        before = current
        current = yield from remove_items(current)
        current = yield from simplify_items(current, simpler)
        if current == before:
            return current


def remove_items(items: tuple[T, ...]) -> ShrinkSteps[T]:
    """Remove half of the items, a quarter, ..., finally single items, from the end to the beginning."""
    size = max(len(items) // 2, 1)
    while items:
        place = len(items)
        while place > 0:
            cuts = [(max(end - size, 0), end) for end in range(place, 0, -size)]
            failing = yield [items[:begin] + items[end:] for begin, end in cuts]
            if not failing:
                break
            chosen = [cuts[index] for index in failing]
            if len(chosen) > 1:
                together = remove_ranges(items, chosen)
                if not (yield [together]):
                    chosen = chosen[:1]
            items, place = remove_ranges(items, chosen), chosen[-1][0]
        if size == 1:
            return items
        size //= 2
    return items


def remove_ranges(items: tuple[T, ...], cuts: Iterable[tuple[int, int]]) -> tuple[T, ...]:
    """The items without the ranges `cuts`, which are ordered last first."""
    for begin, end in cuts:
        items = items[:begin] + items[end:]
    return items


def simplify_items(items: tuple[T, ...], simpler: Callable[[T], Iterable[T]]) -> ShrinkSteps[T]:
    """Replace each item by the simplest one with which the sequence still fails."""
    place = 0
    while place < len(items):
        tries = [(*items[:place], each, *items[place + 1 :]) for each in simpler(items[place])]
        failing = (yield tries) if tries else []
        if failing:
            items = tries[failing[0]]
        else:
            place += 1
    return items


def shrink(
    items: Sequence[T],
    fails: Callable[[tuple[T, ...]], bool],
    simpler: Callable[[T], Iterable[T]] = lambda item: (),
    may_continue: Callable[[], bool] = lambda: True,
) -> tuple[T, ...]:
    """The shortest failing sequence found, trying one candidate after another while `may_continue()` is true.

    `fails` is called at most once for each candidate.
    """
    steps = shrink_steps(items, simpler)
    best = tuple(items)
    known: dict[tuple[T, ...], bool] = {}
    try:
        batch = next(steps)
        while True:
            found: list[int] = []
            for place, candidate in enumerate(batch):
                if not may_continue():
                    return best
                if candidate not in known:
                    known[candidate] = fails(candidate)
                if known[candidate]:
                    found, best = [place], candidate
                    break
            batch = steps.send(found)
    except StopIteration as done:
        shortest: tuple[T, ...] = done.value
        return shortest
