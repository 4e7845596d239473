"""Random schedules of the lease: two clients that acquire, renew and write, and time that passes."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from random import Random

from fencepost.adapters.target import SendOptions
from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Move, Role, Schedule, actor_label
from tests.support.lease.target import HANDLERS

TTL_MS = 300
MOVES = (
    *(Move(kind, who) for kind in ("acquire", "renew", "write") for who in (0, 1)),
    *(Move("wait"), Move("wait", 0, (("ms", TTL_MS // 3),))),
)


@dataclass(frozen=True, slots=True)
class LeaseSchedules:
    """The lease as the schedule engine sees it."""

    default_role: Role = None

    def generate(self, seed: int, batch: int, size: int) -> list[GeneratedSchedule]:
        random = Random(f"{seed} {batch}")
        drawn = [tuple(random.choice(MOVES) for _ in range(12)) for _ in range(size)]
        name = f"lease-{seed}-{batch}"
        return [GeneratedSchedule(Schedule(f"{name}-{n}", (), moves), {}) for n, moves in enumerate(drawn)]

    def scenario_of(self, schedule: Schedule) -> Scenario:
        async def play(context: ScenarioContext) -> None:
            tokens = [0, 0]
            for move in schedule.moves:
                if move.kind == "wait":
                    await context.sleep(move.number("ms", 2 * TTL_MS))
                    continue
                client = actor_label(move.who)
                values = {"client": client, "token": tokens[move.who], "ttl": TTL_MS}
                body = {field.name: values[field.name] for field in fields(HANDLERS[move.kind][0])}
                response = await context.channel.send(move.kind, 0, body, SendOptions(member=client)).response
                if response and move.kind == "acquire" and not response["error"]:
                    tokens[move.who] = response["token"]

        return Scenario(schedule.name, (), play)

    def simpler_moves(self, move: Move) -> Iterable[Move]:
        return ()

    def simpler_roles(self, role: Role) -> Iterable[Role]:
        return ()
