"""The reference assignors keep all requirements, each faulty one is found, and odd programs get a clear error."""

import sys
from pathlib import Path

import pytest

from fencepost.adapters.assignor import AssignorError, AssignorProgram, decode_assignment
from fencepost.conformance.assignors.run import AssignorTest
from fencepost.conformance.cli import main
from fencepost.conformance.reports.json_report import from_json
from fencepost.conformance.results import ExitCode, Report, Verdict
from fencepost.model.assignors.checks import CHECKS
from fencepost.model.assignors.group import Assign
from fencepost.model.assignors.notation import read_members, read_topics
from fencepost.model.assignors.properties import PROPERTIES
from fencepost.model.assignors.registry import ASSIGNORS
from tests.support.faulty_assignors import FAULTY_ASSIGNORS

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "clients" / "range_assignor.py"
TOPICS = read_topics("t:3")
MEMBERS = read_members("a; b", TOPICS)


def found_in(report: Report) -> set[str]:
    """The requirements that an assignor violates, or does not follow."""
    return {each.id for each in report.results if each.verdict is Verdict.FAIL or each.remark is not None}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_the_reference_assignors_keep_all_requirements(name: str) -> None:
    report = AssignorTest(name, ASSIGNORS[name].assign, groups=300).run()
    assert found_in(report) == set()
    assert {each.verdict for each in report.results} == {Verdict.PASS}


@pytest.mark.parametrize(("requirement", "name", "assign"), FAULTY_ASSIGNORS, ids=lambda each: str(each)[:20])
def test_a_faulty_assignor_is_found(requirement: str, name: str, assign: Assign) -> None:
    report = AssignorTest(name, assign, groups=60).run()
    assert requirement in found_in(report), found_in(report)


def test_every_check_has_a_faulty_assignor() -> None:
    checked = {check.requirement for check in CHECKS}
    checked |= {each.requirement for properties in PROPERTIES.values() for each in properties}
    assert checked == {requirement for requirement, _, _ in FAULTY_ASSIGNORS}


def test_an_assignor_of_another_name_is_held_against_the_common_promises() -> None:
    report = AssignorTest("mine", ASSIGNORS["roundrobin"].assign, groups=20).run()
    assert {each.id for each in report.results} == {"ASSIGN-01", "ASSIGN-02", "ASSIGN-04"}
    assert report.exit_code() is ExitCode.CONFORMANT


def test_the_example_is_an_assignor(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    options = ["test-assignor", "--groups", "20", "--json", str(file), "range", "--", sys.executable, str(EXAMPLE)]
    assert main(options) == ExitCode.CONFORMANT
    report = from_json(file.read_text())
    assert report.result("RANGE-05").verdict is Verdict.PASS and report.target["assignor"] == "range"


def test_a_wrong_assignment_is_told_with_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["test-assignor", "--groups", "0", "roundrobin", "--", sys.executable, str(EXAMPLE)]
    assert main(options) == ExitCode.VIOLATION
    output = " ".join(capsys.readouterr().out.split())
    assert "FAIL RR-01 MUST" in output and "C0 t-0,t-1,t-2; C1 t-3,t-4, expected" in output
    assert "t:5: C0; C1" in output


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("import time; time.sleep(60)", "no assignment within 0.5 s"),
        ("raise SystemExit", "the program ended"),
        ("print('hello', flush=True); input(); input()", "no assignment for group 1: 'hello'"),
        ("""input(); print('{"id": 1, "error": "no"}', flush=True); input()""", "it fails: no"),
    ],
)
def test_a_program_that_is_no_assignor_is_told(program: str, problem: str) -> None:
    assignor = AssignorProgram([sys.executable, "-c", program], seconds=0.5 if "sleep" in program else 20)
    with pytest.raises(AssignorError, match=problem):
        assignor.assign(MEMBERS, TOPICS)
    assignor.close()


@pytest.mark.parametrize("line", [b'{"id": 1, "assignment": {"a": [1]}}', b'{"id": 2, "assignment": {}}', b"[]"])
def test_a_line_that_is_no_assignment_is_refused(line: bytes) -> None:
    with pytest.raises(AssignorError, match="no assignment for group 1"):
        decode_assignment(1, line)


def test_a_command_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test-assignor", "range"]) == ExitCode.COULD_NOT_RUN
    assert "name the command of an assignor" in capsys.readouterr().err
    assert main(["test-assignor", "range", "--", "no-such-program"]) == ExitCode.COULD_NOT_RUN
    assert "cannot be run" in capsys.readouterr().err
