"""A bar that is missed says so: on the screen, in the files, and by the exit code."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.framework import Bar, Figure, Unmeasured, at_least, at_most, exactly, main, told


def kept(folder: Path) -> Iterator[Figure]:
    yield exactly("failures", 0, 0)
    yield at_most("seconds", 60.0, 60)
    yield at_least("events", 1_000_000, 20_000)
    yield told("note", "nothing")


def missed(folder: Path) -> Iterator[Figure]:
    yield at_least("events", 19_999, 20_000)


def unmeasured(folder: Path) -> Iterator[Figure]:
    yield exactly("failures", 0, 0)
    raise Unmeasured("no such target")


BARS = (Bar("kept", "what holds", kept), Bar("missed", "what does not", missed), Bar("absent", "not there", unmeasured))


def figures(results: Path) -> dict[str, bool]:
    """The bars on file, and whether they are kept."""
    bars = json.loads(results.with_suffix(".json").read_text())["bars"]
    return {name: entry["kept"] for name, entry in bars.items()}


def test_all_are_measured_and_one_that_is_missed_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "1-test"
    assert main("Bars", BARS, results, []) == 1
    assert figures(results) == {"kept": True, "missed": False, "absent": False}
    printed = capsys.readouterr().out
    assert "MISSED events: 19,999 (bar: at least 20,000)" in printed
    assert "MISSED could not be measured: no such target" in printed
    assert "| missed | events | 19,999 | at least 20,000 | MISSED |" in results.with_suffix(".md").read_text()


def test_a_bar_that_is_not_measured_keeps_its_figures(tmp_path: Path) -> None:
    results = tmp_path / "1-test"
    assert main("Bars", BARS, results, ["missed"]) == 1
    assert main("Bars", BARS, results, ["kept"]) == 0
    assert figures(results) == {"kept": True, "missed": False}
    assert "| kept | note | nothing |  |  |" in results.with_suffix(".md").read_text()


def test_an_unknown_bar_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        main("Bars", BARS, tmp_path / "1-test", ["bar"])


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
def test_figures_are_held_against_their_bars(figure: Figure, holds: bool) -> None:
    assert figure.kept is holds
