"""After a wrong response the judge goes on from what the target has told: one deviation is one cause."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.subject import select_requirements
from tests.support.faulty_coordinators import Change, altering_coordinator, replace_error


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
