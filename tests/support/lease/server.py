"""A lease server as a target in this process, and random schedules of two clients for it."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from random import Random

from fencepost.adapters.target import DEFAULT_OPTIONS, Description, Exchange, SendOptions, TraceBuilder
from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import Scenario
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Move, Role, Schedule, actor_label
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Kind, Order
from tests.support.lease.protocol import HANDLERS, Lease, LeaseStep, Request, expire

TTL_MS = 300
MOVES = (*(Move(kind, who) for kind in HANDLERS for who in (0, 1)), Move("wait"), Move("wait", 0, (("ms", 100),)))


def handle_request(lease: Lease, api: str, body: Body, now: int) -> LeaseStep:
    """Handle a request after the lease has expired, if its deadline has come by `now` (milliseconds)."""
    due = lease.holder is not None and lease.deadline <= now
    return HANDLERS[api](expire(lease).lease if due else lease, Request(**body), now)


@dataclass(slots=True)
class LeaseTarget:
    """A lease server, which is its own channel; a faulty one has another `handle`."""

    handle: Callable[[Lease, str, Body, int], LeaseStep] = handle_request
    lease: Lease = field(default_factory=Lease)
    recorder: TraceBuilder | None = None

    async def open(self) -> Description:
        return Description("lease", Order.TOTAL, "virtual", dict.fromkeys(HANDLERS, (0, 0)), Settings(), "")

    def channel(self, recorder: TraceBuilder) -> "LeaseTarget":
        self.recorder = recorder
        return self

    async def restart(self) -> None:
        raise NotImplementedError

    async def close(self) -> None: ...

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        assert self.recorder is not None
        request = self.recorder.record(Kind.REQUEST, api, version, body, member=options.member)
        step = self.handle(self.lease, api, body, request.time)
        self.lease, answer = step.lease, {"error": int(step.error), "token": step.token}
        self.recorder.record(Kind.RESPONSE, api, version, answer, member=options.member, of=request.sequence)
        response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
        response.set_result(answer)
        return Exchange(request, response, lambda: None)


@dataclass(frozen=True, slots=True)
class LeaseSchedules:
    """The lease as the schedule engine sees it: clients acquire, renew and write, and time passes."""

    default_role: Role = None

    def generate(self, seed: int, batch: int, size: int) -> list[GeneratedSchedule]:
        random, name = Random(f"{seed} {batch}"), f"lease-{seed}-{batch}"
        drawn = [tuple(random.choice(MOVES) for _ in range(12)) for _ in range(size)]
        return [GeneratedSchedule(Schedule(f"{name}-{n}", (), moves), {}) for n, moves in enumerate(drawn)]

    def scenario_of(self, schedule: Schedule) -> Scenario:
        async def play(context: ScenarioContext) -> None:
            tokens = [0, 0]
            for move in schedule.moves:
                if move.kind == "wait":
                    await context.sleep(move.number("ms", 2 * TTL_MS))
                    continue
                client = actor_label(move.who)
                body = asdict(Request("lease", client, tokens[move.who], TTL_MS))
                response = await context.channel.send(move.kind, 0, body, SendOptions(client)).response
                if response and move.kind == "acquire" and not response["error"]:
                    tokens[move.who] = response["token"]

        return Scenario(schedule.name, (), play)

    def simpler_moves(self, move: Move) -> Iterable[Move]:
        return ()

    def simpler_roles(self, role: Role) -> Iterable[Role]:
        return ()
