"""Coverage of the model by a target, and how near the schedules came to the rest."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.classic.schedules.protocol import (
    ClassicSchedules,
    ScheduleDraft,
    coverage_goals,
    generate_schedules,
)
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.reports.report import render_report
from fencepost.conformance.results import Coverage, Report
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.engine import RunStatistics, describe_nearest, measure_coverage
from fencepost.conformance.run.engines import BatchWorker
from fencepost.conformance.run.play import Bench, target_bench
from fencepost.conformance.run.schedule import BatchSpec, ScheduleScope
from fencepost.model.classic.catalogue import RULES
from fencepost.traces.verdict import Transition
from tests.conformance.schedules.planted_faults import FAULTS

GROUND = ScheduleScope(BUNDLED_SETTINGS)
MISSED_TRANSITION = Transition("stable with one member", "Heartbeat by leader", "heartbeat.stable", "stable")
COVERAGE = Coverage(
    schedules=3,
    undecided={"schedule-0-1-2": "the search grew too large"},
    transitions={"empty / Fetch / fetch.offsets / empty": 4},
    missed={"empty / List / list.group / empty": "the state was there for 4 steps, the event came 0 times"},
    rules={"list.group": "empty, List: never"},
)


def test_predicted_transitions_are_known() -> None:
    foretold = {each for drawn in generate_schedules(GROUND, 900, 0, 25) for each in drawn.transitions}
    assert len(foretold - coverage_goals().transitions) <= len(foretold) // 20


def test_coverage_counts_the_transitions_of_a_run() -> None:
    tally = RunStatistics()
    protocol = ClassicSchedules(GROUND)
    worker = BatchWorker(target_bench(protocol, partial(InProcessTarget, BUNDLED_SETTINGS)))
    for outcome in worker.run_batch(BatchSpec(protocol, 1, 0, 15)):
        tally.add_result(outcome)
    found = measure_coverage(tally, coverage_goals())
    assert (found.schedules, found.undecided) == (15, {})
    assert sum(found.transitions.values()) == sum(tally.transitions.values())
    assert not found.transitions.keys() & found.missed.keys()
    assert {str(each) for each in coverage_goals().transitions} <= found.transitions.keys() | found.missed.keys()
    assert {Transition.parse(each).rule for each in found.transitions} <= tally.rules.keys()
    assert found.rules.keys() == RULES.keys() - tally.rules.keys()
    assert all(found.missed.values()) and all(found.rules.values())


def test_how_near_a_schedule_came() -> None:
    def count_seen(*each: Transition) -> Counter[Transition]:
        return Counter(each)

    other_rule = Transition(MISSED_TRANSITION.state, MISSED_TRANSITION.event, "heartbeat.other-generation", "stable")
    other_event = Transition(MISSED_TRANSITION.state, "List", "list.group", "stable")
    other_state = Transition("empty", MISSED_TRANSITION.event, "heartbeat.empty", "empty")
    assert describe_nearest(MISSED_TRANSITION, count_seen(other_rule, other_event)) == (
        "the state met the event, but then came heartbeat.other-generation (1)"
    )
    assert describe_nearest(MISSED_TRANSITION, count_seen(other_event, other_state)) == (
        "the state was there for 1 steps, the event came 1 times, never both at once"
    )
    assert (
        describe_nearest(MISSED_TRANSITION, count_seen(other_state))
        == "the state was never reached, the event came 1 times"
    )


def test_nearest_transitions_come_first() -> None:
    tally = RunStatistics()
    tally.transitions[Transition("empty", "Fetch", "fetch.offsets", "empty")] += 1
    ranks = [
        text.startswith("the state was never") for text in measure_coverage(tally, coverage_goals()).missed.values()
    ]
    assert ranks == sorted(ranks)


def test_transitions_read_as_they_are_written() -> None:
    assert Transition.parse(str(MISSED_TRANSITION)) == MISSED_TRANSITION


def test_report_has_the_coverage_in_brief_and_json_all_of_it() -> None:
    report = Report({"name": "bundled"}, 0, (), coverage=COVERAGE)
    assert from_json(to_json(report)) == report
    text = render_report(report)
    assert "Coverage of the model" in text
    assert "1 of 2 known ones seen" in text
    assert "empty / List / list.group / empty: the state was there" in text
    assert "schedule-0-1-2: the search grew too large" in text


def test_report_without_schedules_has_no_coverage() -> None:
    assert '"coverage"' not in to_json(Report({"name": "bundled"}, 0, ()))


# --- The interactions as a Hypothesis state machine, which holds a coordinator against the model.

SCOPE = ScheduleScope(BUNDLED_SETTINGS, cuts=True)
Item = TypeVar("Item")


class HypothesisDraw:
    """Draws values as Hypothesis does, which shrinks them."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def number(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def choose(self, options: Sequence[Item]) -> Item:
        return self.data.draw(st.sampled_from(options))

    def choose_some(self, options: Sequence[Item], most: int | None = None) -> list[Item]:
        return self.data.draw(
            st.lists(
                st.sampled_from(options), min_size=1, max_size=min(most or len(options), len(options)), unique=True
            )
        )


class InteractionMachine(RuleBasedStateMachine):
    """Draws one schedule and plays it on a bench, which a subclass names."""

    bench: Bench
    draft: ScheduleDraft | None = None

    @initialize(data=st.data())
    def form_groups(self, data: st.DataObject) -> None:
        self.draft = ScheduleDraft(HypothesisDraw(data), SCOPE)
        self.draft.form_groups()

    @rule(data=st.data())
    def interact(self, data: st.DataObject) -> None:
        assert self.draft is not None
        self.draft.builder.draw = HypothesisDraw(data)
        self.draft.add_interaction()

    def teardown(self) -> None:
        if self.draft is None:
            return
        try:
            schedule = self.draft.finish("machine").schedule
        finally:
            self.draft.simulation.close()  # also if Hypothesis gives the schedule up
        verdict = self.bench.play(schedule).verdict
        assert (verdict.violations, verdict.inconclusive) == ((), ())


# --- Hypothesis draws interactions, too: the bundled coordinator conforms, and a fault is found and shrunk.

OPTIONS = settings(
    max_examples=15,
    stateful_step_count=10,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class BundledMachine(InteractionMachine):
    """Plays on the bundled coordinator."""

    bench = target_bench(ClassicSchedules(SCOPE), partial(InProcessTarget, BUNDLED_SETTINGS))


@pytest.mark.slow
def test_bundled_coordinator_conforms_whatever_hypothesis_draws() -> None:
    run_state_machine_as_test(BundledMachine, settings=OPTIONS)


@pytest.mark.slow
def test_hypothesis_finds_a_fault_too() -> None:
    with FAULTS["incomplete_plan_keeps_assignments"].activate(), pytest.raises(AssertionError):
        run_state_machine_as_test(BundledMachine, settings=settings(OPTIONS, max_examples=200))
