"""A static member that restarts into a full group is refused on Kafka, but may be let in (STATIC-26)."""

from dataclasses import replace
from typing import Any

import pytest

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.execution.play import Played, play
from fencepost.conformance.scenarios.classic.replacements import replacements
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import Standing

NAME = "restart-in-a-full-group"


def played() -> Played:
    async def run() -> Played:
        target = InProcessTarget(Settings(max_group_size=3))
        (scenario,) = (one for one in replacements.scenarios if one.name == NAME)
        return await play(scenario, target, await target.open(), "g", grace=0)

    return run_virtual(run())


def let_in(events: tuple[Event, ...], **changes: Any) -> list[Event]:
    """The same, but the member gets its place back under a new id, as on the fast path."""
    (marked,) = {event.of for event in events if event.api == "evidence"}
    led = next(
        event.body
        for event in events
        if event.api == "JoinGroup" and event.kind is Kind.ANSWER and event.body["members"]
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
        replace(event, body=body) if event.kind is Kind.ANSWER and event.of == marked else event for event in events
    ]


def test_it_may_be_let_in() -> None:
    seen = played()
    verdict = judge(seen.header, let_in(seen.events))
    assert not verdict.faults
    assert [mark.standing for mark in verdict.evidence] == [Standing.PASS]
    assert verdict.decisions["restart_needs_room"] is False


@pytest.mark.parametrize("changes", [{"generation_id": 2}, {"leader": "another"}, {"error_code": 25}])
def test_but_only_as_the_member_that_it_was(changes: dict[str, Any]) -> None:
    seen = played()
    assert judge(seen.header, let_in(seen.events, **changes)).faults
