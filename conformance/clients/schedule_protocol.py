"""The interface between random schedules for clients and a protocol, and schedules in traces."""

from collections.abc import Iterable
from typing import Protocol

from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.schedules.protocol import ScheduleProtocol
from fencepost.conformance.schedules.schedule import Move, Schedule
from fencepost.traces.events import Body, Event, Kind

SCHEDULE = "schedule"
"""The name of the event in which the trace of a schedule has its moves."""


class ClientScheduleProtocol(ScheduleProtocol, Protocol):
    """A protocol whose schedules are played with a client."""

    def client_scenario_of(self, schedule: Schedule) -> Scenario:
        """A scenario that plays the schedule."""
        ...


def schedule_body(schedule: Schedule) -> Body:
    """The body of the event with the moves of a schedule."""
    moves = [{"kind": move.kind, "who": move.who, "options": dict(move.options)} for move in schedule.moves]
    return {"name": schedule.name, "moves": moves}


def schedule_in(events: Iterable[Event]) -> Schedule | None:
    """The schedule in a trace, None if it has none. Raises `ValueError` for one that cannot be read."""
    found = next((event for event in events if event.kind is Kind.INTERNAL and event.api == SCHEDULE), None)
    if found is None:
        return None
    try:
        moves = tuple(
            Move(str(row["kind"]), int(row["who"]), tuple(dict(row["options"]).items())) for row in found.body["moves"]
        )
        return Schedule(str(found.body["name"]), (), moves)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the schedule in event {found.sequence} cannot be read: {error!r}") from None
