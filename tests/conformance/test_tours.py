"""Tours of all transitions of a small coordinator: the bundled one and Kafka conform, and known bugs are found."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.protocol import CLASSIC
from fencepost.conformance.classic.scenarios.tours import sample_tours, tour_scenarios, with_target_timeouts
from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.cli import main
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run import registry
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.model.classic.explore.coordinator_inputs import Universe, joinings
from tests.support.faulty_coordinators import FORGIVING, install
from tests.targets.running import RunningTarget

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
