"""A violation of a random schedule is named after the requirement whose own scenario shows it."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.conformance.analysis.root_cause import (
    FEW_REQUIREMENTS,
    INCIDENTAL_NOTE,
    MIN_NEARNESS,
    MIN_NEARNESS_AMONG_MANY,
    Attribution,
    RootCauses,
    ViolationOnPath,
    chargeable_requirements,
    manner_of,
    name_requirement,
    nearness,
)
from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.engine import Candidate, RunStatistics
from fencepost.conformance.run.play import most_specific
from fencepost.conformance.run.run_state import RunState
from fencepost.conformance.run.schedule import Schedule
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import Scenario, ScenarioRun, select_requirements, select_scenarios
from fencepost.conformance.zoo.hunt import HuntTask
from fencepost.conformance.zoo.registry import run_hunt
from fencepost.conformance.zoo.results import load_results
from fencepost.model.classic.catalogue import CATALOGUE
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.groups.group_judge import MISSING
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import (
    UNCLASSIFIED,
    CheckResult,
    CheckStatus,
    FieldDifference,
    TraceVerdict,
    Violation,
    violations_in,
)

COMMIT = Violation(0, "g", "OffsetCommit", ("error",), "", (), "commit.stable", "", ("COMMIT-01",), "refused")
PATH: Mapping[str, int] = {"join.new": 1, "commit.stable": 2}
FOUND = ViolationOnPath("COMMIT-01", COMMIT, PATH)
FAR = ViolationOnPath(
    "ADMIN-09", replace(COMMIT, api="DescribeGroups", rule="describe.group", fields=("members",), kind=""), {}
)
RECORDED_ON_KFAKE = Path(__file__).parents[1] / "traces" / "data" / "kfake"
RECORDED = {row.name: row for row in load_results().rows}


def near(requirement: str) -> ViolationOnPath:
    """A violation of another requirement by the same response."""
    return replace(FOUND, requirement=requirement)


def test_the_nearest_scenario_names_what_a_schedule_finds() -> None:
    assert name_requirement(FOUND, [FAR, near("COMMIT-19")]) == "COMMIT-19"


def test_without_a_near_scenario_the_judge_names_it() -> None:
    assert nearness(FOUND, FAR) < MIN_NEARNESS
    assert name_requirement(FOUND, [FAR]) == name_requirement(FOUND, []) == "COMMIT-01"


def test_a_requirement_that_a_scenario_violates_too_stays() -> None:
    assert name_requirement(FOUND, [near("COMMIT-19"), near("COMMIT-01")]) == "COMMIT-01"


def test_a_requirement_that_says_when_a_response_comes_stays() -> None:
    missing = replace(FOUND, violation=replace(COMMIT, fields=(MISSING,)))
    assert name_requirement(missing, [near("COMMIT-19")]) == "COMMIT-01"


def test_of_many_violated_requirements_one_has_to_be_nearer() -> None:
    same_family = replace(FAR, requirement="COMMIT-19")
    others = [replace(FAR, requirement=f"ADMIN-{number:02}") for number in range(1, FEW_REQUIREMENTS + 1)]
    assert MIN_NEARNESS < nearness(FOUND, same_family) < MIN_NEARNESS_AMONG_MANY
    assert name_requirement(FOUND, [same_family]) == "COMMIT-19"
    assert name_requirement(FOUND, [same_family, *others]) == "COMMIT-01"


def test_among_many_the_same_wrong_error_of_the_same_api_names_it() -> None:
    refusal = FieldDifference("error_code", "NONE", "UNKNOWN_MEMBER_ID")
    refused = replace(FOUND, violation=replace(COMMIT, differences=(refusal,)))
    far = ViolationOnPath(
        "JOIN-42", replace(refused.violation, rule="commit.empty", fields=("error", "time"), kind=""), {}
    )
    many = [replace(near("ADMIN-01"), requirement=f"COMMIT-{number}") for number in range(10, 11 + FEW_REQUIREMENTS)]
    assert nearness(refused, far) < MIN_NEARNESS_AMONG_MANY <= nearness(refused, many[0])
    assert name_requirement(refused, [*many, far]) == "JOIN-42"
    assert (
        name_requirement(refused, [*many, replace(far, violation=replace(far.violation, api="JoinGroup"))]) != "JOIN-42"
    )
    assert name_requirement(FOUND, [*many, far]) != "JOIN-42"


def test_a_scenario_that_departs_from_a_rule_on_the_path_comes_first() -> None:
    """What a scenario shows wrong at a rule that did not apply in the schedule cannot have gone wrong in it."""
    found = replace(FOUND, rules={**PATH, "leave.member": 1})
    elsewhere = replace(near("ADMIN-02"), violation=replace(COMMIT, rule="describe.group", kind=""))
    on_path = replace(
        near("LEAVE-07"), violation=replace(COMMIT, api="JoinGroup", rule="leave.member", kind="", requirements=())
    )
    assert nearness(found, on_path) < nearness(found, elsewhere)
    assert name_requirement(found, [elsewhere, on_path]) == "LEAVE-07"
    assert name_requirement(FOUND, [elsewhere, on_path]) == "ADMIN-02"


def test_one_that_many_scenarios_look_at_is_less_specific() -> None:
    assert nearness(FOUND, replace(near("COMMIT-19"), breadth=9)) < nearness(FOUND, near("COMMIT-20"))


def test_a_single_scenario_costs_nothing() -> None:
    """A short schedule has little in common with any path, and a tenth of it is enough for what one scenario shows."""
    path = {**{f"rule-{number}": 1 for number in range(6)}, **PATH}
    only = replace(FAR, requirement="JOIN-42", violation=replace(FAR.violation, fields=("time",)), rules=path)
    assert nearness(FOUND, only) == nearness(FOUND, replace(only, breadth=3)) + 0.2 == 0.5
    assert name_requirement(FOUND, [only]) == "JOIN-42"
    assert name_requirement(FOUND, [replace(only, breadth=5)]) == "COMMIT-01"


def test_a_violation_of_which_the_judge_says_more_than_its_rule_is_shrunk_first() -> None:
    of_the_rule = CheckResult("COMMIT-01", 1, CheckStatus.FAIL, violation=COMMIT)
    of_a_field = CheckResult("COMMIT-22", 2, CheckStatus.FAIL, violation=replace(COMMIT, requirements=("COMMIT-22",)))
    assert most_specific([of_the_rule, of_a_field]) is of_a_field
    assert most_specific([of_the_rule, replace(of_the_rule, requirement="COMMIT-02")]) is of_the_rule


# --- among scenarios ---------------------------------------------------------------------------------------------


LATE = Violation(
    0, "g", "JoinGroup", ("time",), "", (), "join.preparing", "", ("JOIN-27",), "round ends late ('JOIN-27',)"
)


async def play_nothing(context: ScenarioContext) -> None:
    """The run is made by hand."""


def run_of(requirement: str, status: CheckStatus = CheckStatus.FAIL, violation: Violation | None = LATE) -> ScenarioRun:
    """A run of a scenario in which the check of the requirement has this status; "" is a schedule without checks."""
    found = (violation,) if violation is not None and status is CheckStatus.FAIL else ()
    checks = (CheckResult(requirement, 0, status, violation=next(iter(found), None)),) if requirement else ()
    scenario = Scenario(requirement or "schedule", (requirement,) if requirement else (), play_nothing)
    return ScenarioRun(
        scenario, Header("made by hand", Order.TOTAL, "virtual", Settings(), 0), (), TraceVerdict(found, checks, {})
    )


def note_of(causes: RootCauses, found: CheckResult, run: ScenarioRun) -> str:
    return Attribution(found, run, causes.causes_of(found, run)).note


def test_what_fails_only_because_a_round_ends_late_follows_from_the_requirement_about_that() -> None:
    runs = [run_of("JOIN-27"), run_of("JOIN-43")]
    assert RootCauses(runs).independent == {"JOIN-27"}
    passed = run_of("JOIN-27", CheckStatus.PASS)
    assert RootCauses([*runs, passed]).independent == {"JOIN-27", "JOIN-43"}
    of_another = replace(LATE, requirements=("JOIN-26",), kind="another")
    assert RootCauses([*runs, run_of("JOIN-44", violation=of_another)]).independent == {"JOIN-27", "JOIN-44"}


@pytest.mark.parametrize(("observed", "is_no_round"), [("1", True), ("9", False), ("3", False), ("-", False)])
def test_a_round_that_is_not_begun_shows_in_the_generation_before(observed: str, is_no_round: bool) -> None:
    told = (FieldDifference("generation_id", "2", observed),)
    wrong = replace(LATE, fields=("generation",), kind="a wrong generation", differences=told)
    early = replace(
        LATE, fields=("time",), kind="early", differences=(FieldDifference("early", "no response", "NONE"),)
    )
    assert (manner_of(wrong) == manner_of(early)) is is_no_round


def test_nothing_follows_from_a_requirement_that_cannot_fail() -> None:
    """A static newcomer is told an id at once: STATIC-01 speaks of it, and TIMER-16 where there is an initial delay."""
    refusal = FieldDifference("error_code", "NONE", "MEMBER_ID_REQUIRED")
    early = replace(LATE, fields=("error", "time"), requirements=("TIMER-16",), kind="early", differences=(refusal,))
    runs = [run_of("STATIC-01", violation=early)]
    everything = frozenset(DEFAULT_SPECIFICATION.requirements)
    shown_elsewhere = [*runs, run_of("JOIN-55", violation=replace(early, kind="early"))]
    for told in (runs, shown_elsewhere):
        assert "STATIC-01" in RootCauses(told, chargeable=everything - {"TIMER-16"}).independent


def test_what_needs_nothing_can_fail_without_a_scenario() -> None:
    requirements = {id: DEFAULT_SPECIFICATION.requirements[id] for id in ("JOIN-01", "TIMER-16", "TIMER-17")}
    left_out = {"JOIN-01": "no scenario shows it", "TIMER-16": "needs an initial delay"}
    assert chargeable_requirements(requirements, left_out, frozenset({"TIMER-17"})) == {"JOIN-01"}


def test_a_violated_prerequisite_names_what_a_schedule_finds() -> None:
    early = replace(LATE, requirements=("JOIN-26",), kind="round ends early ('JOIN-26',)")
    schedule = run_of("", violation=early)
    (found,) = violations_in(schedule.verdict)
    runs = [run_of("JOIN-44", violation=replace(early, rule="timer.rebalance")), run_of("JOIN-43", violation=early)]
    causes = RootCauses([*runs, schedule])
    assert found.requirement == "JOIN-26" and causes.name_cause(found, schedule) == "JOIN-44"


def test_what_nothing_explains_follows_from_an_error_that_is_known_to_be_wrong() -> None:
    """A commit is refused as if the group were gone, and the next generation is not its first."""
    header, events = open_trace(RECORDED_ON_KFAKE / "join-after-a-refused-commit.jsonl")
    seen = tuple(events)
    schedule = replace(run_of(""), header=header, events=seen, verdict=judge(header, seen))
    (found,) = violations_in(schedule.verdict)
    refusal = FieldDifference("error_code", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION")
    of_commits = run_of("COMMIT-05", violation=replace(COMMIT, differences=(refusal,)))
    of_heartbeats = run_of("HB-04", violation=replace(COMMIT, api="Heartbeat", kind="", differences=(refusal,)))
    assert found.requirement == UNCLASSIFIED
    assert note_of(RootCauses([schedule, of_commits, of_heartbeats]), found, schedule) == "blocked by COMMIT-05"
    assert note_of(RootCauses([schedule, of_heartbeats]), found, schedule) == ""


def test_what_nothing_explains_follows_from_the_same_error_in_a_scenario() -> None:
    refusal = FieldDifference("error_code", "NONE", "UNSUPPORTED_VERSION")
    request = Event(1, 0, 1, "D", Kind.REQUEST, "JoinGroup", 6, {"group_id": "g"})
    response = Event(2, 1, 1, "D", Kind.RESPONSE, "JoinGroup", 6, {"error_code": Error.UNSUPPORTED_VERSION}, of=1)
    early = replace(LATE, sequence=1, requirements=(), kind="strange refusal")
    schedule = replace(run_of("", violation=early), events=(request, response))
    (found,) = violations_in(schedule.verdict)
    of_joins = run_of("JOIN-55", violation=replace(COMMIT, api="JoinGroup", differences=(refusal,)))
    assert found.requirement == UNCLASSIFIED
    assert note_of(RootCauses([schedule, of_joins]), found, schedule) == "blocked by JOIN-55"


def test_what_comes_after_a_timer_that_fires_otherwise_follows_from_that() -> None:
    refused = replace(COMMIT, api="DeleteGroups", rule="delete.empty", requirements=("ADMIN-18",), state="Stable")
    schedule = run_of("", violation=refused)
    after_timer = replace(schedule, verdict=replace(schedule.verdict, rules={"timer.sync": 1}))
    (found,) = violations_in(schedule.verdict)
    passed, sync_timer = run_of("ADMIN-18", CheckStatus.PASS), run_of("TIMER-12")
    causes = RootCauses([passed, sync_timer, schedule, after_timer])
    assert note_of(causes, found, schedule) == INCIDENTAL_NOTE
    assert note_of(causes, found, after_timer) == "blocked by TIMER-12"
    # The timer fired after all that is certain, as the diagnosis has it.
    (unsettled,) = violations_in(TraceVerdict((replace(refused, timers=("timer.sync",)),), (), {}))
    assert note_of(causes, unsettled, schedule) == "blocked by TIMER-12"
    session_timer = RootCauses([passed, run_of("TIMER-01"), after_timer])
    assert note_of(session_timer, found, after_timer) == INCIDENTAL_NOTE


def test_what_does_not_depend_on_the_state_of_a_group_follows_from_nothing_in_it() -> None:
    lookup = replace(COMMIT, api="FindCoordinator", rule="find.coordinator", requirements=("FIND-03",), kind="node")
    elsewhere = replace(run_of("FIND-01", CheckStatus.PASS), verdict=TraceVerdict((lookup,), (), {}))
    of_a_group = replace(elsewhere, verdict=TraceVerdict((replace(lookup, state="Stable"),), (), {}))
    others = [run_of("FIND-03", CheckStatus.PASS), run_of("ADMIN-11", violation=replace(COMMIT, kind="rows"))]
    for run, note in ((elsewhere, ""), (of_a_group, INCIDENTAL_NOTE)):
        (found,) = violations_in(run.verdict)
        assert note_of(RootCauses([*others, run]), found, run) == note


def test_a_timer_counts_that_fired_just_before_the_wrong_response() -> None:
    """A follower of kfake that never syncs is kept until its session is over, so that its group cannot be deleted."""
    header, events = open_trace(RECORDED_ON_KFAKE / "delete-after-a-missed-sync.jsonl")
    seen = tuple(events)
    schedule = replace(run_of(""), header=header, events=seen, verdict=judge(header, seen))
    (found,) = violations_in(schedule.verdict)
    assert found.requirement == "ADMIN-18" and "timer.sync" not in schedule.verdict.rules
    causes = RootCauses([run_of("ADMIN-18", CheckStatus.PASS), run_of("TIMER-12"), schedule])
    assert note_of(causes, found, schedule) == "blocked by TIMER-12"


# --- in a run ------------------------------------------------------------------------------------------------------


def state_after(*schedules: tuple[str, ScenarioRun], scenario: ScenarioRun) -> RunState:
    """The state of a run in which a scenario failed, and then schedules by these names."""
    selection = select_scenarios((), tuple(CATALOGUE.values()), frozenset(), smoke=False)
    state = RunState(Plan(BUNDLED), selection, lambda event: None)
    state.runs = [scenario]
    state.statistics = RunStatistics()
    for name, run in schedules:
        schedule = Schedule(name, (), ())
        for each in violations_in(run.verdict):
            state.statistics.candidate_failures[each.requirement] = [Candidate(schedule, run)]
    return state


def test_what_a_confirmed_scenario_shows_by_the_same_wrong_answer_is_not_shrunk() -> None:
    refused = replace(COMMIT, requirements=("COMMIT-19",), kind="refused on another path")
    shown = run_of("COMMIT-19", violation=refused)
    same, other = run_of("", violation=COMMIT), run_of("", violation=replace(COMMIT, rule="commit.empty"))
    state = state_after(("same", same), scenario=shown)
    assert state.requirements_to_shrink() == ([], ["COMMIT-01"]), "nothing is confirmed so far"
    state.confirm_run(shown)
    assert state.requirements_to_shrink() == ([], [])
    state = state_after(("other", other), scenario=shown)
    state.confirm_run(shown)
    assert state.requirements_to_shrink() == ([], ["COMMIT-01"]), "another rule refuses it"


def test_what_follows_from_no_scenario_is_shrunk_first() -> None:
    timer = run_of("", violation=replace(LATE, requirements=("TIMER-09",), kind="timer"))
    refused = run_of("", violation=COMMIT)
    state = state_after(("refused", refused), ("timer", timer), scenario=run_of("COMMIT-19", violation=COMMIT))
    assert state.requirements_to_shrink() == (["TIMER-09"], ["COMMIT-01"])


def failed_requirements(*, smoke: bool) -> list[str]:
    """What fails on the bundled coordinator, as it is patched, in scenarios and random schedules."""
    run = BundledRun(Plan(BUNDLED, schedules=50, smoke=smoke, shrink_seconds=20), Profile())
    chosen = select_requirements(("COMMIT-*", "HB-*", "JOIN-*"))
    report = asyncio.run(run.run(chosen, lambda event: None))
    return [result.id for result in report.results if result.verdict is Verdict.FAIL]


@pytest.mark.parametrize("smoke", [False, True])
def test_what_schedules_find_follows_from_what_a_scenario_shows(smoke: bool) -> None:
    with COORDINATOR_BUGS["BUG-06"].activate():
        assert failed_requirements(smoke=smoke) == ["COMMIT-19"]


def test_a_shortest_run_without_schedules_asks_no_more() -> None:
    with COORDINATOR_BUGS["BUG-06"].activate():
        run = BundledRun(Plan(BUNDLED, smoke=True), Profile())
        report = asyncio.run(run.run(select_requirements(("COMMIT-*",)), lambda event: None))
    assert {result.verdict for result in report.results} <= {Verdict.PASS, Verdict.NOT_OBSERVED, Verdict.UNSUPPORTED}


# --- in the zoo ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bug", ["BUG-06", "BUG-12", "BUG-46"])
def test_a_bug_is_named_after_a_requirement_that_forbids_it(bug: str) -> None:
    row = RECORDED[bug]
    found = run_hunt(HuntTask(bug, row.found_by, row.seed, 60.0, 1.0, row.chunk))
    assert found.requirement in row.breaks
    assert run_hunt(HuntTask(bug, row.found_by, row.seed, 60.0, 0.0, row.chunk)).requirement not in row.breaks
