"""The benchmark of the recorder runs and says something."""

from tests.benchmarks.recorder import PIPELINED, measure


def test_it_measures_both_ways() -> None:
    figures = measure(2 * PIPELINED, 1)
    assert all(value > 0 for name, value in figures.items() if name != "added_ms")
    assert figures["latency_ratio"] == round(figures["recorded_latency_ms"] / figures["direct_latency_ms"], 2)
