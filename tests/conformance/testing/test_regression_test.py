"""Tests that are written from traces fail on the faulty coordinator and pass on the correct one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.classic.zoo.bugs.environments import PLAIN
from fencepost.conformance.classic.zoo.coordinator_stand import make_run_in
from fencepost.conformance.cli import main
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.testing.case import Violation
from fencepost.conformance.testing.group_schedule import GroupSchedule
from fencepost.conformance.testing.regression_test import UnwritableTestError, write_regression_test
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.trace_files import write_trace
from tests.support.bug_witnesses import WITNESSES, record_bug

SCENARIOS = {scenario.name: scenario for scenario in ALL}
HB_04 = '''\
"""HB-04: Wrong generation. Written by `fencepost replay --as-test`."""

from fencepost.testing import GroupSchedule


def test_hb_04(fencepost_schedule: GroupSchedule) -> None:
    s = fencepost_schedule
    a = s.member("A")
    a.send("JoinGroup", version=9)
    s.check()
'''


def play_test(source: str, run: BundledRun) -> None:
    """Run the only test of a module on a coordinator."""
    names: dict[str, Callable[[GroupSchedule], None]] = {}
    exec(compile(source, "written", "exec"), names)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    test(GroupSchedule(lambda scenario: run_virtual(run.play(scenario, "check"))))


@pytest.mark.parametrize("number", WITNESSES)
def test_a_known_bug_fails_its_test_until_it_is_gone(number: str) -> None:
    bug = COORDINATOR_BUGS[number]
    scenario, _ = WITNESSES[number]
    run = make_run_in(bug.setting)
    with bug.activate():
        played = run_virtual(run.play(SCENARIOS[scenario], "run"))
        source = write_regression_test(played.header, played.events)
        with pytest.raises(Violation) as found:
            play_test(source, run)
    assert found.value.failure.schedule
    play_test(source, make_run_in(PLAIN))


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted({name.requirements[0].partition("-")[0] for name in ALL}))
def test_the_schedule_of_every_scenario_can_be_written(family: str) -> None:
    run = make_run_in(PLAIN)
    for scenario in ALL:
        if scenario.requirements[0].startswith(family):
            played = run_virtual(run.play(scenario, "run"))
            try:
                source = write_regression_test(played.header, played.events)
            except UnwritableTestError:
                continue
            play_test(source, run)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, written = record_bug("BUG-07", tmp_path), tmp_path / "test_it.py"
    assert main(["replay", str(trace), "--as-test"]) == 0
    printed = capsys.readouterr().out
    assert main(["replay", str(trace), "--as-test", "-o", str(written)]) == 0
    assert written.read_text() == printed
    expected = (
        HB_04.replace("HB-04: Wrong generation", "JOIN-15: No protocols in an Empty group")
        .replace("test_hb_04", "test_join_15")
        .replace('member("A")', 'member("A", session_timeout=30000, rebalance_timeout=4000)')
        .replace('"JoinGroup", version=9', '"JoinGroup", version=9, protocols=[], checks=("JOIN-15",)')
    )
    asked, _, rest = expected.partition('checks=("JOIN-15",))')
    assert printed.startswith(asked) and printed.endswith("s.check()\n") and rest


def test_an_output_is_for_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(record_bug("BUG-07", tmp_path)), "bundled", "-o", "x"]) == 2
    assert "-o is for --as-test" in capsys.readouterr().err


def test_a_trace_without_a_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = Header("nothing", Order.TOTAL, "virtual", Settings(), 0)
    path = tmp_path / "trace.jsonl"
    write_trace(path, header, [Event(0, 0, 0, "", Kind.REQUEST, "ListGroups", 0, {})])
    assert main(["replay", str(path), "--as-test"]) == 2
    assert "no request about a group" in capsys.readouterr().err
