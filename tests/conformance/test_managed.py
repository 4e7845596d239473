"""A target that the profile starts and that stays in the foreground: kept, restarted, watched and ended by the kit."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fencepost.adapters.address import TargetError
from fencepost.adapters.wire.process_control import PROC, IdleUse, ProcessControl
from fencepost.conformance.cli import main
from fencepost.conformance.cli.options import NO_TARGET
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.reports.report import render_report
from fencepost.conformance.results import ExitCode
from tests.support.sample_reports import KEPT

pytestmark = pytest.mark.real_time

ROOT = Path(__file__).parents[2]
needs_proc = pytest.mark.skipif(not PROC.is_dir(), reason="CPU time of other processes is read from /proc")


WriteProfile = Callable[[Path, str], Path]


def write_profile(folder: Path, manner: str) -> Path:
    """A profile with a broker of this manner, whose process ids can be found by the folder."""
    script = f"import sys; sys.path[:0] = {[str(ROOT / '.src'), str(ROOT)]!r}; " + (
        f"from tests.support.foreground_broker import main; main({str(folder)!r}, {manner!r})"
    )
    profile = folder / "profile.toml"
    profile.write_text(f"[target]\nstart = {json.dumps(shlex.join([sys.executable, '-c', script]))}\n")
    return profile


def write_background_profile(folder: Path, manner: str) -> Path:
    """A profile with the same broker, which its commands start and kill in the background."""
    program = [sys.executable, "-m", "tests.support.background_broker"]
    commands = {"start": [*program, "start", str(folder), manner], "kill": [*program, "kill", str(folder)]}
    environment = ["env", f"PYTHONPATH={ROOT / '.src'}:{ROOT}"]
    profile = folder / "profile.toml"
    lines = (f"{key} = {json.dumps(shlex.join([*environment, *command]))}" for key, command in commands.items())
    profile.write_text("\n".join(["[target]", *lines, ""]))
    return profile


def processes_of(folder: Path) -> list[int]:
    """The processes that have the folder in their command."""
    found = []
    for entry in PROC.glob("[0-9]*"):
        try:
            if str(folder).encode() in (entry / "cmdline").read_bytes() and int(entry.name) != os.getpid():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_profile(
    folder: Path, manner: str, only: Sequence[str], write: WriteProfile = write_profile
) -> tuple[int, dict[str, object]]:
    report = folder / "report.json"
    code = main(["test", "--profile", str(write(folder, manner)), "--only", *only, "--json", str(report)])
    return code, json.loads(report.read_text())


test_profile.__test__ = False  # type: ignore[attr-defined]


def test_a_profile_alone_starts_the_target_restarts_it_and_ends_it(tmp_path: Path) -> None:
    code, document = test_profile(tmp_path, "calm", ["FAILOVER-01", "FIND-01", "ADMIN-32"])
    requirements: list[dict[str, object]] = document["requirements"]  # type: ignore[assignment]
    assert {each["id"]: each["verdict"] for each in requirements} == {
        "FAILOVER-01": "pass",
        "FIND-01": "pass",
        "ADMIN-32": "pass",
    }
    assert code == 0
    assert document["idle_findings"] == []
    assert str(document["target"]["name"]).startswith("kafka://127.0.0.1:")  # type: ignore[index]
    assert processes_of(tmp_path) == []


@needs_proc
@pytest.mark.parametrize(("manner", "finding"), [("spins", " s of CPU ("), ("floods", " MB of output in ")])
@pytest.mark.parametrize("write", [write_profile, write_background_profile])
def test_what_an_idle_target_does_is_a_finding(
    tmp_path: Path, manner: str, finding: str, write: WriteProfile, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document = test_profile(tmp_path, manner, ["FIND-01"], write)
    assert code == ExitCode.INCONCLUSIVE
    found = "; ".join(map(str, document["idle_findings"]))  # type: ignore[call-overload]
    assert found.startswith("the target ") and finding in found
    assert found.endswith(" without a request, after the scenarios")
    assert capsys.readouterr().out.splitlines()[-1].startswith("INCONCLUSIVE: nothing is violated, but the target ")
    assert processes_of(tmp_path) == []


@needs_proc
def test_a_calm_target_in_the_background_is_watched_and_not_blamed(tmp_path: Path) -> None:
    code, document = test_profile(tmp_path, "calm", ["FIND-01", "FAILOVER-01"], write_background_profile)
    assert code == 0
    assert document["idle_findings"] == []
    facts: dict[str, object] = document["facts"]  # type: ignore[assignment]
    assert not [remark for remark in facts["remarks"] if "not watched" in remark]  # type: ignore[attr-defined]


def test_findings_are_in_every_report() -> None:
    report = replace(KEPT, idle_findings=("the target used 2.0 s of CPU in 2.0 s without a request",))
    assert report.exit_code() is ExitCode.INCONCLUSIVE and not report.is_conformant
    assert "While idle\n  the target used 2.0 s of CPU in 2.0 s without a request" in render_report(report)
    assert from_json(to_json(report)) == report
    errors = [each.get("message") for each in ElementTree.fromstring(to_junit(report)).iter("error")]
    assert errors == ["the target used 2.0 s of CPU in 2.0 s without a request"]


@pytest.mark.parametrize(
    ("use", "excess"),
    [
        (IdleUse(2.0, 0.9, 0.9, 1_900_000), ""),
        (IdleUse(2.0, 1.9, 0.2, 0), "used 1.9 s of CPU (0.95 s a second) in 2.0 s without a request"),
        (IdleUse(2.0, 0.4, 1.9, 0), "used 0.4 s of CPU (0.20 s a second) in 2.0 s without a request"),
        (IdleUse(2.0, 0.1, 1.9, 0), ""),
        (IdleUse(2.0, 0.0, 0.0, 90_000_000), "wrote 90.0 MB of output in 2.0 s without a request"),
        (
            IdleUse(2.0, 2.0, 2.0, 4_000_000),
            "used 2.0 s of CPU (1.00 s a second) and wrote 4.0 MB of output in 2.0 s without a request",
        ),
    ],
)
def test_how_much_is_too_much(use: IdleUse, excess: str) -> None:
    assert use.describe_excess() == excess


# --- how it is started


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["test", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_without_target_and_start_there_is_nothing_to_test(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    expected = "fencepost: no target: name one, such as bundled, or give a --profile with [target] start"
    assert refusal(capsys) == f"fencepost test: {NO_TARGET} (see fencepost test --help)"
    empty = tmp_path / "p.toml"
    empty.write_text("")
    assert refusal(capsys, "--profile", str(empty)) == expected


def test_an_address_beside_a_start_without_kill(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    profile = write_profile(tmp_path, "calm")
    assert refusal(capsys, "kafka://127.0.0.1:1", "--profile", str(profile)) == (
        "fencepost: kafka://127.0.0.1:1: the profile has start and no kill, so that only a target which the kit "
        "started can be restarted; leave the address out, or give [target] kill"
    )


async def test_a_start_that_ends_needs_a_kill() -> None:
    control = ProcessControl((sys.executable, "-c", "print('a:1')"))
    with pytest.raises(
        TargetError, match="ended, so that the target is in the background, and the profile has no kill"
    ):
        await control.start()


async def test_a_target_in_the_foreground_that_fails_to_start_says_why() -> None:
    control = ProcessControl((sys.executable, "-c", "print('hello'); exit('no port is free')"))
    with pytest.raises(TargetError, match="exit code 1: no port is free"):
        await control.start()


async def test_a_kill_command_is_run_for_a_target_in_the_foreground_too(tmp_path: Path) -> None:
    stays = "import time; print('127.0.0.1:9', flush=True); time.sleep(600)"
    control = ProcessControl(
        (sys.executable, "-c", stays), (sys.executable, "-c", "open('killed', 'w')"), folder=tmp_path
    )
    assert await control.start() == ("127.0.0.1", 9)
    assert await control.measure_use(0.0) is not None
    await control.kill()
    assert (tmp_path / "killed").exists()
    assert await control.measure_use(0.0) is None


@pytest.mark.parametrize("in_background", [True, False])
async def test_a_start_command_that_is_slow_to_end_leaves_no_target_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_background: bool
) -> None:
    """It seems to stay in the foreground until it ends, with the target in the background."""
    monkeypatch.setattr("fencepost.adapters.wire.process_control.EXIT_GRACE_S", 0.0)
    waits = "import sys; print('127.0.0.1:9', flush=True); sys.stdout.close(); open('go').read()"
    os.mkfifo(tmp_path / "go")
    control = ProcessControl(
        (sys.executable, "-c", waits), (sys.executable, "-c", "open('killed', 'w')"), folder=tmp_path
    )
    assert await control.start() == ("127.0.0.1", 9)
    foreground = control._foreground
    assert foreground is not None
    (tmp_path / "go").write_text("")
    await foreground.process.wait()
    await control.stop(in_background=in_background)
    assert (tmp_path / "killed").exists() is in_background
