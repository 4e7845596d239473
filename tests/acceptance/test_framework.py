"""Thresholds: a suite is chosen and measured, and what is missed is reported."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance import __main__ as entry
from tests.acceptance import framework
from tests.acceptance.framework import (
    Check,
    Figure,
    MeasurementError,
    at_least,
    at_most,
    exactly,
    main,
    without_threshold,
)
from tests.acceptance.runs import run_tests

# --- A threshold that is missed is reported: on the screen, in the files, and by the exit code.


def measure_kept(folder: Path) -> Iterator[Figure]:
    yield exactly("failures", 0, 0)
    yield at_most("seconds", 60.0, 60)
    yield at_least("events", 1_000_000, 20_000)
    yield without_threshold("note", "nothing")


def measure_missed(folder: Path) -> Iterator[Figure]:
    yield at_least("events", 19_999, 20_000)


def fail_to_measure(folder: Path) -> Iterator[Figure]:
    yield exactly("failures", 0, 0)
    raise MeasurementError("no such target")


CHECKS = (
    Check("kept", "what holds", measure_kept),
    Check("missed", "what does not", measure_missed),
    Check("absent", "not there", fail_to_measure),
)


def results_on_file(results: Path) -> dict[str, bool]:
    """Whether each check on file is kept."""
    entries = json.loads(results.with_suffix(".json").read_text())["bars"]
    return {name: entry["kept"] for name, entry in entries.items()}


def test_a_missed_check_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "1-test"
    assert main("Thresholds", CHECKS, results, []) == 1
    assert results_on_file(results) == {"kept": True, "missed": False, "absent": False}
    printed = capsys.readouterr().out
    assert "MISSED events: 19,999 (threshold: at least 20,000)" in printed
    assert "MISSED could not be measured: no such target" in printed
    assert "| missed | events | 19,999 | at least 20,000 | MISSED |" in results.with_suffix(".md").read_text()


def test_an_unmeasured_check_keeps_its_figures(tmp_path: Path) -> None:
    results = tmp_path / "1-test"
    assert main("Thresholds", CHECKS, results, ["missed"]) == 1
    assert main("Thresholds", CHECKS, results, ["kept"]) == 0
    assert results_on_file(results) == {"kept": True, "missed": False}
    assert "| kept | note | nothing |  |  |" in results.with_suffix(".md").read_text()


def test_an_unknown_check_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        main("Thresholds", CHECKS, tmp_path / "1-test", ["unknown"])


@pytest.mark.parametrize(
    ("figure", "holds"),
    [
        (at_most("x", 2, 2), True),
        (at_most("x", 2.1, 2), False),
        (at_least("x", 2, 2), True),
        (at_least("x", 1, 2), False),
        (exactly("x", 1, 0), False),
    ],
)
def test_figures_are_compared_with_their_thresholds(figure: Figure, holds: bool) -> None:
    assert figure.kept is holds


# --- `python -m tests.acceptance`: one entry for every suite.

CHECKS_FOLDER = Path(entry.__file__).parent / "checks"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The checks that are measured, as suite/name; every suite has one that is kept and one that is missed."""
    seen: list[str] = []

    def measure(name: str, folder: Path) -> Iterator[Figure]:
        seen.append(name)
        yield exactly("failures", int(name.endswith("missed")), 0)

    def checks(suite: str) -> list[Check]:
        return [Check(name, name, partial(measure, f"{suite}/{name}")) for name in ("kept", "missed")]

    monkeypatch.setattr(entry, "suite_checks", checks)
    monkeypatch.setattr(framework, "RESULTS", tmp_path)
    return seen


def test_each_module_of_checks_is_a_suite() -> None:
    assert sorted(entry.SUITES) == sorted(file.stem for file in CHECKS_FOLDER.glob("[a-z]*.py"))


@pytest.mark.parametrize("suite", entry.SUITES)
def test_a_suite_has_checks_with_names_of_their_own(suite: str) -> None:
    names = [check.name for check in entry.suite_checks(suite)]
    assert names and len(set(names)) == len(names)


def test_without_a_suite_all_are_measured(measured: list[str]) -> None:
    assert entry.main([]) == 1
    assert measured == [f"{suite}/{name}" for suite in entry.SUITES for name in ("kept", "missed")]


def test_a_suite_and_names_are_chosen(measured: list[str], tmp_path: Path) -> None:
    assert entry.main(["proofs", "kept"]) == 0
    assert measured == ["proofs/kept"]
    assert (tmp_path / "proofs.md").read_text().startswith("# Thresholds of the formal core\n")


def test_an_unknown_suite_is_refused(measured: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["prove"]) == 2
    assert (
        "no suite is called 'prove'; there are pages, targets, proofs, schedules" in capsys.readouterr().err
        and not measured
    )


def test_a_test_is_named_by_its_file_and_function(tmp_path: Path) -> None:
    named = "tests/acceptance/test_framework.py::test_each_module_of_checks_is_a_suite"
    assert run_tests(tmp_path, [named], "-n", "0").passed == 1
    with pytest.raises(MeasurementError, match="not there"):
        run_tests(tmp_path, ["tests/acceptance/test_nothing.py::test_nothing"])
