"""After a wrong response the judge goes on from what the target has told: one deviation is one cause."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.conformance.classic.zoo.bugs.deviations import DEVIATIONS
from fencepost.conformance.classic.zoo.strangers_run import fault_with, play_faulty
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.subject import select_requirements
from fencepost.conformance.zoo.fault import Patch
from fencepost.conformance.zoo.strangers import Stranger
from fencepost.model.errors import Error
from fencepost.traces.events import Order
from fencepost.traces.judge.groups import group_judge
from fencepost.traces.verdict import CheckStatus
from tests.support.faulty_coordinators import Change, altering_coordinator, replace_error
from tests.support.trace_builder import OneMemberTrace, join_body, sync_response


def show_otherwise(api: str, fields: Mapping[str, Any]) -> Change:
    """Other values in the successful responses of an API."""

    def change(request: Request, response: Response) -> Response:
        if request.api != api or response.body["error_code"]:
            return response
        known = {name: value for name, value in fields.items() if name in response.body}
        return replace(response, body={**response.body, **known})

    return change


def report_on(change: Change) -> Report:
    """The report on a coordinator whose responses go through a change."""
    coordinator = altering_coordinator(change)
    run = BundledRun(Plan(BUNDLED), Profile(), lambda settings: InProcessTarget(settings, make_coordinator=coordinator))
    return asyncio.run(run.run(select_requirements(()), lambda event: None))


def ids_with(report: Report, verdict: Verdict) -> set[str]:
    """The requirements with a verdict."""
    return {result.id for result in report.results if result.verdict is verdict}


@pytest.mark.parametrize(
    ("change", "violated", "most_undecided"),
    [
        (show_otherwise("JoinGroup", {"protocol_type": None}), {"JOIN-40", "GEN-12"}, 0),
        (show_otherwise("JoinGroup", {"skip_assignment": True}), {"STATIC-12"}, 0),
        (show_otherwise("JoinGroup", {"protocol_name": ""}), {"GEN-04", "GEN-09", "GEN-10", "JOIN-36"}, 8),
        (show_otherwise("SyncGroup", {"protocol_type": None, "protocol_name": None}), {"SYNC-21"}, 0),
        (show_otherwise("SyncGroup", {"assignment": b""}), {"SYNC-12", "SYNC-14", "SYNC-15", "GEN-16"}, 5),
        (replace_error("SyncGroup", 16, 25), {"SYNC-02", "SYNC-03"}, 0),
        (replace_error("LeaveGroup", 0, 25), {"LEAVE-02", "LEAVE-03"}, 0),
    ],
)
def test_what_does_not_depend_on_a_wrong_response_stays_decided(
    change: Change, violated: set[str], most_undecided: int
) -> None:
    report = report_on(change)
    assert ids_with(report, Verdict.FAIL) <= violated
    assert ids_with(report, Verdict.FAIL)
    assert len(ids_with(report, Verdict.INCONCLUSIVE)) <= most_undecided


LEADER_ROUND = {
    "error_code": 0,
    "generation_id": 0,
    "protocol_name": "p",
    "leader": "a",
    "member_id": "a",
    "members": [{"member_id": "a", "metadata": b"m"}],
}


def show_the_round_before(request: Request, response: Response) -> Response:
    """A description that tells a protocol and metadata although a rebalance is in progress."""
    if request.api != "DescribeGroups":
        return response
    rows = [
        {**row, "protocol_data": "range", "members": [{**each, "member_metadata": b"x"} for each in row["members"]]}
        if row["group_state"] == "PreparingRebalance"
        else row
        for row in response.body["groups"]
    ]
    return replace(response, body={**response.body, "groups": rows})


def test_the_name_of_a_state_is_believed_rather_than_what_is_shown_of_it() -> None:
    assert ids_with(report_on(show_the_round_before), Verdict.FAIL) == {"ADMIN-04"}


def test_what_is_beyond_doubt_is_followed_however_often_there_was_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_judge, "MAX_DOUBTS", -1)
    assert ids_with(report_on(show_otherwise("JoinGroup", {"skip_assignment": True})), Verdict.FAIL) == {"STATIC-12"}


def test_who_is_listed_is_believed_rather_than_what_is_told_of_them() -> None:
    """Timers that are late leave open whether a member came before the end of a round."""
    fault = "JoinGroup members.group_instance_id emptied"
    stranger = Stranger(1, 0, (("coarse timers", 200),), (fault,), only=("JOIN-55", "STATIC-06"))
    outcome = play_faulty(stranger, (fault_with(fault),))
    assert (outcome.failed, outcome.undecided) == (("JOIN-55",), {})


@pytest.mark.parametrize(
    ("fault", "environment", "only", "failed"),
    [
        ("LeaveGroup UNKNOWN_MEMBER_ID told late", (), ("LEAVE-03", "LEAVE-16"), {"LEAVE-03"}),
        ("JoinGroup members emptied", (("slow responses", 400),), ("JOIN-37", "HB-05", "HB-07"), {"JOIN-37"}),
    ],
)
def test_a_wrong_list_tells_neither_a_generation_nor_that_members_are_gone(
    fault: str, environment: tuple[tuple[str, int], ...], only: tuple[str, ...], failed: set[str]
) -> None:
    outcome = play_faulty(Stranger(1, 0, environment, (fault,), only=only), (fault_with(fault),))
    assert (set(outcome.failed), outcome.undecided) == (failed, {})


def test_the_round_that_a_response_tells_of_has_come_too_early() -> None:
    """A replacement is told the next generation before the parked JoinGroup of its predecessor is told anything."""
    fault = "replaced-static-member-counts-twice"
    differences = (("environment", "slow offsets"), ("answers-newest-first", ""))
    only = ("STATIC-05", "STATIC-08", "JOIN-26")
    outcome = play_faulty(Stranger(1, 0, differences, (fault,), only=only), (fault_with(fault),))
    assert outcome.failed == ("JOIN-26",)


def test_a_node_that_is_no_broker_is_not_asked_for_its_groups() -> None:
    fault = "FindCoordinator coordinators.node_id shifted"
    outcome = play_faulty(Stranger(1, 0, (), (fault,), only=("ADMIN-11", "FIND-04")), (fault_with(fault),))
    assert (outcome.failed, set(outcome.undecided)) == (("FIND-04",), {"ADMIN-11"})


@pytest.mark.parametrize(
    ("faults", "environment", "only", "failed"),
    [
        (("group.Group.add: never: not self.members -> False",), (), ("JOIN-23", "JOIN-40"), {"JOIN-40"}),
        (("no-member-id-required", "JoinGroup leader emptied"), (), ("JOIN-30", "GEN-05"), {"GEN-05"}),
        (
            ("tells-lower-generations", "JoinGroup leader emptied"),
            (("initial delay", 0), ("slow responses", 400)),
            ("JOIN-04", "GEN-05"),
            {"GEN-05"},
        ),
    ],
    ids=["group of no type", "round that nobody saw end", "round of two wrong fields"],
)
def test_the_explanation_with_the_fewest_wrong_fields_gives_the_name(
    faults: tuple[str, ...], environment: tuple[tuple[str, int], ...], only: tuple[str, ...], failed: set[str]
) -> None:
    outcome = play_faulty(Stranger(1, 0, environment, faults, only=only), tuple(map(fault_with, faults)))
    assert set(outcome.failed) == failed


def test_a_wrong_generation_is_followed() -> None:
    tape = OneMemberTrace(Order.TOTAL)
    tape.join(10, 8)
    tape.sync(20, 8, sync_response(b"plan"))
    tape.heartbeat(30, Error.NONE, generation=8)
    (violation,) = tape.verdict().violations
    assert (violation.api, violation.fields, violation.requirements) == ("JoinGroup", ("generation",), ("GEN-01",))


def test_a_static_newcomer_that_is_told_an_id_comes_in_with_it() -> None:
    with Patch() as patch:
        DEVIATIONS["static-newcomer-needs-id"].apply(patch)
        report = report_on(lambda request, response: response)
    assert ids_with(report, Verdict.FAIL) == {"STATIC-01", "JOIN-14"}
    assert ids_with(report, Verdict.INCONCLUSIVE) == set()


def test_a_late_round_that_its_leader_is_told_whole_leaves_no_doubt() -> None:
    """Its generation is 0, and by that all that comes later is judged."""
    trace = OneMemberTrace(Order.INTERVALS)
    request = trace.send_request(1_000, "JoinGroup", join_body(""), 2)
    trace.send_response(16_000, request, LEADER_ROUND)
    trace.sync(16_100, 0, {"error_code": 0, "assignment": b"plan"})
    for time, error in ((16_200, 0), (16_300, 22)):
        trace.heartbeat(time, error, generation=0)
        trace.add_check("HB-05", len(trace.events) - 2)
    verdict = trace.verdict()
    assert [violation.requirements for violation in verdict.violations] == [("GEN-01",), ("HB-05",)]
    assert [result.status for result in verdict.check_results] == [CheckStatus.PASS, CheckStatus.FAIL]
