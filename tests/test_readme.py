"""The README: its commands run and print the text that it shows, its numbers and its picture are computed."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from docs.generator.pictures import finding_as_mermaid
from fencepost.conformance.profile import load_profile
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.zoo.fault import Side
from fencepost.conformance.zoo.results import BUG_RESULTS
from fencepost.conformance.zoo.strangers import RECORDED
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import violations_in
from tests.support.doc_pages import ADDRESS, Command, commands_in, missing_lines, prepare_folder, run_line
from tests.support.plugin_arguments import run_apart
from tests.support.readme import COMMANDS, README, fenced_blocks
from tests.targets.running import RunningTarget

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
KAFKA = DOCS / "registry" / "coordinators" / "apache-kafka" / "4.4.0" / "report.json"
OFFLINE = "--no-index --no-build-isolation --disable-pip-version-check"
MAX_LINES = 166
OVER_NETWORK = [each for each in commands_in(README) if ADDRESS in each.line]
FOR_CONTRIBUTORS = [each for each in commands_in(README) if each.line.startswith("pip install -e")]
"""What `.ci/run` and `.ci/nightly` run."""


def runnable_line(line: str) -> str:
    """The same command, but without a download, a change of this environment or a run of minutes."""
    line = line.replace("--profile profile.toml", "--profile profile.toml --only 'HB-0*'")
    line = re.sub(
        r"^pip install --no-compile \.", f"{sys.executable} -m pip install --dry-run --no-deps {OFFLINE} {ROOT}", line
    )
    return re.sub(r"^pip wheel (.*) \. ", rf"{sys.executable} -m pip wheel {OFFLINE} \1 {ROOT} ", line)


def run_command(command: Command, folder: Path, environment: dict[str, str]) -> None:
    """Run a command and compare its output with the README."""
    done = run_line(runnable_line(command.line), folder, environment)
    assert done.returncode == command.code, f"{command.line}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    assert missing_lines(command.shown, done.stdout) == [], f"{command.line}\n{done.stdout[-6000:]}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as the root of a checkout."""
    (tmp_path / "docs").symlink_to(DOCS)
    return tmp_path


@pytest.mark.slow
@pytest.mark.extra("hatchling")
def test_commands_run(folder: Path) -> None:
    environment = prepare_folder(folder, README)
    for command in commands_in(README):
        if command not in OVER_NETWORK + FOR_CONTRIBUTORS:
            run_command(command, folder, environment)


@pytest.mark.kafka4
@pytest.mark.parametrize("command", OVER_NETWORK, ids=lambda each: each.line)
def test_commands_for_a_broker_run(command: Command, kafka4: RunningTarget, folder: Path) -> None:
    line = command.line.replace(ADDRESS, kafka4.bootstrap)
    line += "" if "--smoke" in line else " --smoke"
    run_command(Command(line, command.code), folder, prepare_folder(folder, README))


def test_the_profile_in_the_readme_is_one(tmp_path: Path) -> None:
    (text,) = fenced_blocks(README, "toml")
    (tmp_path / "profile.toml").write_text(text)
    assert load_profile(tmp_path / "profile.toml").can_restart


@pytest.mark.slow
def test_the_test_suite_in_the_readme_is_one(pytester: pytest.Pytester) -> None:
    (code,) = fenced_blocks(README, "python")
    (pytester.path / "coordinator.py").write_text(
        "from tests.support.coordinators_under_test import WrappedAsyncCoordinator as Coordinator\n"
    )
    (pytester.path / "test_it.py").write_text(code)
    result = run_apart(pytester, "-k", "HB-04 or JOIN-04")
    assert result.parseoutcomes()["passed"] == 2


def test_the_picture_is_that_of_the_finding() -> None:
    assert fenced_blocks(README, "mermaid") == [finding_as_mermaid(DOCS)]


def test_the_finding_has_one_cause_and_its_story_is_told_alike() -> None:
    header, events = open_trace(DOCS / "examples" / "finding" / "two-leaders.jsonl")
    violations = list(violations_in(judge(header, tuple(events))))
    assert {each.requirement for each in violations} == {"JOIN-37", "GEN-05"}
    assert len({each.sequence for each in violations}) == 1
    (story,) = re.findall(r"^A true finding, .*?(?=:$)", README, re.M | re.S)
    assert story in (DOCS / "index.md").read_text()
    (source,) = re.findall(r"\]\((https:[^)]+)\)", story)
    assert source in dict(DEFAULT_SPECIFICATION.links_of("JOIN-37")).values()


@pytest.mark.kfake
def test_the_finding_is_true(kfake: RunningTarget, folder: Path) -> None:
    profile = ROOT / "tests" / "targets" / "kfake.toml"
    done = run_line(f"fencepost test --only GEN-05 --profile {profile}", folder, prepare_folder(folder, README))
    assert done.returncode == 1 and "GEN-05" in done.stdout and "leader = C" in done.stdout, done.stdout


def test_the_numbers_are_those_of_the_kit() -> None:
    kafka = json.loads(KAFKA.read_text())
    bugs = [row for row in json.loads(BUG_RESULTS.read_text())["rows"] if row["subject"] == "coordinator"]
    found = sum(bool(row["found_by"]) for row in bugs)
    text = " ".join(README.split())
    (fewest,) = re.findall(r"It has (\d+) requirements and more", text)
    assert int(fewest) <= len(CATALOGUE) < int(fewest) + 100
    assert kafka["outcome"]["verdicts"]["fail"] == kafka["outcome"]["verdicts"]["known"] == 0
    assert f"none of the {kafka['outcome']['checked']} that can be checked there" in text
    assert f"{found} of {len(bugs)} [bugs that coordinators shipped]" in text


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) <= MAX_LINES
    headings = {
        re.sub(r"[^\w -]", "", each).strip().lower().replace(" ", "-") for each in re.findall(r"^#+(.*)$", README, re.M)
    }
    for target in re.findall(r"\]\(([^)]+)\)", README):
        file, _, anchor = target.partition("#")
        assert file.startswith("https://") or (ROOT / file).exists() if file else anchor in headings, target


def test_the_first_command_of_a_newcomer_comes_first() -> None:
    assert COMMANDS[:2] == ["pip install --no-compile .", "fencepost test bundled"]
    assert fenced_blocks((DOCS / "index.md").read_text(), "sh") == fenced_blocks(README, "sh")[:1]


def test_continuous_integration_runs_the_line_for_the_quick_set() -> None:
    search = 'grep --max-count=1 "^pip install -e" README.md'
    assert search in (ROOT / ".ci" / "steps").read_text()
    found = run_line(search, ROOT, dict(os.environ)).stdout.strip()
    assert found == FOR_CONTRIBUTORS[0].line and ".[test]" in found and '-m "not slow"' in found


def test_the_figures_on_strangers_are_those_of_the_last_measurement() -> None:
    figures = json.loads(RECORDED[Side.COORDINATOR].read_text())["figures"]
    shares = {name: (row["hits"], row["total"]) for name, row in figures.items()}
    text = " ".join(README.split())
    ended, strangers = shares["runs that ended"]
    assert f"On {strangers} coordinators that a seed draws (`fencepost strangers`), {ended} runs ended" in text
    alarms, plain = shares["strangers without a fault that raise an alarm"]
    assert f"{alarms} of {plain} without a fault raised an alarm" in text
    found, single = shares["single faults found"]
    right, named = shares["first name right, of a single fault"]
    assert f"{found} of {single} single faults were found, {right} of {named} by a right name first" in text
