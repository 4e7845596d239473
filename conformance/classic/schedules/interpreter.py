"""Plays a classic schedule as a scenario: each move becomes requests of an actor that acts on the responses it got, or
lets time pass.

Whatever the target does, the next move can be made: a move waits for no response that may not come.
"""

from contextlib import suppress
from dataclasses import dataclass

from fencepost.conformance.classic.schedules.moves import failures, groups, membership, offsets, time, transactions
from fencepost.conformance.classic.schedules.moves.cast import Cast, MemberRole
from fencepost.conformance.classic.schedules.moves.registry import KINDS
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import Unsupported
from fencepost.conformance.run.schedule import Move, Schedule
from fencepost.conformance.subject import Scenario

MOVE_MODULES = (membership, offsets, transactions, groups, failures, time)
"""The modules whose moves are registered."""


class ScheduleInterpreter:
    """Makes the moves of one schedule."""

    def __init__(self, context: ScenarioContext, roles: tuple[MemberRole, ...]) -> None:
        self.cast = Cast(context, roles)

    async def make_move(self, move: Move) -> None:
        """Make one move; a move that the target does not support is left out."""
        self.cast.send_partly(move.number("sent") or None)
        with suppress(Unsupported):
            await KINDS[move.kind].make(self.cast, move)
        self.cast.send_partly(None)


def scenario_of(schedule: Schedule) -> Scenario:
    """A scenario that plays the schedule and checks no requirement."""
    needs = ("restart",) if any(move.kind == "restart" for move in schedule.moves) else ()
    return Scenario(schedule.name, (), InterpretedSchedule(schedule), needs)


@dataclass(frozen=True, slots=True)
class InterpretedSchedule:
    """Plays one schedule as scenarios are played."""

    schedule: Schedule

    async def __call__(self, context: ScenarioContext) -> None:
        """Make every move."""
        interpreter = ScheduleInterpreter(context, self.schedule.cast)
        for move in self.schedule.moves:
            await interpreter.make_move(move)
