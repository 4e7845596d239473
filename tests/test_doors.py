"""Each door of the kit leads to a first true result: at most three commands of the docs, in at most a minute."""

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.doc_pages import Command, commands_in, missing_lines, prepare_folder, run_line
from tests.support.readme import COMMANDS

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "tutorials" / "doors.md").read_text()
DOORS = {re.sub(r"\W+", "-", part.splitlines()[0]).lower(): part for part in PAGE.split("\n## ")[1:]}
MAX_COMMANDS, MAX_SECONDS, FIRST_SECONDS = 3, 60, 20
PROGRAMS = {"go", "cargo", "mvn"}
SLOWEST = ("rust", "java")


def commands_of(door: str) -> list[Command]:
    """The commands of a door."""
    return list(commands_in(DOORS[door]))


def first_words(door: str) -> set[str]:
    """The programs that a door needs."""
    return {command.line.split()[0] for command in commands_of(door)}


def time_allowed() -> float:
    """The seconds for a door: a minute, and more on a machine that others use."""
    return MAX_SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def find_python(version: str) -> str:
    """The command of a Python. A test without it is skipped."""
    homes = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for command in (f"python{version}", *map(str, homes.glob(f"{version}.*/bin/python"))):
        ask = [command, "-c", "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"]
        with suppress(OSError):
            if subprocess.run(ask, capture_output=True, text=True).stdout.strip() == version:
                return command
    pytest.skip(f"there is no Python {version} on this machine")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_first_two_commands_take_twenty_seconds_from_nothing(version: str, tmp_path: Path) -> None:
    checkout, venv = tmp_path / "checkout", tmp_path / "venv"
    ignored = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "tests", "registry")
    shutil.copytree(DOCS.parent, checkout, symlinks=True, ignore=ignored)
    subprocess.run([find_python(version), "-m", "venv", str(venv)], check=True)
    environment = {**os.environ, "PATH": os.pathsep.join([str(venv / "bin"), os.environ["PATH"]])}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run_line(" && ".join(COMMANDS[:2]), checkout, environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0 and re.search("^CONFORMANT", done.stdout, re.MULTILINE), done.stdout + done.stderr
    # What they compute: how long they take on a machine that does nothing else.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime <= FIRST_SECONDS


def test_there_is_a_door_for_each_role() -> None:
    for role in ("in-go", "in-rust", "in-java", "with-pytest", "client", "log", "protocol"):
        assert any(role in door for door in DOORS), role
    for door in DOORS:
        assert 1 <= len(commands_of(door)) <= MAX_COMMANDS and commands_of(door)[-1].shown, door


def door_parameter(door: str) -> object:
    """A door; those that fetch and build much are for the acceptance suite."""
    marks = [pytest.mark.slow]
    marks += [pytest.mark.acceptance] if door.endswith(SLOWEST) else []
    marks += [pytest.mark.extra("kafka")] if "pip" in first_words(door) else []
    return pytest.param(door, id=door, marks=marks)


@pytest.mark.parametrize("door", [door_parameter(door) for door in DOORS])
def test_a_door_leads_to_a_first_result_in_a_minute(door: str, tmp_path: Path) -> None:
    for program in first_words(door) & PROGRAMS:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")
    folder = tmp_path / "checkout"
    folder.mkdir()
    environment = prepare_folder(folder, "")
    shutil.copytree(DOCS / "examples", folder / "docs" / "examples")
    begun = time.monotonic()
    for command in commands_of(door):
        line = re.sub(r"^pip install (.*)", rf"{sys.executable} -m pip --version || echo no pip for \1", command.line)
        done = run_line(line, folder, environment)
        assert done.returncode == command.code, f"{command.line}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        assert missing_lines(command.shown, done.stdout) == [], f"{command.line}\n{done.stdout[-6000:]}"
    assert time.monotonic() - begun < time_allowed()


def test_a_door_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (command,) = commands_in("```sh\nfencepost judge nothing.jsonl\n```\n")
    done = run_line(command.line, tmp_path, prepare_folder(tmp_path, ""))
    assert isinstance(done, subprocess.CompletedProcess) and done.returncode != command.code
