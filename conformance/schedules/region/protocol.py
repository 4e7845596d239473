"""The region as the schedule engine sees it: a schedule is a walk, played as requests to one job."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.scenarios.region.job import start_job
from fencepost.conformance.schedules.protocol import TargetScheduleProtocol
from fencepost.conformance.schedules.region.beyond_search import LOST_RECORDS, WAITS_IN_VAIN
from fencepost.conformance.schedules.region.walk import ACTIONS, BOUNDS, RegionWalk
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Move, Schedule

MOVES = (40, 160)
"""The fewest and the most steps of a walk."""
WEIGHTS = (0.1, 0.5, 1.0, 2.0, 4.0)
"""How often a kind of action may be drawn beside others: each walk has other habits."""
FAULTS = frozenset({"dies", "is expelled", "control plane restarts", "downstream fails", WAITS_IN_VAIN, LOST_RECORDS})
FAULT_WEIGHT = 0.15
"""How much less often faults are drawn."""


@dataclass(frozen=True, slots=True)
class RegionSchedules(TargetScheduleProtocol):
    """Draws walks, and plays them on targets that speak the line protocol."""

    def __hash__(self) -> int:
        return hash(type(self))

    def generate(self, seed: int, batch: int, size: int) -> list[GeneratedSchedule]:
        """As `ScheduleProtocol.generate`."""
        random = Random(f"{seed} {batch}")
        return [draw_schedule(f"random-{seed}-{batch}-{number}", random) for number in range(size)]

    def simpler_moves(self, move: Move) -> Iterable[Move]:
        """The move with the first choice there is."""
        return (move.without("choice"),) if move.options else ()

    def scenario_of(self, schedule: Schedule) -> Scenario:
        """A scenario that plays the walk; moves that are impossible where it has come to are left out."""

        async def play(context: ScenarioContext) -> None:
            job, walk = await start_job(context, "".join(BOUNDS.names)), RegionWalk()
            for move in schedule.moves:
                _, requests = walk.take(action_name(move), move.number("choice"))
                for one in requests:
                    await job.repeat(one.api, {"operator": one.operator, **one.fields})

        return Scenario(schedule.name, (), play)


def draw_schedule(name: str, random: Random) -> GeneratedSchedule:
    """A walk of enabled actions."""
    walk, moves = RegionWalk(), []
    habits = {kind: random.choice(WEIGHTS) * (FAULT_WEIGHT if kind in FAULTS else 1.0) for kind in KINDS}
    for _ in range(random.randint(*MOVES)):
        enabled = walk.list_enabled()
        if not enabled:
            break
        ((action, transitions),) = random.choices(enabled, [habits[kind_of(action.name)] for action, _ in enabled])
        choice = random.randrange(len(transitions))
        walk.take(action.name, choice)
        moves.append(move_of(action.name, choice))
    return GeneratedSchedule(Schedule(name, (), tuple(moves)), Counter())


def kind_of(action: str) -> str:
    """The kind of an action: its name without that of the operator that it is about."""
    who, _, what = action.partition(" ")
    return what if who in BOUNDS.names else action


def move_of(action: str, choice: int) -> Move:
    """An action as a move: of the operator that it is about, or of nobody."""
    kind, options = kind_of(action), (("choice", choice),) if choice else ()
    return Move(kind, 0 if kind == action else BOUNDS.names.index(action[0]), options)


KINDS = tuple(dict.fromkeys(map(kind_of, ACTIONS)))
OF_NOBODY = frozenset(kind for kind in KINDS if kind in ACTIONS)
"""The kinds of actions that are about no operator."""


def action_name(move: Move) -> str:
    """The name of a move's action."""
    return move.kind if move.kind in OF_NOBODY else f"{BOUNDS.names[move.who % len(BOUNDS.names)]} {move.kind}"
