"""A pass that rests on an ambiguous source says which side the target takes."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from fencepost.conformance.analysis.causes import note_ambiguities
from fencepost.conformance.analysis.report_builder import TraceTotals
from fencepost.conformance.cli import main
from fencepost.conformance.results import Remark, RemarkKind, RequirementResult, Verdict
from fencepost.model.classic.catalogue import CATALOGUE, CLASSIC
from fencepost.model.classic.catalogue.reference import DIFFERENCES, describe_side
from fencepost.model.classic.dialect import Dialect

PASS = RequirementResult("COMMIT-11", Verdict.PASS)
NAMED = "from version 9 on a commit with a generation to an unknown group gets GROUP_ID_NOT_FOUND"


def test_each_difference_is_one_that_the_judge_asks_for_and_of_a_requirement() -> None:
    assert DIFFERENCES.keys() <= {each.name for each in fields(Dialect)}
    assert all(re.fullmatch(r"DIV-\d\d", each.id) and each.requirement in CATALOGUE for each in DIFFERENCES.values())
    assert len({each.id for each in DIFFERENCES.values()}) == len(DIFFERENCES)


def test_sides_are_those_of_the_coordinators() -> None:
    assert describe_side("unknown_group_named", True) == f"as the newer coordinator, {NAMED} (DIV-05)"
    assert describe_side("unknown_group_named", False).startswith("as the older coordinator, ")
    assert describe_side("replaced_stays_new", True).startswith("as the older coordinator, ")
    assert describe_side("replaced_stays_new", False).startswith("as the newer coordinator, ")


def test_a_pass_with_nothing_else_to_say_tells_the_side() -> None:
    (result,) = note_ambiguities([PASS], {"unknown_group_named": True, "initial_delay_grows": False}, CLASSIC)
    assert result.comment == f"ambiguous in the sources: as the newer coordinator, {NAMED} (DIV-05)"
    unusual = RequirementResult("COMMIT-11", Verdict.PASS, remark=Remark(RemarkKind.UNUSUAL, "odd"))
    failed = RequirementResult("COMMIT-11", Verdict.FAIL)
    other = RequirementResult("COMMIT-12", Verdict.PASS)
    assert [*note_ambiguities([unusual, failed, other], {"unknown_group_named": True}, CLASSIC)] == [
        unusual,
        failed,
        other,
    ]


def test_traces_that_disagree_take_no_side() -> None:
    totals = TraceTotals()
    for decisions in ({"a": True, "b": True}, {"b": False, "c": False}, {}):
        totals.add_decisions(decisions)
    assert totals.common_decisions() == {"a": True, "c": False}


def test_a_run_tells_its_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    assert main(["test", "bundled", "--only", "COMMIT-11", "--json", str(report)]) == 0
    assert "ambiguous in the sources: as the newer coordinator" in capsys.readouterr().out.replace("\n    ", " ")
    (result,) = (one for one in json.loads(report.read_text())["requirements"] if one["id"] == "COMMIT-11")
    assert (result["verdict"], result["remark"]["kind"]) == ("pass", "ambiguous")
