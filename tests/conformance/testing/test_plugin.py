"""The pytest plugin in users' test suites: outcomes of items, and the texts of failures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fencepost.conformance.testing.session  # noqa: F401  # loaded once, for all test suites in this process
from fencepost import __version__
from fencepost.conformance.reports.json_report import from_json
from fencepost.conformance.results import Scope, Verdict
from fencepost.model.classic.catalogue import CATALOGUE
from tests.support.plugin_arguments import PLUGIN, plugin_arguments, run_apart

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[3]
QUICK = ("-p", "no:hypothesispytest")
"""The plugin of Hypothesis loads all of it at the end of every session."""
SUITE = """
import pytest
from fencepost.testing import conformance, in_memory
from tests.support import coordinators_under_test

@pytest.fixture(scope="session")
def fencepost_target():
    return in_memory(coordinators_under_test.{factory}, restart={restart})

{decorator}
def test_group_protocol(fencepost_case):
    fencepost_case.check()
"""
FAILURE_OF_HB_04 = """\
HB-04 MUST: Wrong generation
  requirement   A Heartbeat with any generation but the current one is refused with
                ILLEGAL_GENERATION.
  source        HeartbeatRequestTest, GroupMetadataManagerTest

             A  B  coordinator
             [Empty]
       0 ms  ────▸ JoinGroup v9 member_id='', protocols=[range]
       0 ms  ◂┈┈┈┈ MEMBER_ID_REQUIRED
       0 ms     ─▸ JoinGroup v9 member_id='', protocols=[range]
       0 ms     ◂┈ MEMBER_ID_REQUIRED
             [Preparing]
       0 ms  ────▸ JoinGroup v9 protocols=[range]
       0 ms     ─▸ JoinGroup v9 protocols=[range]
             (1.2 s later)
             [Completing, generation 1]
    1200 ms  ◂┈┈┈┈ generation_id=1, leader=A, member_id=A, members=2, protocol_name='range'
    1200 ms     ◂┈ generation_id=1, leader=A, member_id=B, protocol_name='range'
    1250 ms     ─▸ SyncGroup v5 generation_id=1
             [Stable, generation 1]
    1400 ms  ────▸ SyncGroup v5 generation_id=1, assignments=[A, B]
    1400 ms  ◂┈┈┈┈ assignment=1 bytes, protocol_name='range'
    1400 ms     ◂┈ assignment=1 bytes, protocol_name='range'
    1400 ms  ────▸ Heartbeat v4 generation_id=1
    1400 ms  ◂┈┈┈┈ OK
    1400 ms  ────▸ Heartbeat v0 generation_id=1
    1400 ms  ◂┈┈┈┈ OK
    1400 ms  ────▸ Heartbeat v1 generation_id=1
    1400 ms  ◂┈┈┈┈ OK
    1400 ms  ────▸ Heartbeat v2 generation_id=1
    1400 ms  ◂┈┈┈┈ OK
    1400 ms  ────▸ Heartbeat v3 generation_id=1
    1400 ms  ◂┈┈┈┈ OK
    1400 ms     ─▸ Heartbeat v4 generation_id=1
    1400 ms     ◂┈ OK
    1400 ms  ────▸ Heartbeat v4 generation_id=2
    1400 ms  ◂┈┈┈┈ OK   <-- WRONG

  wrong         Heartbeat response has the wrong error_code
  observed      error_code = NONE
  allowed       error_code = ILLEGAL_GENERATION
"""


def write_suite(
    pytester: pytest.Pytester, factory: str, decorator: str = "@conformance('HB-0[1-6]')", restart: bool = True
) -> None:
    """Write the test suite of somebody who builds a coordinator."""
    pytester.makepyfile(test_suite=SUITE.format(factory=factory, decorator=decorator, restart=restart))


def run_suite(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run the test suite in this process, warnings being errors."""
    return pytester.runpytest_inprocess(*plugin_arguments(), "-W", "error", *QUICK, *arguments)


# --- verdicts


def test_a_right_coordinator_passes(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_right")
    result = run_suite(pytester, "-v")
    result.assert_outcomes(passed=6)
    lines = [line for line in result.outlines if "PASSED" in line]
    assert [line.partition("[")[2].partition("]")[0] for line in lines] == [f"HB-0{n}" for n in range(1, 7)]
    result.stdout.fnmatch_lines(["Target: make_right", "  HB            6 pass", "NO VIOLATION: 6 of 6 *"])


def test_the_head_of_the_session_names_the_kit(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_right", "@pytest.mark.fencepost_schedules(40)\n@conformance('HB-0[45]')")
    chosen = f"2 of {len(CATALOGUE)} requirements, 40 random schedules"
    run_suite(pytester, "--co").stdout.fnmatch_lines([f"fencepost: {__version__}, catalogue ????????????, {chosen}"])


def test_exactly_what_is_wrong_fails(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_forgiving")
    result = run_suite(pytester)
    result.assert_outcomes(passed=5, failed=1)
    text = result.stdout.str()
    assert FAILURE_OF_HB_04 in text
    assert "conformance/testing" not in text and "Traceback" not in text and "raise " not in text, "frames of the kit"
    result.stdout.fnmatch_lines(
        [
            "  again         pytest 'test_suite.py::test_group_protocol[[]HB-04[]]'",
            "  as test       fencepost replay *HB-04.jsonl --as-test",
            "NOT CONFORMANT: 1 cause, 1 requirement violated of 6 checked*",
            "FAILED test_suite.py::test_group_protocol[[]HB-04[]] - Violation: HB-04 MUST*",
        ]
    )


@pytest.mark.slow
def test_all_requirements_on_the_bundled_coordinator(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_right", "@conformance")
    result = run_suite(pytester)
    checked = len(CATALOGUE) - 4
    result.assert_outcomes(passed=checked, skipped=4)
    result.stdout.fnmatch_lines([f"CONFORMANT: {checked} of {len(CATALOGUE)} requirements checked, none violated."])


KNOWN = "@conformance('HB-0[45]', known={'HB-04': 'fixed in 1.5'})"
NO_RESTART = "*FAILOVER-02 unsupported: needs*(switched on by in_memory(..., restart=True))"


@pytest.mark.parametrize(
    ("factory", "decorator", "outcomes", "lines"),
    [
        ("make_forgiving", KNOWN, {"passed": 1, "xfailed": 1}, ["XFAIL *HB-04[]] - fixed in 1.5*"]),
        ("make_right", KNOWN, {"passed": 1, "failed": 1}, ["*XPASS(strict)*fixed in 1.5*"]),
        (
            "make_right",
            "@conformance('FAILOVER-09', 'FAILOVER-02')",
            {"skipped": 2},
            [NO_RESTART, "*FAILOVER-09 unsupported: *"],
        ),
    ],
    ids=["a declared deviation", "a declared deviation that is gone", "what the target does not offer"],
)
def test_what_is_no_plain_pass_or_failure(
    pytester: pytest.Pytester, factory: str, decorator: str, outcomes: dict[str, int], lines: list[str]
) -> None:
    write_suite(pytester, factory, decorator, restart=False)
    result = run_suite(pytester, "-rxs")
    result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines_random(lines)


def test_the_profile_declares_deviations_as_well(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_forgiving", "@conformance('HB-0[45]')")
    pytester.makefile(".toml", profile="[known]\nHB-04 = 'fixed in 1.5'\n")
    run_suite(pytester, "--fencepost-profile", "profile.toml").assert_outcomes(passed=1, xfailed=1)


@pytest.mark.parametrize(("setting", "outcome"), [("fail", "failed"), ("skip", "skipped")])
def test_what_could_not_be_decided_is_no_pass(pytester: pytest.Pytester, setting: str, outcome: str) -> None:
    write_suite(pytester, "make_unsteady", "@conformance('HB-04')")
    pytester.makeini(f"[pytest]\nfencepost_inconclusive = {setting}\n")
    result = run_apart(pytester, "-rsf")
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines(["*HB-04 inconclusive: failed once and not when it was replayed*"])


def test_the_exception_of_a_coordinator_is_shown(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_failing", "@conformance('LEAVE-01', 'HB-05')")
    result = run_suite(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "The coordinator raised an exception*",
            '  *coordinators_under_test.py", line *, in handle',
            "  LookupError: no member here",
        ]
    )
    assert "in_memory.py" not in result.stdout.str()


def test_an_async_coordinator(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "WrappedAsyncCoordinator", "@conformance('TIMER-0*', 'JOIN-2*')")
    result = run_suite(pytester)
    assert result.ret == 0 and result.parseoutcomes()["passed"] >= 15


def test_a_test_with_an_event_loop_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio
        from fencepost.testing import conformance

        @conformance("HB-04", "HB-05")
        def test_group_protocol(fencepost_case):
            async def check():
                fencepost_case.check()
            asyncio.run(check())
        """
    )
    run_suite(pytester, "--fencepost-target", "bundled").assert_outcomes(passed=2)


# --- choosing


@pytest.mark.parametrize(
    ("arguments", "outcomes"),
    [
        (("-k", "HB-05"), {"passed": 1, "deselected": 5}),
        (("-x",), {"passed": 3, "failed": 1}),
        (("-m", "not fencepost"), {"deselected": 6}),
        (("--fencepost-only", "HB-05"), {"passed": 1}),
        (("test_suite.py::test_group_protocol[HB-04]",), {"failed": 1}),
    ],
    ids=" ".join,
)
def test_choosing_test_cases(pytester: pytest.Pytester, arguments: tuple[str, ...], outcomes: dict[str, int]) -> None:
    write_suite(pytester, "make_forgiving")
    run_suite(pytester, *arguments).assert_outcomes(**outcomes)


def test_only_what_failed_last(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_forgiving")
    run_suite(pytester)
    run_suite(pytester, "--lf").assert_outcomes(failed=1)


def test_strict_markers(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_right", "@pytest.mark.fencepost_schedules(1)\n@conformance('HB-05')")
    run_suite(pytester, "--strict-markers").assert_outcomes(passed=2)


def test_collecting_makes_no_target(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_right", "@conformance('HB-*')")
    pytester.makeconftest("def pytest_fixture_setup():\n    raise AssertionError\n")
    result = run_suite(pytester, "--collect-only", "-q")
    assert result.ret == 0 and "test_suite.py::test_group_protocol[HB-14]" in result.outlines


@pytest.mark.parametrize(
    ("decorator", "line"),
    [
        ("@conformance('NO-*')", "*test_group_protocol: no requirement matches 'NO-*'*"),
        ("@conformance(known={'NO-1': ''})", "*test_group_protocol: no requirement matches 'NO-1'*"),
        ("", "*test_group_protocol: takes fencepost_case; put @fencepost.testing.conformance on it"),
    ],
)
def test_mistakes_are_one_line(pytester: pytest.Pytester, decorator: str, line: str) -> None:
    write_suite(pytester, "make_right", decorator)
    result = run_suite(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([line])
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize(
    ("target", "arguments", "outcomes", "line"),
    [
        ("", (), {"errors": 1}, "nothing to test: override the fixture fencepost_target*"),
        ("", ("--fencepost-target", "127.0.0.1:1"), {"failed": 1}, "*127.0.0.1:1*"),
        ("", ("--fencepost-target", "nonsense"), {"failed": 1}, "*nonsense*is no target*"),
        (
            "@pytest.fixture\ndef fencepost_target(): return 7",
            (),
            {"failed": 1},
            "fencepost_target returned 7; return in_memory(...)*",
        ),
    ],
)
def test_a_target_that_cannot_be_used(
    pytester: pytest.Pytester, target: str, arguments: tuple[str, ...], outcomes: dict[str, int], line: str
) -> None:
    pytester.makepyfile(
        f"import pytest\nfrom fencepost.testing import conformance\n{target}\n"
        "@conformance('HB-05')\ndef test_it(fencepost_case): fencepost_case.check()"
    )
    result = run_suite(pytester, *arguments)
    result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines([line])
    assert "Traceback" not in result.stdout.str() and "conformance/" not in result.stdout.str()


# --- random schedules


@pytest.mark.slow
def test_batches_of_random_schedules(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_right", "@pytest.mark.fencepost_schedules(25, seed=3)\n@conformance('HB-05')")
    result = run_suite(pytester, "-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*[[]schedules-1[]] PASSED*", "*[[]schedules-2[]] PASSED*"])


@pytest.mark.slow
def test_a_batch_that_finds_something(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_forgiving", "@conformance('HB-0[45]')")
    result = run_suite(pytester, "--fencepost-schedules", "20", "--fencepost-seed", "2", "-k", "schedules")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(["HB-04 MUST: Wrong generation", "*<-- WRONG"])


# --- a broker over TCP


@pytest.mark.slow
@pytest.mark.acceptance
def test_a_broker_that_the_suite_starts(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys
        import pytest
        from fencepost.testing import broker, conformance

        @pytest.fixture(scope="session")
        def fencepost_target(tmp_path_factory):
            folder = str(tmp_path_factory.mktemp("data"))
            return broker(start=[sys.executable, "-m", "tests.support.foreground_broker", folder, "calm"])

        @pytest.mark.fencepost_schedules(1)
        @conformance("HB-0[45]", "FAILOVER-02")
        def test_group_protocol(fencepost_case):
            fencepost_case.check()

        def test_a_member(fencepost_schedule):
            a = fencepost_schedule.member("A")
            a.join()
            a.sync()
            a.commit({0: 3})
            fencepost_schedule.check()
        """
    )
    result = run_apart(pytester, "--fencepost-json", "r.json")
    result.assert_outcomes(passed=5)
    report = from_json((pytester.path / "r.json").read_text())
    assert report.facts is not None and "restart" in report.facts.capabilities
    assert {each.id: each.verdict for each in report.results} == dict.fromkeys(
        ("HB-04", "HB-05", "FAILOVER-02"), Verdict.PASS
    )


# --- reports


def test_reports(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_forgiving")
    files = ("--fencepost-json", "out/r.json", "--fencepost-html", "r.html", "--junitxml", "j.xml")
    run_suite(pytester, *files, "--fencepost-save", "failing").assert_outcomes(passed=5, failed=1)
    report = from_json((pytester.path / "out/r.json").read_text())
    assert [result.id for result in report.failed_results()] == ["HB-04"]
    assert (report.scope, len(report.results), report.target["name"]) == (Scope.SELECTED, 6, "make_forgiving")
    assert "HB-04" in (pytester.path / "r.html").read_text()
    assert '<property name="requirement" value="HB-04"' in (pytester.path / "j.xml").read_text()
    assert (pytester.path / "failing" / "HB-04.jsonl").exists()


def test_a_report_that_cannot_be_written(pytester: pytest.Pytester) -> None:
    write_suite(pytester, "make_right")
    pytester.makefile(".txt", taken="")
    result = run_suite(pytester, "--fencepost-json", "taken.txt/r.json")
    result.stdout.fnmatch_lines(["cannot write the report: *"])


@pytest.mark.slow
@pytest.mark.extra("xdist")
@pytest.mark.parametrize("factory", [pytest.param("make_right", marks=pytest.mark.acceptance), "make_forgiving"])
def test_workers_have_one_report(pytester: pytest.Pytester, factory: str) -> None:
    write_suite(pytester, factory, "@conformance('HB-*', 'JOIN-0*')")
    alone = run_apart(pytester, "--fencepost-json", "alone.json")
    together = run_apart(pytester, "--fencepost-json", "together.json", "-n", "2")
    assert alone.parseoutcomes().keys() <= together.parseoutcomes().keys()
    one, other = (from_json((pytester.path / f"{name}.json").read_text()) for name in ("alone", "together"))
    verdicts = {result.id: result.verdict for result in one.results}
    assert {result.id: result.verdict for result in other.results} == verdicts
    assert (verdicts["HB-04"] is Verdict.FAIL) == (factory == "make_forgiving") == (together.ret == 1)
    together.stdout.fnmatch_lines([f"Target: {factory}"])


ONE_AND_ALL = """
import os
from pathlib import Path
import pytest
from fencepost.testing import conformance, in_memory
from tests.support import coordinators_under_test

def make_and_tell(*arguments):
    Path(f"played-by-{os.getpid()}").touch()
    return coordinators_under_test.make_right(*arguments)

@pytest.fixture(scope="session")
def fencepost_target():
    return in_memory(make_and_tell)

@pytest.mark.parametrize("other", range(4))
def test_before(other):
    pass

@pytest.mark.fencepost_schedules(1)
@conformance("HB-0[1-6]")
def test_group_protocol(fencepost_case):
    fencepost_case.check()

@pytest.mark.parametrize("charset", ["UTF-16", "UTF-32"])
def test_after(charset):
    pass
"""


@pytest.mark.slow
@pytest.mark.extra("xdist")
@pytest.mark.parametrize(("how", "players"), [("load", 1), ("worksteal", 2)])
def test_workers_do_not_play_twice(pytester: pytest.Pytester, how: str, players: int) -> None:
    pytester.makepyfile(test_suite=ONE_AND_ALL)
    result = run_apart(pytester, "-n", "2", "--dist", how)
    result.assert_outcomes(passed=13)
    assert len(list(pytester.path.glob("played-by-*"))) == players
    assert ("2 workers played, each for itself" in result.stdout.str()) == (players == 2)


# --- a project that does not use it


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """A folder of installed packages that has nothing but the entry point of the plugin, and says that it has the
    kit."""
    info = tmp_path / "site" / "fencepost_entry_point-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fencepost-entry-point\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\nfencepost = {PLUGIN}\n")
    (info / "RECORD").write_text("fencepost/__init__.py,,\n")
    return os.pathsep.join([str(tmp_path / "site"), str(ROOT / ".src"), str(ROOT)])


def run_unrelated(folder: Path, path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a test suite that has nothing to do with Kafka; its only test prints the loaded modules of the kit."""
    test = "import json, sys\ndef test_it():\n    print(json.dumps([n for n in sys.modules if n[:9] == 'fencepost']))\n"
    (folder / "test_unrelated.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "no:cacheprovider", "-W", "error", *arguments]
    return subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)


def test_a_project_that_does_not_use_it_loads_no_code_of_the_kit(tmp_path: Path, installed: str) -> None:
    done = run_unrelated(tmp_path, installed)
    loaded = json.loads(done.stdout.splitlines()[0].rstrip("."))
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(loaded) == {"fencepost", "fencepost.conformance", "fencepost.conformance.testing", PLUGIN}
    assert "fencepost" not in "".join(done.stdout.splitlines()[1:])


def test_it_can_be_switched_off(tmp_path: Path, installed: str) -> None:
    done = run_unrelated(tmp_path, installed, "-p", "no:fencepost")
    assert done.returncode == 0 and json.loads(done.stdout.splitlines()[0].rstrip(".")) == []


def test_pytest_does_not_rewrite_the_kit(tmp_path: Path, installed: str) -> None:
    test = "from fencepost import model\ndef test_it():\n    assert 'Rewriting' not in repr(model.__loader__)\n"
    (tmp_path / "test_loader.py").write_text(test)
    done = run_unrelated(tmp_path, installed, "test_loader.py")
    assert done.returncode == 0, done.stdout
