"""The benchmark of the zoo compares two trees."""

import pytest

from tests.acceptance.verdict_corpus.compare import ROOT
from tests.benchmarks import zoo_speed


@pytest.mark.slow
@pytest.mark.acceptance
def test_zoo_benchmark_compares_two_trees(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo_speed, "OLD_BUGS", "conformance/zoo/results.json")
    assert zoo_speed.main(["BUG-01", "--seeds", "1", "--seconds", "10", "--old", str(ROOT)]) == 0
    told = capsys.readouterr().out
    assert told.count("1 of 1 in") == 2 and told.count("not found: none") == 2
    assert "\nratio " in told
