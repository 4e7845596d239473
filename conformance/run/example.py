"""An example of how a requirement is tested: a schedule, as the bundled coordinator goes through it."""

import asyncio

from fencepost.adapters.virtual_clock import run_virtual_in_thread
from fencepost.conformance.analysis.schedule_text import MemberLabels, schedule_lines
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.protocols.registry import DEFAULT_PROTOCOL
from fencepost.conformance.run.bundled import BundledRun
from fencepost.model.catalogue.requirement import Requirement
from fencepost.traces.events import Event, Kind


def example_schedule(requirement: Requirement) -> tuple[str, ...]:
    """The numbered lines of the first scenario that checks a requirement, up to the request whose response is checked;
    none if no scenario does, or it needs more than a single node."""
    scenario = next((each for each in DEFAULT_PROTOCOL.scenarios if requirement.id in each.requirements), None)
    if scenario is None:
        return ()
    bundled = BundledRun(Plan(BUNDLED), Profile())
    events = asyncio.run(run_virtual_in_thread(bundled.play(scenario, "example"))).events
    lines, _ = schedule_lines(events, _checked_request(events, requirement.id), MemberLabels(events))
    return tuple(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _checked_request(events: tuple[Event, ...], requirement: str) -> int:
    """The number of the first request whose response is checked, else of the last event."""
    by_number = {event.sequence: event for event in events}
    for event in events:
        is_check = event.kind is Kind.INTERNAL and event.api == "check" and event.body.get("requirement") == requirement
        if is_check and event.of is not None:
            answered = by_number[event.of].of
            return event.of if answered is None else answered
    return events[-1].sequence if events else 0
