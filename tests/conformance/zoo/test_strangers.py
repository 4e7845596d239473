"""Strangers: drawn by a seed, tested in a process, held against what they have, and shrunk."""

from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest

from fencepost.adapters.classic.group import Group
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.zoo import strangers_names
from fencepost.conformance.classic.zoo.strangers import DIFFERENCES
from fencepost.conformance.classic.zoo.strangers_faults import (
    change_errors,
    change_field,
    empty_value,
    fault_pools,
    has_error,
    rewrite_fault,
    rewrite_responses,
    send_changed,
    shift_number,
)
from fencepost.conformance.classic.zoo.strangers_names import names_of
from fencepost.conformance.classic.zoo.strangers_run import (
    CLASSIC_STRANGERS,
    forms_groups,
    make_run,
    names_beside,
    play_stranger,
    shows_on,
)
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.subject import Selection
from fencepost.conformance.zoo import strangers_run
from fencepost.conformance.zoo.fault import INVENTED, Fault, Patch, Side
from fencepost.conformance.zoo.strangers import (
    HERE,
    Disguise,
    FaultNames,
    Judged,
    Share,
    Stranger,
    StrangerKind,
    StrangerOutcome,
    count_kit_mistakes,
    draw_stranger,
    figures_of,
    hold_against,
    measure,
    play_named,
    row_of,
    shrink_stranger,
)
from fencepost.conformance.zoo.strangers_run import Bounds, Measurement, Slot
from fencepost.model.errors import Error

FEW = ("JOIN-01", "JOIN-06", "HB-03")
FAULT: Fault[Any] = Fault("A", Side.COORDINATOR, (), INVENTED, lambda patch: None, None, "")
PLAIN = Stranger(1, 0, (), (), only=FEW)


NAMES = {
    "A": FaultNames(frozenset({"X-01", "X-02"}), frozenset({"X-03"})),
    "B": FaultNames(frozenset({"Y-01"})),
    "together": FaultNames(frozenset(), frozenset({"W-01"})),
}


def judge_as(*faults: str, failed: tuple[str, ...] = (), **told: Any) -> Judged:
    """The outcome of a run on a stranger with these faults, held against what is known of them."""
    return hold_against(StrangerOutcome(Stranger(1, 0, (), faults), failed=failed, names=NAMES, **told))


ON_NETWORK_ONLY = ("no DescribeConfigs", "CreateTopics accepts what exists")


# --- drawing


def test_a_stranger_does_not_depend_on_the_others() -> None:
    drawn = [draw_stranger(CLASSIC_STRANGERS, 5, number, 3) for number in range(40)]
    assert drawn[17] == draw_stranger(CLASSIC_STRANGERS, 5, 17, 3) != draw_stranger(CLASSIC_STRANGERS, 6, 17, 3)
    assert len({str(each) for each in drawn}) > 30
    assert {len(each.faults) for each in drawn} >= {0, 1} and max(len(each.faults) for each in drawn) <= 8


# --- the classic strangers


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda each: each.name)
def test_each_difference_can_be_put_in(difference: Any) -> None:
    value = difference.values[0 if difference.name == "no DescribeConfigs" else -1]
    outcome = CLASSIC_STRANGERS.play(replace(PLAIN, differences=((difference.name, value),)))
    assert (outcome.ended, outcome.failed, outcome.undecided) == ("", (), {})
    assert outcome.passed == len(FEW)


@pytest.fixture
def few_scenarios(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Names of faults are measured by the scenarios of a few requirements."""
    few = tuple(each for each in ALL if {"JOIN-46", "JOIN-48"} & set(each.requirements))
    monkeypatch.setattr(strangers_names, "compared_scenarios", lambda: few)
    names_of.cache_clear()
    yield
    names_of.cache_clear()


def test_a_fault_is_found_and_taken_out_again(few_scenarios: None) -> None:
    faulty = replace(PLAIN, faults=("BUG-16",), only=("JOIN-46", "JOIN-48"))
    judged = hold_against(CLASSIC_STRANGERS.play(faulty))
    assert judged.found == ("BUG-16",) and judged.is_first_right and not judged.outside
    assert not CLASSIC_STRANGERS.play(replace(faulty, faults=())).failed


@pytest.mark.parametrize(("fault", "is_usable"), [("SyncGroup", False), ("Heartbeat", True)])
def test_a_stranger_may_form_no_group(fault: str, is_usable: bool) -> None:
    with Patch() as patch:
        rewrite_responses(fault, send_changed(lambda body: body | {"error_code": Error.UNKNOWN_SERVER_ERROR}))(patch)
        assert forms_groups(make_run(PLAIN, Disguise(patch))) is is_usable


def test_a_fault_that_something_else_hides_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    few = tuple(each for each in ALL if "ADMIN-25" in each.requirements)
    monkeypatch.setattr(BundledRun, "select", lambda self, *given: Selection((), few, {}))
    fault = "OffsetDelete GROUP_SUBSCRIBED_TO_TOPIC told as NONE"
    assert shows_on(PLAIN, (), fault)
    assert not shows_on(replace(PLAIN, differences=(("missing APIs", "OffsetDelete"),)), (), fault)
    refuse_joins = send_changed(lambda body: body | {"error_code": Error.UNKNOWN_SERVER_ERROR})
    nobody_joins = rewrite_fault("nobody joins", rewrite_responses("JoinGroup", refuse_joins))
    assert not shows_on(PLAIN, (nobody_joins,), fault)


def test_names_are_those_of_the_response_that_differs_first(few_scenarios: None) -> None:
    pools = fault_pools()
    late, blind = pools["rewrites"]["JoinGroup UNKNOWN_MEMBER_ID told late"], next(iter(pools["mutants"].values()))
    bug = replace(pools["bugs"]["BUG-16"], breaks=())
    names = names_of((bug,))
    assert names is not None and "JOIN-48" in names.own
    names = names_of((blind,))
    assert names is not None and "ADMIN-02" in names.own  # by the rule of the response, as no scenario checks it
    assert names_of((late,)) is None  # nothing in these scenarios shows it


@pytest.mark.parametrize(
    ("fault", "scenarios_of", "named", "not_named"),
    [
        ("offsets.Offsets.all_topics: never: group is not None -> False", "FETCH-04", "FETCH-04", "FETCH-06"),
        ("offsets.Offsets.handle_delete: always: error -> True", "ADMIN-29", "ADMIN-29", "ADMIN-23"),
        (
            "rebalance.Rebalancer.add_member: always: group.state is State.PREPARING and group.is_initial_rebalance"
            " -> True",
            "TIMER-19",
            "TIMER-19",
            "LEAVE-04",
        ),
    ],
    ids=["topics that are missing", "rows with errors that are missing", "time of a timer"],
)
def test_a_fault_is_named_by_what_speaks_of_what_differs(
    monkeypatch: pytest.MonkeyPatch, fault: str, scenarios_of: str, named: str, not_named: str
) -> None:
    few = tuple(each for each in ALL if scenarios_of in each.requirements)
    monkeypatch.setattr(strangers_names, "compared_scenarios", lambda: few)
    names_of.cache_clear()
    names = names_of((fault_pools()["mutants"][fault],))
    names_of.cache_clear()
    assert names is not None
    assert named in names.own | names.consequences
    assert not_named not in names.own | names.consequences


@pytest.mark.parametrize(
    ("differences", "asked"),
    [
        ((("slow responses", 400), ("answers-late", "")), ("SYNC-04", "COMMIT-04", "ADMIN-02", "ADMIN-04")),
        ((("initial delay", 0), ("no DescribeConfigs", "not told")), ("TIMER-09", "TIMER-13", "TIMER-26")),
    ],
    ids=["slow in every version", "no initial delay, and none told"],
)
def test_nobody_is_overdue_because_of_the_scenario(differences: Any, asked: tuple[str, ...]) -> None:
    outcome = play_stranger(Stranger(1, 0, differences, (), only=asked))
    assert (outcome.failed, outcome.undecided, outcome.passed) == ((), {}, len(asked))


def test_faults_may_have_other_names_beside_the_differences_of_a_stranger(few_scenarios: None) -> None:
    bug, asked = fault_pools()["bugs"]["BUG-16"], []
    beside = replace(PLAIN, differences=(("group size", 8),), faults=(bug.id,))

    def ask_beside(stranger: Stranger, faults: Any) -> FaultNames | None:
        asked.append(stranger)
        return names_beside(stranger, faults)

    def play(stranger: Stranger, faults: Any) -> StrangerOutcome:
        return StrangerOutcome(stranger, failed=("JOIN-48", "GEN-01"))

    outcome = play_named(beside, lambda id: bug, names_of, play, lambda *given: True, ask_beside)
    assert asked == [beside] and "JOIN-48" in outcome.names[HERE].own
    assert hold_against(outcome).outside == ("GEN-01",)
    told = replace(outcome, names={**outcome.names, HERE: FaultNames(frozenset({"GEN-01"}))})
    assert not hold_against(told).outside


def test_a_recommendation_that_is_kept_without_the_fault_alone_shows_it() -> None:
    bug = fault_pools()["bugs"]["BUG-16"]
    stranger, names = replace(PLAIN, faults=(bug.id,)), FaultNames(frozenset({"GEN-01", "GEN-02"}))

    def play(stranger: Stranger, faults: Any) -> StrangerOutcome:
        return StrangerOutcome(stranger, remarked=frozenset({"GEN-01", "GEN-02"} if faults else {"GEN-01"}))

    outcome = play_named(stranger, lambda id: bug, lambda faults: names, play, lambda *given: True)
    assert outcome.remarked == {"GEN-02"} and hold_against(outcome).found == (bug.id,)
    assert hold_against(replace(outcome, remarked=frozenset())).missed == (bug.id,)


def test_what_no_requirement_forbids_and_what_cannot_run_are_no_faults(few_scenarios: None) -> None:
    """The form of a member id is free, and a coordinator that breaks whatever it is asked cannot be played."""
    mutants = fault_pools()["mutants"]
    assert (
        names_of((mutants["membership.Joining.join_without_id: always: join.request.client_id or '' -> True"],)) is None
    )
    broken = mutants["timers.Timers.next_deadline: always: self._heap and (not self._is_live(self._heap[0])) -> True"]
    assert names_of((broken,)) is None


def test_a_mutant_is_put_into_the_shipped_function() -> None:
    mutant = fault_pools()["mutants"]["group.Group.accepts: always: self.state is State.EMPTY -> True"]
    shipped = Group.accepts
    with mutant.activate():
        assert Group.accepts is not shipped
    assert Group.accepts is shipped


def test_rewrites_change_every_row_of_a_response() -> None:
    body = {"groups": [{"error_code": 25, "id": "g", "rows": [{"error_code": 25, "n": -1}, {"error_code": 0, "n": 3}]}]}
    rows = change_field(body, ("groups", "rows", "n"), shift_number)["groups"][0]["rows"]
    assert [row["n"] for row in rows] == [-1, 10]
    assert change_field(body, ("groups", "id"), empty_value)["groups"][0]["id"] == ""
    assert has_error(body, 25) and not has_error(change_errors(body, 25, 22), 25)
    assert change_field(body, ("nothing", "here"), empty_value) == body


@pytest.mark.slow
def test_a_stranger_over_the_network() -> None:
    differences = tuple((each.name, each.values[-1]) for each in DIFFERENCES if each.name in ON_NETWORK_ONLY)
    fault = "Heartbeat ILLEGAL_GENERATION told as UNKNOWN_MEMBER_ID"
    outcome = CLASSIC_STRANGERS.play(replace(PLAIN, differences=differences, faults=(fault,), is_remote=True))
    assert (outcome.ended, outcome.failed) == ("", ()) and outcome.passed == len(FEW)
    outcome = CLASSIC_STRANGERS.play(replace(PLAIN, faults=(fault,), only=("HB-04",), is_remote=True))
    assert outcome.failed == ("HB-04",)


# --- what an outcome is worth


def test_a_failure_under_the_name_of_no_fault_is_outside() -> None:
    judged = judge_as("A", "B", failed=("Z-01", "X-02"))
    assert (judged.found, judged.missed, judged.outside, judged.is_first_right) == (("A",), ("B",), ("Z-01",), False)
    assert judge_as("B", failed=("Y-01",)).is_first_right


def test_what_follows_from_a_fault_is_neither_its_own_nor_outside() -> None:
    judged = judge_as("A", failed=("X-03", "W-01", "UNCLASSIFIED"))
    assert (judged.found, judged.outside, judged.consequences) == (("A",), (), ("X-03", "W-01"))
    assert judged.is_first_right is False


def test_what_a_stranger_does_not_offer_hides_its_faults() -> None:
    judged = judge_as("B", closed=frozenset({"Y-01"}))
    assert (judged.found, judged.missed, judged.hidden) == ((), (), ("B",))


def test_figures_and_kinds_of_failures() -> None:
    judged = [
        judge_as(passed=9, undecided={"Z-02": "blocked"}),
        judge_as(failed=("Z-01",), passed=9),
        judge_as("A", failed=("X-01",), passed=4),
        judge_as("A", "B", failed=("Y-01",), passed=4),
        judge_as("B", failed=("Y-01",), passed=1, undecided={"Z-02": "blocked"}, forms_no_group=True),
        hold_against(StrangerOutcome(PLAIN, "no end within 60 s of one core")),
    ]
    shares = {name: (share.hits, share.total) for name, share in measure(judged).items()}
    undecided = [(1, 20), (0, 10), (1, 3), (1, 3)]
    assert list(shares.values()) == [(5, 6), (1, 2), (1, 4), (0, 4), *undecided, (2, 2), (1, 2), (2, 2), (1, 1)]
    failures = {str(failure): strangers for failure, strangers in count_kit_mistakes(judged).items()}
    assert failures == {"did not end": 1, "false alarm Z-01": 1, "undecided Z-02": 2}
    assert figures_of(judged)["runs that ended"]["hits"] == 5
    assert row_of(judged[1])["outside"] == {"Z-01": ""}


def test_the_interval_of_wilson() -> None:
    assert [round(end, 4) for end in Share(9, 10).interval] == [0.5958, 0.9821]
    assert Share(0, 0).interval == (0.0, 1.0)


# --- runs that do not end, and shrinking


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BrokenProcessPool(), f"no end within {strangers_run.Bounds().cpu} s of one core"),
        (None, "no end within 3600 s"),
        (KeyError("missing"), "KeyError: 'missing'"),
    ],
)
def test_a_run_that_takes_too_long_or_fails_did_not_end(error: Exception | None, reason: str) -> None:
    future: Future[StrangerOutcome] = Future()
    if error is not None:
        future.set_exception(error)
    slot = Slot(stranger=PLAIN, future=future, begun=monotonic() - 4_000)
    outcome = slot.take(Bounds())
    assert outcome is not None and outcome.ended == reason
    assert slot.future is None
    slot.pool.end()


def test_the_smallest_stranger_that_shows_something() -> None:
    values: tuple[tuple[str, Any], ...] = (("nodes", 3), ("throttled", 30_000), ("bursts", 300))
    stranger = Stranger(1, 0, values, ("BUG-07", "BUG-16"), schedules=5)

    def needs(each: Stranger) -> bool:
        return "BUG-16" in each.faults and "throttled" in dict(each.differences)

    assert shrink_stranger(CLASSIC_STRANGERS, stranger, "JOIN-01", needs) == Stranger(
        1, 0, (("throttled", 5),), ("BUG-16",), only=("JOIN-01",)
    )


def test_a_measurement_says_how_far_it_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = StrangerKind((), lambda: {"pool": {"A": FAULT}}, lambda *given: True, StrangerOutcome, lambda: ())
    monkeypatch.setattr(strangers_run, "stranger_kind", lambda side: kind)

    def stop_after_two(strangers: Any, workers: int, bounds: Bounds) -> Any:
        yield from map(StrangerOutcome, strangers[:2])
        raise KeyboardInterrupt

    monkeypatch.setattr(strangers_run, "play_strangers", stop_after_two)
    shown: list[Any] = []
    measurement = Measurement(3, 5, 0, 1)
    measurement.run(shown.append)
    assert measurement.is_cut_short and len(measurement.judged) == 2
    assert [(each.done, each.total) for each in shown] == [(1, 5), (2, 5)]
