"""The benchmark of many push consumers measures what it says, on a few."""

import pytest

from tests.benchmarks.push_consumers import measure

pytestmark = pytest.mark.real_time


async def test_a_small_crowd_settles_and_settles_again() -> None:
    figures = await measure(consumers=6, groups=2, session_seconds=2.0, patience=30.0)
    assert figures.registrations >= 6
    assert figures.seconds_to_stable > 0
    assert figures.seconds_after_death > 0
    assert figures.memory_mib > 1


async def test_a_crowd_that_never_settles_is_given_up() -> None:
    with pytest.raises(TimeoutError):
        await measure(consumers=4, groups=1, session_seconds=2.0, patience=0.001)
