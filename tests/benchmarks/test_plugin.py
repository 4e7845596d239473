"""The benchmark of the pytest plugin runs, and finds a real difference."""

import pytest

from tests.benchmarks.plugin import chance_of, compare, measure_start


@pytest.mark.slow
def test_it_compares_starts_in_pairs() -> None:
    figures = measure_start(2)
    assert figures["pairs"] == 2 and figures["ratio"] > 0


def test_a_difference_in_every_pair_can_be_told() -> None:
    slow, quick = [1.1] * 20, [1.0] * 20
    assert compare({"with": slow, "without": quick})["can_be_told"] == 1
    assert compare({"with": slow[:10] + quick[:10], "without": quick[:10] + slow[:10]})["can_be_told"] == 0
    assert chance_of(0, 5) == 1 and chance_of(5, 5) == 1 / 32
