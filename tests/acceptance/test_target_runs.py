"""The suite of whole runs: what it tells of a run, and what it takes for a miss."""

from pathlib import Path
from typing import Any

import pytest

from fencepost.conformance.profile import Profile
from tests.acceptance.checks import targets
from tests.acceptance.framework import Figure, MeasurementError
from tests.acceptance.runs import KitRun, start_target


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
