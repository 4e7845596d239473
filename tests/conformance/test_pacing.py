"""Pacing: scenarios start later while the responses of the target are slow."""

import asyncio
from collections.abc import Iterator

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.run.pool import MAX_WAIT_SECONDS, Pacer


def begins(lags: Iterator[float], count: int) -> list[float]:
    """When so many begin, if answers take as long as told one after the other."""
    found: list[float] = []

    async def lag() -> float:
        return next(lags)

    async def one(pace: Pacer) -> None:
        await pace.wait()
        found.append(round(asyncio.get_running_loop().time(), 2))

    async def company() -> None:
        pace = Pacer(lag)
        await asyncio.gather(*(one(pace) for _ in range(count)))

    run_virtual(company())
    return found


def test_nobody_waits_while_answers_are_quick() -> None:
    assert begins(iter([0.001, 0.002, 0.03]), 3) == [0.0, 0.0, 0.0]


def test_when_answers_take_long_the_next_waits_and_so_do_those_behind_it() -> None:
    assert begins(iter([0.001, 0.3, 0.2, 0.001, 0.001]), 3) == [0.0, 0.1, 0.1]


def test_a_target_that_is_slow_by_nature_is_not_waited_for() -> None:
    assert begins(iter([0.5, 0.6, 1.9]), 3) == [0.0, 0.0, 0.0]


def test_nobody_waits_for_ever() -> None:
    first, second = begins(iter([0.001] + [float("inf")] * 1_000), 2)
    assert second - first <= MAX_WAIT_SECONDS + 0.1
