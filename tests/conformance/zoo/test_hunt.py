"""Hunts end with a violation, without one, or with a coordinator that hangs or does not start."""

import ast
import glob
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.classic.membership import Heartbeats
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.schedules.cast import MemberRole
from fencepost.conformance.classic.schedules.moves import InterpretedSchedule
from fencepost.conformance.classic.zoo import comparison, coordinator_stand
from fencepost.conformance.classic.zoo.bugs.deviations import DEVIATIONS
from fencepost.conformance.classic.zoo.bugs.environments import PLAIN
from fencepost.conformance.classic.zoo.comparison import comparison_scenarios, find_difference, observe
from fencepost.conformance.classic.zoo.coordinator_stand import COORDINATORS, HANGS, CoordinatorFault, play_scenario_in
from fencepost.conformance.classic.zoo.zoo import coordinator_mutants, mutant_of_coordinator
from fencepost.conformance.run.play import count_requests
from fencepost.conformance.run.schedule import Move, Schedule
from fencepost.conformance.subject import Scenario
from fencepost.conformance.zoo import hunt as hunt_module
from fencepost.conformance.zoo import hunt_plan, measuring
from fencepost.conformance.zoo.hunt import DOES_NOT_START, HuntResult, HuntTask, UnusualCount, hunt_fault
from fencepost.conformance.zoo.hunt_plan import NOT_TOLD_APART, SURVIVES, HuntPlan, is_found
from fencepost.conformance.zoo.registry import UnknownFault, fault_named, match_patterns, run_hunt
from fencepost.conformance.zoo.results import ResultRow
from fencepost.conformance.zoo.strategies import REMARKS, SCENARIOS, SCHEDULES, TOURS
from fencepost.traces.events import Kind
from fencepost.traces.verdict import violations_in

DEAF = "membership.Heartbeats.rebalance_error: never: group.state is State.PREPARING -> False"
"""Members are never told to rejoin."""
HANDED_OUT = next(each for each in ALL if each.name == "session-timeout-bounds")
"""A scenario in which ids are handed out."""


@pytest.mark.slow
def test_a_mutant_is_found_by_schedules_scenarios_and_tours() -> None:
    finds = [run_hunt(HuntTask(DEAF, method, 1, seconds=60, shrink=1)) for method in (SCHEDULES, SCENARIOS, TOURS)]
    assert all(find.is_found and find.requests > 0 and find.found_with for find in finds)
    assert "HB-06" in {find.requirement for find in finds}


def test_unusual_responses_are_found_by_remarks() -> None:
    kept = "administration.Cleanup.expired_partitions: never: " + (
        "self.is_expired(group, offset) and (not group.is_subscribed(partition[0])) and "
        "(not group.has_uncommitted(partition)) -> False"
    )
    only = "explicit-retention-expires"
    assert not run_hunt(HuntTask(kept, SCENARIOS, only=only)).is_found
    find = run_hunt(HuntTask(kept, REMARKS, only=only))
    assert (find.requirement, find.requests, find.found_with) == ("COMMIT-26", 5, (only,))


def test_requests_that_come_while_one_is_parked_count() -> None:
    scenario = next(each for each in ALL if each.name == "leave-answers-the-parked-join")
    run = COORDINATORS.run_with(DEVIATIONS["leave-forgets-parked-join"], scenario)
    (parked,) = {violation.sequence for violation in violations_in(run.verdict)}
    later = [event.api for event in run.events if event.kind is Kind.REQUEST and event.sequence > parked]
    assert later == ["LeaveGroup", "DescribeGroups"]  # the last one is the sign of life beside which silence counts
    assert count_requests(run, parked) == sum(event.kind is Kind.REQUEST for event in run.events)


def test_remark_on_the_shipped_coordinator_is_no_find() -> None:
    stand = replace(COORDINATORS, remarks=lambda run: frozenset({UnusualCount("JOIN-01", 1)}))
    assert not hunt_fault(stand, HuntTask(DEAF, REMARKS, only="session-timeout-bounds"), fault_named(DEAF)).is_found


@pytest.mark.slow
def test_violation_is_found_again_from_its_batch_on() -> None:
    find = run_hunt(HuntTask("BUG-12", SCHEDULES, 1, shrink=0))
    again = run_hunt(HuntTask("BUG-12", SCHEDULES, 1, shrink=0, chunk=find.chunk))
    assert (again.requirement, again.chunk) == (find.requirement, find.chunk)
    assert again.schedules <= find.schedules


def test_a_mutant_leaves_the_shipped_coordinator_alone() -> None:
    shipped = vars(Heartbeats)["rebalance_error"]
    with fault_named(DEAF).activate():
        assert vars(Heartbeats)["rebalance_error"] is shipped
    assert find_difference(fault_named(DEAF))


def changed_mutant(**changes: Any) -> CoordinatorFault:
    """A mutant with some fields of its change replaced."""
    mutant = fault_named(DEAF).mutant
    assert mutant is not None and isinstance(mutant.replacement, ast.Constant)
    return mutant_of_coordinator(replace(mutant, **changes))


def mutant_with(replacement: str) -> CoordinatorFault:
    """A mutant with another expression in the place of the condition."""
    return changed_mutant(replacement=ast.parse(replacement, mode="eval").body)


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is_wrong() -> None:
    same = mutant_with("not group.state is not State.PREPARING")
    find = hunt_fault(COORDINATORS, HuntTask("sound", SCENARIOS, seconds=60), same)
    assert not find.is_found and find.schedules > 300


@pytest.mark.slow
def test_a_coordinator_that_hangs_is_found_with_that(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = mutant_with("all(True for _ in iter(int, 1))")
    monkeypatch.setattr(hunt_module, "HANG_SECONDS", 0.5)
    task = HuntTask("stuck", SCENARIOS, seconds=0.5, shrink=0)
    assert hunt_fault(COORDINATORS, task, hanging).requirement == HANGS


def test_a_coordinator_that_hangs_in_a_timer_is_found_with_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_stand, "MAX_PLAY_SECONDS", 1.0)
    monkeypatch.setattr(measuring, "REPEAT_SECONDS", 1_000)
    name = "rebalance.Rebalancer.on_initial_delay: always: group.newcomer and group.remaining_delay -> True"
    assert run_hunt(HuntTask(name, SCHEDULES, 1, seconds=60, shrink=0)).requirement == HANGS


def test_a_coordinator_that_does_not_start_is_found_with_that() -> None:
    dead = changed_mutant(path=(("body", -1),), replacement=ast.parse("nowhere").body[0])
    assert hunt_fault(COORDINATORS, HuntTask("dead", SCENARIOS), dead).requirement == DOES_NOT_START


def test_a_crash_is_seen_by_the_requests_that_were_lost() -> None:
    find = run_hunt(HuntTask("BUG-31", SCENARIOS, seconds=60))
    assert find.requirement in ("JOIN-17", "GEN-08")


def test_systematic_mutants_make_guards_comparisons_and_timers_wrong() -> None:
    found = [each.mutant for each in coordinator_mutants().values() if each.mutant is not None]
    assert len(found) == len({each.name for each in found}) > 500
    assert {each.operator for each in found} == {"always", "never", "comparison", "statement", "sum"}
    timers = [each.before for each in found if each.operator == "statement"]
    assert any("touch_session" in each for each in timers) and any("cancel" in each for each in timers)


def test_patterns_select_faulty_coordinators() -> None:
    assert [each.id for each in match_patterns(("BUG-0[12]",))] == ["BUG-01", "BUG-02"]
    assert DEAF in {each.id for each in match_patterns(("membership.Heartbeats.*",))}
    with pytest.raises(UnknownFault, match="'BUG-99'"):
        match_patterns(("BUG-99",))


def test_plan_has_a_hunt_for_every_seed_and_then_by_scenarios() -> None:
    plan = HuntPlan(("BUG-30",), seeds=2, baseline_seeds=1)
    (bug,) = match_patterns(plan.patterns)
    assert [(task.strategy, task.seed) for task in plan.tasks(bug)] == [
        ("schedules", 1),
        ("schedules", 2),
        ("hypothesis", 1),
        ("walk", 1),
    ]
    assert [task.strategy for task in plan.fallback_tasks(bug)] == ["scenarios", "tours", "remarks"]
    assert not is_found([HuntResult(HuntTask("BUG-30", "walk"), "FETCH-01", 1, 1.0)])


class SequentialExecutor(Executor):
    """An executor that does one thing after the other, here."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args, **options))
        return future


def run_hunt_plan(
    monkeypatch: pytest.MonkeyPatch, finding: Callable[[HuntTask], bool], different: str
) -> tuple[ResultRow, list[HuntTask]]:
    """Hunt a mutant with three seeds: its row, and the hunts that were done."""
    done: list[HuntTask] = []

    def fake_hunt(task: HuntTask) -> HuntResult:
        done.append(task)
        return HuntResult(task, "HB-06" if finding(task) else "", 1, 1.0)

    monkeypatch.setattr(hunt_plan, "run_hunt", fake_hunt)
    monkeypatch.setattr(hunt_plan, "find_difference", lambda mutant: different)
    monkeypatch.setattr(hunt_plan, "WorkerPool", lambda *options: SequentialExecutor())
    (row,) = HuntPlan((glob.escape(DEAF),)).run(lambda progress: None).rows
    return row, done


def test_a_mutant_that_answers_as_it_should_is_hunted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    row, done = run_hunt_plan(monkeypatch, lambda task: False, "")
    assert (row.found_by, row.reason) == ("", NOT_TOLD_APART)
    assert [(task.strategy, task.seed) for task in done] == [(SCHEDULES, 1)]


def test_a_mutant_that_answers_otherwise_is_hunted_by_all_means(monkeypatch: pytest.MonkeyPatch) -> None:
    row, done = run_hunt_plan(monkeypatch, lambda task: False, "a-scenario")
    assert (row.found_by, row.reason) == ("", SURVIVES.format(where="a-scenario"))
    assert [task.strategy for task in done] == [SCHEDULES] * 3 + [SCENARIOS, TOURS, REMARKS]


def test_plan_uses_only_its_strategies() -> None:
    plan = HuntPlan(("BUG-30",), seeds=2, strategies=(SCENARIOS, REMARKS))
    (bug,) = match_patterns(plan.patterns)
    assert [*plan.tasks(bug)] == []
    assert [task.strategy for task in plan.fallback_tasks(bug)] == [SCENARIOS, REMARKS]


def test_a_mutant_that_is_found_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    row, done = run_hunt_plan(monkeypatch, lambda task: task.strategy == SCHEDULES, "")
    assert (row.found_by, row.hunts[SCHEDULES].found) == (SCHEDULES, 3)
    assert [task.seed for task in done] == [1, 2, 3]


RENAMED = "membership.Joining.issue_member_id: never: join.request.client_id or '' -> False"
"""Ids begin otherwise."""


def test_comparison_ignores_member_ids() -> None:
    with fault_named(RENAMED).activate():
        renamed = observe(HANDED_OUT)
    assert renamed == observe(HANDED_OUT)


def test_what_members_make_of_their_ids_is_no_difference() -> None:
    moves = (Move("join"), Move("join"), Move("wait", 0, (("for", "answers"),)), Move("sync"), Move("describe"))
    play = Scenario("assigned", (), InterpretedSchedule(Schedule("assigned", (MemberRole(),), moves)))
    with fault_named(RENAMED).activate():
        renamed = observe(play)
    assert renamed == observe(play)
    assert "member 0@1" in renamed


def test_an_answer_that_no_message_can_hold_is_the_end_of_a_coordinator() -> None:
    name = "rebalance.Rebalancer.add_member: never: join.request.client_id or '' -> False"
    find = run_hunt(HuntTask(name, SCENARIOS, seconds=60))
    assert find.is_found and find.found_with == ("id-is-required-in-every-state",)


def test_a_mutant_that_hangs_in_the_comparison_is_different(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.classic.zoo.comparison.MAX_PLAY_SECONDS", 0.5)
    assert find_difference(mutant_with("all(True for _ in iter(int, 1))"))


# --- The comparison of mutants with the shipped coordinator.

TOLD_APART = {
    "offsets.OffsetStore.commit_offset: always: present is None or present.number < offset.number -> True": (
        "transaction-0-True"
    ),
    "administration.Cleanup.base_time: always: group.protocol_type is not None and group.state is "
    "State.EMPTY -> True": ("retention-in-parts-0"),
    "administration.Cleanup.has_base_time: always: group.protocol_type == CONSUMER and group.subscribed "
    "is not None -> True": ("retention-in-parts-3"),
    "administration.Loading.start_group: comparison: len(group.members) > self._runtime.settings.max_group_size -> "
    "len(group.members) >= self._runtime.settings.max_group_size": "6-members-3",
    "rebalance.Rebalancer.extend_initial_delay: statement: group.remaining_delay -= step -> nothing": "initial-delay-3",
    "offsets.Commits.admit: never: commit.is_transactional and (not commit.group_id) -> False": "fenced-producers",
    "offsets.Commit.names_member: comparison: self.generation >= 0 -> self.generation > 0": "commits-of-every-kind-0",
}
"""Mutants that scenarios, tours and random schedules do not tell apart, and the scenario that does."""
UNUSUAL = ("initial-delay-3",)
"""Scenarios that violate a recommendation alone (TIMER-17)."""


@pytest.mark.parametrize(("mutant", "where"), TOLD_APART.items(), ids=TOLD_APART.values())
def test_a_mutant_is_told_apart(mutant: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    only = [each for each in comparison_scenarios() if each.name == f"compare-{where}"]
    monkeypatch.setattr(comparison, "compared_scenarios", lambda: only)
    found = find_difference(fault_named(mutant))
    assert found.startswith(f"compare-{where}" if where in UNUSUAL else f"compare-{where}, which violates ")


def test_the_scenarios_of_the_comparison_run_to_their_end_without_a_violation() -> None:
    for play in comparison_scenarios():
        played = play_scenario_in(PLAIN, play)
        assert (played.blocked, played.unsupported, played.verdict.violated) == ("", "", frozenset())
