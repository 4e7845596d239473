"""`fencepost explore` and `prove` for designs: what they print, and how they end."""

import json
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.conformance.cli.designs import HoleResult, hole_lines, holes_exit_code, summarize
from fencepost.model.explore.hole_search import SearchOutcome
from fencepost.model.push.explore.holes import push_holes

HOLE = push_holes()[0]
FOUND = SearchOutcome(("K0 is elected", "c0 dies"), 7, False, 0.1)
HOLDS = SearchOutcome((), 9, True, 0.2)
CUT = SearchOutcome((), 9, False, 0.2)


@pytest.mark.parametrize(
    ("drafted", "repaired", "verdict", "code"),
    [
        (FOUND, HOLDS, "closed", 0),
        (HOLDS, HOLDS, "not found", 3),
        (FOUND, FOUND, "not closed", 1),
        (FOUND, CUT, "open", 3),
        (CUT, HOLDS, "open", 3),
    ],
)
def test_verdicts(drafted: SearchOutcome, repaired: SearchOutcome, verdict: str, code: int) -> None:
    result = HoleResult(HOLE, "No barrier between Stop and Start", drafted, repaired)
    assert (result.verdict, holes_exit_code((result,))) == (verdict, code)


def test_a_hole_is_told_with_its_run() -> None:
    result = HoleResult(HOLE, "No barrier between Stop and Start", FOUND, HOLDS)
    assert list(hole_lines(result)) == [
        "PUSH-H01  No barrier between Stop and Start: closed",
        "  S2: A partition is fetched by at most one consumer of a group.",
        "  Breaks as drafted, 2 steps, after 7 states (2 consumers, 2 partitions, 1 brokers):",
        "     1. K0 is elected",
        "     2. c0 dies",
        "  Holds with command: all 9 states, 0.2 s",
    ]
    assert summarize((result,)) == "1 of 1 holes found and closed"


def test_a_limit_leaves_holes_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "holes.json"
    assert main(["explore", "push", "--limit", "40", "--json", str(path)]) == 3
    assert "PUSH-H01  No barrier between Stop and Start: open" in capsys.readouterr().out
    rows = json.loads(path.read_text())["holes"]
    assert {row["verdict"] for row in rows} == {"open", "closed"}
    assert len({row["id"] for row in rows}) == 20


def test_requirements_of_designs_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "PUSH-38", "REGION-42"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "PUSH-38 MUST" in text and "PUSH-H01 No barrier between Stop and Start." in text
    assert "REGION-42 MUST: Nothing from before a reset" in text and "process.dropped" in text
    assert "REGION-H03 The message in hand survives a reset." in text and "tested wherever a schedule comes by" in text


def test_holes_and_theorems_of_the_region(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "region.json"
    assert main(["explore", "region", "--limit", "40", "--json", str(path)]) == 3
    assert "REGION-H12  Forced resets do not count: closed" in capsys.readouterr().out
    found = json.loads(path.read_text())
    assert found["protocol"] == "region" and len({row["id"] for row in found["holes"]}) == 17
    assert main(["prove", "region", "--json", str(path)]) == 0
    assert "4 theorems proved, 5 false wordings shown false" in capsys.readouterr().out
    assert json.loads(path.read_text())["protocol"] == "region"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["explore", "push", "--members", "3"], "fencepost explore: --members says nothing about push"),
        (["explore", "pus"], "fencepost explore: argument PROTOCOL: invalid choice: 'pus'"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(line)
