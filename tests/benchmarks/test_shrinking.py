"""The benchmark of shrinking, on one bug."""

import json
from pathlib import Path

import pytest

from tests.benchmarks import shrinking


@pytest.mark.slow
def test_benchmark_counts_runs_and_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shrinking.json"
    assert shrinking.main(["BUG-12", "--json", str(file)]) == 0
    (row,) = json.loads(file.read_text())
    assert row["bug"] == "BUG-12"
    assert row["requests"] < row["moves"]
    assert row["runs"] > 1
    assert "median: " in capsys.readouterr().out
