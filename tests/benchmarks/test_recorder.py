"""The benchmark of the recorder runs and says something."""

import pytest

from tests.benchmarks.recorder import PIPELINE_DEPTH, measure


@pytest.mark.slow
def test_recorder_benchmark_measures_direct_and_recorded() -> None:
    figures = measure(2 * PIPELINE_DEPTH, 1)
    assert all(value > 0 for name, value in figures.items() if name != "added_ms")
    assert figures["latency_ratio"] == round(figures["recorded_latency_ms"] / figures["direct_latency_ms"], 2)
