"""Every command in the README runs, and its profile is one."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.conformance.profile import load_profile
from fencepost.conformance.reports.json_report import to_json
from tests.support.readme import COMMANDS, README, fenced_blocks
from tests.support.sample_reports import KEPT
from tests.targets.running import RunningTarget

ROOT = Path(__file__).parent.parent
OFFLINE = ("--dry-run", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
DATA = ROOT / "tests" / "traces" / "data"
EXAMPLE_BROKER = "127.0.0.1:9092"


def runnable_command(command: str, broker: str, profile: Path) -> list[str]:
    """The words to run: the same command, but without a download, an endless recursion or somebody's broker."""
    match shlex.split(command):
        case ["pip", "install", *rest]:
            return [sys.executable, "-m", "pip", "install", *OFFLINE, *rest]
        case ["python", "-m", "pytest"]:
            return [sys.executable, "-m", "pytest", "--collect-only", "--quiet"]
        case ["fencepost", "judge", "group.jsonl"]:
            return [sys.executable, "-m", "fencepost", "judge", str(DATA / "group.jsonl")]
        case ["fencepost", "report", *rest]:
            saved = profile / "saved.json"
            saved.write_text(to_json(KEPT))
            files = {".json": saved, ".html": profile / "report.html", ".jsonl": DATA / "group.jsonl"}
            words = [str(files.get(Path(word).suffix, word)) for word in rest]
            return [sys.executable, "-m", "fencepost", "report", *words]
        case ["fencepost", *rest]:
            known = {
                EXAMPLE_BROKER: broker,
                f"kafka://{EXAMPLE_BROKER}": f"kafka://{broker}",
                "127.0.0.1:19092": "127.0.0.1:0",
                "profile.toml": str(profile),
                "server.log": str(DATA / "kafka-4.log"),
                "kafka.pcap": str(DATA / "kafka.pcap"),
                "group.jsonl": str(profile.with_name("group.jsonl")),
                "600": "0.1",
            }
            words = [known.get(word, word) for word in rest]
            return [sys.executable, "-m", "fencepost", *words, *(["--smoke"] if rest[0] == "test" and broker else [])]
    raise AssertionError(f"the README has a command that this test cannot run: {command}")


def run_command(words: list[str], cwd: Path) -> None:
    done = subprocess.run(words, cwd=cwd, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}{done.stderr}"


def with_extra(command: str) -> object:
    """A command of the README, marked with the module beyond the core that it needs."""
    needed = {"pip install": "hatchling", "fencepost import capture": "dpkt"}
    marks = [pytest.mark.extra(module) for start, module in needed.items() if command.startswith(start)]
    return pytest.param(command, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("command", [with_extra(command) for command in COMMANDS if EXAMPLE_BROKER not in command])
def test_commands_run(command: str, tmp_path: Path) -> None:
    run_command(runnable_command(command, "", tmp_path), ROOT)


@pytest.mark.kafka4
@pytest.mark.parametrize("command", [command for command in COMMANDS if EXAMPLE_BROKER in command])
def test_commands_for_a_broker_run(command: str, kafka4: RunningTarget, tmp_path: Path) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text("[timing]\ngrace_ms = 2000\n")
    run_command(runnable_command(command, kafka4.bootstrap, profile), ROOT)


def test_the_profile_in_the_readme_is_one(tmp_path: Path) -> None:
    (text,) = fenced_blocks(README, "toml")
    (tmp_path / "profile.toml").write_text(text)
    assert load_profile(tmp_path / "profile.toml").can_restart


def test_the_first_command_of_a_newcomer_comes_first() -> None:
    assert COMMANDS[:2] == ["pip install .", "fencepost test bundled"]


def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(AssertionError, match="cannot run: rm -r"):
        runnable_command("rm -r x", "", Path())
