import errno
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fencepost.adapters.address import TargetError, parse_target
from fencepost.conformance.cli import COMMANDS, main
from fencepost.conformance.cli.console import BROKEN_OFF
from fencepost.conformance.cli.options import NO_TARGET
from fencepost.conformance.plan import Plan, ReplayOutcome, ReplayResult
from fencepost.conformance.profile import ProfileError
from fencepost.conformance.reports.json_report import from_json
from fencepost.conformance.reports.report import render_report
from fencepost.traces.files.trace_files import TraceError
from tests.support.fake_runner import FakeRunner
from tests.support.sample_reports import JOIN_29, KEPT, VIOLATED

Capture = pytest.CaptureFixture[str]
NO_PORT = "is not a port, which is a number from 1 to 65535 (see fencepost serve --help)"


def test_a_plain_test_asks_for_everything() -> None:
    runner = FakeRunner()
    assert main(["test", "bundled"], runner) == 0
    assert runner.calls == [Plan("bundled", schedules=60)]


def test_a_target_may_stand_behind_patterns() -> None:
    runner = FakeRunner()
    assert main(["test", "--only", "HB-05", "JOIN-*", "kafka://127.0.0.1:9092"], runner) == 0
    (plan,) = runner.calls
    assert isinstance(plan, Plan)
    assert (plan.target, plan.patterns) == ("kafka://127.0.0.1:9092", ("HB-05", "JOIN-*"))


@pytest.mark.parametrize(
    ("arguments", "schedules"),
    [
        (["bundled"], 60),
        (["kafka://127.0.0.1:9092"], 20),
        (["--profile", "p.toml"], 20),
        (["bundled", "--smoke"], 0),
        (["bundled", "--only", "HB-*"], 0),
        (["bundled", "--schedules", "0"], 0),
        (["bundled", "--smoke", "--schedules", "7"], 7),
    ],
)
def test_only_full_runs_play_random_schedules_unless_told_otherwise(arguments: list[str], schedules: int) -> None:
    runner = FakeRunner()
    assert main(["test", *arguments], runner) == 0
    (plan,) = runner.calls
    assert isinstance(plan, Plan)
    assert plan.schedules == schedules


def test_every_option_reaches_the_plan(tmp_path: Path) -> None:
    runner = FakeRunner()
    arguments = ["test", "kafka://127.0.0.1:9092", "--only", "JOIN-*", "HB-05", "--only", "SYNC-1?", "--slow"]
    arguments += ["--seed", "9", "--profile", "p.toml", "--save", f"{tmp_path}/a/b", "--traces", f"{tmp_path}/c"]
    assert main(arguments, runner) == 0
    assert runner.calls == [
        Plan(
            target="kafka://127.0.0.1:9092",
            patterns=("JOIN-*", "HB-05", "SYNC-1?"),
            slow=True,
            seed=9,
            profile=Path("p.toml"),
            save=tmp_path / "a/b",
            traces=tmp_path / "c",
        )
    ]
    assert (tmp_path / "a/b").is_dir()
    assert (tmp_path / "c").is_dir()


def test_the_report_goes_to_standard_output_and_progress_to_standard_error(capsys: Capture) -> None:
    assert main(["test", "bundled", "--smoke"], FakeRunner(VIOLATED)) == 1
    output = capsys.readouterr()
    assert output.out == render_report(VIOLATED)
    assert output.err == "1/2 schedules, 1.0 s, about 1.0 s left\n2/2 schedules, 2.0 s\n"


def test_the_report_is_saved_as_json_and_junit(tmp_path: Path) -> None:
    assert main(["test", "bundled", "--json", f"{tmp_path}/r.json", "--junit", f"{tmp_path}/r.xml"], FakeRunner()) == 0
    assert from_json((tmp_path / "r.json").read_text(encoding="utf-8")) == KEPT
    assert ElementTree.parse(tmp_path / "r.xml").getroot().get("tests") == "1"


def test_a_file_that_cannot_be_written_is_found_before_the_target_is_touched(tmp_path: Path, capsys: Capture) -> None:
    runner = FakeRunner(VIOLATED)
    arguments = ["test", "bundled", "--json", f"{tmp_path}/none/r.json", "--junit", f"{tmp_path}/r.xml"]
    assert main(arguments, runner) == 2
    assert runner.calls == []
    assert capsys.readouterr().err == f"fencepost: {tmp_path}/none/r.json: No such file or directory\n"


def test_a_disk_that_is_full_by_now_costs_neither_the_report_nor_the_other_file(
    tmp_path: Path, capsys: Capture
) -> None:
    arguments = ["test", "bundled", "--json", "/dev/full", "--junit", f"{tmp_path}/r.xml"]
    assert main(arguments, FakeRunner(VIOLATED)) == 2
    output = capsys.readouterr()
    assert output.out == render_report(VIOLATED)
    assert output.err.splitlines()[-1] == "fencepost: cannot write the report: /dev/full: No space left on device"
    assert (tmp_path / "r.xml").read_text()


class ClosedPipe(io.StringIO):
    """A pipe whose reader has gone away."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_has_gone_away_does_not_cost_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", ClosedPipe())
    assert main(["test", "bundled", "--json", f"{tmp_path}/r.json"], FakeRunner(VIOLATED)) == 1
    assert from_json((tmp_path / "r.json").read_text(encoding="utf-8")) == VIOLATED


def test_characters_that_the_output_cannot_show_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(output, encoding="ascii"))
    assert main(["test", "bundled"], FakeRunner(replace(KEPT, target={"name": "b\u00fcndel"}))) == 0
    assert output.getvalue().startswith(b"Target: b\\xfcndel\n")


def test_ctrl_c_reports_and_saves_what_was_judged(tmp_path: Path, capsys: Capture) -> None:
    assert main(["test", "bundled", "--json", f"{tmp_path}/r.json"], FakeRunner(interrupted=True)) == 3
    assert capsys.readouterr().out.endswith("INCONCLUSIVE: the run was cut short.\n")
    assert json.loads((tmp_path / "r.json").read_text())["cut_short"] is True


def test_ctrl_c_does_not_hide_a_violation() -> None:
    assert main(["test", "bundled"], FakeRunner(VIOLATED, interrupted=True)) == 1


@pytest.mark.parametrize("command", [["test", "bundled"], ["judge", "t.jsonl"], ["replay", "t.jsonl", "bundled"]])
def test_ctrl_c_before_anything_was_judged(command: list[str], capsys: Capture) -> None:
    assert main(command, FakeRunner(error=KeyboardInterrupt())) == 3
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "fencepost: interrupted before anything was judged\n")


def test_a_third_signal_says_that_what_was_judged_is_lost(tmp_path: Path, capsys: Capture) -> None:
    report = tmp_path / "r.json"
    assert main(["test", "bundled", "--json", str(report)], FakeRunner(error=KeyboardInterrupt(BROKEN_OFF))) == 3
    assert capsys.readouterr().err == f"fencepost: {BROKEN_OFF}\n"
    assert json.loads(report.read_text())["ended"]["reason"] == BROKEN_OFF


@pytest.mark.parametrize(
    ("outcome", "code", "last_line"),
    [
        (ReplayResult(ReplayOutcome.FIXED), 0, "FIXED"),
        (ReplayResult(ReplayOutcome.STILL_FAILS, "JOIN-29", JOIN_29), 1, "STILL FAILS"),
        (ReplayResult(ReplayOutcome.DIFFERENT, "JOIN-29", JOIN_29), 1, "DIFFERENT"),
        (ReplayResult(ReplayOutcome.INCONCLUSIVE, note="no answer"), 3, "INCONCLUSIVE: no answer"),
    ],
)
def test_replay(outcome: ReplayResult, code: int, last_line: str, capsys: Capture) -> None:
    runner = FakeRunner(outcome=outcome)
    assert main(["replay", "t.jsonl", "bundled", "--profile", "p.toml"], runner) == code
    assert runner.calls == [(Path("t.jsonl"), "bundled", Path("p.toml"))]
    assert capsys.readouterr().out.splitlines()[-1] == last_line


def test_judge(capsys: Capture) -> None:
    runner = FakeRunner(VIOLATED)
    assert main(["judge", "a.jsonl", "b.jsonl.gz"], runner) == 1
    assert runner.calls == [(Path("a.jsonl"), Path("b.jsonl.gz"))]
    output = capsys.readouterr()
    assert (output.out, output.err) == (render_report(VIOLATED), "2/2 schedules, 1.0 s\n")


def test_serve_announces_itself_and_ends_well_on_ctrl_c(capsys: Capture) -> None:
    runner = FakeRunner()
    slow = ("--storage", "groups", "--slow-storage", "20")
    assert main(["serve", "--port", "0", *slow, "--nodes", "2", "--dialect", "proposal"], runner) == 0
    assert runner.calls == [("127.0.0.1", 0, Path("groups"), 20, 2, "proposal")]
    output = capsys.readouterr()
    assert (output.out, output.err) == ("127.0.0.1:0\n", "fencepost: stopped\n")


@pytest.mark.parametrize("command", [["test", "bundled"], ["judge", "t.jsonl"], ["replay", "t.jsonl", "x"], ["serve"]])
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (TargetError("x is no target; say bundled or kafka://host:port"), None),
        (TraceError("t.jsonl", 3, "not JSON"), "t.jsonl:3: not JSON"),
        (ProfileError("p.toml: unknown key 'x'"), None),
        (OSError(errno.ENOENT, os.strerror(errno.ENOENT), "t.jsonl"), "t.jsonl: No such file or directory"),
        (OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE)), "Address already in use"),
        (OSError("odd\n  and long"), "odd and long"),
        (OSError(), "OSError"),
    ],
)
def test_a_mistake_gets_one_line(command: list[str], error: Exception, line: str | None, capsys: Capture) -> None:
    assert main(command, FakeRunner(error=error)) == 2
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"fencepost: {line or error}\n")


def test_an_unknown_requirement_is_found_before_the_target_is_touched(capsys: Capture) -> None:
    runner = FakeRunner()
    assert main(["test", "bundled", "--only", "JOIN-*", "JOIN-99"], runner) == 2
    assert runner.calls == []
    assert capsys.readouterr().err == (
        "fencepost: no requirement matches 'JOIN-99'; try an id like JOIN-49 or a pattern like 'JOIN-*'\n"
    )


def test_a_folder_that_cannot_be_made_is_found_before_the_target_is_touched(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").touch()
    runner = FakeRunner()
    assert main(["test", "bundled", "--save", f"{tmp_path}/file"], runner) == 2
    assert runner.calls == []
    assert capsys.readouterr().err == f"fencepost: {tmp_path}/file: File exists\n"


def test_an_error_of_our_own_is_no_violation(capsys: Capture) -> None:
    assert main(["test", "bundled"], FakeRunner(error=ZeroDivisionError("oops"))) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-2:] == [
        "ZeroDivisionError: oops",
        "fencepost: this is an error in Fencepost itself; please report it with the lines above",
    ]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            "test",
            f"fencepost test: {NO_TARGET} (see fencepost test --help)",
        ),
        (
            "test bundled --seed x",
            "fencepost test: argument --seed: invalid int value: 'x' (see fencepost test --help)",
        ),
        (
            "test bundled --smoke --slow",
            "fencepost test: argument --slow: not allowed with argument --smoke (see fencepost test --help)",
        ),
        ("test bundled --sarif r", "fencepost test: unrecognized arguments: --sarif r (see fencepost test --help)"),
        (
            "replay t",
            f"fencepost replay: {NO_TARGET} (see fencepost replay --help)",
        ),
        ("judge", "fencepost judge: the following arguments are required: TRACE (see fencepost judge --help)"),
        ("serve --port 65536", f"fencepost serve: argument --port: '65536' {NO_PORT}"),
        ("serve --port -1", f"fencepost serve: argument --port: '-1' {NO_PORT}"),
    ],
)
def test_a_usage_error_gets_one_line(arguments: str, line: str, capsys: Capture) -> None:
    runner = FakeRunner()
    assert main(arguments.split(), runner) == 2
    assert runner.calls == []
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"{line}\n")


def test_help_names_the_commands_and_the_exit_codes(capsys: Capture) -> None:
    assert main(["--help"], FakeRunner()) == 0
    text = capsys.readouterr().out
    assert "Exit codes: 0 conformant, 1 violation, 2 could not run" in text
    assert all(f"\n    {command} " in text for command in ("test", "replay", "judge", "serve"))


LIST_PACKAGES = """
import sys
from fencepost._command import main
code = main()
print(*sorted(each for each in sys.modules if each.startswith("fencepost.") and each != "fencepost._command"))
sys.exit(code)
"""
"""Runs the console script and prints the modules of Fencepost that it has imported besides itself."""


def imported_modules(*arguments: str) -> tuple[int, set[str], str]:
    """The exit code of the command line in a process of its own, the modules that it imported, and its error line."""
    command = [sys.executable, "-c", LIST_PACKAGES, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, set(done.stdout.split()), done.stderr


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("MISTYPED", ": write bundled, host:port, kafka://host:port or kafka+ssl://host:port"),
        ("", ": write bundled, host:port, kafka://host:port or kafka+ssl://host:port"),
        ("Bundled", "; did you mean 'bundled'?"),
        ("bundeld", "; did you mean 'bundled'?"),
        ("localhost:99999", ": its port is 99999, which is not from 1 to 65535"),
        ("a:1,b:0", ": its port is 0, which is not from 1 to 65535"),
    ],
)
def test_a_mistyped_target_is_rejected_before_much_is_imported(target: str, reason: str) -> None:
    code, imported, line = imported_modules("test", target, "--smoke")
    assert (code, line) == (2, f"fencepost: {target!r} is no target{reason}\n")
    assert "fencepost.conformance.results" not in imported and len(imported) < 20
    with pytest.raises(TargetError) as rejection:
        parse_target(target)
    assert line == f"fencepost: {rejection.value}\n"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_usage_errors_and_help_import_the_command_line_alone(command: str) -> None:
    own = {"", "console", "options", "record", COMMANDS.get(command, ("",))[0]}
    light = {"fencepost.conformance", *(f"fencepost.conformance.cli.{name}".rstrip(".") for name in own)}
    light |= {"fencepost.conformance.reports", "fencepost.conformance.reports.layout"}  # to escape the line
    if command == "zoo":
        light |= {"fencepost.conformance.zoo", "fencepost.conformance.zoo.strategies"}
    if command in ("explore", "prove", "serve"):  # the entries of the protocols say who knows the command
        entries = [f"{name}.protocol" for name in ("classic", "proposal", "push", "region")]
        light |= {f"fencepost.model.{each}" for name in entries for each in (name, name.partition(".")[0])}
        light |= {"fencepost.model", "fencepost.model.protocols"}
    words = [command] if command else []
    code, imported, line = imported_modules(*words, "--no-such-option")
    assert code == 2 and line.count("\n") == 1
    assert imported <= light
    assert main([*words, "--help"]) == 0
