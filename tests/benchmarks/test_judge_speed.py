"""The benchmark of the judge compares two trees."""

import pytest

from tests.acceptance.verdict_corpus.compare import ROOT
from tests.benchmarks import judge_speed


@pytest.mark.slow
def test_judge_benchmark_compares_two_trees(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(judge_speed, "write_old_format", lambda path: path)  # both trees are this one
    assert judge_speed.main(["total", "mixed", "--events", "400", "--pairs", "1", "--old", str(ROOT)]) == 0
    told = capsys.readouterr().out
    assert told.count("ratio") == told.count("JSON alone") == told.count("lines alone") == 2
    assert "0 inconclusive" in told


def test_unknown_traces_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        judge_speed.main(["steady"])
    assert "no such trace: steady; known: total, intervals, mixed" in capsys.readouterr().err
