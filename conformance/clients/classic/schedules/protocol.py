"""Random schedules for clients of the classic protocol, as the schedule engine sees them."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from fencepost.conformance.clients.classic.schedules.drawing import draw_moves
from fencepost.conformance.clients.classic.schedules.moves import KINDS, ClientSchedulePlay
from fencepost.conformance.clients.protocol import SCHEDULE, ClientScheduleProtocol, schedule_body
from fencepost.conformance.clients.stage import ClientStage
from fencepost.conformance.run.schedule import GeneratedSchedule, Move, Schedule
from fencepost.conformance.subject import Scenario

SETTLING_S = 2.0
"""How long a client may take beyond its patience to do what it owes."""
MIN_PATIENCE_S = 6.0
MAX_QUIET_S = 20.0
SHORTEST_WAIT_MS = 100


@dataclass(frozen=True, slots=True)
class ClassicClientSchedules(ClientScheduleProtocol):
    """Schedules for a client; an application takes part that `is_driven`."""

    is_driven: bool = False

    def generate(self, seed: int, batch: int, size: int) -> list[GeneratedSchedule]:
        """As `ScheduleProtocol.generate`."""
        schedules = []
        for number in range(size):
            random = Random(f"client {seed} {batch} {number} {self.is_driven}")
            moves = draw_moves(random, is_driven=self.is_driven)
            schedules.append(GeneratedSchedule(Schedule(f"schedule-{seed}-{batch}-{number}", (), moves), {}))
        return schedules

    def client_scenario_of(self, schedule: Schedule) -> Scenario:
        """A scenario that makes the moves, has the faults stop, and gives the client time to do what it owes."""

        async def play(stage: ClientStage) -> None:
            stage.cluster.annotate(SCHEDULE, schedule_body(schedule))
            under_way = ClientSchedulePlay(stage)
            for move in schedule.moves:
                await KINDS[move.kind](under_way, move)
            await KINDS["start"](under_way, Move("start"))
            stage.cluster.script.cues.clear()
            stage.cluster.annotate("script", {"step": "the faults stop"})
            patience = max(stage.facts.rebalance_timeout, stage.facts.session_timeout) / 1000 + 1
            await stage.watch(min(max(patience, MIN_PATIENCE_S) + SETTLING_S, MAX_QUIET_S))
            await stage.ask_to_end()

        return Scenario(schedule.name, (), play)

    def simpler_moves(self, move: Move) -> Iterator[Move]:
        """A short wait in the place of a long one, and a wait in the place of anything else."""
        is_short = move.kind == "wait" and move.number("ms", 0) <= SHORTEST_WAIT_MS
        if move.kind != "start" and not is_short:
            yield Move("wait", 0, (("ms", SHORTEST_WAIT_MS),))
