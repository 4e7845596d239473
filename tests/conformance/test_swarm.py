"""Swarms: many reference members on the bundled coordinator, and witnesses that each rule can be broken."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.swarm.members import (
    FENCED_COMMIT,
    NO_LOSS,
    ONE_OWNER,
    UPGRADE,
    SwarmEventKind,
    SwarmKind,
    SwarmPlan,
    SwarmWatch,
)
from fencepost.conformance.classic.swarm.run import SwarmOutcome, outcome_as_json, render_outcome, run_bundled
from fencepost.conformance.cli import main
from fencepost.conformance.results import ExitCode
from fencepost.model.settings import Settings

P0 = ("t", 0)


def run_swarm(kind: SwarmKind, **fields: int) -> SwarmOutcome:
    plan = SwarmPlan(members=4, kind=kind, partitions=4, seconds=80.0, records=3, **fields)
    return run_virtual(run_bundled(plan, lambda line: None))


@pytest.mark.parametrize("kind", SwarmKind)
def test_the_bundled_coordinator_keeps_a_swarm_safe(kind: SwarmKind) -> None:
    outcome = run_swarm(kind, events=5)
    assert (outcome.watch.violations, outcome.unsettled, outcome.stays) == ([], "", ())
    assert sum(map(len, outcome.watch.returned.values())) == outcome.written
    assert len(outcome.happened) >= 3
    assert outcome.watch.absences and all(absence.duration >= 0 for absence in outcome.watch.absences)
    text = render_outcome(outcome)
    assert "CONFORMANT: one owner at a time" in text and "without an owner" in text and "first owner: 4" in text
    assert json.loads(json.dumps(outcome_as_json(outcome)))["violations"] == []


def test_a_plan_is_the_same_for_a_seed() -> None:
    first, again, other = (SwarmPlan(seed=seed).draw_events(10.0) for seed in (1, 1, 2))
    assert first == again != other
    drawn = {event.kind for seed in range(20) for event in SwarmPlan(seed=seed).draw_events(10.0)}
    assert drawn == set(SwarmEventKind)
    assert all(event.lasts > 10 for event in first if event.kind is SwarmEventKind.FREEZE)


def test_members_of_a_mixed_swarm_are_upgraded_by_their_restarts() -> None:
    plan = SwarmPlan(kind=SwarmKind.MIXED)
    assert {plan.strategies_of(number, 0) for number in range(4)} == {UPGRADE[0], UPGRADE[1]}
    assert {plan.strategies_of(number, 1) for number in range(4)} == {UPGRADE[1]}


def test_an_upgrade_restarts_each_process_twice_and_waits_for_all_between() -> None:
    plan = SwarmPlan(members=6, kind=SwarmKind.UPGRADE, seconds=60.0)
    first, second = (plan.upgrade_times(step) for step in (1, 2))
    assert [plan.strategies_of(0, 5, step) for step in range(3)] == list(UPGRADE)
    assert len(first) == len(second) == 6 and max(first) < min(second)
    assert min(first) >= 10.0 and max(second) <= 50.0


def test_an_upgrade_comes_in_waves() -> None:
    plan = SwarmPlan(members=200, kind=SwarmKind.UPGRADE, seconds=240.0)
    times = plan.upgrade_times(1)
    assert [times.count(each) for each in sorted(set(times))] == [20] * 10
    assert times[20] - times[0] == pytest.approx(8.0)


def test_a_whole_upgrade_ends_with_cooperative_members() -> None:
    outcome = run_swarm(SwarmKind.UPGRADE, events=2)
    steps = [line.rpartition(" ")[2] for line in outcome.happened if "upgrade of" in line]
    assert sorted(steps) == steps == ["1"] * 4 + ["2"] * 4


def test_a_swarm_outlives_its_broker() -> None:
    plan = SwarmPlan(members=4, partitions=4, seconds=80.0, records=3, events=2)
    outcome = run_virtual(run_bundled(plan, lambda line: None, restarts=True))
    assert (outcome.watch.violations, outcome.unsettled) == ([], "")
    happened = "\n".join(outcome.happened)
    assert "at 40.0 s restart of the broker" in happened and "at 45.0 s the broker was started again" in happened
    assert "no records are written" in happened
    assert sum(map(len, outcome.watch.returned.values())) == outcome.written >= 4 * 30


def test_a_swarm_that_is_too_large_ends_at_once_and_says_how_many_fit() -> None:
    plan = SwarmPlan(members=5, partitions=4, seconds=80.0)
    outcome = run_virtual(run_bundled(plan, lambda line: None, Settings(max_group_size=3)))
    assert outcome.seconds < 20 and "the group takes 3 members" in outcome.unsettled
    assert "INCONCLUSIVE: the group takes 3 members" in render_outcome(outcome)


# -- every rule can be broken -----------------------------------------------------------------------------------------


def watch_at(generation: int) -> SwarmWatch:
    """A watch of members that are all in one generation, which is the newest."""
    watch = SwarmWatch(lambda: 1_000, lambda member: generation)
    watch.on_joined(generation)
    return watch


def assign_twice(watch: SwarmWatch) -> None:
    watch.on_assigned("a", 3, [P0])
    watch.on_assigned("b", 3, [P0])


def return_what_another_owns(watch: SwarmWatch) -> None:
    watch.on_assigned("a", 3, [P0])
    watch.on_records("b", 3, P0, [0])


def commit_late(watch: SwarmWatch) -> None:
    watch.on_commit("a", 2, 3, {}, 0)


def commit_ahead(watch: SwarmWatch) -> None:
    watch.on_records("a", 3, P0, [0, 1])
    watch.on_commit("a", 3, 3, {P0: 3}, 0)


@pytest.mark.parametrize(
    ("breaks", "rule"),
    [
        (assign_twice, ONE_OWNER),
        (return_what_another_owns, ONE_OWNER),
        (commit_late, FENCED_COMMIT),
        (commit_ahead, NO_LOSS),
    ],
)
def test_each_rule_can_be_broken(breaks: Callable[[SwarmWatch], None], rule: str) -> None:
    watch = watch_at(3)
    breaks(watch)
    assert [violation.rule for violation in watch.violations] == [rule]


def test_what_is_allowed_is_no_violation() -> None:
    watch = watch_at(3)
    watch.on_assigned("a", 3, [P0])
    watch.on_given_up("a", [P0])
    watch.on_assigned("b", 3, [P0])
    watch.on_records("b", 3, P0, [0, 1])
    watch.on_commit("b", 3, 3, {P0: 2}, 0)
    watch.on_commit("a", 2, 3, {}, 22)
    assert watch.violations == [] and (watch.accepted, watch.refused, watch.stale_refused) == (1, 1, 1)


def test_an_owner_of_a_generation_that_is_over_is_no_owner() -> None:
    watch = SwarmWatch(lambda: 0, lambda member: 2)
    watch.on_joined(3)
    watch.owners[P0] = {"frozen"}
    watch.on_assigned("a", 3, [P0])
    assert watch.violations == []


def test_an_absence_lasts_from_the_last_owner_to_the_next() -> None:
    times = iter([30, 100, 700])
    watch = SwarmWatch(lambda: next(times), lambda member: 1)
    watch.on_assigned("a", 1, [P0])
    watch.on_gone("a")
    watch.on_assigned("b", 1, [P0])
    assert watch.first_owned == {P0: 30} and [absence.duration for absence in watch.absences] == [600]


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_tells_what_it_has_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.json"
    options = ["--members", "3", "--partitions", "3", "--lasts", "30", "--events", "2", "--json", str(file), "-v"]
    assert main(["swarm", "bundled", *options]) == ExitCode.CONFORMANT
    output = capsys.readouterr()
    assert "3 eager members, 3 partitions" in output.out and "CONFORMANT" in output.out
    assert json.loads(file.read_text())["members"] == 3


@pytest.mark.parametrize(
    ("target", "told"),
    [("nonsense://x", "is no target"), ("kafka+ssl://h:1", "speak no TLS"), ("kafka://127.0.0.1:1", "no response to")],
)
def test_a_target_that_is_none_is_told(target: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["swarm", target]) == ExitCode.COULD_NOT_RUN
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1
