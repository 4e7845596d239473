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
from fencepost.conformance.reports.report import render_report, to_html
from fencepost.traces.files.trace_files import TraceError
from tests.support.fake_runner import FakeRunner
from tests.support.sample_reports import JOIN_29, KEPT, VIOLATED

Capture = pytest.CaptureFixture[str]
NO_PORT = "is not a port, which is a number from 1 to 65535"


BROKER = "kafka://127.0.0.1:9092"


@pytest.mark.parametrize(
    ("arguments", "plan"),
    [
        ("bundled", Plan("bundled", schedules=60)),
        (BROKER, Plan(BROKER, schedules=20)),
        ("--profile p.toml", Plan("", profile=Path("p.toml"), schedules=20)),
        ("bundled --smoke", Plan("bundled", smoke=True)),
        ("bundled --only HB-*", Plan("bundled", ("HB-*",))),
        ("bundled --schedules 0", Plan("bundled")),
        ("bundled --smoke --schedules 7", Plan("bundled", smoke=True, schedules=7)),
        (f"--only HB-05 JOIN-* {BROKER}", Plan(BROKER, ("HB-05", "JOIN-*"))),
        ("--only JOIN-* --exclude JOIN-01 bundled", Plan("bundled", ("JOIN-*",), excluded=("JOIN-01",))),
        ("--exclude JOIN-01 bundled --only JOIN-*", Plan("bundled", ("JOIN-*",), excluded=("JOIN-01",))),
        (
            "bundled -x --seconds 5 --shrink-seconds 0",
            Plan("bundled", schedules=60, max_failures=1, seconds=5.0, shrink_seconds=0.0),
        ),
        ("bundled --max-failures 3", Plan("bundled", schedules=60, max_failures=3)),
        (
            f"{BROKER} --only JOIN-* HB-05 --only SYNC-1? --slow --seed 9 --profile p.toml --save a/b --traces c",
            Plan(
                BROKER,
                ("JOIN-*", "HB-05", "SYNC-1?"),
                slow=True,
                seed=9,
                profile=Path("p.toml"),
                save=Path("a/b"),
                traces=Path("c"),
            ),
        ),
    ],
)
def test_the_plan_that_is_asked_for(
    arguments: str, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = FakeRunner()
    assert main(["test", *arguments.split()], runner) == 0
    assert runner.calls == [plan]
    assert all(folder.is_dir() for folder in (plan.save, plan.traces) if folder is not None)


def test_the_report_goes_to_standard_output_and_progress_to_standard_error(capsys: Capture) -> None:
    assert main(["test", "bundled", "--smoke"], FakeRunner(VIOLATED)) == 1
    output = capsys.readouterr()
    assert output.out == render_report(VIOLATED)
    assert output.err == "1/2 schedules, 1.0 s, about 1.0 s left\n2/2 schedules, 2.0 s\n"


def test_the_report_is_saved_as_json_and_junit(tmp_path: Path) -> None:
    assert main(["test", "bundled", "--json", f"{tmp_path}/r.json", "--junit", f"{tmp_path}/r.xml"], FakeRunner()) == 0
    assert from_json((tmp_path / "r.json").read_text(encoding="utf-8")) == KEPT
    assert ElementTree.parse(tmp_path / "r.xml").getroot().get("tests") == "1"


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


NO_PATH = "give each a path of its own"
UNWRITABLE = "none/r.json: No such file or directory"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("test bundled --json none/r.json --junit r.xml", UNWRITABLE),
        *((f"{command} --json none/r.json", UNWRITABLE) for command in ("prove", "explore", "zoo", "judge t.jsonl")),
        ("test bundled --save t.jsonl", "t.jsonl: File exists"),
        ("test bundled --json r --junit r", f"--json and --junit both write to r; {NO_PATH}"),
        ("test bundled --json ./r --junit x/../r", f"--json and --junit both write to x/../r; {NO_PATH}"),
        ("test bundled --json - --junit -", f"--json and --junit both write to standard output; {NO_PATH}"),
        ("test bundled --save d --traces d", f"--save and --traces both write to d; {NO_PATH}"),
        ("explore --dot g --picture g", f"--dot and --picture both write to g; {NO_PATH}"),
        ("judge t.jsonl --json t.jsonl", "--json would write over t.jsonl, which is read; give it a path of its own"),
        ("judge . --junit ./t.jsonl", "--junit would write over t.jsonl, which is read; give it a path of its own"),
        ("report r.html --html r.html", "--html would write over r.html, which is read; give it a path of its own"),
        (
            "test bundled --profile p.toml --markdown p.toml",
            "--markdown would write over p.toml, which is read; give it a path of its own",
        ),
        (
            "test bundled --only JOIN-* JOIN-99",
            "no requirement matches 'JOIN-99'; try an id like JOIN-49 or a pattern like 'JOIN-*'",
        ),
        (
            "test bundled --only HB-05 --exclude HB-*",
            "nothing is left to test: every requirement asked for is excluded",
        ),
    ],
)
def test_what_cannot_be_is_told_before_the_target_or_a_file_is_touched(
    command: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x").mkdir()
    before = {Path("t.jsonl"): "", Path("p.toml"): "", Path("r.html"): to_html(VIOLATED)}
    for path, text in before.items():
        path.write_text(text)
    runner = FakeRunner()
    assert main(command.split(), runner) == 2
    assert runner.calls == []
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"fencepost: {line}\n")
    assert {path: path.read_text() for path in before} == before


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
        ("test", f"fencepost test: {NO_TARGET}"),
        ("test bundled --seed x", "fencepost test: argument --seed: invalid int value: 'x'"),
        ("test bundled --smoke --slow", "fencepost test: argument --slow: not allowed with argument --smoke"),
        ("test bundled --sarif r", "fencepost test: unrecognized arguments: --sarif r"),
        ("test bundled --why -z", "fencepost test: unrecognized arguments: --why -z"),
        ("test bundled extra", "fencepost test: unrecognized arguments: extra"),
        ("test bundled --onyl HB-05", "fencepost test: unrecognized arguments: --onyl HB-05; did you mean '--only'?"),
        ("test bundled --sede=7", "fencepost test: unrecognized arguments: --sede=7; did you mean '--seed'?"),
        ("replay t", f"fencepost replay: {NO_TARGET}"),
        ("judge", "fencepost judge: the following arguments are required: TRACE"),
        ("serve --port 65536", f"fencepost serve: argument --port: '65536' {NO_PORT}"),
        ("serve --port -1", f"fencepost serve: argument --port: '-1' {NO_PORT}"),
        ("serve --prot 1", "fencepost serve: unrecognized arguments: --prot 1; did you mean '--port'?"),
        ("registry chek", "fencepost registry: argument ACTION: invalid choice: 'chek'; did you mean 'check'?"),
        ("import logs", "fencepost import: argument KIND: invalid choice: 'logs'; did you mean 'log'?"),
        *(
            (word, f"fencepost: argument COMMAND: invalid choice: '{word}'; did you mean '{meant}'?")
            for word, meant in (("tset", "test"), ("jugde", "judge"), ("explian", "explain"))
        ),
        (
            "pipeline judge c --conf spark.x",
            "fencepost pipeline judge: argument --conf: 'spark.x' is not KEY=VALUE",
        ),
    ],
)
def test_a_usage_error_gets_one_line(arguments: str, line: str, capsys: Capture) -> None:
    runner = FakeRunner()
    assert main(arguments.split(), runner) == 2
    assert runner.calls == []
    output = capsys.readouterr()
    command = line.partition(":")[0]
    assert (output.out, output.err) == ("", f"{line} (see {command} --help)\n")


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
    own = {"", "console", "options", "record", "settings", COMMANDS.get(command, ("",))[0]}
    light = {"fencepost.conformance", *(f"fencepost.conformance.cli.{name}".rstrip(".") for name in own)}
    light |= {"fencepost.conformance.reports", "fencepost.conformance.reports.layout"}  # to escape the line
    if command in ("zoo", "strangers"):
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
