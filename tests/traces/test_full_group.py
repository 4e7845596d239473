"""A static member that restarts into a full group is refused on Kafka, but may be let in (STATIC-26)."""

from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios.replacements import replacements
from fencepost.conformance.run.play import play_scenario
from fencepost.conformance.subject import ScenarioRun
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckStatus

NAME = "restart-in-a-full-group"


def run_scenario() -> ScenarioRun:
    async def run() -> ScenarioRun:
        target = InProcessTarget(Settings(max_group_size=3))
        (scenario,) = (one for one in replacements.scenarios if one.name == NAME)
        return await play_scenario(scenario, target, await target.open(), "g", grace=0)

    return run_virtual(run())


def with_member_admitted(events: tuple[Event, ...], **changes: Any) -> list[Event]:
    """The same, but the member gets its place back under a new id, as on the fast path."""
    (marked,) = {event.of for event in events if event.api == "check"}
    led = next(
        event.body
        for event in events
        if event.api == "JoinGroup" and event.kind is Kind.RESPONSE and event.body["members"]
    )
    old = next(row["member_id"] for row in led["members"] if row["group_instance_id"])
    members = [{**row, "member_id": "new" if row["member_id"] == old else row["member_id"]} for row in led["members"]]
    leads = led["leader"] == old
    body = {
        **led,
        "member_id": "new",
        "leader": "new" if leads else led["leader"],
        "members": members if leads else [],
        "skip_assignment": leads,
        **changes,
    }
    return [
        replace(event, body=body) if event.kind is Kind.RESPONSE and event.of == marked else event for event in events
    ]


def test_returning_static_member_may_be_admitted() -> None:
    seen = run_scenario()
    verdict = judge(seen.header, with_member_admitted(seen.events))
    assert not verdict.violations
    assert [mark.status for mark in verdict.check_results] == [CheckStatus.PASS]
    assert verdict.decisions["restart_needs_room"] is False


@pytest.mark.parametrize(
    "changes", [{"generation_id": 2}, {"leader": "another"}, {"error_code": Error.UNKNOWN_MEMBER_ID}]
)
def test_returning_static_member_keeps_its_state(changes: dict[str, Any]) -> None:
    seen = run_scenario()
    assert judge(seen.header, with_member_admitted(seen.events, **changes)).violations
