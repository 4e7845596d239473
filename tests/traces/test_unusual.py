"""Fields within the protocol's latitude: unusual only if they are so in every configuration that explains the trace."""

from collections.abc import Sequence
from dataclasses import replace

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios.leaves import leaves
from fencepost.conformance.run.play import play_scenario
from fencepost.conformance.subject import ScenarioRun
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckStatus

NAME = "leave-answers-the-parked-join"


def run_scenario() -> tuple[Header, Sequence[Event]]:
    """A member leaves while its JoinGroup is parked, as seen from outside: either may have been handled first, and
    the answer to the leave comes first."""

    async def run() -> ScenarioRun:
        target = InProcessTarget()
        (scenario,) = (one for one in leaves.scenarios if one.name == NAME)
        return await play_scenario(scenario, target, await target.open(), "g", grace=0)

    seen = run_virtual(run())
    *before, joined, left, mark = seen.events
    before += [replace(left, sequence=joined.sequence), replace(joined, sequence=left.sequence), mark]
    return replace(seen.header, order=Order.INTERVALS, clock="wall", grace=100), before


def check_statuses(header: Header, events: Sequence[Event]) -> set[CheckStatus]:
    """How the marks stand."""
    verdict = judge(header, events)
    assert not verdict.violations
    return {mark.status for mark in verdict.check_results}


def test_one_explanation_without_it_is_enough() -> None:
    # Answered because of the leave the member id is empty; refused after it, it would be echoed.
    assert check_statuses(*run_scenario()) == {CheckStatus.PASS}


def test_unusual_whatever_happened() -> None:
    header, events = run_scenario()
    (marked,) = {event.of for event in events if event.api == "check"}
    changed = [
        replace(event, body={**event.body, "member_id": "another"})
        if event.kind is Kind.RESPONSE and event.of == marked
        else event
        for event in events
    ]
    assert check_statuses(header, changed) == {CheckStatus.FAIL}
