"""The benchmark of planted faults, on one fault and few schedules."""

import json
from pathlib import Path

import pytest

from tests.benchmarks import planted_faults


def test_benchmark_counts_hunts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hunts.json"
    options = ["loading_forgets_instances", "--seeds", "1", "--schedules", "20", "--json", str(file)]
    assert planted_faults.main(options) == 0
    (row,) = json.loads(file.read_text())
    assert (row["fault"], row["found"]) == ("loading_forgets_instances", 1)
    assert 1 <= row["schedules"][0] <= 20
    assert "1 of 1 hunts in " in capsys.readouterr().out
