"""`fencepost zoo` as its user sees it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.conformance.zoo import hunt_plan, results
from fencepost.conformance.zoo.hunt import HuntResult, HuntTask
from fencepost.conformance.zoo.hunt_plan import HuntPlan
from fencepost.conformance.zoo.registry import systematic_mutants
from fencepost.conformance.zoo.results import BUG_RESULTS, HuntSummary, ResultRow, ResultTable

Hunted = tuple[HuntTask, HuntResult]
HUNTS = {"schedules": HuntSummary(1, 1, 1.0, 2, 3)}
FOUND = ResultRow(
    "BUG-30", "coordinator", "Wrong.", "somewhere", ("FETCH-01",), "schedules", "FETCH-01", 1, 0, ("A fetch",), HUNTS
)
NOT_FOUND = replace(FOUND, found_by="", requirement="", seed=0, shortest=(), hunts={}, reason="nothing was seen broken")
CLIENT_ROW = replace(
    FOUND,
    name="BUG-58",
    subject="member",
    breaks=("MEMBER-01",),
    found_by="scenarios",
    requirement="MEMBER-01",
    hunts={"scenarios": HuntSummary(1, 1)},
)


@pytest.mark.slow
def test_a_bug_is_hunted_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "zoo.json"
    arguments = ["zoo", "--only", "BUG-30", "--seeds", "1", "--jobs", "1", "--json", str(file)]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "1 of 1 found, 1 of them by random schedules" in shown.out
    assert "1/1 hunts" in shown.err
    (row,) = json.loads(file.read_text())["rows"]
    assert (row["name"], row["found_by"], row["hunts"]["schedules"]["found"]) == ("BUG-30", "schedules", 1)


def test_a_pattern_that_fits_nothing_is_an_error_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo", "--only", "BUG-99"]) == 2
    assert capsys.readouterr().err == (
        "fencepost: nothing in the zoo matches 'BUG-99'; try a number like BUG-35 or a pattern like 'rounds.*'\n"
    )


@pytest.mark.parametrize(("now", "cut_short", "code"), [(FOUND, False, 0), (NOT_FOUND, False, 1), (FOUND, True, 3)])
def test_what_is_recorded_has_to_be_found(
    now: ResultRow, cut_short: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        results, "load_results", lambda file: ResultTable(1, 0, 60.0, (FOUND,) if file == BUG_RESULTS else ())
    )
    monkeypatch.setattr(HuntPlan, "run", lambda plan, progress: ResultTable(1, 0, 60.0, (now,), cut_short))
    assert main(["zoo", "--only", "BUG-30"]) == code
    assert ("not found this time: BUG-30" in capsys.readouterr().out) == (code == 1)


def test_the_records_are_written_only_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bugs, mutants = (tmp_path / f"{name}.json" for name in ("record", "mutants"))
    monkeypatch.setattr(results, "BUG_RESULTS", bugs)
    monkeypatch.setattr(results, "MUTANT_RESULTS", mutants)
    found: tuple[ResultRow, ...] = (CLIENT_ROW, FOUND)
    monkeypatch.setattr(HuntPlan, "run", lambda plan, progress: ResultTable(1, 0, 60.0, found))
    assert main(["zoo"]) == 0
    assert not bugs.exists()
    assert main(["zoo", "--record"]) == 0
    assert [row["name"] for row in json.loads(bugs.read_text())["rows"]] == ["BUG-30", "BUG-58"]
    page = bugs.with_suffix(".md").read_text()
    assert "| BUG-30 |" in page and "| BUG-58 | member |" in page
    assert not mutants.exists()
    found = (replace(FOUND, name=next(iter(systematic_mutants())), source="", breaks=()),)
    assert main(["zoo", "--record"]) == 0
    assert [row["name"] for row in json.loads(mutants.read_text())["rows"]] == [found[0].name]
    assert len(json.loads(bugs.read_text())["rows"]) == 2


def test_strategies_and_baselines_are_heeded_for_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What another strategy has found stays found; that there are no baselines is said."""
    asked: list[HuntTask] = []

    def run_nothing(pool: object, jobs: int, work: object, tasks: list[HuntTask], name: object) -> Iterator[Hunted]:
        asked.extend(tasks)
        return iter([(task, HuntResult(task, "", 1, 1.0)) for task in tasks])

    monkeypatch.setattr(results, "BUG_RESULTS", tmp_path / "record.json")
    monkeypatch.setattr(hunt_plan, "run_tasks", run_nothing)
    results.record_results(ResultTable(1, 0, 60.0, (CLIENT_ROW,)))
    assert main(["zoo", "--only", "BUG-58", "--by", "schedules", "--seeds", "2", "--baseline-seeds", "1"]) == 0
    assert [(task.strategy, task.seed) for task in asked] == [("schedules", 1), ("schedules", 2)]
    shown = capsys.readouterr().out
    assert "no baselines for bugs of clients" in shown and "1 of 1 found" in shown
    assert main(["zoo", "--only", "BUG-58", "--by", "scenarios"]) == 1
    assert {task.strategy for task in asked} == {"schedules", "scenarios"}
