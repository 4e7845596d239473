"""What checks tell of runs, of batches of random schedules and of odd clients, and what they take for a miss."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from fencepost.conformance.profile import Profile
from fencepost.conformance.results import ExitCode
from tests.acceptance import schedule_batches
from tests.acceptance.checks import targets
from tests.acceptance.framework import Figure, MeasurementError
from tests.acceptance.odd_clients import MARK, ODD_CLIENTS, OddClient, count_kept, processes_with, try_client
from tests.acceptance.runs import KitRun, start_target
from tests.acceptance.schedule_batches import BATCH_SCHEDULES, BATCH_SEEDS, describe_batches, play_batches

# --- Odd clients: what is not kept of the promises is told.


@pytest.mark.real_time
def test_broken_promises_are_told(tmp_path: Path) -> None:
    case = OddClient("exits", ("sh", "-c", "exit 7"), "it shines", ExitCode.INCONCLUSIVE)
    broken = ["exit code 2", "the report does not say 'it shines'"]
    assert try_client(case, tmp_path) == broken
    *_, failed, told = count_kept([("exits", broken)])
    assert not failed.kept and not told.kept and "it shines" in str(told.value)


@pytest.mark.real_time
def test_a_process_that_is_left_is_found() -> None:
    mark = uuid4().hex
    left = subprocess.Popen(["sleep", "60"], env=os.environ | {MARK: mark})
    try:
        assert list(processes_with(mark)) == [left.pid]
    finally:
        left.kill()
        left.wait()
    assert list(processes_with(mark)) == []


def test_a_client_that_goes_wrong_later_lives_first(tmp_path: Path) -> None:
    case = OddClient("exits later", ("false",), "", lives=2)
    command = [word if word != case.command(tmp_path)[4] else "true" for word in case.command(tmp_path)]
    codes = [subprocess.run(command).returncode for _ in range(3)]
    assert codes == [0, 0, 1]
    assert len({case.name for case in ODD_CLIENTS}) == len(ODD_CLIENTS)


# --- Batches of random schedules: the choice of those to play, and the sum of their reports.


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


# --- The suite of whole runs: what it tells of a run, and what it takes for a miss.


def kit_run(exit_code: int, **verdicts: str) -> KitRun:
    """A run with these verdicts by requirement."""
    rows: list[dict[str, Any]] = [{"id": name, "verdict": verdict, "causes": []} for name, verdict in verdicts.items()]
    counts = {verdict: list(verdicts.values()).count(verdict) for verdict in ("pass", "inconclusive", "unsupported")}
    causes = [{"requirements": [name]} for name, verdict in verdicts.items() if verdict == "fail"]
    return KitRun(exit_code, 1.5, {"requirements": rows, "outcome": {"verdicts": counts}, "causes": causes})


def test_a_run_is_told_by_verdicts_failures_and_seconds() -> None:
    figures = list(targets.describe_run("seed 1", kit_run(1, A="pass", B="fail", C="pass", D="fail")))
    assert [figure.value for figure in figures] == [1, "2 pass, 2 fail", "B, D", "none", 1.5]
    assert all(figure.kept for figure in figures)


def test_an_impossible_run_is_a_miss() -> None:
    [code, *_] = targets.describe_run("seed 1", kit_run(2, A="pass"))
    assert not code.kept


def test_a_note_may_name_nothing_but_what_failed() -> None:
    run = kit_run(1, A="fail", B="inconclusive", C="pass")
    for row, note in zip(
        run.report["requirements"], ("", "blocked by HB-01, HB-02 at request 5", "see HB-03"), strict=True
    ):
        row["note"] = note
    assert list(targets.dangling_notes(run)) == ["B"]
    run.report["requirements"] += [{"id": f"HB-0{number}", "verdict": "fail"} for number in (1, 2)]
    assert list(targets.dangling_notes(run)) == []


def test_what_a_failure_explains_is_not_undecided_without_a_cause() -> None:
    run = kit_run(1, A="fail", B="inconclusive", C="inconclusive", D="pass")
    run.report["requirements"][1]["causes"] = ["A"]
    assert list(targets.undecided_without_cause(run)) == ["C"]


def test_verdicts_are_compared_between_seeds() -> None:
    runs = [{"A": "pass", "B": "pass"}, {"A": "pass", "B": "inconclusive"}, {"A": "pass"}]
    assert targets.compare_runs(runs[:1]).kept
    assert targets.compare_runs(runs[:2]).value == targets.compare_runs(runs).value == "B"
    assert targets.compare_runs([{"A": "pass"}, {"A": "pass", "B": "pass"}]).value == "B"


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The options of each run; requirement B is inconclusive in all, and a run passes in no time."""
    seen: list[tuple[str, ...]] = []

    def run(address: str, folder: Path, *options: str, run_folder: Path | None = None) -> KitRun:
        seen.append(options)
        return kit_run(3, A="pass", B="inconclusive")

    monkeypatch.setattr(targets, "run_test_command", run)
    return seen


def test_a_stranger_has_more_thresholds(seeded: list[tuple[str, ...]], tmp_path: Path) -> None:
    def missed(is_stranger: bool) -> list[Figure]:
        return [one for one in targets.run_seeds("bundled", tmp_path, ["-x"], is_stranger) if not one.kept]

    assert missed(is_stranger=False) == []
    assert {figure.what.partition(": ")[2] for figure in missed(is_stranger=True)} == {
        "share of inconclusive without a cause"
    }
    assert seeded[: len(targets.SEEDS)] == [("-x", "--seed", str(seed)) for seed in targets.SEEDS]


def test_a_target_that_does_not_start_cannot_be_measured(tmp_path: Path) -> None:
    target = targets.double_target("dies", tmp_path)
    target.profile = Profile(tmp_path, start=("false",), kill=("true",))
    with pytest.raises(MeasurementError), start_target(target):
        pass
