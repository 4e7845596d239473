"""The recipes for continuous integration: they parse, their commands exist, and the script does its steps."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fencepost.conformance.cli.report import COMMANDS as REPORT
from fencepost.conformance.cli.test import COMMANDS
from fencepost.conformance.profile import load_profile
from fencepost.conformance.reports.json_report import from_json

yaml = pytest.importorskip("yaml", reason="the extra dev")
ROOT = Path(__file__).parent.parent
CI = ROOT / "docs" / "ci"
SCRIPT = CI / "run-fencepost"
STUB = '#!/bin/sh\necho "$@"\nexit {code}\n'


def load(name: str) -> Any:
    """A recipe."""
    return yaml.safe_load((CI / name).read_text())


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with the command of this checkout."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "fencepost"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fencepost "$@"\n')
    command.chmod(0o755)
    return folder


def run_script(folder: Path, programs: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a folder."""
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join([str(ROOT / ".src"), str(ROOT)]), **environment}
    return subprocess.run([str(SCRIPT)], cwd=folder, env=env, capture_output=True, text=True)


def stub(programs: Path, code: int) -> None:
    """Put a command there that only tells its arguments and ends with a code."""
    (programs / "fencepost").write_text(STUB.format(code=code))


def test_the_script_writes_everything(tmp_path: Path, programs: Path) -> None:
    files = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "GITHUB_OUTPUT": str(tmp_path / "output")}
    done = run_script(tmp_path, programs, TARGET="bundled", ARGS="--only HB-05 HB-04", **files)
    assert done.returncode == 0, done.stdout + done.stderr
    written = {path.name for path in (tmp_path / "fencepost").iterdir()}
    assert written == {"report.json", "junit.xml", "report.html", "summary.md", "traces"}
    report = from_json((tmp_path / "fencepost" / "report.json").read_text())
    assert [result.id for result in report.results] == ["HB-04", "HB-05"]
    assert (tmp_path / "summary").read_text() == (tmp_path / "fencepost" / "summary.md").read_text()
    assert (tmp_path / "output").read_text() == "exit-code=0\nreport=fencepost/report.json\n"


@pytest.mark.parametrize(
    ("fail_on", "code", "expected"),
    [("inconclusive", 3, 3), ("violation", 3, 0), ("violation", 1, 1), ("violation", 2, 2), ("", 0, 0)],
)
def test_the_exit_code(tmp_path: Path, programs: Path, fail_on: str, code: int, expected: int) -> None:
    stub(programs, code)
    assert run_script(tmp_path, programs, TARGET="bundled", FAIL_ON=fail_on).returncode == expected


def test_a_broker_that_the_script_starts(tmp_path: Path, programs: Path) -> None:
    stub(programs, 0)
    done = run_script(tmp_path, programs, START="./acme --name 'a b'")
    assert "--profile profile.fencepost.toml" in done.stdout
    profile = load_profile(tmp_path / "profile.fencepost.toml")
    assert profile.start == ("./acme", "--name", "a b")


def test_each_violation_is_an_annotation(tmp_path: Path, programs: Path) -> None:
    stub(programs, 1)
    (tmp_path / "fencepost").mkdir()
    case = '<testcase name="HB-04: x"><failure message="100% wrong&#10;at once"/></testcase>'
    (tmp_path / "fencepost" / "junit.xml").write_text(f"<testsuites><testsuite>{case}</testsuite></testsuites>")
    done = run_script(tmp_path, programs, TARGET="bundled", GITHUB_ACTIONS="true")
    assert done.stdout.splitlines()[1:] == ["::error title=HB-04  x::100%25 wrong%0Aat once"]
    assert "::error" not in run_script(tmp_path, programs, TARGET="bundled", GITHUB_ACTIONS="").stdout


def test_the_summary_says_what_has_changed(tmp_path: Path, programs: Path) -> None:
    assert run_script(tmp_path, programs, TARGET="bundled", ARGS="--only HB-05", OUT="before").returncode == 0
    before = {"BASELINE": "before/report.json"}
    done = run_script(tmp_path, programs, TARGET="bundled", ARGS="--only HB-04", **before)
    summary = (tmp_path / "fencepost" / "summary.md").read_text()
    assert done.returncode == 0 and "## What has changed" in summary and "newly checked 1: HB-04" in summary
    run_script(tmp_path, programs, TARGET="bundled", ARGS="--only HB-04", BASELINE="none.json")
    assert "## What has changed" not in (tmp_path / "fencepost" / "summary.md").read_text()


def test_start_and_profile_exclude_each_other(tmp_path: Path, programs: Path) -> None:
    done = run_script(tmp_path, programs, START="./acme", PROFILE="p.toml")
    assert done.returncode == 2 and "START or PROFILE" in done.stderr


def test_the_action_hands_its_inputs_to_the_script() -> None:
    action = load("action.yml")
    (step,) = (step for step in action["runs"]["steps"] if step.get("id") == "run")
    told = set(re.findall(r"^#   ([A-Z_]+)", SCRIPT.read_text(), re.MULTILINE)) - {"OUT"}
    assert set(step["env"]) == told
    used = set(re.findall(r"inputs\.([\w-]+)", (CI / "action.yml").read_text()))
    assert used == set(action["inputs"])
    assert step["run"] == '"$GITHUB_ACTION_PATH/run-fencepost"' and os.access(SCRIPT, os.X_OK)
    assert {f"steps.run.outputs.{name}" for name in action["outputs"]} <= set(
        re.findall(r"steps\.run\.outputs\.[\w-]+", (CI / "action.yml").read_text())
    )
    assert all("shell" in step for step in action["runs"]["steps"] if "run" in step)


def test_the_workflow_uses_inputs_of_the_action() -> None:
    (job,) = load("github-workflow.yml")["jobs"].values()
    (step,) = (step for step in job["steps"] if "with" in step)
    assert set(step["with"]) <= set(load("action.yml")["inputs"])


def test_the_job_runs_the_script() -> None:
    (job,) = load("gitlab.yml").values()
    assert job["script"][-1] == "./run-fencepost" and set(job["variables"]) <= {"START", "FAIL_ON"}
    assert job["artifacts"]["reports"]["junit"] == "fencepost/junit.xml"


def test_the_arguments_exist() -> None:
    import argparse

    parsers = [argparse.ArgumentParser(), argparse.ArgumentParser()]
    for parser, command in zip(parsers, (COMMANDS["test"], REPORT["report"]), strict=True):
        command.add_to(parser)
    known = {option for parser in parsers for action in parser._actions for option in action.option_strings}
    text = "".join((CI / name).read_text() for name in ("run-fencepost", "action.yml", "github-workflow.yml"))
    text += (CI.parent / "how-to" / "ci.md").read_text()
    used = set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", text)) - {
        "--port",
        "--quiet",
        "--release",
        "--ignored",
        "--no-deps",
    }
    assert used <= known and "--schedules" in used


SCHEMAS = {"action.yml": "github-actions", "github-workflow.yml": "github-workflows", "gitlab.yml": "gitlab-ci"}


@pytest.mark.slow
@pytest.mark.extra("check_jsonschema")
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_recipe_fits_its_published_schema(name: str, tmp_path: Path) -> None:
    def check(path: Path) -> int:
        schema = f"vendor.{SCHEMAS[name]}"
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
        return subprocess.run(command, capture_output=True).returncode

    (tmp_path / "broken.yml").write_text("runs: [1]\njobs: {a: 7}\nstages: {}\n")
    assert (check(CI / name), check(tmp_path / "broken.yml")) == (0, 1)
