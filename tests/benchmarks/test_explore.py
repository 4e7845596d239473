"""The explorer's benchmark: Spin's counts, the exit code for unequal counts, and the message without Spin."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks import explore
from tests.benchmarks.explore import Instance, Measurement, Row, Unavailable

TOLD = """
State-vector 100 byte, depth reached 103, errors: 0
  1065195 states, stored
 10450522 states, matched
 11515717 transitions (= stored+matched)
"""
EXPLORED = Measurement(368, 1346, 0.5)
ROW = Row(Instance(), Measurement(368, 2105, 1.0, 5.0), EXPLORED, replace(EXPLORED, states=172, seconds=0.25))


def test_verifier_output_is_parsed() -> None:
    assert explore.parse_verifier_output(TOLD, 3.5, 19.0) == Measurement(1_065_195, 11_515_717, 3.5, 19.0)


@pytest.mark.parametrize(
    "told",
    [TOLD.replace("errors: 0", "errors: 1"), "error: max search depth too small" + TOLD, ""],
    ids=["violation", "depth", "nothing"],
)
def test_what_spin_did_not_exhaust_is_no_figure(told: str) -> None:
    with pytest.raises(Unavailable, match="did not exhaust"):
        explore.parse_verifier_output(told, 3.5, 19.0)


@pytest.mark.parametrize(
    ("row", "code", "counts"),
    [
        (ROW, 0, "counts equal"),
        (replace(ROW, full=replace(EXPLORED, states=367)), 1, "counts DIFFER"),
        (replace(ROW, reduced=replace(EXPLORED, seconds=2.0)), 1, "0.5 x the reduced search"),
    ],
    ids=["good", "unequal", "behind"],
)
def test_exit_code_follows_counts_and_speed(
    row: Row,
    code: int,
    counts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(explore, "measure_instance", lambda instance, repeats, say: row)
    saved = tmp_path / "rows.json"
    assert explore.main(["--members", "1", "--json", str(saved)]) == code
    assert counts in capsys.readouterr().out
    (figures,) = json.loads(saved.read_text())
    assert figures["equal"] is row.equal and figures["like_for_like"] == 2.0


def test_without_spin_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    assert explore.main(["--members", "1"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "explore: spin is missing; on Debian: apt install spin"


def test_the_explorer_counts_as_the_pinned_tests_do() -> None:
    tiny = Instance(ids=1, generations=1, slots=1)
    assert explore.measure_search(tiny, reduced=False).states == 6691
    assert explore.measure_search(tiny, reduced=True).states == 1059
