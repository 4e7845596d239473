"""Batches of random schedules: the choice of those to play, and the sum of their reports."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import schedule_batches
from tests.acceptance.runs import KitRun
from tests.acceptance.schedule_batches import BATCH_SCHEDULES, BATCH_SEEDS, describe_batches, play_batches


def batch_report(
    schedules: int = BATCH_SCHEDULES, undecided: int = 0, *, failed: str = "", **more: Any
) -> dict[str, Any]:
    """The JSON report of one acceptance batch, by default a whole one without a failure."""
    return {
        "requirements": [
            {"id": "JOIN-01", "verdict": "pass"},
            *([{"id": failed, "verdict": "fail"}] if failed else []),
        ],
        "coverage": {"schedules": schedules, "undecided": {f"schedule-{n}": "" for n in range(undecided)}},
        **{"unclassified": [], "idle_findings": [], "cut_short": False, "seconds": 1.5},
        **more,
    }


def missed_thresholds(*reports: dict[str, Any]) -> list[str]:
    """The thresholds that the batches do not keep."""
    return [figure.what for figure in describe_batches(reports) if not figure.kept]


def test_whole_batches_without_failures_keep_all_thresholds() -> None:
    assert missed_thresholds(*[batch_report(undecided=5)] * len(BATCH_SEEDS)) == []


@pytest.mark.parametrize(
    ("one", "threshold"),
    [
        (batch_report(BATCH_SCHEDULES - 1, cut_short=True), "schedules"),
        (batch_report(coverage=None), "schedules"),
        (batch_report(failed="JOIN-29"), "requirements that fail"),
        (batch_report(unclassified=[{}]), "violations that no requirement speaks of"),
        (batch_report(undecided=51), "schedules left undecided in %"),
    ],
)
def test_one_batch_is_enough_for_a_miss(one: dict[str, Any], threshold: str) -> None:
    assert missed_thresholds(*[batch_report()] * (len(BATCH_SEEDS) - 1), one) == [threshold]


def test_batches_with_reports_are_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[str] = []

    @contextmanager
    def running(name: str, folder: Path) -> Iterator[str]:
        yield f"kafka://{name}"

    def run(address: str, folder: Path, *options: str, run_folder: Path | None = None) -> KitRun:
        assert address == "kafka://kafka4"
        played.append(options[options.index("--seed") + 1])
        return KitRun(0, 1.5, batch_report(7))

    monkeypatch.setattr(schedule_batches, "running_target", running)
    monkeypatch.setattr(schedule_batches, "run_test_command", run)
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "kafka4-2.json").write_text(json.dumps(batch_report(11)))
    reports = play_batches("kafka4", kept, tmp_path)
    assert played == [str(seed) for seed in BATCH_SEEDS if seed != 2]
    assert [report["coverage"]["schedules"] for report in reports].count(11) == 1
    assert play_batches("kafka4", kept, tmp_path) == reports and len(played) == len(BATCH_SEEDS) - 1
