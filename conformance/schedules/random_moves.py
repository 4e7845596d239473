"""Schedules of independent random moves, for protocols that need no model to draw them."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.schedules.protocol import TargetScheduleProtocol
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Move, Schedule

RANDOM_MOVES = 12
"""How many moves a schedule has."""
WAIT = "wait"
"""The kind of moves in which nothing is done for the milliseconds in their option "ms"."""


@dataclass(frozen=True, slots=True)
class RandomMoves(TargetScheduleProtocol):
    """Draws each move from `moves`, and plays one after the other. Without an option a wait lasts `wait_ms`."""

    moves: ClassVar[Sequence[Move]]
    wait_ms: ClassVar[int]

    @abstractmethod
    async def play_move(self, context: ScenarioContext, move: Move, memory: dict[int, Any]) -> None:
        """Make one move that is no wait; `memory` has what actors keep until their next moves, by number."""

    def generate(self, seed: int, batch: int, size: int) -> list[GeneratedSchedule]:
        """`size` schedules without predictions of the model."""
        random = Random(f"{seed} {batch}")
        drawn = [tuple(random.choices(self.moves, k=RANDOM_MOVES)) for _ in range(size)]
        schedules = (Schedule(f"random-{seed}-{batch}-{number}", (), moves) for number, moves in enumerate(drawn))
        return [GeneratedSchedule(schedule, {}) for schedule in schedules]

    def scenario_of(self, schedule: Schedule) -> Scenario:
        """A scenario that plays the moves."""

        async def play(context: ScenarioContext) -> None:
            memory: dict[int, Any] = {}
            for move in schedule.moves:
                if move.kind == WAIT:
                    await context.sleep(move.number("ms", self.wait_ms))
                else:
                    await self.play_move(context, move, memory)

        return Scenario(schedule.name, (), play)
