"""`fencepost explore`: its output and saved files, violations, interrupted searches, and the exit codes."""

import json
import re
import signal
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic import exploration
from fencepost.conformance.classic.exploration import SearchDisplay, pulse_line, states_left
from fencepost.conformance.classic.protocol import CLASSIC
from fencepost.conformance.classic.scenarios.tours import sample_tours, tour_scenarios, with_target_timeouts
from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.cli import main
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import ExitCode
from fencepost.conformance.run import registry
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.model.classic.coordinator import group_log
from fencepost.model.classic.core.member_table import NOWHERE, check_member
from fencepost.model.classic.core.membership import renew_session, respond_to_commit
from fencepost.model.classic.core.state import Context, Group, Step
from fencepost.model.classic.explore import coordinator_steps, coordinator_tour, group_model
from fencepost.model.classic.explore.coordinator_inputs import Universe, joinings
from fencepost.model.classic.explore.properties import PROPERTIES
from fencepost.model.errors import Error
from fencepost.model.explore.search import SearchProgress
from fencepost.model.groups.messages import CommitRequest
from tests.support.edits import mutant
from tests.support.faulty_coordinators import FORGIVING, install
from tests.targets.running import RunningTarget

# --- Tours of all transitions of a small coordinator: the bundled one and Kafka conform, and known bugs are found.

Capture = pytest.CaptureFixture[str]
SMALL = (
    Universe(1, 2, joinings(2)),
    Universe(2, 1, joinings(1)),
    Universe(1, 2, joinings(1), instances=1),
)
FOUND = ("BUG-29", "BUG-47", "BUG-51", "BUG-52", "BUG-55")
"""Bugs that show in a small group without a restart, without many members and without long waits."""


def play_tours(plays: Iterable[Scenario]) -> list[ScenarioRun]:
    """Scenarios on the bundled coordinator, each on one of its own."""
    bundled = BundledRun(Plan("bundled"), Profile())
    return [run_virtual(bundled.play(one, "run")) for one in plays]


@cache
def some_tours(count: int, seed: int) -> tuple[Scenario, ...]:
    """Some tours for the bundled coordinator."""
    return sample_tours(BUNDLED_SETTINGS, count, seed)


@pytest.mark.slow
@pytest.mark.parametrize("universe", SMALL, ids=["one member", "two members", "a static one"])
def test_the_bundled_coordinator_on_tour(universe: Universe) -> None:
    runs = play_tours(tour_scenarios(with_target_timeouts(BUNDLED_SETTINGS, universe)))
    assert [fault for run in runs for fault in run.verdict.violations] == []
    assert {(run.blocked, run.unsupported, run.verdict.inconclusive) for run in runs} == {("", "", ())}
    rules = sum((Counter(run.verdict.rules) for run in runs), Counter[str]())
    assert {"join.stable.leader", "commit.completing", "sync.other-generation", "timer.session"} <= set(rules)


@pytest.mark.slow
def test_a_seed_draws_the_same_tours_again_and_another_draws_others() -> None:
    names = [one.name for one in some_tours(12, 1)]
    assert names == [one.name for one in sample_tours(BUNDLED_SETTINGS, 12, 1)]
    assert names != [one.name for one in some_tours(12, 2)]
    assert len(set(names)) == 12
    assert {one.name.rpartition("-")[0] for one in some_tours(12, 1)} == {"tour", "static-tour"}


@pytest.mark.parametrize("number", FOUND)
def test_known_bugs_are_found_on_tour(number: str) -> None:
    bug = COORDINATOR_BUGS[number]
    with bug.activate():
        found = frozenset[str]().union(*(run.verdict.violated for run in play_tours(some_tours(60, 0)[:6])))
    assert found & set(bug.breaks)


@pytest.mark.slow
def test_tours_are_part_of_a_run_and_of_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(registry, "DEFAULT_PROTOCOL", replace(CLASSIC, scenarios=()))
    report = tmp_path / "report.json"
    command = ["test", "bundled", "--tours", "20", "--schedules", "0", "--json", str(report)]
    assert main(command) == 3
    assert json.loads(report.read_text())["schedules"] == 20
    install(monkeypatch, FORGIVING)
    assert main(command) == 1
    (failed, *_) = [row for row in json.loads(report.read_text())["requirements"] if row["verdict"] == "fail"]
    assert failed["id"] == "HB-04"
    assert failed["failures"][0]["replay"] == "fencepost test bundled --tours 20 --seed 0"
    capsys.readouterr()


def test_without_the_flag_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(registry, "DEFAULT_PROTOCOL", replace(CLASSIC, scenarios=()))
    report = tmp_path / "report.json"
    main(["test", "bundled", "--schedules", "0", "--json", str(report)])
    assert json.loads(report.read_text())["schedules"] == 0
    assert main(["test", "bundled", "--tours", "-1"]) == 2
    assert "argument --tours: '-1' is not" in capsys.readouterr().err


def on_kafka(running: RunningTarget, file: Path) -> None:
    """A smoke run with tours breaks nothing."""
    options = ["--profile", str(running.profile.folder / f"{running.name}.toml"), "--smoke", "--json", str(file)]
    main(["test", f"kafka://{running.bootstrap}", "--tours", "40", *options])
    document = json.loads(file.read_text())
    assert document["outcome"]["verdicts"]["fail"] == 0
    assert document["schedules"] >= 40


@pytest.mark.kafka4
def test_kafka_4_on_tour(kafka4: RunningTarget, tmp_path: Path) -> None:
    on_kafka(kafka4, tmp_path / "report.json")


@pytest.mark.acceptance
@pytest.mark.kafka3
def test_kafka_3_on_tour(kafka3: RunningTarget, tmp_path: Path) -> None:
    on_kafka(kafka3, tmp_path / "report.json")


TINY = ["explore", "--members", "1", "--ids", "1", "--generations", "1", "--slots", "1", "--requests", "3"]
LONG = ["explore", "--members", "1", "--requests", "4", "--no-liveness"]
OUTPUT_START = """\
One group, 1 cooperative member, 1 partition; up to 1 id, 1 generation, 3 JoinGroups and SyncGroups of each, 1 slot. \
Requests come late, twice or never, answers get lost, timers fire at any moment; crashes, leaves, commits, heartbeats.
holds  one-leader: Any two members that are told who leads a generation are told of the same leader. Covers every \
answer of the coordinator in 172 states. Not: failover, and numbers used again when a group was deleted; a static \
member is the same under its next id.
"""
OUTPUT_END = """\
not seen  rejoined-while-owning: At some point a member has joined the next generation and still owns what an older \
one gave it. Covers a shortest way there in 172 states. Not: that it keeps it.
holds  settles: Once the members stop changing, every fair run ends in a stable group of the living, with nothing \
parked. Covers every run without end from the 21 states on that 1 request of each lead to, through 114 states without \
bounds. Not: leaders that change their plan in every round, and how long it takes.
172 states, reduced, 607 moves, 13 deep, exhausted in TIME (RATE states/s, ENGINE); 219 moves \
lead beyond the bounds.
INCONCLUSIVE: something is open: the search was cut short, or its bounds are too small.
"""
IN_ONE_GENERATION = {"no-stale-commit", "T13", "T28", "T49", "T55", "T57"}
"""What a world of one member and one generation says nothing about."""


def lenient(group: Group, request: CommitRequest, context: Context) -> Step:
    _, index = check_member(group, request.member, request.instance)
    alive = group if index == NOWHERE else renew_session(group, index, context.now)
    return respond_to_commit(alive, request, Error.NONE, "commit.stable")


def idle(group: Group, context: Context) -> Step:
    return Step(group, (), "timer.not-due")


def without_times(text: str) -> str:
    """The output without what differs from run to run."""
    return re.sub(r"in [\d.]+ s \([\d,]+ states/s, \w+\)", "in TIME (RATE states/s, ENGINE)", text)


def test_everything_is_shown_and_saved(tmp_path: Path, capsys: Capture) -> None:
    saved, dot, graphml, page = (tmp_path / name for name in ("f.json", "f.dot", "f.graphml", "f.md"))
    files = ["--json", str(saved), "--dot", str(dot), "--graphml", str(graphml), "--picture", str(page)]
    assert main([*TINY, *files]) == ExitCode.INCONCLUSIVE
    shown = capsys.readouterr()
    assert without_times(shown.out).startswith(OUTPUT_START)
    assert without_times(shown.out)[-len(OUTPUT_END) :] == OUTPUT_END
    assert "runs without end, alive: A (2 of 2 sets of living members)" in shown.err
    report = json.loads(saved.read_text())
    assert (report["states"], report["transitions"], report["deadlocks"], report["exhausted"]) == (172, 607, 0, True)
    assert {one["id"] for one in report["properties"] if one["verdict"] == "vacuous"} == IN_ONE_GENERATION
    assert [one["id"] for one in report["properties"]] == [
        *(p.name for p in PROPERTIES if p.needs not in ("another", "failovers")),
        "settles",
    ]
    assert report["liveness"]["stalls"] == 0 and report["rules"]["sync.leader"] > 0
    graph = nx.read_graphml(graphml)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (172, 607)
    assert dot.read_text().count(" -> ") == 607 and dot.read_text().count(" [label=") == 172 + 607
    assert "Completing --> Stable: sync.leader" in page.read_text()


FAILOVER = ["explore", "--members", "1", "--direct", "1", "--requests", "2", "--no-liveness", "--failovers", "1"]


def test_a_failover_shows_two_leaders_of_one_generation(capsys: Capture) -> None:
    main(FAILOVER)
    text = capsys.readouterr().out
    assert "\nviolated " not in text and not text.splitlines()[-1].startswith("VIOLATION")
    assert "heartbeats; 1 fail-over.\n" in text.partition("holds")[0]
    violated = text.partition("false, as it should be  one-leader-ever: ")[2].splitlines()
    assert "4. the coordinator fails over" in violated[4] and violated[6].startswith("    6. timer.initial-delay")
    assert " states, reduced" not in text


@pytest.mark.slow
def test_what_else_a_coordinator_breaks_after_a_failover_is_found(capsys: Capture) -> None:
    with mutant(group_log.load_group, "leader=stored.leader", "leader='nobody'"):
        assert main([*FAILOVER, "--requests", "3"]) == ExitCode.VIOLATION
    violated = {line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("violated ")}
    assert violated == {"T7:"}


def test_a_generation_that_is_stored_early_has_one_leader(capsys: Capture) -> None:
    main([*FAILOVER, "--stores-early"])
    assert "\nholds  one-leader-ever: " in capsys.readouterr().out


def test_failovers_are_explored_with_dynamic_members(capsys: Capture) -> None:
    assert main([*FAILOVER, "--static", "1"]) == ExitCode.COULD_NOT_RUN
    assert capsys.readouterr().err == "fencepost: --static 1: fail-overs are explored with dynamic members\n"


def test_two_generations_leave_nothing_vacuous(capsys: Capture) -> None:
    assert main(LONG) == ExitCode.CONFORMANT
    verdicts = {line.partition("  ")[0] for line in capsys.readouterr().out.splitlines()[1:-2]}
    assert verdicts == {"holds", "seen"}


def test_a_broken_handler_is_a_violation_with_a_sequence(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(coordinator_tour, "commit", lenient)
    assert main(LONG) == ExitCode.VIOLATION
    lines = capsys.readouterr().out.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("violated  no-stale-commit"))
    steps = [line for line in lines[begin + 1 :] if re.match(r" +\d+\. ", line)]
    assert steps[0] == (
        "    1. A joins  [A process: preparing rebalance, waits for answer 1; A request: 1. JoinGroup of a newcomer]"
    )
    assert len(steps) == 12 and steps[-1].startswith("   12. A gets commit.stable")
    assert lines[-1].startswith("VIOLATION")


def test_a_world_in_which_nothing_happens_is_a_deadlock(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(group_model.ProcessActions, "act", lambda acting, process: ())
    assert main([*TINY, "--no-liveness"]) == ExitCode.VIOLATION
    assert "violated  no-deadlock" in capsys.readouterr().out


def test_a_group_that_waits_for_ever_is_a_violation(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(coordinator_steps, "expire_sync", idle)
    monkeypatch.setattr(coordinator_steps, "expire_member", lambda group, index, context: idle(group, context))
    assert main([*TINY, "--settle", "2"]) == ExitCode.VIOLATION
    shown = capsys.readouterr().out
    assert "violated  settles" in shown and re.search(r"\d+\. and then for ever among \d+ states", shown)


def test_a_witness_that_is_not_seen_leaves_it_open(capsys: Capture) -> None:
    assert main([*TINY[:-2], "--requests", "1", "--no-liveness"]) == ExitCode.INCONCLUSIVE
    shown = capsys.readouterr().out
    assert "not seen  everyone-stable" in shown and "INCONCLUSIVE" in shown


def test_a_limit_cuts_the_search_short(tmp_path: Path, capsys: Capture) -> None:
    dot = tmp_path / "f.dot"
    assert main([*LONG, "--limit", "100", "--dot", str(dot)]) == ExitCode.INCONCLUSIVE
    shown = capsys.readouterr().out
    assert "open  no-stale-commit" in shown and "cut short" in shown
    assert dot.read_text().startswith("digraph explored {") and "the graph has the first" in shown


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    class Pressing(SearchDisplay):
        def __call__(self, pulse: SearchProgress) -> None:
            if pulse.depth == 5:
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(exploration, "SearchDisplay", Pressing)
    saved = tmp_path / "f.json"
    assert main([*TINY, "--json", str(saved)]) == ExitCode.INCONCLUSIVE
    report = json.loads(saved.read_text())
    assert 5 < report["states"] < 172 and not report["exhausted"] and report["liveness"] is None
    assert {one["verdict"] for one in report["properties"]} == {"open"}
    assert "cut short" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--members", "0"], "fencepost explore: argument --members: '0' is not a number above 0"),
        (["--members", "7"], "fencepost: --members 7: at most 6 can be explored"),
        (["--static", "3"], "fencepost: --static 3: there are only 2 members"),
        (["--dot", "/nowhere/f.dot"], "fencepost: /nowhere/f.dot: No such file or directory"),
        (["--json", "/nowhere/f.json"], "fencepost: /nowhere/f.json: No such file or directory"),
    ],
)
def test_unusable_options_exit_with_one_line(arguments: list[str], complaint: str, capsys: Capture) -> None:
    assert main(["explore", *arguments]) == ExitCode.COULD_NOT_RUN
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert line.startswith(complaint) and shown.out == ""


def test_how_far_a_search_has_come() -> None:
    growing, shrinking = SearchProgress(3, 700, 400, 100), SearchProgress(9, 5_000, 200, 0)
    assert states_left(growing, [200, 400]) is None
    assert states_left(shrinking, [400, 200]) == 400
    assert pulse_line(growing, 2.0, [200, 400]) == "700 states, level 3: 100 of 400, 2.0 s, 350 states/s"
    assert pulse_line(growing, 2.0, [200, 400], 1_400).endswith("350 states/s, at most 2.0 s left")
    assert pulse_line(shrinking, 4.8, [400, 200]).endswith("1,042 states/s, about 0.4 s left")
