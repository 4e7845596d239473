"""An instance id that is let pass is charged to the requirement about it, by each rule that refuses it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fencepost.adapters.serve.coordination import Request, Response
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.run.bundled import BundledRun
from fencepost.model.errors import Error
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import Violation
from tests.support.faulty_coordinators import altering_coordinator, install

Patch = pytest.MonkeyPatch
Alteration = Callable[[Request, Response], Response]


def first_violation(patch: Patch, change: Alteration, scenario: str) -> Violation:
    """The first violation in a scenario on an altering coordinator, as if no scenario had checked anything."""
    install(patch, altering_coordinator(change))
    [chosen] = (each for each in ALL if each.name == scenario)
    run = run_virtual(BundledRun(Plan(BUNDLED), Profile()).play(chosen, "run"))
    return judge(run.header, [event for event in run.events if event.api != "check"]).violations[0]


def let_leave(refused: Error) -> Alteration:
    """An entry of LeaveGroup that is refused with this error succeeds."""

    def change(request: Request, response: Response) -> Response:
        if request.api != "LeaveGroup":
            return response
        rows = response.body.get("members") or ()
        changed = [{**row, "error_code": 0} if row["error_code"] == refused else row for row in rows]
        return replace(response, body={**response.body, "members": changed})

    return change


@pytest.mark.parametrize("error", [Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID])
def test_an_entry_with_the_wrong_instance_id(error: Error, monkeypatch: Patch) -> None:
    found = first_violation(monkeypatch, let_leave(error), "leave-with-another-instance-id")
    assert (found.api, found.fields, found.requirements) == ("LeaveGroup", ("entries",), ("LEAVE-15",))


def test_an_entry_without_an_instance_id_is_no_matter_of_instance_ids(monkeypatch: Patch) -> None:
    found = first_violation(monkeypatch, let_leave(Error.UNKNOWN_MEMBER_ID), "batch-names-a-member-twice")
    assert "LEAVE-15" not in found.requirements


def ignore_instance_ids(request: Request, response: Response) -> Response:
    """A Heartbeat with an instance id that is refused with UNKNOWN_MEMBER_ID succeeds."""
    is_named = request.api == "Heartbeat" and request.body.get("group_instance_id")
    if not is_named or response.body["error_code"] != Error.UNKNOWN_MEMBER_ID:
        return response
    return replace(response, body={**response.body, "error_code": 0})


def test_a_heartbeat_with_an_unknown_instance_id(monkeypatch: Patch) -> None:
    found = first_violation(monkeypatch, ignore_instance_ids, "unknown-instance-id")
    assert (found.rule, found.requirements) == ("heartbeat.unknown-member", ("STATIC-07",))


def refuse_old_leaders(request: Request, response: Response) -> Response:
    """A leader that asks in a version without instance ids is refused, as Apache Kafka before 3.3.2 does."""
    if request.api != "JoinGroup" or request.version >= 5 or not response.body["members"]:
        return response
    refusal = {"error_code": Error.UNSUPPORTED_VERSION, "generation_id": -1, "members": []}
    return replace(response, body={**response.body, **refusal, "protocol_name": "", "leader": ""})


def test_an_old_leader_of_a_static_member(monkeypatch: Patch) -> None:
    found = first_violation(monkeypatch, refuse_old_leaders, "old-leader-of-a-static-member")
    assert (found.api, found.requirements) == ("JoinGroup", ("JOIN-55",))
