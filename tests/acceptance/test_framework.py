"""A threshold that is missed is reported: on the screen, in the files, and by the exit code."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

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
