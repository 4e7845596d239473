"""Shrinking of failing sequences: delta debugging (Zeller and Hildebrandt, 2002) with the test handed in.

Candidates come in batches, so that many can be tried at once. The caller sends back which candidates of a batch fail.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

ShrinkSteps = Generator[list[tuple[T, ...]], list[int], tuple[T, ...]]
"""Yields batches of candidates, is sent the indices of those that fail (at least of the first), and returns the
shortest failing sequence."""
Edit = Mapping[int, tuple[T, ...]]
"""A change of a sequence: by index, what an item is replaced by; nothing removes it."""
Parts = Callable[[tuple[T, ...]], Iterable[Collection[int]]]
"""The indices of items that belong together, and that are worth removing together before all others."""


def shrink_steps(
    items: Sequence[T],
    simpler: Callable[[T], Iterable[T]] = lambda item: (),
    parts: Parts[T] = lambda items: (),
) -> ShrinkSteps[T]:
    """Remove parts and items, then replace items by simpler ones, until neither helps. `simpler` returns the
    replacements for an item, simplest first."""
    current = tuple(items)
    while True:
        before = current
        current = yield from make_edits(current, removals(current, parts))
        current = yield from make_edits(current, replacements(current, simpler))
        if current == before:
            return current


def removals(items: tuple[T, ...], parts: Parts[T]) -> list[Edit[T]]:
    """Removals of the parts, then of half of the items, a quarter, ..., finally of single items, each from the end to
    the beginning."""
    cuts = [tuple(sorted(part)) for part in parts(items)]
    size = max(len(items) // 2, 1)
    while True:
        cuts += [tuple(range(max(end - size, 0), end)) for end in range(len(items), 0, -size)]
        if size == 1:
            return [dict.fromkeys(cut, ()) for cut in dict.fromkeys(cuts) if cut]
        size //= 2


def replacements(items: tuple[T, ...], simpler: Callable[[T], Iterable[T]]) -> list[Edit[T]]:
    """Replacements of single items by simpler ones, in the order of the items."""
    return [{place: (each,)} for place, item in enumerate(items) for each in simpler(item)]


def make_edits(items: tuple[T, ...], edits: Sequence[Edit[T]]) -> ShrinkSteps[T]:
    """Make each of the edits, in this order, with which the sequence still fails.

    Those that fail alone are made together, or else the first half of them, a quarter, ..., or the first one.
    """
    made: dict[int, tuple[T, ...]] = {}
    left = list(edits)
    while left := [each for each in left if is_new(each, made)]:
        failing = yield [apply_edits(items, made, (each,)) for each in left]
        if not failing:
            break
        chosen = choose_edits([left[index] for index in failing])
        sizes = [len(chosen) >> shift for shift in range(len(chosen).bit_length() - 1)]
        together = (yield [apply_edits(items, made, chosen[:size]) for size in sizes]) if sizes else []
        del chosen[sizes[together[0]] if together else 1 :]
        for edit in chosen:
            made |= edit
        del left[: left.index(chosen[-1]) + 1]
    return apply_edits(items, made, ())


def is_new(edit: Edit[T], made: Mapping[int, tuple[T, ...]]) -> bool:
    """Whether an edit removes something that is still there, or replaces an item that was left alone."""
    return any(place not in made for place in edit)


def choose_edits(edits: Iterable[Edit[T]]) -> list[Edit[T]]:
    """The edits without those of items that earlier ones change."""
    chosen: list[Edit[T]] = []
    changed: dict[int, tuple[T, ...]] = {}
    for edit in edits:
        if is_new(edit, changed):
            chosen.append(edit)
            changed |= edit
    return chosen


def apply_edits(items: tuple[T, ...], made: Edit[T], edits: Iterable[Edit[T]]) -> tuple[T, ...]:
    """The items after the edits that were made and these."""
    changes = dict(made)
    for edit in edits:
        changes |= edit
    return tuple(each for place, item in enumerate(items) for each in changes.get(place, (item,)))


def shrink(
    items: Sequence[T],
    fails: Callable[[tuple[T, ...]], bool],
    simpler: Callable[[T], Iterable[T]] = lambda item: (),
    may_continue: Callable[[], bool] = lambda: True,
    parts: Parts[T] = lambda items: (),
) -> tuple[T, ...]:
    """The shortest failing sequence found, trying one candidate after another while `may_continue()` is true.

    `fails` is called at most once for each candidate.
    """
    steps = shrink_steps(items, simpler, parts)
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
