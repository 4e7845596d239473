"""Shrinking finds the minimal failing sequence in few runs, with single candidates and with batches."""

from collections.abc import Iterator, Sequence

import pytest

from fencepost.traces.shrinker import shrink, shrink_steps


def is_subsequence(wanted: Sequence[int], given: Sequence[int]) -> bool:
    rest = iter(given)
    return all(any(each == one for each in rest) for one in wanted)


@pytest.mark.parametrize("wanted", [(), (0,), (99,), (3, 70), (1, 2, 3), (10, 40, 41, 98)])
def test_what_matters_is_kept_in_order_and_nothing_else(wanted: tuple[int, ...]) -> None:
    assert shrink(range(100), lambda kept: is_subsequence(wanted, kept)) == wanted


def test_shrink_takes_few_runs() -> None:
    tried: list[tuple[int, ...]] = []

    def fails(kept: tuple[int, ...]) -> bool:
        tried.append(kept)
        return is_subsequence((3, 70), kept)

    shrink(range(100), fails)
    assert len(tried) < 60
    assert len(set(tried)) == len(tried)


def test_simpler_items_take_the_place_of_others() -> None:
    def smaller(item: int) -> Iterator[int]:
        yield from (0, item // 2, item - 1) if item else ()

    assert shrink((5, 80, 9), lambda kept: any(each >= 17 for each in kept), smaller) == (17,)


def test_what_needs_two_items_at_once_keeps_both() -> None:
    assert shrink(range(8), lambda kept: len(kept) >= 2) == (0, 1)


def test_a_run_that_ends_early_keeps_what_it_has() -> None:
    left = iter(range(5))
    found = shrink(range(100), lambda kept: 99 in kept, may_continue=lambda: next(left, None) is not None)
    assert 99 in found
    assert len(found) < 100


def test_many_candidates_at_once_take_few_rounds() -> None:
    steps = shrink_steps(range(100))
    rounds = 1
    batch = next(steps)
    try:
        while True:
            batch = steps.send([place for place, kept in enumerate(batch) if is_subsequence((3, 70), kept)])
            rounds += 1
    except StopIteration as done:
        assert done.value == (3, 70)
    assert rounds < 40
