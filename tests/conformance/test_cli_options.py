"""The command line: outputs, terminals, help, signals to the process around it, and saved reports shown again."""

import io
import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import fencepost
from fencepost import run
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.cli import main
from fencepost.conformance.cli.console import Console, printable_line, typed_program
from fencepost.conformance.events import Progress
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile, load_profile
from fencepost.conformance.reports.json_report import from_html, from_json, report_schema, to_json
from fencepost.conformance.reports.report import render_report, to_html
from fencepost.conformance.reports.words import outcome_line
from fencepost.conformance.results import RequirementResult, Verdict
from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
from fencepost.conformance.run.run_state import RunState, waits_of
from fencepost.conformance.run.stream import RunLimits
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import select_scenarios
from fencepost.model.catalogue.requirement import select_requirements
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE
from fencepost.model.push.specification import PUSH_CATALOGUE
from fencepost.model.region.specification import REGION_CATALOGUE
from tests.support.fake_runner import FakeRunner
from tests.support.sample_reports import KEPT, VIOLATED

# --- Options of the command line: outputs, limits, loudness, help; and signals to the process around it.

Capture = pytest.CaptureFixture[str]


# --- outputs


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb \x1b[31mred\u2028", "a b \\x1b[31mred"),
        ("x" * 600, f"{'x' * 247} ... {'x' * 247}"),
        ("x" * 500, "x" * 500),
    ],
)
def test_a_complaint_is_one_line_that_upsets_no_terminal(text: str, line: str) -> None:
    assert printable_line(text) == line


def test_standard_output_can_be_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["test", "bundled", "--json", "-"], FakeRunner(VIOLATED)) == 1
    output = capsys.readouterr()
    assert from_json(output.out) == VIOLATED
    assert render_report(VIOLATED) in output.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_cost_neither_the_report_nor_the_exit_code(closed: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m fencepost test bundled --only HB-05 --json {tmp_path}/r.json {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert from_json((tmp_path / "r.json").read_text()).result("HB-05").verdict == "pass"


# --- terminals


class Terminal(io.StringIO):
    """A terminal of the width that COLUMNS says."""

    def isatty(self) -> bool:
        return True


def set_environment(patch: pytest.MonkeyPatch, told: dict[str, str]) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"):
        patch.delenv(name, raising=False)
    for name, value in told.items():
        patch.setenv(name, value)


@pytest.mark.parametrize(
    ("environment", "on_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colours_where_they_are_wanted(
    environment: dict[str, str], on_terminal: bool, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_environment(monkeypatch, environment)
    for stream, expected in ((Terminal(), on_terminal), (io.StringIO(), elsewhere)):
        monkeypatch.setattr("sys.stdout", stream)
        main(["test", "bundled"], FakeRunner(VIOLATED))
        assert ("\x1b[31m" in stream.getvalue()) is expected


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("200", 120), ("", None), ("wide", None)])
def test_the_report_is_as_wide_as_the_terminal(
    columns: str, width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_environment(monkeypatch, {"COLUMNS": columns, "NO_COLOR": "1"})
    terminal, file = Terminal(), io.StringIO()
    for stream, expected in ((terminal, width), (file, None)):
        monkeypatch.setattr("sys.stdout", stream)
        main(["test", "bundled"], FakeRunner(VIOLATED))
        assert stream.getvalue() == render_report(VIOLATED, width=expected)


# --- loudness, words, help


def test_quiet_says_the_outcome_alone(capsys: Capture) -> None:
    assert main(["test", "bundled", "-q"], FakeRunner(VIOLATED)) == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == (f"{outcome_line(VIOLATED)}\n", "")


PROGRESSING = (
    *(["test"], ["test-client"], ["test-assignor"], ["compare"], ["swarm"], ["report"], ["replay"], ["judge"]),
    *(["zoo"], ["strangers"], ["prove"], ["explore"], ["record"], ["badge"]),
    *(["registry", each] for each in ("check", "build", "reproduce")),
    *(["import", each] for each in ("log", "offsets", "capture", "request-log", "recordings")),
    *(["pipeline", each] for each in ("ingest", "judge", "watch", "campaign")),
)
"""The commands that show progress, or say what they have done."""


@pytest.mark.parametrize("words", PROGRESSING, ids=" ".join)
def test_quiet_and_verbose_are_options_wherever_there_is_progress(words: list[str], capsys: Capture) -> None:
    assert main([*words, "--help"]) == 0
    assert "-v, --verbose" in (told := capsys.readouterr().out) and "-q, --quiet" in told


def test_quiet_and_verbose_mean_the_same_everywhere(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console()
    with console.progress() as progress:
        for done in range(1, 101):
            progress(Progress(done, 100, 1.0))
    assert capsys.readouterr().err.count("\n") == 10
    console.is_verbose = True
    with console.progress() as progress:
        for done in range(1, 101):
            progress(Progress(done, 100, 1.0))
    console.status_line().show("a step")
    assert capsys.readouterr().err.count("\n") == 101
    console.is_verbose, console.is_quiet = False, True
    with console.progress() as progress:
        progress(Progress(1, 1, 1.0))
    console.status_line().show("a step")
    console.note("what was done")
    console.print_line("first")
    console.print_line("next\nlast")
    console.print_last()
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("last\n", "")


def test_the_estimate_counts_what_random_schedules_cost() -> None:
    """The figures are those of `fencepost test bundled` on two calm cores: 8.9 s were left after a tenth of the run."""
    tenth = Progress(42, 418, 0.4, heavy=80)
    assert 8.9 / 2 < (tenth.seconds_left() or 0) < 8.9 * 2
    assert not (replace(tenth, heavy=0).seconds_left() or 0) > 8.9 / 2
    assert Progress(377, 418, 4.9, pace_from=(2.8, 335)).seconds_left() == pytest.approx(2.05)


OFFERED = frozenset({"restart", "retention", "transactions", "size-limit", "initial-delay", "session-bounds"})


@pytest.mark.parametrize(
    ("chosen", "offered", "schedules", "left"),
    [
        ("*", OFFERED, 20, 192),
        ("*", OFFERED, 0, 122),
        ("JOIN-*", OFFERED - {"restart", "retention"}, 0, 9.2),
        ("smoke", OFFERED, 0, 6.0),
        ("*", OFFERED - {"retention"}, 20, 147),
    ],
)
def test_the_estimate_over_the_network(chosen: str, offered: frozenset[str], schedules: int, left: float) -> None:
    """The seconds that were left when Apache Kafka 4.4, and in the last row the server of the kit, had been reached."""
    requirements = select_requirements(CATALOGUE.values(), ["*" if chosen == "smoke" else chosen])
    selection = select_scenarios(DEFAULT_PROTOCOL.scenarios, requirements, offered, smoke=chosen == "smoke")
    parts = waits_of(selection.scenarios, schedules)
    assert left / 2 < sum(parts) < left * 2
    state = RunState(Plan("kafka://h:1"), selection, lambda event: None, {}, RunLimits(), is_remote=True)
    assert state.waits_left(selection.scenarios, schedules, 0.0, 0) == sum(parts)
    late = state.waits_left(selection.scenarios[:-1], schedules, 2 * parts[0], 1)
    assert late == pytest.approx(parts[0] / 8 + sum(parts[1:]))
    assert state.waits_left([], 0, 900.0, 400) == 0.0


def test_help_on_a_full_disk_is_no_success() -> None:
    for words in (["--help"], ["--version"], ["test", "--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([sys.executable, "-m", "fencepost", *words], stdout=full, stderr=-1, text=True)
        assert (done.returncode, done.stderr) == (2, "fencepost: standard output: No space left on device\n")


def test_verbose_has_a_line_for_each_scenario(capsys: Capture) -> None:
    assert main(["test", "bundled", "--only", "HB-05", "-v"]) == 0
    lines = capsys.readouterr().err.splitlines()
    (line,) = (line for line in lines if "heartbeat-in-stable" in line)
    assert re.fullmatch(r"\d/\d schedules, \d+\.\d s: heartbeat-in-stable: as the model allows", line)


def test_the_program_alone_shows_its_help_and_is_no_success(capsys: Capture) -> None:
    assert main([]) == 2
    alone = capsys.readouterr().out
    assert main(["help"]) == main(["--help"]) == 0
    assert capsys.readouterr().out == alone * 2


def test_help_of_a_command(capsys: Capture) -> None:
    assert main(["explain", "--help"]) == 0
    asked = capsys.readouterr().out
    assert main(["help", "explain"]) == 0
    assert capsys.readouterr().out == asked
    assert main(["help", "explian"]) == 2
    assert "did you mean 'explain'?" in capsys.readouterr().err


@pytest.mark.parametrize("spelling", ["JOIN-04", "join-04", "Join-4", "join4", "JOIN_04", "join 4"])
def test_an_id_is_taken_in_any_spelling(spelling: str, capsys: Capture) -> None:
    assert main(["explain", spelling]) == 0
    assert capsys.readouterr().out.startswith("JOIN-04 ")
    runner = FakeRunner()
    assert main(["test", "--only", spelling, "join-0?", "--exclude", spelling, "kafka://my-1"], runner) == 0
    (plan,) = runner.calls
    assert isinstance(plan, Plan)
    assert (plan.patterns, plan.excluded, plan.target) == (("JOIN-04", "JOIN-0?"), ("JOIN-04",), "kafka://my-1")


@pytest.mark.parametrize("name", ["report.json", "report.html"])
def test_a_report_is_not_judged(name: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / name
    assert main(["test", "bundled", f"--{path.suffix[1:]}", str(path)], FakeRunner()) == 0
    capsys.readouterr()
    assert main(["judge", str(path)]) == 2
    assert capsys.readouterr().err == f"fencepost: {path}: a report, not a trace; to see it: fencepost report {path}\n"


def test_judge_is_quiet(tmp_path: Path, capsys: Capture) -> None:
    trace = tmp_path / "t.jsonl"
    assert main(["judge", str(trace), "--quiet"], FakeRunner()) == 0
    shown = capsys.readouterr()
    assert shown.out.count("\n") == 1 and not shown.err


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version(option: str, capsys: Capture) -> None:
    assert main([option]) == 0
    assert capsys.readouterr().out == f"fencepost {fencepost.__version__}\n"


def test_a_missing_library_gets_one_line(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("fencepost.conformance.cli.test.find_spec", lambda name: None)
    runner = FakeRunner(error=ModuleNotFoundError("No module named 'z3'", name="z3"))
    assert main(["test", "bundled", "--tours", "1"], runner) == 2
    assert main(["judge", "t.jsonl"], runner) == 2
    assert capsys.readouterr().err.splitlines() == [
        "fencepost: this command needs networkx, which is not installed: pip install networkx",
        "fencepost: this command needs z3, which is not installed: pip install z3-solver",
    ]


def test_list(capsys: Capture) -> None:
    assert main(["list", "HB-0*", "FIND-04"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "FIND  1" and lines[2].startswith("HB  ")
    assert "  FIND-04     MUST    cluster       " in lines[1] and lines[1].endswith("[needs second-node]")
    assert main(["list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    everything = {**CATALOGUE, **CLIENT_CATALOGUE, **PUSH_CATALOGUE, **REGION_CATALOGUE}
    assert [(row["id"], row["tier"]) for row in rows] == [(id, str(each.tier)) for id, each in everything.items()]
    assert {row["subject"] for row in rows if row["id"] in CLIENT_CATALOGUE} == {"client"}
    assert main(["list", "PUSH-01"]) == 0
    assert capsys.readouterr().out.startswith("PUSH  1  of the push coordinator\n")


@pytest.mark.parametrize("id", ["JOIN-29", "FIND-04", "FAILOVER-09", "GEN-01"])
def test_explain(id: str, capsys: Capture) -> None:
    assert main(["explain", id]) == 0
    text = " ".join(capsys.readouterr().out.split())
    requirement = CATALOGUE[id]
    assert text.startswith(f"{id} {requirement.level}: {requirement.title}")
    assert " ".join(requirement.sentence.split()) in text
    assert all(name in text and (address or "") in text for name, address in DEFAULT_SPECIFICATION.links_of(id))
    scenarios = [scenario.name for scenario in ALL if id in scenario.requirements]
    assert all(f" {name}" in text for name in scenarios)
    assert f" tier {requirement.tier} " in text
    assert (" example 1. at 0 ms" in text) == bool(scenarios)
    assert main(["explain", "JOIN-99"]) == 2


def test_explain_names_the_change_that_brought_a_difference(capsys: Capture) -> None:
    assert main(["explain", "JOIN-51"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "DIV-23, Apache Kafka before and since KAFKA-20938: older: a parked request" in text


def test_explain_names_the_remedy_and_the_two_sides_of_kafka(capsys: Capture) -> None:
    assert main(["explain", "FAILOVER-01"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "[target] start = 'COMMAND'" in text
    assert "DIV-01, Apache Kafka's two coordinators: older: a coordinator that is not ready" in text
    assert "restart" in text.partition(" example ")[2]


def test_the_example_ends_with_the_request_that_is_checked(capsys: Capture) -> None:
    assert main(["explain", "HB-05"]) == 0
    example = " ".join(capsys.readouterr().out.split()).partition(" example ")[2]
    assert example.startswith("1. at 0 ms") and " Heartbeat v" in example.rpartition(" at ")[2]


# --- signals to the process


PROCESS = """
import os, signal, sys
import fencepost._command as command
import fencepost.conformance.cli as cli
def run():
    {before}
    return 0
cli.main = run
code = command.main()
{after}
sys.exit(code)
"""
"""The console script around a command line that does nothing, with something done before or after its end."""
PRESS = "os.kill(os.getpid(), signal.SIGINT)"


@pytest.mark.parametrize(
    ("before", "after", "code", "line"),
    [
        (PRESS, "pass", 3, "fencepost: interrupted before anything was judged\n"),
        ("pass", PRESS, 0, ""),
        ("pass", PRESS.replace("SIGINT", "SIGTERM"), 0, ""),
    ],
    ids=["while it starts", "after its end", "SIGTERM after its end"],
)
def test_signals_around_a_command_cost_no_exit_code(before: str, after: str, code: int, line: str) -> None:
    source = PROCESS.format(before=before, after=after)
    done = subprocess.run([sys.executable, "-c", source, "test", "bundled"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, line)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_serve_ends_by_signals_also_where_they_were_ignored(name: str) -> None:
    command = (
        f"import signal; signal.signal(signal.{name}, signal.SIG_IGN)\nfrom fencepost._command import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", command, "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline().startswith("127.0.0.1:")
        process.send_signal(getattr(signal, name))
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, errors) == (0, "fencepost: stopped\n")


# --- `fencepost report`: saved reports and traces as text, pages, summaries and comparisons.


@pytest.fixture
def violated(tmp_path: Path) -> Path:
    path = tmp_path / "violated.json"
    path.write_text(to_json(VIOLATED), encoding="utf-8")
    return path


def test_a_saved_report_is_shown_again(violated: Path, capsys: Capture) -> None:
    assert main(["report", str(violated)]) == VIOLATED.exit_code()
    assert capsys.readouterr().out == render_report(VIOLATED)


def test_a_page_is_a_report(violated: Path, tmp_path: Path, capsys: Capture) -> None:
    page, again = tmp_path / "r.html", tmp_path / "again.json"
    main(["report", str(violated), "--html", str(page)])
    assert page.read_text(encoding="utf-8") == to_html(VIOLATED)
    main(["report", str(page), "--json", str(again)])
    assert again.read_text(encoding="utf-8") == to_json(VIOLATED)


def test_traces_are_judged_and_shown(tmp_path: Path, capsys: Capture) -> None:
    run("bundled", only=["HB-05"], traces=tmp_path)
    assert main(["report", str(tmp_path), "--markdown", "-"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("## ") and "\n\nNO VIOLATION" in text


def test_a_run_and_a_judgement_write_pages(tmp_path: Path) -> None:
    page, other = tmp_path / "a.html", tmp_path / "b.html"
    main(["test", "bundled", "--only", "HB-05", "--html", str(page), "--traces", str(tmp_path)])
    main(["judge", str(tmp_path), "--html", str(other)])
    assert from_html(page.read_text()).result("HB-05").verdict is Verdict.PASS
    assert from_html(other.read_text()).result("HB-05").verdict is Verdict.PASS


def test_several_reports_make_one_page(violated: Path, tmp_path: Path, capsys: Capture) -> None:
    kept, page = tmp_path / "kept.json", tmp_path / "r.html"
    kept.write_text(to_json(KEPT))
    assert main(["report", str(kept), str(violated), "--html", str(page)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert "2 reports of Fencepost" in page.read_text()


def test_a_comparison_tells_what_broke_and_what_is_no_longer_checked(
    violated: Path, tmp_path: Path, capsys: Capture
) -> None:
    results = [each for each in VIOLATED.results if each.id not in ("JOIN-29", "FIND-01")]
    old = replace(VIOLATED, results=(*results, RequirementResult("HB-05", Verdict.PASS)))
    before = tmp_path / "old.json"
    before.write_text(to_json(old))
    assert main(["report", str(violated), "--compare", str(before)]) == 1
    text = capsys.readouterr().out
    assert "newly broken  1: JOIN-29" in text
    assert "not checked   1: HB-05" in text
    assert "newly checked 2: FIND-01, JOIN-29" in text
    page, summary = tmp_path / "r.html", tmp_path / "r.md"
    words = ["report", str(violated), "--compare", str(before), "--html", str(page), "--markdown", str(summary)]
    assert main(words) == 1
    assert "<dt>newly broken</dt><dd>1: JOIN-29</dd>" in page.read_text()
    assert "2 reports of Fencepost" in page.read_text()
    assert "- newly broken: 1&#58; JOIN-29" in summary.read_text()
    assert main(["report", str(before), "--compare", str(before)]) == 0
    assert "Nothing is newly broken" in capsys.readouterr().out


def test_the_schema_is_printed(capsys: Capture) -> None:
    assert main(["report", "--schema"]) == 0
    assert capsys.readouterr().out == report_schema()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name a report or traces"),
        (["none.json"], "none.json: No such file"),
        (["bad.json"], "bad.json: not JSON"),
        (["bad.html"], "bad.html: not a Fencepost report"),
        (["kept.json", "kept.json", "--junit", "j.xml"], "--junit takes one report; several make a page with --html"),
        (["kept.json", "kept.json", "--compare", "kept.json"], "--compare takes one report beside the older one"),
        (["kept.json", "--json", "r", "--html", "r"], "--json and --html both write to r"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text("nonsense")
    Path("bad.html").write_text("nonsense")
    Path("kept.json").write_text(to_json(KEPT))
    assert main(["report", *arguments]) == 2
    error = capsys.readouterr().err
    assert complaint in error and len(error.splitlines()) == 1


def test_what_was_known_is_still_broken(violated: Path, tmp_path: Path, capsys: Capture) -> None:
    document = json.loads(violated.read_text())
    assert document["outcome"]["verdicts"]["known"] == 1
    declared = [replace(each, verdict=Verdict.KNOWN) if each.id == "JOIN-29" else each for each in VIOLATED.results]
    before = tmp_path / "old.json"
    before.write_text(to_json(replace(VIOLATED, results=tuple(declared))))
    assert main(["report", str(violated), "--compare", str(before)]) == 0


# --- options of files and of the environment


def plans_of(runner: FakeRunner) -> list[Plan]:
    """The plans that a runner got."""
    return [call for call in runner.calls if isinstance(call, Plan)]


@pytest.mark.parametrize("line", ["seed = 7", 'only = ["HB-04"]', "smoke = true", 'target = "bundled"'])
def test_an_option_of_the_project_is_as_if_typed(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(f"[tool.fencepost.test]\n{line}\n")
    runner = FakeRunner(VIOLATED)
    main(["test", *([] if "target" in line else ["bundled"])], runner)
    (plan,) = plans_of(runner)
    assert {"seed": plan.seed == 7, "only": plan.patterns == ("HB-04",), "smoke": plan.smoke, "target": True}[
        line.split()[0]
    ]


def test_the_command_line_comes_before_the_environment_and_that_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.fencepost.test]\nseed = 1\n")
    runner = FakeRunner(VIOLATED)
    main(["test", "bundled"], runner)
    monkeypatch.setenv("FENCEPOST_TEST_SEED", "2")
    main(["test", "bundled"], runner)
    main(["test", "bundled", "--seed", "3"], runner)
    monkeypatch.setenv("FENCEPOST_TARGET", "bundled")
    monkeypatch.setenv("FENCEPOST_SEED", "4")
    main(["test"], runner)
    monkeypatch.delenv("FENCEPOST_TEST_SEED")
    main(["test"], runner)
    monkeypatch.delenv("FENCEPOST_SEED")
    (tmp_path / "fencepost.toml").write_text("[options.test]\nseed = 5\n")
    main(["test"], runner)
    assert [plan.seed for plan in plans_of(runner)] == [1, 2, 3, 2, 4, 5]
    assert load_profile(tmp_path / "fencepost.toml") == Profile(folder=tmp_path)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sed = 7", "pyproject.toml: unrecognized arguments: --sed"),
        ('seed = "x"', "pyproject.toml: seed: 'x' is no value"),
        ('smoke = "perhaps"', "pyproject.toml: smoke: 'perhaps' is no value"),
        ("[[", "pyproject.toml: "),
    ],
)
def test_a_setting_that_is_none_is_told(
    line: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(f"[tool.fencepost.test]\n{line}\n")
    assert main(["test", "bundled"], FakeRunner(VIOLATED)) == 2
    assert told in capsys.readouterr().err


def test_the_profile_of_the_folder_is_meant_where_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = FakeRunner(VIOLATED)
    assert main(["test"], runner) == 2 and "name a TARGET" in capsys.readouterr().err
    (tmp_path / "fencepost.toml").write_text('[target]\nstart = "./my-broker"\n')
    main(["test"], runner)
    main(["test", "bundled"], runner)
    assert [plan.profile for plan in plans_of(runner)] == [Path("fencepost.toml"), None]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/usr/bin/fencepost", ("fencepost",)),
        ("./fencepost.pyz", ("python3", "./fencepost.pyz")),
        ("/lib/fencepost/__main__.py", ("python3", "-m", "fencepost")),
        ("/lib/pytest/__main__.py", ("fencepost",)),
    ],
)
def test_commands_to_copy_begin_as_this_one_did(path: str, words: tuple[str, ...]) -> None:
    assert typed_program(path) == words


def test_the_shell_completes_commands_and_options(tmp_path: Path, capsys: Capture) -> None:
    assert main(["completion"]) == 0
    (tmp_path / "script").write_text(script := capsys.readouterr().out)
    for shell in ("bash", "zsh"):
        assert main(["completion", shell]) == 0 and capsys.readouterr().out == script
    assert main(["completion", "fish"]) == 2 and "choose from 'bash', 'zsh'" in capsys.readouterr().err
    ask = 'source ./script; COMP_WORDS=(fencepost {words}); COMP_CWORD={place}; _fencepost; echo "${{COMPREPLY[*]}}"'
    for words, place, told in (
        ("jud", 1, "judge"),
        ("judge --qu", 2, "--quiet"),
        ("test --see", 2, "--seed"),
        ("registry che", 2, "check"),
    ):
        line = ask.format(words=words, place=place)
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout == f"{told}\n", done.stderr


def test_a_full_disk_behind_standard_output_is_named() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fencepost", "list"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (2, "fencepost: standard output: No space left on device\n")


def test_a_trace_is_no_report(capsys: Capture) -> None:
    trace = "docs/examples/finding/two-leaders.jsonl"
    report = "docs/registry/coordinators/kfake/0.0.0-20260918054303/report.json"
    root = Path(__file__).parents[2]
    assert main(["report", str(root / report), "--compare", str(root / trace)]) == 2
    assert "a trace, not a report" in capsys.readouterr().err
