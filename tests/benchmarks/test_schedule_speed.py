"""The benchmark of random schedules compares two trees."""

import pytest

from tests.acceptance.verdict_corpus.compare import ROOT
from tests.benchmarks import schedule_speed


@pytest.mark.slow
def test_schedule_benchmark_compares_two_trees(capsys: pytest.CaptureFixture[str]) -> None:
    assert schedule_speed.main(["--batches", "1", "--pairs", "1", "--old", str(ROOT)]) == 0
    told = capsys.readouterr().out
    assert told.count("20 schedules, 20 different") == told.count("ratio by") == 2
