"""`python -m tests.acceptance`: one entry for every suite."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance import __main__ as entry
from tests.acceptance import framework
from tests.acceptance.framework import Check, Figure, MeasurementError, exactly
from tests.acceptance.runs import run_tests

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
    named = "tests/acceptance/test_entry.py::test_each_module_of_checks_is_a_suite"
    assert run_tests(tmp_path, [named], "-n", "0").passed == 1
    with pytest.raises(MeasurementError, match="not there"):
        run_tests(tmp_path, ["tests/acceptance/test_nothing.py::test_nothing"])
